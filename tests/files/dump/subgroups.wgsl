// Reductions, a shuffle, a ballot and an election within subgroups.
enable subgroups;

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> bits: array<vec4<u32>>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(subgroup_invocation_id) id: u32) {
    let sum = subgroupAdd(y[lane]);
    let next = subgroupShuffleDown(sum, 1u);
    let even = subgroupBallot(id % 2u == 0u);
    if subgroupElect() {
        bits[0] = even;
    }
    y[lane] = next * quadSwapX(sum);
}
