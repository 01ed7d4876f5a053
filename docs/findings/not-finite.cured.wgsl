@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

@compute @workgroup_size(64)
fn logistic(@builtin(local_invocation_index) i: u32) {
    let e = exp(-abs(2.0 * x[i])); // at most 1
    y[i] = select(e, 1.0, x[i] >= 0.0) / (1.0 + e);
}
