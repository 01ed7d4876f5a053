@group(0) @binding(0) var<storage, read> x: array<f32, 60>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 60>;

// 64 invocations, 60 elements: the last four have none.
@compute @workgroup_size(64)
fn scale(@builtin(local_invocation_index) i: u32) {
    y[i] = 2.0 * x[i];
}
