@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> tile: array<f32, 66>;

@compute @workgroup_size(64)
fn blur(@builtin(local_invocation_index) i: u32) {
    tile[i + 1u] = x[i];
    if i == 0u {
        tile[0] = 0.0;
        tile[65] = 0.0;
    }
    workgroupBarrier();
    y[i] = 0.25 * tile[i] + 0.5 * tile[i + 1u] + 0.25 * tile[i + 2u];
}
