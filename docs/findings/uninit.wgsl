@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> tile: array<f32, 66>;

// The two elements at the edges of the tile are never stored.
@compute @workgroup_size(64)
fn blur(@builtin(local_invocation_index) i: u32) {
    tile[i + 1u] = x[i];
    workgroupBarrier();
    y[i] = 0.25 * tile[i] + 0.5 * tile[i + 1u] + 0.25 * tile[i + 2u];
}
