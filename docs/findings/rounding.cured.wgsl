@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;

@compute @workgroup_size(64)
fn threshold(@builtin(local_invocation_index) i: u32) {
    if x[i] > 1.0 {
        y[i] = 1.0;
    }
}
