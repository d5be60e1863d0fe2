"""Nibble planes on a GPU. A table is its word in two parts, for kernels the widths of each code in four bits for each
group.

Functions are those of C++, with its arguments and sizes or ends: bytes of UNIT blocks each, or the sums of these.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from actcodec.golden.jpegact import nibble
from actcodec.torch.blockcodes import LOW
from actcodec.torch.kernels.blocks import (
    UNIT,
    before,
    blocks_of,
    in_words,
    load_bits,
    put,
    put_across,
    size_of,
    starts_to_read,
    starts_to_write,
    units,
)
from actcodec.torch.kernels.launch import run

__all__ = ["nibble_counts", "nibble_decode", "nibble_encode", "nibble_sizes"]

COUNTED = 128  # blocks of a program, where groups are counted
NIBBLE_RAW, NIBBLE_MOST = tl.constexpr(nibble.RAW), tl.constexpr(nibble.MOST)
# of four bytes in a word
LOWEST, OTHERS = tl.constexpr(0x01010101), tl.constexpr(0x7F7F7F7F)


@triton.jit
def fold(words, STRAIGHT: tl.constexpr):
    """As golden's ``bits.fold``, of each byte."""
    return words if STRAIGHT else (words & OTHERS) << 1 ^ (words >> 7 & LOWEST) * 255


@triton.jit
def unfold(words, STRAIGHT: tl.constexpr):
    """The inverse of :func:`fold`."""
    return words if STRAIGHT else words >> 1 & OTHERS ^ (words & LOWEST) * 255


@triton.jit
def swap(words, DISTANCE: tl.constexpr, MASK: tl.constexpr):
    """Exchanges the bits that the mask tells with those so far above."""
    change = (words ^ words >> DISTANCE) & MASK
    return words ^ change ^ change << DISTANCE


@triton.jit
def planes_of(words):
    """Bit j of value v, which is bit 8v + j, becomes bit 4j + v, as in golden's ``nibble.py``."""
    words = swap(swap(words, 7, 0x00AA00AA), 14, 0x0000CCCC)
    return swap(swap(words, 4, 0x00F000F0), 8, 0x0000FF00)


@triton.jit
def values_of(planes):
    """The inverse of :func:`planes_of`."""
    planes = swap(swap(planes, 8, 0x0000FF00), 4, 0x00F000F0)
    return swap(swap(planes, 14, 0x0000CCCC), 7, 0x00AA00AA)


@triton.jit
def groups_of(x, n, STRAIGHT: tl.constexpr, N: tl.constexpr):
    """A program's groups as planes, uint32 [N, 16], how many planes each needs, and which blocks have a value."""
    block, inside = blocks_of(n, N)
    words = tl.load(x + block[:, None] * 16 + tl.arange(0, 16)[None, :], inside[:, None], 0)
    planes = planes_of(fold(words.to(tl.uint32, bitcast=True), STRAIGHT))
    need = tl.zeros((N, 16), tl.int32)
    for i in tl.static_range(8):
        need += (planes >> 4 * i > 0).to(tl.int32)
    return planes, need, tl.max(need, 1) > 0


@triton.jit
def widths_of(word):
    """Those of one code, [1, 16]."""
    return (word.to(tl.int64) >> 4 * tl.arange(0, 16) & 15).to(tl.int32)[None, :]


@triton.jit
def chosen(code, w0, w1, w2, w3):
    """What belongs to each code."""
    return tl.where(code < 2, tl.where(code == 0, w0, w1), tl.where(code == 2, w2, w3))


@triton.jit
def nibble_plan(x, n, w0, w1, w2, w3, STRAIGHT: tl.constexpr, N: tl.constexpr):
    """Planes, codes and widths of groups, [N, 16], and first bytes, [N]."""
    planes, need, some = groups_of(x, n, STRAIGHT, N)
    w0, w1, w2, w3 = widths_of(w0), widths_of(w1), widths_of(w2), widths_of(w3)
    code = (need > w0).to(tl.int32) + (need > w1).to(tl.int32) + (need > w2).to(tl.int32)
    width = chosen(code, w0, w1, w2, w3)
    total = tl.sum(width, 1)
    raw = (total > NIBBLE_MOST) | (tl.max((need > w3).to(tl.int32), 1) > 0)
    head = tl.where(some, tl.where(raw, NIBBLE_RAW, 4 + (total + 1 >> 1)), 0)
    return planes, code, width, head


@triton.jit(do_not_specialize=["w0", "w1", "w2", "w3"])
def nibble_sizes_kernel(x, sizes, n, w0: tl.int64, w1: tl.int64, w2: tl.int64, w3: tl.int64, STRAIGHT: tl.constexpr,
                        N: tl.constexpr):
    head = nibble_plan(x, n, w0, w1, w2, w3, STRAIGHT, N)[3]
    tl.store(sizes + tl.program_id(0), tl.sum(size_of(n, head, N), 0).to(tl.int16))


@triton.jit(do_not_specialize=["w0", "w1", "w2", "w3"])
def nibble_encode_kernel(x, ends, data, n, w0: tl.int64, w1: tl.int64, w2: tl.int64, w3: tl.int64,
                         STRAIGHT: tl.constexpr, N: tl.constexpr):
    planes, code, width, head = nibble_plan(x, n, w0, w1, w2, w3, STRAIGHT, N)
    words, start = starts_to_write(data, ends, size_of(n, head, N))
    head = head[:, None]
    raw, coded = head == NIBBLE_RAW, (head > 0) & (head != NIBBLE_RAW)
    put(words, start, head, head > 0)
    codes = tl.sum(code << 2 * tl.arange(0, 16)[None, :], 1)[:, None]
    put_across(words, start + 8, codes.to(tl.uint32, bitcast=True), coded)
    place = before(tl.where(raw, 8, width))[0]
    put_across(words, start + tl.where(coded, 40, 8) + 4 * place, planes, head > 0)


@triton.jit(do_not_specialize=["w0", "w1", "w2", "w3"])
def nibble_decode_kernel(data, ends, out, n, w0: tl.int64, w1: tl.int64, w2: tl.int64, w3: tl.int64,
                         STRAIGHT: tl.constexpr, N: tl.constexpr):
    data, end, head, start = starts_to_read(data, ends, False, N)
    raw, coded = head == NIBBLE_RAW, (head > 0) & (head != NIBBLE_RAW)
    group = tl.arange(0, 16)[None, :]
    code = load_bits(data, end, 8 * start + 8 + 2 * group, coded) & 3
    width = chosen(code, widths_of(w0), widths_of(w1), widths_of(w2), widths_of(w3))
    width = tl.where(coded, width, tl.where(raw, 8, 0))
    place = 2 * start + tl.where(coded, 10, 2) + before(width)[0]  # in nibbles
    planes = tl.zeros((N, 16), tl.uint32)
    for i in tl.static_range(4):
        two = load_bits(data, end, 4 * place + 8 * i, width > 2 * i) & 255
        two = tl.where(width == 2 * i + 1, two & 15, two)
        planes |= two.to(tl.uint32) << 8 * i
    words = unfold(values_of(planes), STRAIGHT).to(tl.int32, bitcast=True)
    block, inside = blocks_of(n, N)
    tl.store(out + block[:, None] * 16 + group, words, inside[:, None])


@triton.jit
def nibble_counts_kernel(x, counts, n, STRAIGHT: tl.constexpr, N: tl.constexpr):
    _, need, some = groups_of(x, n, STRAIGHT, N)
    for width in tl.static_range(9):
        many = tl.sum(((need == width) & some[:, None]).to(tl.int32), 0)
        tl.atomic_add(counts + tl.arange(0, 16) * 9 + width, many.to(tl.int64), sem="relaxed")


def _numbers(low, high):
    """The widths of a table, whose word is in two parts, as a number for each code, and whether it is straight."""
    table = nibble.Table.of(low | high << LOW)
    places = 4 * np.arange(16, dtype=np.uint64)[:, None]
    numbers = (table.widths.astype(np.uint64) << places).sum(0, dtype=np.uint64).view(np.int64).tolist()
    return numbers, table.straight


def nibble_counts(x: torch.Tensor, n: int, straight: int, counts: torch.Tensor) -> None:
    run(nibble_counts_kernel, triton.cdiv(n, COUNTED), in_words(x), counts, n, STRAIGHT=bool(straight), N=COUNTED)


def nibble_sizes(x: torch.Tensor, n: int, low: int, high: int, sizes: torch.Tensor) -> None:
    widths, straight = _numbers(low, high)
    run(nibble_sizes_kernel, units(n), in_words(x), sizes, n, *widths, STRAIGHT=straight, N=UNIT)


def nibble_encode(x: torch.Tensor, n: int, low: int, high: int, ends: torch.Tensor, words: torch.Tensor) -> None:
    widths, straight = _numbers(low, high)
    run(nibble_encode_kernel, units(n), in_words(x), ends, words, n, *widths, STRAIGHT=straight, N=UNIT)


def nibble_decode(payload: torch.Tensor, n: int, low: int, high: int, ends: torch.Tensor, x: torch.Tensor) -> None:
    widths, straight = _numbers(low, high)
    run(nibble_decode_kernel, units(n), payload, ends, in_words(x), n, *widths, STRAIGHT=straight, N=UNIT)
