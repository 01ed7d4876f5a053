@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> steps: array<u32, 64>;

@compute @workgroup_size(64)
fn count(@builtin(local_invocation_index) i: u32) {
    var left = x[i];
    var n = 0u;
    while left > 0.0 && left < 64.0 {
        left *= 2.0;
        n++;
    }
    steps[i] = n;
}
