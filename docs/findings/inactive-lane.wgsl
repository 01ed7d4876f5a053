enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

// The last lane of a subgroup has no neighbor to read from.
@compute @workgroup_size(64)
fn differences(@builtin(local_invocation_index) i: u32) {
    y[i] = subgroupShuffleDown(x[i], 1u) - x[i];
}
