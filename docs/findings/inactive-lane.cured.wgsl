enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

@compute @workgroup_size(64)
fn differences(@builtin(local_invocation_index) i: u32, @builtin(subgroup_size) size: u32,
               @builtin(subgroup_invocation_id) lane: u32) {
    let next = subgroupShuffleDown(x[i], 1u);
    if lane + 1u < size {
        y[i] = next - x[i];
    }
}
