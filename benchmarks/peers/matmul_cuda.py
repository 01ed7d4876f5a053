"""shaders/matmul.wgsl with what it includes, as a CUDA kernel in Python: the same tiles, barriers and additions.

Sums are in float64, the type of Python's floats. X is M x K, W is K x N, Y is M x N; dims are M, N, K, unused.
"""

from typing import Any

from numba import cuda as typed_for_gpus
from numba import float32

cuda: Any = typed_for_gpus

TM, TN, TK, TK_PAD = 64, 64, 16, 17


@cuda.jit
def multiply(X: Any, W: Any, dims: Any, Y: Any) -> None:
    a_tile = cuda.shared.array(2 * TM * TK_PAD, float32)
    b_tile = cuda.shared.array(2 * TK * TN, float32)
    M, N, K = int(dims[0]), int(dims[1]), int(dims[2])
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tid = y * 16 + x
    first_row, first_column = cuda.blockIdx.y * TM, cuda.blockIdx.x * TN
    steps = (K + TK - 1) // TK
    patch = range(4)
    sums = [[0.0] * 4 for _ in patch]

    def stage(slot: int, first_k: int) -> None:
        row, k = tid * 4 // TK, tid * 4 % TK
        for i in patch:
            inside = first_row + row < M and first_k + k + i < K
            a_tile[slot * TM * TK_PAD + row * TK_PAD + k + i] = X[first_row + row, first_k + k + i] if inside else 0.0
        k, column = tid * 4 // TN, tid * 4 % TN
        for i in patch:
            inside = first_k + k < K and first_column + column + i < N
            b_tile[slot * TK * TN + k * TN + column + i] = W[first_k + k, first_column + column + i] if inside else 0.0

    stage(0, 0)
    cuda.syncthreads()
    for step in range(steps):
        slot = step % 2
        if step + 1 < steps:
            stage(1 - slot, (step + 1) * TK)
        a_at = slot * TM * TK_PAD + y * 4 * TK_PAD
        b_at = slot * TK * TN + x * 4
        for k in range(TK):
            a = [a_tile[a_at + i * TK_PAD + k] for i in patch]
            b = [b_tile[b_at + k * TN + j] for j in patch]
            for i in patch:
                for j in patch:
                    sums[i][j] += a[i] * b[j]
        cuda.syncthreads()

    for i in patch:
        for j in patch:
            row, column = first_row + y * 4 + i, first_column + x * 4 + j
            if row < M and column < N:
                Y[row, column] = sums[i][j]
