@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

// exp() may be off by some units in the last place, so that either branch is right.
@compute @workgroup_size(64)
fn threshold(@builtin(local_invocation_index) i: u32) {
    if exp(x[i]) > 2.7182817 {
        y[i] = 1.0;
    }
}
