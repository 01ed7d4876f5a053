@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> tile: array<vec4f, 16>;

// Reverse a row. Four invocations store to each vector, and a store to a component may write the others back.
@compute @workgroup_size(64)
fn reverse(@builtin(local_invocation_index) i: u32) {
    tile[i / 4u][i % 4u] = x[i];
    workgroupBarrier();
    y[i] = tile[15u - i / 4u][3u - i % 4u];
}
