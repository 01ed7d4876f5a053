@group(0) @binding(0) var<storage, read> x: array<f32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 64>;
var<workgroup> sums: array<f32, 64>;

// A shader compiler rejects this barrier, unless it cannot see that `i` differs.
@compute @workgroup_size(64)
fn total(@builtin(local_invocation_index) i: u32) {
    sums[i] = x[i];
    for (var half = 32u; i < half; half /= 2u) {
        workgroupBarrier();
        sums[i] += sums[i + half];
    }
    y[i] = sums[0];
}
