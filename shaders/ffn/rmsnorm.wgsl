// Y = X / sqrt(mean(X * X) + epsilon) * W, row by row: X and Y are M x N, W is N. A workgroup a row. Grid: M, 1, 1.

struct Params {
    columns: u32,
    epsilon: f32,
}

@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> W: array<f32>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;

var<workgroup> partials: array<f32, 256>;

@compute @workgroup_size(256)
fn rmsnorm(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let row = group.x * params.columns;
    var sum = 0.0;
    for (var i = thread; i < params.columns; i += 256u) {
        sum = fma(X[row + i], X[row + i], sum);
    }
    partials[thread] = sum;
    for (var width = 128u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if thread < width {
            partials[thread] += partials[thread + width];
        }
    }
    workgroupBarrier();
    let scale = inverseSqrt(partials[0] / f32(params.columns) + params.epsilon);
    for (var i = thread; i < params.columns; i += 256u) {
        Y[row + i] = X[row + i] * scale * W[i];
    }
}
