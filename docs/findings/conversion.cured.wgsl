@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> cell: array<u32, 64>;

@compute @workgroup_size(64)
fn locate(@builtin(local_invocation_index) i: u32) {
    cell[i] = u32(max(floor(x[i]) - 8.0, 0.0));
}
