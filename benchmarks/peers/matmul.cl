// shaders/matmul.wgsl with what it includes, in OpenCL C: the same tiles, staging, barriers, reads and additions, with
// K and N multiples of 4. Built with -cl-std=CL1.2.

#define TM 64u
#define TN 64u
#define TK 16u
#define TK_PAD 17u

static void put(local float *tile, uint to, uint next, float4 v) {
    tile[to] = v.x;
    tile[to + next] = v.y;
    tile[to + 2u * next] = v.z;
    tile[to + 3u * next] = v.w;
}

// Zeros where a matrix has ended. Unlike WGSL's, an OpenCL load past the end is undefined, so that there is none.
static float4 load(global const float4 *from, uint at, int inside) { return inside ? from[at] : (float4)(0.0f); }

static void stage(global const float4 *X, global const float4 *W, local float *a, local float *b, uint slot, uint tid,
                  uint4 dims, uint first_row, uint first_k, uint first_column) {
    uint row = tid * 4u / TK, k = tid * 4u % TK;
    float4 x = load(X, (first_row + row) * (dims.z / 4u) + (first_k + k) / 4u,
                    first_row + row < dims.x && first_k + k < dims.z);
    put(a, slot * TM * TK_PAD + row * TK_PAD + k, 1u, x);
    uint down = tid * 4u / TN, column = tid * 4u % TN;
    float4 w = load(W, (first_k + down) * (dims.y / 4u) + (first_column + column) / 4u,
                    first_k + down < dims.z && first_column + column < dims.y);
    put(b, slot * TK * TN + down * TN + column, 1u, w);
}

static void finish_row(global float *Y, uint4 dims, uint row, uint column, float4 sums) {
    if (row >= dims.x) return;
    uint at = row * dims.y + column;
    if (column < dims.y) Y[at] = sums.x;
    if (column + 1u < dims.y) Y[at + 1u] = sums.y;
    if (column + 2u < dims.y) Y[at + 2u] = sums.z;
    if (column + 3u < dims.y) Y[at + 3u] = sums.w;
}

kernel void multiply(global const float4 *X, global const float4 *W, global float *Y, constant uint4 *sizes) {
    local float a_tile[2u * TM * TK_PAD];
    local float b_tile[2u * TK * TN];
    uint4 dims = *sizes; // M, N, K, unused
    uint x = get_local_id(0), y = get_local_id(1), tid = y * 16u + x;
    uint first_row = get_group_id(1) * TM, first_column = get_group_id(0) * TN;
    uint steps = (dims.z + TK - 1u) / TK;
    float4 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;

    stage(X, W, a_tile, b_tile, 0u, tid, dims, first_row, 0u, first_column);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint step = 0u; step < steps; step += 1u) {
        uint slot = step % 2u;
        if (step + 1u < steps)
            stage(X, W, a_tile, b_tile, 1u - slot, tid, dims, first_row, (step + 1u) * TK, first_column);
        uint a_at = slot * TM * TK_PAD + y * 4u * TK_PAD, b_at = slot * TK * TN + x * 4u;
        for (uint k = 0u; k < TK; k += 1u) {
            float a0 = a_tile[a_at + k], a1 = a_tile[a_at + TK_PAD + k];
            float a2 = a_tile[a_at + 2u * TK_PAD + k], a3 = a_tile[a_at + 3u * TK_PAD + k];
            float4 b = (float4)(b_tile[b_at + k * TN], b_tile[b_at + k * TN + 1u], b_tile[b_at + k * TN + 2u],
                                b_tile[b_at + k * TN + 3u]);
            sum0 = fma((float4)(a0), b, sum0);
            sum1 = fma((float4)(a1), b, sum1);
            sum2 = fma((float4)(a2), b, sum2);
            sum3 = fma((float4)(a3), b, sum3);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    uint row = first_row + y * 4u, column = first_column + x * 4u;
    finish_row(Y, dims, row, column, sum0);
    finish_row(Y, dims, row + 1u, column, sum1);
    finish_row(Y, dims, row + 2u, column, sum2);
    finish_row(Y, dims, row + 3u, column, sum3);
}
