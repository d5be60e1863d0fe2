"""Golomb-Rice codes in planes on a GPU. A table is its word.

Functions are those of C++, with its arguments and sizes or ends: bytes of UNIT blocks each, or the sums of these.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.golden.jpegact.rice_sizes import MOST
from actcodec.torch.kernels.blocks import (
    RICE_RAW,
    UNIT,
    before,
    blocks_of,
    load_bits,
    put,
    put_across,
    rice_rest,
    size_of,
    starts_to_read,
    starts_to_write,
    units,
)
from actcodec.torch.kernels.launch import run

__all__ = ["rice_decode", "rice_encode", "rice_sizes"]

WARPS = 16  # for the values of UNIT blocks: with fewer, registers would hold few programs at a time, or spill
RICE_MOST = tl.constexpr(MOST)


@triton.jit
def length(x):
    """Bits that values of a byte need."""
    need = (x > 0).to(tl.int32)
    for i in tl.static_range(1, 8):
        need += (x >> i > 0).to(tl.int32)
    return need


@triton.jit
def bits_of_class(kind):
    """What planes 0 to 2 have of a class, int32."""
    return (kind > 0).to(tl.int32), (kind > 1).to(tl.int32), (kind > 2).to(tl.int32)


@triton.jit
def k_of(word):
    """k of a block's values, [1, 64]."""
    value = tl.arange(0, 64)[None, :]
    return (word.to(tl.int64) >> 3 * (value // 8 + value % 8) & 7).to(tl.int32)


@triton.jit
def e_of(word, i):
    return (word.to(tl.int64) >> 50 + 3 * i & 7).to(tl.int32)


@triton.jit
def flags_of(word):
    """How many groups have a flag, and the number of each group's, [1, 16], below 0 if it has none."""
    flags = (word.to(tl.int64) >> 45 & 31).to(tl.int32)
    return flags, (tl.arange(0, 16) - 16 + flags)[None, :]


@triton.jit
def widths_of_mantissas(kind, k, e, STRAIGHT: tl.constexpr):
    width = k + tl.where(kind == 3, tl.minimum(e, 8 - k), 0)
    return tl.where(kind == 0, 0, width) if STRAIGHT else width


@triton.jit
def of_values(groups, N: tl.constexpr):
    """What groups have, [N, 16], for each of their values, [N, 64]."""
    return tl.reshape(tl.broadcast_to(groups[:, :, None], (N, 16, 4)), (N, 64))


@triton.jit
def rice_plan(x, n, word, STRAIGHT: tl.constexpr, N: tl.constexpr):
    """Values, classes, mantissas and their widths, and which values P0 shows, [N, 64]; flags, [N, 16]; first bytes,
    [N]."""
    block, inside = blocks_of(n, N)
    x = tl.load(x + block[:, None] * 64 + tl.arange(0, 64)[None, :], inside[:, None], 0).to(tl.int32)
    u = x if STRAIGHT else (x << 1 ^ 0 - (x >> 7)) & 255
    k = k_of(word)
    first = (u > 0).to(tl.int32) if STRAIGHT else tl.zeros_like(u)
    quotient = u - first >> k
    top = tl.minimum(quotient, 2 if STRAIGHT else 3)
    kind, mantissa = top + first, u - first - (top << k)
    need = length(tl.max(quotient - top, 1))
    i = tl.zeros((N,), tl.int32)
    for j in tl.static_range(3):
        i += (need > e_of(word, j)).to(tl.int32)
    width = widths_of_mantissas(kind, k, e_of(word, i)[:, None], STRAIGHT)
    group = (tl.max(tl.reshape(kind, (N, 16, 4)), 2) > 0).to(tl.int32)
    flags, number = flags_of(word)
    shown = of_values(tl.where(number < 0, 1, group), N)
    p0, p1, _ = bits_of_class(kind)
    rest = flags + tl.sum(shown + p0 + p1 + width, 1) + 7 >> 3
    raw = (need > e_of(word, 3)) | (rest > RICE_MOST)
    head = tl.where(tl.max(u, 1) > 0, tl.where(raw, RICE_RAW, rest | i << 6), 0)
    return x, kind, mantissa, width, shown, group, head


@triton.jit(do_not_specialize=["word"])
def rice_sizes_kernel(x, sizes, n, word: tl.int64, STRAIGHT: tl.constexpr, N: tl.constexpr):
    head = rice_plan(x, n, word, STRAIGHT, N)[6]
    tl.store(sizes + tl.program_id(0), tl.sum(size_of(n, rice_rest(head), N), 0).to(tl.int16))


@triton.jit(do_not_specialize=["word"])
def rice_encode_kernel(x, ends, data, n, word: tl.int64, STRAIGHT: tl.constexpr, N: tl.constexpr):
    x, kind, mantissa, width, shown, group, head = rice_plan(x, n, word, STRAIGHT, N)
    words, start = starts_to_write(data, ends, size_of(n, rice_rest(head), N))
    head = head[:, None]
    raw, coded = head == RICE_RAW, (head > 0) & (head != RICE_RAW)
    put(words, start, head, head > 0)
    start += 8
    flags, number = flags_of(word)
    put(words, start + number, group, coded & (number >= 0))
    place = start + flags
    p0, p1, p2 = bits_of_class(kind)
    ahead, count = before(shown)
    put(words, place + ahead, p0, coded)
    place += count
    ahead, count = before(p0)
    put(words, place + ahead, p1, coded)
    place += count
    ahead, count = before(p1)
    put(words, place + ahead, p2, coded)
    place = tl.where(raw, start, place + count)
    ahead = before(tl.where(raw, 8, width))[0]
    put_across(words, place + ahead, tl.where(raw, x, mantissa).to(tl.uint32), head > 0)


@triton.jit(do_not_specialize=["word"])
def rice_decode_kernel(data, ends, out, n, word: tl.int64, STRAIGHT: tl.constexpr, N: tl.constexpr):
    data, end, head, start = starts_to_read(data, ends, True, N)
    raw, coded = head == RICE_RAW, (head > 0) & (head != RICE_RAW)
    start = 8 * start + 8
    flags, number = flags_of(word)
    group = load_bits(data, end, start + number, coded & (number >= 0)) & 1
    shown = of_values(tl.where(coded, tl.where(number < 0, 1, group), 0), N)
    place = start + flags
    kind, plane = tl.zeros((N, 64), tl.int32), shown
    for _ in tl.static_range(3):
        ahead, count = before(plane)
        plane = tl.where(plane > 0, load_bits(data, end, place + ahead, plane > 0) & 1, 0)
        kind += plane
        place += count
    k = k_of(word)
    width = widths_of_mantissas(kind, k, e_of(word, head >> 6), STRAIGHT)
    width = tl.where(coded, width, tl.where(raw, 8, 0))
    place = tl.where(raw, start, place) + before(width)[0]
    mantissa = load_bits(data, end, place, width > 0) & (1 << width) - 1
    first = (kind > 0).to(tl.int32) if STRAIGHT else tl.zeros_like(kind)
    u = (kind - first << k) + first + mantissa
    value = u if STRAIGHT else u >> 1 ^ 0 - (u & 1)
    block, inside = blocks_of(n, N)
    value = tl.where(raw, mantissa, value).to(tl.uint8)
    tl.store(out + block[:, None] * 64 + tl.arange(0, 64)[None, :], value, inside[:, None])


def rice_sizes(x: torch.Tensor, n: int, word: int, sizes: torch.Tensor) -> None:
    run(rice_sizes_kernel, units(n), x, sizes, n, word, warps=WARPS, STRAIGHT=bool(word >> 62), N=UNIT)


def rice_encode(x: torch.Tensor, n: int, word: int, ends: torch.Tensor, words: torch.Tensor) -> None:
    run(rice_encode_kernel, units(n), x, ends, words, n, word, warps=WARPS, STRAIGHT=bool(word >> 62), N=UNIT)


def rice_decode(payload: torch.Tensor, n: int, word: int, ends: torch.Tensor, x: torch.Tensor) -> None:
    run(rice_decode_kernel, units(n), payload, ends, x, n, word, warps=WARPS, STRAIGHT=bool(word >> 62), N=UNIT)
