"""Bitpack on a GPU (``bitpack.cpp``)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import bits_of, float_of, run, store, wide

__all__ = ["decode", "encode"]

ITEMS = 1024  # bytes or values of a program


@triton.jit
def encode_kernel(x, out, count, SIZE: tl.constexpr, ITEMS: tl.constexpr):
    """Of ``count`` bytes in all; a value is read once for each of its own."""
    byte = tl.program_id(0).to(tl.int64) * ITEMS + tl.arange(0, ITEMS)
    value = wide(tl.load(x + byte // SIZE, byte < count, 0))
    tl.store(out + byte, (bits_of(value) >> 8 * (4 - SIZE + byte % SIZE)).to(tl.uint8), byte < count)


@triton.jit
def decode_kernel(data, x, n, SIZE: tl.constexpr, ITEMS: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * ITEMS + tl.arange(0, ITEMS)
    bits = tl.zeros((ITEMS,), tl.int32)
    for i in tl.static_range(SIZE):
        bits |= tl.load(data + place * SIZE + i, place < n, 0).to(tl.int32) << 8 * (4 - SIZE + i)
    store(x, place, float_of(bits), place < n)


def encode(x: torch.Tensor, n: int, size: int, out: torch.Tensor) -> None:
    run(encode_kernel, triton.cdiv(n * size, ITEMS), x, out, n * size, SIZE=size, ITEMS=ITEMS)


def decode(data: torch.Tensor, n: int, size: int, x: torch.Tensor) -> None:
    run(decode_kernel, triton.cdiv(n, ITEMS), data, x, n, SIZE=size, ITEMS=ITEMS)
