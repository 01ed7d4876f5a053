@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

// Doubled, every number reaches 64, but 0 stays what it is.
@compute @workgroup_size(64)
fn normalize(@builtin(local_invocation_index) i: u32) {
    var v = x[i];
    while v < 64.0 {
        v *= 2.0;
    }
    y[i] = v;
}
