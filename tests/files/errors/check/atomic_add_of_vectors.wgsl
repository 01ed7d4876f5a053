// Sums of subgroups cannot be gathered so: only i32 and u32 can be added to atomically, and only one at a time.
enable subgroups;

@group(0) @binding(0) var<storage, read_write> sums: array<vec4<f32>>;

@compute @workgroup_size(128)
fn gather(@builtin(workgroup_id) group: vec3<u32>) {
    let sum = subgroupAdd(vec4<f32>(1.0));
    if subgroupElect() {
        atomicAdd(&sums[group.x], sum);
    }
}
