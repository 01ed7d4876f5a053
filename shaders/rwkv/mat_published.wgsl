// Y = X @ transpose(W) for many tokens, with the schedule of a published kernel, which the manifest names: two tiles in
// workgroup memory, and 4 x 4 outputs an invocation. W is in f16, or where INT8 is defined in blocks as in weights.wgsl.
// X is M x K, W N x K, Y M x N, row-major; M, N and K are multiples of 4.
//
// `x` of a workgroup or invocation is its place in N, `y` in M. Grid: ceil(N / 32), ceil(M / 32).

#ifndef INT8
enable f16;
#endif

const EDGE = 8u; // invocations along x and y, and quads of K in a step
const ROWS = 32u; // of a tile

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, N, K, unused
@group(0) @binding(2) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> Y: array<vec4<f32>>;

#ifdef INT8
alias Quad = u32;
@group(0) @binding(4) var<storage, read> ranges: array<u32>; // the least weight and the step of a block, two f16

fn quads_of_row() -> u32 {
    return (dims.z + 127u) / 128u * 32u;
}

fn range_of(row: u32, quad: u32) -> vec2<f32> {
    return unpack2x16float(ranges[(row * quads_of_row() + quad) / 32u]);
}

fn weights(row: u32, quad: u32, range: vec2<f32>) -> vec4<f32> {
    return fma(vec4<f32>(unpack4xU8(w_tile[row][quad])), range.yyyy, range.xxxx);
}
#else
alias Quad = vec4<f16>;

fn quads_of_row() -> u32 {
    return dims.z / 4u;
}

fn weights(row: u32, quad: u32) -> vec4<f32> {
    return vec4<f32>(w_tile[row][quad]);
}
#endif

@group(0) @binding(1) var<storage, read> W: array<Quad>;

var<workgroup> w_tile: array<array<Quad, EDGE>, ROWS>;
var<workgroup> x_tile: array<array<vec4<f32>, EDGE>, ROWS>;

// Copy one step of both tiles, four rows of each an invocation; zeros, by a store of their own, where there is nothing.
fn stage(group: vec2<u32>, local: vec2<u32>, quad: u32) {
    let quads = dims.z / 4u;
    for (var row = local.y; row < ROWS; row += EDGE) {
        let column = group.x * ROWS + row;
        if column < dims.y && quad < quads {
            w_tile[row][local.x] = W[column * quads_of_row() + quad];
        } else {
            w_tile[row][local.x] = Quad();
        }
        let token = group.y * ROWS + row;
        if token < dims.x && quad < quads {
            x_tile[row][local.x] = X[token * quads + quad];
        } else {
            x_tile[row][local.x] = vec4<f32>();
        }
    }
}

@compute @workgroup_size(EDGE, EDGE)
fn matmul_mat(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(global_invocation_id) id: vec3<u32>,
) {
    let quads = dims.z / 4u;
    let at = local.xy * 4u;
    let inside = all(id.xy * 4u < dims.yx);
    var sums: mat4x4<f32>; // a column for each token
    for (var first = 0u; first < quads; first += EDGE) {
        stage(group.xy, local.xy, first + local.x);
        workgroupBarrier();
        if inside {
#ifdef INT8
            var block_ranges: array<vec2<f32>, 4>;
            for (var r = 0u; r < 4u; r += 1u) {
                block_ranges[r] = range_of(id.x * 4u + r, first);
            }
#endif
            for (var k = 0u; k < min(EDGE, quads - first); k += 1u) {
                var w: mat4x4<f32>;
                var x: mat4x4<f32>;
                for (var r = 0u; r < 4u; r += 1u) {
#ifdef INT8
                    w[r] = weights(at.x + r, k, block_ranges[r]);
#else
                    w[r] = weights(at.x + r, k);
#endif
                    x[r] = x_tile[at.y + r][k];
                }
                sums += transpose(w) * x;
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
