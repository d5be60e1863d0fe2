"""How long JPEG's codes of blocks are, on a GPU (``runlength.cpp``)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import run

__all__ = ["size"]

BLOCKS = 128  # of a program
MAGNITUDES = tl.constexpr(129)  # of an int8 value


@triton.jit
def size_kernel(q, zigzag, first, codes, total, n, end, N: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    inside = block < n
    bits = tl.load(first + tl.abs(tl.load(q + block, inside, 0).to(tl.int32)))
    zeros = tl.zeros((N,), tl.int32)  # before a value, times MAGNITUDES
    for place in range(1, 64):
        magnitude = tl.abs(tl.load(q + tl.load(zigzag + place) * n + block, inside, 0).to(tl.int32))
        bits += tl.load(codes + zeros + magnitude)
        zeros = tl.where(magnitude == 0, zeros + MAGNITUDES, 0)
    size = bits + tl.where(zeros > 0, end, 0) + 7 >> 3
    tl.atomic_add(total, tl.sum(tl.where(inside, size, 0), 0).to(tl.int64), sem="relaxed")


def size(q: torch.Tensor, n: int, zigzag: torch.Tensor, first: torch.Tensor, codes: torch.Tensor, end: int
         ) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.int64, device=q.device)
    run(size_kernel, triton.cdiv(n, BLOCKS), q, zigzag, first, codes, total, n, end, N=BLOCKS)
    return total
