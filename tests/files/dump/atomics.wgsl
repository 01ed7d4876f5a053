// Atomic operations on storage and workgroup memory, and a uniform load.
@group(0) @binding(0) var<storage, read_write> counts: array<atomic<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> most: atomic<i32>;
var<workgroup> total: atomic<u32>;

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) lane: u32) {
    atomicAdd(&total, lane);
    let before = atomicExchange(&counts[lane % 4u], 7u);
    atomicMax(&most, i32(before) - 3);
    let all = workgroupUniformLoad(&total);
    if atomicCompareExchangeWeak(&counts[0], 7u, all).exchanged {
        atomicStore(&counts[1], atomicLoad(&counts[2]));
    }
}
