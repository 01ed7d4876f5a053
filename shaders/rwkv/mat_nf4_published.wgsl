// Y = X @ transpose(W) with W in NF4 (see weights.wgsl), for many tokens, with the schedule of a published kernel, which
// the manifest names: two tiles and the levels in workgroup memory, and 4 x 4 outputs an invocation. X is M x K, W N x K,
// Y M x N, row-major; M and N are multiples of 4, K of 64.
//
// `x` of a workgroup or invocation is its place in N, `y` in M. Grid: ceil(N / 32), ceil(M / 32).

const EDGE = 8u; // invocations along x and y, and words of eight weights in a step
const ROWS = 32u; // of a tile

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, N, K, unused
@group(0) @binding(1) var<storage, read> W: array<u32>;
@group(0) @binding(2) var<storage, read> absmax: array<u32>; // an f16 of each block, two to a word
@group(0) @binding(3) var<uniform> table: array<vec4<f32>, 4>;
@group(0) @binding(4) var<storage, read> X: array<mat2x4<f32>>;
@group(0) @binding(5) var<storage, read_write> Y: array<vec4<f32>>;

const SEVENS = 0x77777777u; // eight weights of level 7, which is 0

var<workgroup> w_tile: array<array<u32, EDGE>, ROWS>;
var<workgroup> x_tile: array<array<mat2x4<f32>, EDGE>, ROWS>;
var<workgroup> levels: array<vec4<f32>, 4>;

// Copy one step of both tiles, four rows of each an invocation; zeros, by a store of their own, where there is nothing.
fn stage(group: vec2<u32>, local: vec2<u32>, word: u32) {
    let words = dims.z / 8u;
    for (var row = local.y; row < ROWS; row += EDGE) {
        let column = group.x * ROWS + row;
        if column < dims.y && word < words {
            w_tile[row][local.x] = W[column * words + word];
        } else {
            w_tile[row][local.x] = SEVENS;
        }
        let token = group.y * ROWS + row;
        if token < dims.x && word < words {
            x_tile[row][local.x] = X[token * words + word];
        } else {
            x_tile[row][local.x] = mat2x4<f32>();
        }
    }
}

fn absmax_of(word: u32) -> f32 {
    let block = word / 8u;
    return unpack2x16float(absmax[block / 2u])[block % 2u];
}

fn level(q: u32) -> f32 {
    return levels[q / 4u][q % 4u];
}

// The levels of four nibbles, the lowest first.
fn four_levels(nibbles: u32) -> vec4<f32> {
    let q = (vec4<u32>(nibbles) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return vec4<f32>(level(q.x), level(q.y), level(q.z), level(q.w));
}

@compute @workgroup_size(EDGE, EDGE)
fn matmul_mat(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(global_invocation_id) id: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let words = dims.z / 8u;
    let at = local.xy * 4u;
    let inside = all(id.xy * 4u < dims.yx);
    if thread == 0u {
        levels = table;
    }
    var sums: mat4x4<f32>; // a column for each token
    for (var first = 0u; first < words; first += EDGE) {
        stage(group.xy, local.xy, first + local.x);
        workgroupBarrier();
        if inside {
            var scales: vec4<f32>;
            for (var r = 0u; r < 4u; r += 1u) {
                scales[r] = absmax_of((id.x * 4u + r) * words + first);
            }
            for (var k = 0u; k < EDGE; k += 1u) {
                let four = vec4<u32>(w_tile[at.x][k], w_tile[at.x + 1u][k], w_tile[at.x + 2u][k], w_tile[at.x + 3u][k]);
                for (var half = 0u; half < 2u; half += 1u) {
                    var w: mat4x4<f32>;
                    var x: mat4x4<f32>;
                    for (var r = 0u; r < 4u; r += 1u) {
                        w[r] = scales[r] * four_levels(four[r] >> (half * 16u));
                        x[r] = x_tile[at.y + r][k][half];
                    }
                    sums += transpose(w) * x;
                }
            }
        }
        workgroupBarrier();
    }
    if inside {
        for (var token = 0u; token < 4u; token += 1u) {
            Y[(id.y * 4u + token) * (dims.y / 4u) + id.x] = sums[token];
        }
    }
}
