@group(0) @binding(0) var<storage, read_write> sums: array<atomic<f32>>;

@compute @workgroup_size(128)
fn gather(@builtin(workgroup_id) group: vec3<u32>) {
    atomicAdd(&sums[group.x], 1.0);
}
