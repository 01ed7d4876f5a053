@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

// exp() overflows for elements over 88.
@compute @workgroup_size(64)
fn logistic(@builtin(local_invocation_index) i: u32) {
    let e = exp(2.0 * x[i]);
    y[i] = e / (1.0 + e);
}
