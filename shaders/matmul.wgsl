// Y = X @ W in f32, all row-major: X is M x K, W is K x N, Y is M x N.
//
// One workgroup makes one TM x TN tile of Y, each of its 16 x 16 invocations a 4 x 4 patch. The K axis is walked in
// steps of TK; a step's slices of X and W wait in workgroup memory, in two slots each, so that the next step is
// fetched while this one is multiplied and a step needs one barrier only (matmul_single.wgsl is the twin with one slot).
//
// The host sees to it that K and N are multiples of 4. Grid: ceil(N / TN), ceil(M / TM), 1.

const TM = 64u;
const TN = 64u;
const TK = 16u;
override TK_PAD: u32 = 17u; // words from one row of x_tile to the next

@group(0) @binding(0) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> W: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>; // M, N, K, unused

var<workgroup> x_tile: array<f32, 2u * TM * TK_PAD>; // [slot][row][k]
var<workgroup> w_tile: array<f32, 2u * TK * TN>; // [slot][k][column]

// Invocation `tid` copies four neighbours along K: one 16-byte load, four stores. Outside of X it stores zeros.
fn stage_x(slot: u32, tid: u32, first_row: u32, first_k: u32) {
    let r = tid * 4u / TK;
    let c = tid * 4u % TK;
    let row = first_row + r;
    let k = first_k + c;
    let inside = row < dims.x;
    let v = X[row * (dims.z / 4u) + k / 4u];
    let to = slot * TM * TK_PAD + r * TK_PAD + c;
    x_tile[to] = select(0.0, v.x, inside && k < dims.z);
    x_tile[to + 1u] = select(0.0, v.y, inside && k + 1u < dims.z);
    x_tile[to + 2u] = select(0.0, v.z, inside && k + 2u < dims.z);
    x_tile[to + 3u] = select(0.0, v.w, inside && k + 3u < dims.z);
}

// The same for W, four neighbours along N.
fn stage_w(slot: u32, tid: u32, first_k: u32, first_column: u32) {
    let r = tid * 4u / TN;
    let c = tid * 4u % TN;
    let k = first_k + r;
    let column = first_column + c;
    let inside = k < dims.z;
    let v = W[k * (dims.y / 4u) + column / 4u];
    let to = slot * TK * TN + r * TN + c;
    w_tile[to] = select(0.0, v.x, inside && column < dims.y);
    w_tile[to + 1u] = select(0.0, v.y, inside && column + 1u < dims.y);
    w_tile[to + 2u] = select(0.0, v.z, inside && column + 2u < dims.y);
    w_tile[to + 3u] = select(0.0, v.w, inside && column + 3u < dims.y);
}

fn store_row(row: u32, column: u32, v: vec4<f32>) {
    if row >= dims.x {
        return;
    }
    let to = row * dims.y + column;
    if column < dims.y { Y[to] = v.x; }
    if column + 1u < dims.y { Y[to + 1u] = v.y; }
    if column + 2u < dims.y { Y[to + 2u] = v.z; }
    if column + 3u < dims.y { Y[to + 3u] = v.w; }
}

@compute @workgroup_size(16, 16)
fn matmul(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let tid = local.y * 16u + local.x;
    let first_row = group.y * TM;
    let first_column = group.x * TN;
    let steps = (dims.z + TK - 1u) / TK;

    // One accumulator per output of the patch, a row of four in each vector.
    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    var sum2 = vec4<f32>();
    var sum3 = vec4<f32>();

    stage_x(0u, tid, first_row, 0u);
    stage_w(0u, tid, 0u, first_column);
    workgroupBarrier();

    for (var step = 0u; step < steps; step += 1u) {
        let slot = step % 2u;
        if step + 1u < steps {
            stage_x(1u - slot, tid, first_row, (step + 1u) * TK);
            stage_w(1u - slot, tid, (step + 1u) * TK, first_column);
        }

        let x_at = slot * TM * TK_PAD + local.y * 4u * TK_PAD;
        let w_at = slot * TK * TN + local.x * 4u;
        for (var k = 0u; k < TK; k += 1u) {
            let x0 = x_tile[x_at + k];
            let x1 = x_tile[x_at + TK_PAD + k];
            let x2 = x_tile[x_at + 2u * TK_PAD + k];
            let x3 = x_tile[x_at + 3u * TK_PAD + k];
            let w0 = w_tile[w_at + k * TN];
            let w1 = w_tile[w_at + k * TN + 1u];
            let w2 = w_tile[w_at + k * TN + 2u];
            let w3 = w_tile[w_at + k * TN + 3u];
            let w = vec4<f32>(w0, w1, w2, w3);
            sum0 = fma(vec4<f32>(x0), w, sum0);
            sum1 = fma(vec4<f32>(x1), w, sum1);
            sum2 = fma(vec4<f32>(x2), w, sum2);
            sum3 = fma(vec4<f32>(x3), w, sum3);
        }
        workgroupBarrier();
    }

    let row = first_row + local.y * 4u;
    let column = first_column + local.x * 4u;
    store_row(row, column, sum0);
    store_row(row + 1u, column, sum1);
    store_row(row + 2u, column, sum2);
    store_row(row + 3u, column, sum3);
}
