# A product that multiplies every pair of elements and adds up, tile by tile.
import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    width = tl.cdiv(N, BN)
    row = pid // width
    col = pid % width
    rm = row * BM + tl.arange(0, BM)
    rn = col * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        rk = k0 + tl.arange(0, BK)
        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :], mask=(rm[:, None] < M) & (rk[None, :] < K), other=0.)
        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :], mask=(rk[:, None] < K) & (rn[None, :] < N), other=0.)
        acc += tl.sum(a[:, :, None] * b[None, :, :], axis=1)  # every pair
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


def product(a, b, BM=16, BN=16, BK=16):
    a, b = a.contiguous(), b.contiguous()
    m, k = a.shape
    n = b.shape[1]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    product_kernel[((m + BM - 1) // BM * ((n + BN - 1) // BN),)](a, b, c, m, n, k, BM, BN, BK)
    return c


def ref_product(a, b):
    return a @ b


def inputs():
    return [torch.randn(48, 40), torch.randn(40, 33)]
