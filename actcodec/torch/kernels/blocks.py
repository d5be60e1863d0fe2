"""What kernels of the nibble and Rice codes on a GPU have in common.

A program encodes or decodes UNIT blocks, and knows where their payload starts. The place of each field is the sum of
what comes before it, so fields are written in any order, by an "or" with the zeros of a new payload. A decoder walks
from block to block, as only a block's first byte tells where the next one starts.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.golden.jpegact.rice_sizes import RAW

__all__ = ["RICE_RAW", "UNIT", "before", "blocks_of", "in_words", "load_bits", "put", "put_across", "rice_rest",
           "size_of", "starts_to_read", "starts_to_write", "units"]

UNIT = 32  # blocks of a program
RICE_RAW = tl.constexpr(RAW)


@triton.jit
def blocks_of(n, N: tl.constexpr):
    """A program's blocks, and which of them exist."""
    block = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    return block, block < n


@triton.jit
def before(counts):
    """The sum of what comes before each count, in its row, and that of a row, [N, 1]."""
    return tl.cumsum(counts, 1) - counts, tl.sum(counts, 1)[:, None]


@triton.jit
def starts_to_write(data, ends, size):
    """Words from where a program's payload starts, and the first bits of its blocks, [N, 1], counted from there."""
    start = tl.load(ends + tl.program_id(0)) - tl.sum(size, 0)
    return data + (start >> 2), ((start & 3).to(tl.int32) + tl.cumsum(size, 0) - size << 3)[:, None]


@triton.jit
def put(words, place, field, some):
    """Writes fields, int32, at these bits, which end in the same word."""
    tl.atomic_or(words + (place >> 5), field << (place & 31), some & (field != 0), sem="relaxed")


@triton.jit
def put_across(words, place, field, some):
    """The same of uint32, which may reach into the next word."""
    put(words, place, field.to(tl.int32, bitcast=True), some)
    high = field >> 1 >> 31 - (place & 31).to(tl.uint32)
    tl.atomic_or(words + (place >> 5) + 1, high.to(tl.int32, bitcast=True), some & (high != 0), sem="relaxed")


@triton.jit
def rice_rest(head):
    """Bytes that follow the first one."""
    rest = head & 63
    return tl.where(rest == RICE_RAW, 64, rest)


@triton.jit
def starts_to_read(data, ends, RICE: tl.constexpr, N: tl.constexpr):
    """A program's payload, how long it is, and the first bytes of its blocks and their places in it, [N, 1]."""
    program, number = tl.program_id(0), tl.arange(0, N)
    begin = tl.load(ends + program - 1, program > 0, 0)
    data += begin
    end = (tl.load(ends + program) - begin).to(tl.int32)
    at = 0
    place, head = tl.zeros((N,), tl.int32), tl.zeros((N,), tl.int32)
    for i in range(N):
        first = tl.load(data + at, at < end, 0).to(tl.int32)
        place, head = tl.where(number == i, at, place), tl.where(number == i, first, head)
        at += 1 + rice_rest(first) if RICE else 1 + first
    return data, end, head[:, None], place[:, None]


@triton.jit
def load_bits(data, end, place, some):
    """From bit ``place`` on, what is left of its byte and the next one."""
    byte = place >> 3
    low = tl.load(data + byte, some & (byte < end), 0).to(tl.int32)
    high = tl.load(data + byte + 1, some & (byte + 1 < end), 0).to(tl.int32)
    return (low | high << 8) >> (place & 7)


@triton.jit
def size_of(n, rest, N: tl.constexpr):
    """Bytes of blocks, of which so many follow the first one."""
    return tl.where(blocks_of(n, N)[1], 1 + rest, 0)


def units(n: int) -> int:
    """Programs for so many blocks."""
    return triton.cdiv(n, UNIT)


def in_words(x: torch.Tensor) -> torch.Tensor:
    """Blocks as words of four bytes."""
    return x.view(-1).view(torch.int32)
