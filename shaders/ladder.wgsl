// C = A @ B in f32, all row-major, climbing from one output to a workgroup of one invocation to 64 outputs to each of
// 256 invocations. No workgroup memory: what neighbours share, they share through caches. A is M x K, B is K x N.
//
// Products are added one by one, in the order of k and unfused: every rung writes the same bits. Grids:
//   one_thread      ceil(M * N / 1)                        flat            ceil(M * N / 256)
//   row_from_x      ceil(M / 8), ceil(N / 8)               row_from_y      ceil(N / 8), ceil(M / 8)
//   tile_1x4        ceil(N / 64), ceil(M / 16)
//   tile_4x4, unrolled_4x4    ceil(N / 64), ceil(M / 64)   unrolled_8x8    ceil(N / 128), ceil(M / 128)
// The host sees to it that N is a multiple of 4 for tile_1x4, whose stores look at the first of four columns only.

struct Sizes {
    M: u32,
    K: u32,
    N: u32,
}

@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read> A: array<f32>;
@group(0) @binding(2) var<storage, read> B: array<f32>;
@group(0) @binding(3) var<storage, read_write> C: array<f32>;

// ---- one output to an invocation --------------------------------------------------------------------

fn one_output(row: u32, column: u32) {
    var sum = 0.0;
    for (var k = 0u; k < sizes.K; k += 1u) {
        sum = sum + A[row * sizes.K + k] * B[k * sizes.N + column];
    }
    C[row * sizes.N + column] = sum;
}

@compute @workgroup_size(1)
fn one_thread(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < sizes.M * sizes.N {
        one_output(id.x / sizes.N, id.x % sizes.N);
    }
}

@compute @workgroup_size(256)
fn flat(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < sizes.M * sizes.N {
        one_output(id.x / sizes.N, id.x % sizes.N);
    }
}

// Neighbouring invocations work on rows below each other ...
@compute @workgroup_size(8, 8)
fn row_from_x(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < sizes.M && id.y < sizes.N {
        one_output(id.x, id.y);
    }
}

// ... and here on columns beside each other.
@compute @workgroup_size(8, 8)
fn row_from_y(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.y < sizes.M && id.x < sizes.N {
        one_output(id.y, id.x);
    }
}

// ---- several outputs to an invocation ---------------------------------------------------------------

@compute @workgroup_size(16, 16)
fn tile_1x4(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y;
    let column = id.x * 4u;
    if row >= sizes.M || column >= sizes.N {
        return;
    }
    var sum0 = 0.0;
    var sum1 = 0.0;
    var sum2 = 0.0;
    var sum3 = 0.0;
    for (var k = 0u; k < sizes.K; k += 1u) {
        let a = A[row * sizes.K + k];
        let b_at = k * sizes.N + column;
        sum0 = sum0 + a * B[b_at];
        sum1 = sum1 + a * B[b_at + 1u];
        sum2 = sum2 + a * B[b_at + 2u];
        sum3 = sum3 + a * B[b_at + 3u];
    }
    let at = row * sizes.N + column;
    C[at] = sum0;
    C[at + 1u] = sum1;
    C[at + 2u] = sum2;
    C[at + 3u] = sum3;
}

const TILE = 4u;

// Rows and columns that the matrices lack are loaded all the same, and not stored. Each loop stays a loop: the sums are
// an array that is indexed by variables.
@compute @workgroup_size(16, 16)
fn tile_4x4(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y * TILE;
    let column = id.x * TILE;
    var sums: array<array<f32, TILE>, TILE>;
    for (var k = 0u; k < sizes.K; k += 1u) {
        for (var i = 0u; i < TILE; i += 1u) {
            let a = A[(row + i) * sizes.K + k];
            for (var j = 0u; j < TILE; j += 1u) {
                let b = B[k * sizes.N + column + j];
                sums[i][j] = sums[i][j] + a * b;
            }
        }
    }
    for (var i = 0u; i < TILE; i += 1u) {
        for (var j = 0u; j < TILE; j += 1u) {
            store(row + i, column + j, sums[i][j]);
        }
    }
}

fn store(row: u32, column: u32, sum: f32) {
    if row < sizes.M && column < sizes.N {
        C[row * sizes.N + column] = sum;
    }
}

fn store_four(row: u32, column: u32, sums: vec4<f32>) {
    store(row, column, sums.x);
    store(row, column + 1u, sums.y);
    store(row, column + 2u, sums.z);
    store(row, column + 3u, sums.w);
}

fn load_a(row: u32, k: u32) -> f32 {
    return A[row * sizes.K + k];
}

// Four neighbours of a row of B, one load each.
fn load_four(k: u32, column: u32) -> vec4<f32> {
    let at = k * sizes.N + column;
    return vec4<f32>(B[at], B[at + 1u], B[at + 2u], B[at + 3u]);
}

@compute @workgroup_size(16, 16)
fn unrolled_4x4(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y * 4u;
    let column = id.x * 4u;
    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    var sum2 = vec4<f32>();
    var sum3 = vec4<f32>();
    for (var k = 0u; k < sizes.K; k += 1u) {
        let b = load_four(k, column);
        sum0 = sum0 + load_a(row, k) * b;
        sum1 = sum1 + load_a(row + 1u, k) * b;
        sum2 = sum2 + load_a(row + 2u, k) * b;
        sum3 = sum3 + load_a(row + 3u, k) * b;
    }
    store_four(row, column, sum0);
    store_four(row + 1u, column, sum1);
    store_four(row + 2u, column, sum2);
    store_four(row + 3u, column, sum3);
}

@compute @workgroup_size(16, 16)
fn unrolled_8x8(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.y * 8u;
    let column = id.x * 8u;
    let right = column + 4u;
    var left0 = vec4<f32>();
    var left1 = vec4<f32>();
    var left2 = vec4<f32>();
    var left3 = vec4<f32>();
    var left4 = vec4<f32>();
    var left5 = vec4<f32>();
    var left6 = vec4<f32>();
    var left7 = vec4<f32>();
    var right0 = vec4<f32>();
    var right1 = vec4<f32>();
    var right2 = vec4<f32>();
    var right3 = vec4<f32>();
    var right4 = vec4<f32>();
    var right5 = vec4<f32>();
    var right6 = vec4<f32>();
    var right7 = vec4<f32>();
    for (var k = 0u; k < sizes.K; k += 1u) {
        let b = load_four(k, column);
        let c = load_four(k, right);
        let a0 = load_a(row, k);
        let a1 = load_a(row + 1u, k);
        let a2 = load_a(row + 2u, k);
        let a3 = load_a(row + 3u, k);
        let a4 = load_a(row + 4u, k);
        let a5 = load_a(row + 5u, k);
        let a6 = load_a(row + 6u, k);
        let a7 = load_a(row + 7u, k);
        left0 = left0 + a0 * b;
        left1 = left1 + a1 * b;
        left2 = left2 + a2 * b;
        left3 = left3 + a3 * b;
        left4 = left4 + a4 * b;
        left5 = left5 + a5 * b;
        left6 = left6 + a6 * b;
        left7 = left7 + a7 * b;
        right0 = right0 + a0 * c;
        right1 = right1 + a1 * c;
        right2 = right2 + a2 * c;
        right3 = right3 + a3 * c;
        right4 = right4 + a4 * c;
        right5 = right5 + a5 * c;
        right6 = right6 + a6 * c;
        right7 = right7 + a7 * c;
    }
    store_four(row, column, left0);
    store_four(row + 1u, column, left1);
    store_four(row + 2u, column, left2);
    store_four(row + 3u, column, left3);
    store_four(row + 4u, column, left4);
    store_four(row + 5u, column, left5);
    store_four(row + 6u, column, left6);
    store_four(row + 7u, column, left7);
    store_four(row, right, right0);
    store_four(row + 1u, right, right1);
    store_four(row + 2u, right, right2);
    store_four(row + 3u, right, right3);
    store_four(row + 4u, right, right4);
    store_four(row + 5u, right, right5);
    store_four(row + 6u, right, right6);
    store_four(row + 7u, right, right7);
}
