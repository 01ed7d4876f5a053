// The schedule of the tiled matmuls: C = A @ B with sums in f32, where A is rows x depth and B is depth x columns.
//
// One workgroup makes one TM x TN tile of C, each of its 16 x 16 invocations a 4 x 4 patch. The depth is walked in
// steps of TK; a step's slices of A and B wait in workgroup memory, in two slots each, so that the next step is
// fetched while this one is multiplied and a step needs one barrier only. Where SINGLE is defined there is one slot,
// and a second barrier before it is overwritten; loads, masks and the order of additions stay, so do the bits.
//
// A kernel includes this file, declares `dims` (rows, columns, depth, unused) and says where its numbers are:
//   fn stage_a(slot: u32, tid: u32, first_row: u32, first_k: u32)       its share of a slice of A, by `put_a`
//   fn stage_b(slot: u32, tid: u32, first_k: u32, first_column: u32)    its share of a slice of B, by `put_b`
//   fn finish(at: u32, sum: f32)                                        stores one element of C
// Each invocation stages four neighbours of A and of B, which lie in 16 bytes: so the host sees to it that the sizes
// along which they lie are multiples of 4. Grid: ceil(columns / TN), ceil(rows / TM), 1.

const TM = 64u;
const TN = 64u;
const TK = 16u;
override TK_PAD: u32 = 17u; // words from one row of a_tile to the next

#ifdef SINGLE
const SLOTS = 1u;
#else
const SLOTS = 2u;
#endif

var<workgroup> a_tile: array<f32, SLOTS * TM * TK_PAD>; // [slot][row][k]
var<workgroup> b_tile: array<f32, SLOTS * TK * TN>; // [slot][k][column]

// Neighbours along k lie side by side in a_tile and TN words apart in b_tile; `next` is how far to the next of them.
fn put_a(slot: u32, row: u32, k: u32, next: u32, v: vec4<f32>) {
    let to = slot * TM * TK_PAD + row * TK_PAD + k;
    a_tile[to] = v.x;
    a_tile[to + next] = v.y;
    a_tile[to + 2u * next] = v.z;
    a_tile[to + 3u * next] = v.w;
}

fn put_b(slot: u32, k: u32, column: u32, next: u32, v: vec4<f32>) {
    let to = slot * TK * TN + k * TN + column;
    b_tile[to] = v.x;
    b_tile[to + next] = v.y;
    b_tile[to + 2u * next] = v.z;
    b_tile[to + 3u * next] = v.w;
}

// Zeros where a matrix has ended: at all of `v` where not `inside`, and at those of `first`, `first` + 1, … from `end`.
fn masked(v: vec4<f32>, inside: bool, first: u32, end: u32) -> vec4<f32> {
    let within = first + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(end);
    return select(vec4<f32>(), v, vec4<bool>(inside) & within);
}

fn finish_row(row: u32, column: u32, sums: vec4<f32>) {
    if row >= dims.x {
        return;
    }
    let at = row * dims.y + column;
    if column < dims.y { finish(at, sums.x); }
    if column + 1u < dims.y { finish(at + 1u, sums.y); }
    if column + 2u < dims.y { finish(at + 2u, sums.z); }
    if column + 3u < dims.y { finish(at + 3u, sums.w); }
}

@compute @workgroup_size(16, 16)
fn multiply(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let tid = local.y * 16u + local.x;
    let first_row = group.y * TM;
    let first_column = group.x * TN;
    let steps = (dims.z + TK - 1u) / TK;

    // One sum per element of the patch, a row of four in each vector.
    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    var sum2 = vec4<f32>();
    var sum3 = vec4<f32>();

#ifndef SINGLE
    stage_a(0u, tid, first_row, 0u);
    stage_b(0u, tid, 0u, first_column);
    workgroupBarrier();
#endif

    for (var step = 0u; step < steps; step += 1u) {
        let slot = step % SLOTS;
#ifdef SINGLE
        stage_a(slot, tid, first_row, step * TK);
        stage_b(slot, tid, step * TK, first_column);
        workgroupBarrier();
#else
        if step + 1u < steps {
            stage_a(1u - slot, tid, first_row, (step + 1u) * TK);
            stage_b(1u - slot, tid, (step + 1u) * TK, first_column);
        }
#endif

        let a_at = slot * TM * TK_PAD + local.y * 4u * TK_PAD;
        let b_at = slot * TK * TN + local.x * 4u;
        for (var k = 0u; k < TK; k += 1u) {
            let a0 = a_tile[a_at + k];
            let a1 = a_tile[a_at + TK_PAD + k];
            let a2 = a_tile[a_at + 2u * TK_PAD + k];
            let a3 = a_tile[a_at + 3u * TK_PAD + k];
            let b0 = b_tile[b_at + k * TN];
            let b1 = b_tile[b_at + k * TN + 1u];
            let b2 = b_tile[b_at + k * TN + 2u];
            let b3 = b_tile[b_at + k * TN + 3u];
            let b = vec4<f32>(b0, b1, b2, b3);
            sum0 = fma(vec4<f32>(a0), b, sum0);
            sum1 = fma(vec4<f32>(a1), b, sum1);
            sum2 = fma(vec4<f32>(a2), b, sum2);
            sum3 = fma(vec4<f32>(a3), b, sum3);
        }
        workgroupBarrier();
    }

    let row = first_row + local.y * 4u;
    let column = first_column + local.x * 4u;
    finish_row(row, column, sum0);
    finish_row(row + 1u, column, sum1);
    finish_row(row + 2u, column, sum2);
    finish_row(row + 3u, column, sum3);
}
