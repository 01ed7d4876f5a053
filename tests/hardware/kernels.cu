// Three WGSL kernels in CUDA, access for access: each is volatile PTX, so that the compiler neither merges, moves nor
// drops it. The comment at the end of a line is the WGSL line that does the same. Indices past the end are clamped, as
// WebGPU implementations may and the simulator does.

#define LOAD4(v, base, at) asm volatile("ld.volatile.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(base + 4 * (unsigned long long)(at)))
#define LOAD(v, base, at) asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(v) : "l"(base + (at)))
#define STORE(base, at, v) asm volatile("st.volatile.global.f32 [%0], %1;" :: "l"(base + (at)), "f"(v))
#define GET(v, tile, at) asm volatile("ld.volatile.shared.f32 %0, [%1];" : "=f"(v) : "r"(tile + 4 * (at)))
#define PUT(tile, at, v) asm volatile("st.volatile.shared.f32 [%0], %1;" :: "r"(tile + 4 * (at)), "f"(v))

typedef unsigned u32;
const u32 TM = 64, TN = 64, TK = 16, TK_PAD = 17;

__device__ __forceinline__ u32 place(const float* tile) { return (u32)__cvta_generic_to_shared(tile); }

__device__ __forceinline__ void put_a(u32 a_tile, u32 slot, u32 row, u32 k, u32 next, float4 v) {
    u32 to = slot * TM * TK_PAD + row * TK_PAD + k;
    PUT(a_tile, to, v.x); // a_tile[to] = v.x;
    PUT(a_tile, to + next, v.y); // a_tile[to + next] = v.y;
    PUT(a_tile, to + 2 * next, v.z); // a_tile[to + 2u * next] = v.z;
    PUT(a_tile, to + 3 * next, v.w); // a_tile[to + 3u * next] = v.w;
}

__device__ __forceinline__ void put_b(u32 b_tile, u32 slot, u32 k, u32 column, u32 next, float4 v) {
    u32 to = slot * TK * TN + k * TN + column;
    PUT(b_tile, to, v.x); // b_tile[to] = v.x;
    PUT(b_tile, to + next, v.y); // b_tile[to + next] = v.y;
    PUT(b_tile, to + 2 * next, v.z); // b_tile[to + 2u * next] = v.z;
    PUT(b_tile, to + 3 * next, v.w); // b_tile[to + 3u * next] = v.w;
}

__device__ __forceinline__ float4 masked(float4 v, bool inside, u32 first, u32 end) {
    return make_float4(inside && first < end ? v.x : 0.f, inside && first + 1 < end ? v.y : 0.f,
                       inside && first + 2 < end ? v.z : 0.f, inside && first + 3 < end ? v.w : 0.f);
}

struct Sizes { u32 rows, columns, depth; };

struct Forward {
    static __device__ __forceinline__ void stage_a(const float* X, u32 count, u32 a_tile, Sizes dims, u32 slot, u32 tid, u32 first_row, u32 first_k) {
        u32 row = tid * 4 / TK, k = tid * 4 % TK, m = first_row + row, from_k = first_k + k;
        u32 at = m * (dims.depth / 4) + from_k / 4;
        float4 v;
        LOAD4(v, X, min(at, count - 1)); // let v = X[at];
        put_a(a_tile, slot, row, k, 1, masked(v, m < dims.rows, from_k, dims.depth));
    }
    static __device__ __forceinline__ void stage_b(const float* W, u32 count, u32 b_tile, Sizes dims, u32 slot, u32 tid, u32 first_k, u32 first_column) {
        u32 k = tid * 4 / TN, column = tid * 4 % TN, from_k = first_k + k, n = first_column + column;
        float4 v;
        LOAD4(v, W, min(from_k * (dims.columns / 4) + n / 4, count - 1)); // let v = vec4<f32>(W[from_k * (dims.y / 4u) + n / 4u]);
        put_b(b_tile, slot, k, column, 1, masked(v, from_k < dims.depth, n, dims.columns));
    }
};

struct Backward {
    static __device__ __forceinline__ void stage_a(const float* X, u32 count, u32 a_tile, Sizes dims, u32 slot, u32 tid, u32 first_row, u32 first_m) {
        u32 m = tid * 4 / TM, row = tid * 4 % TM, from_m = first_m + m, k = first_row + row;
        u32 at = from_m * (dims.rows / 4) + k / 4;
        float4 v;
        LOAD4(v, X, min(at, count - 1)); // let v = X[at];
        put_a(a_tile, slot, row, m, TK_PAD, masked(v, from_m < dims.depth, k, dims.rows));
    }
    static __device__ __forceinline__ void stage_b(const float* B, u32 count, u32 b_tile, Sizes dims, u32 slot, u32 tid, u32 first_m, u32 first_column) {
        u32 m = tid * 4 / TN, column = tid * 4 % TN, from_m = first_m + m, n = first_column + column;
        float4 v;
        LOAD4(v, B, min(from_m * (dims.columns / 4) + n / 4, count - 1)); // let v = B[from_m * (dims.y / 4u) + n / 4u];
        put_b(b_tile, slot, m, column, 1, masked(v, from_m < dims.depth, n, dims.columns));
    }
};

__device__ __forceinline__ void finish(float* Y, u32 at, float sum) {
    STORE(Y, at, sum); // Y[at] = sum;
}

__device__ __forceinline__ void finish_row(float* Y, Sizes dims, u32 row, u32 column, const float* sums) {
    if (row >= dims.rows) return;
    u32 at = row * dims.columns + column;
    if (column < dims.columns) finish(Y, at, sums[0]); // Y[at] = sum;
    if (column + 1 < dims.columns) finish(Y, at + 1, sums[1]); // Y[at] = sum;
    if (column + 2 < dims.columns) finish(Y, at + 2, sums[2]); // Y[at] = sum;
    if (column + 3 < dims.columns) finish(Y, at + 3, sums[3]); // Y[at] = sum;
}

template <class Load>
__device__ __forceinline__ void multiply(const float* A, const float* B, float* Y, Sizes dims, u32 a_count, u32 b_count) {
    __shared__ float a_memory[2 * TM * TK_PAD];
    __shared__ float b_memory[2 * TK * TN];
    u32 a_tile = place(a_memory), b_tile = place(b_memory);
    u32 tid = threadIdx.y * 16 + threadIdx.x, first_row = blockIdx.y * TM, first_column = blockIdx.x * TN;
    u32 steps = (dims.depth + TK - 1) / TK;
    float sums[4][4] = {};
    Load::stage_a(A, a_count, a_tile, dims, 0, tid, first_row, 0);
    Load::stage_b(B, b_count, b_tile, dims, 0, tid, 0, first_column);
    __syncthreads();
#pragma unroll 1
    for (u32 step = 0; step < steps; step++) {
        u32 slot = step % 2;
        if (step + 1 < steps) {
            Load::stage_a(A, a_count, a_tile, dims, 1 - slot, tid, first_row, (step + 1) * TK);
            Load::stage_b(B, b_count, b_tile, dims, 1 - slot, tid, (step + 1) * TK, first_column);
        }
        u32 a_at = slot * TM * TK_PAD + threadIdx.y * 4 * TK_PAD, b_at = slot * TK * TN + threadIdx.x * 4;
#pragma unroll 1
        for (u32 k = 0; k < TK; k++) {
            float a[4], b[4];
            GET(a[0], a_tile, a_at + k); // let a0 = a_tile[a_at + k];
            GET(a[1], a_tile, a_at + TK_PAD + k); // let a1 = a_tile[a_at + TK_PAD + k];
            GET(a[2], a_tile, a_at + 2 * TK_PAD + k); // let a2 = a_tile[a_at + 2u * TK_PAD + k];
            GET(a[3], a_tile, a_at + 3 * TK_PAD + k); // let a3 = a_tile[a_at + 3u * TK_PAD + k];
            GET(b[0], b_tile, b_at + k * TN); // let b0 = b_tile[b_at + k * TN];
            GET(b[1], b_tile, b_at + k * TN + 1); // let b1 = b_tile[b_at + k * TN + 1u];
            GET(b[2], b_tile, b_at + k * TN + 2); // let b2 = b_tile[b_at + k * TN + 2u];
            GET(b[3], b_tile, b_at + k * TN + 3); // let b3 = b_tile[b_at + k * TN + 3u];
            for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
        }
        __syncthreads();
    }
    u32 row = first_row + threadIdx.y * 4, column = first_column + threadIdx.x * 4;
    for (int i = 0; i < 4; i++) finish_row(Y, dims, row + i, column, sums[i]); // Y[at] = sum;
}

extern "C" __global__ void matmul(const float* X, const float* W, float* Y, u32 m, u32 n, u32 k) {
    multiply<Forward>(X, W, Y, {m, n, k}, m * k / 4, k * n / 4);
}

extern "C" __global__ void matmul_at(const float* X, const float* B, float* Y, u32 k, u32 n, u32 m) {
    multiply<Backward>(X, B, Y, {k, n, m}, m * k / 4, m * n / 4);
}

extern "C" __global__ void reduction(const float* x, float* y) {
    __shared__ float memory[256];
    u32 sums = place(memory), lane = threadIdx.x;
    float sum = 0.f, one, other;
#pragma unroll 1
    for (u32 i = 0; i < 4; i++) {
        LOAD(one, x, blockIdx.x * 1024 + i * 256 + lane); // sum += x[group.x * 1024u + i * 256u + lane];
        sum += one;
    }
    PUT(sums, lane, sum); // sums[lane] = sum;
    __syncthreads();
#pragma unroll 1
    for (u32 reach = 1; reach < 256; reach *= 2) {
        u32 at = 2 * reach * lane;
        if (at < 256) {
            GET(one, sums, at); // sums[at] += sums[at + reach];
            GET(other, sums, at + reach); // sums[at] += sums[at + reach];
            PUT(sums, at, one + other); // sums[at] += sums[at + reach];
        }
        __syncthreads();
    }
    if (lane == 0) {
        GET(one, sums, 0); // y[group.x] = sums[0];
        STORE(y, blockIdx.x, one); // y[group.x] = sums[0];
    }
}
