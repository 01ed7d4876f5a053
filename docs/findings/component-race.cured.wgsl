@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> tile: array<f32, 64>;

// Reverse a row.
@compute @workgroup_size(64)
fn reverse(@builtin(local_invocation_index) i: u32) {
    tile[i] = x[i];
    workgroupBarrier();
    y[i] = tile[63u - i];
}
