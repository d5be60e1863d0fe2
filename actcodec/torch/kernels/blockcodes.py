"""The nibble and Rice codes on a GPU (``blockcodes.cpp``): golden's payload, byte for byte.

A program has UNIT blocks, and is told where their payload starts. What each value needs there is computed for all at
once, and its place is the sum of what comes before it. So fields are written in any order, by an "or" with the zeros of
a new payload. A decoder learns where blocks start from one after another, as only their first bytes tell it.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl

from actcodec.golden.jpegact import nibble
from actcodec.golden.jpegact.rice_sizes import MOST, RAW
from actcodec.torch.kernels.launch import run

__all__ = ["UNIT", "lines", "nibble_counts", "nibble_decode", "nibble_encode", "nibble_sizes", "rice_decode",
           "rice_encode", "rice_sizes", "tiles"]

UNIT = 32  # blocks of a program
COUNTED = 128  # the same, where groups are counted
WARPS = 16  # for the values of UNIT blocks: with fewer, registers would hold few programs at a time, or spill
NIBBLE_RAW, NIBBLE_MOST = tl.constexpr(nibble.RAW), tl.constexpr(nibble.MOST)
RICE_RAW, RICE_MOST = tl.constexpr(RAW), tl.constexpr(MOST)
# of four bytes in a word
LOWEST, OTHERS = tl.constexpr(0x01010101), tl.constexpr(0x7F7F7F7F)


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
def length(x):
    """Bits that values of a byte need."""
    need = (x > 0).to(tl.int32)
    for i in tl.static_range(1, 8):
        need += (x >> i > 0).to(tl.int32)
    return need


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


# ---- nibble planes: a table is four words, the widths of each code in four bits for each group


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


@triton.jit
def size_of(n, rest, N: tl.constexpr):
    """Bytes of blocks, of which so many follow the first one."""
    return tl.where(blocks_of(n, N)[1], 1 + rest, 0)


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


# ---- Golomb-Rice codes: a table is its word


@triton.jit
def rice_rest(head):
    """Bytes that follow the first one."""
    rest = head & 63
    return tl.where(rest == RICE_RAW, 64, rest)


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


# ---- functions of C++, with its arguments and sizes or ends: bytes of UNIT blocks each, or the sums of these


def _units(n):
    return triton.cdiv(n, UNIT)


def _in_words(x):
    return x.view(-1).view(torch.int32)


def _numbers(widths):
    """A table's widths, [16, 4], as a number for each code."""
    places = 4 * np.arange(16, dtype=np.uint64)[:, None]
    return (widths.numpy().astype(np.uint64) << places).sum(0, dtype=np.uint64).view(np.int64).tolist()


def nibble_counts(x: torch.Tensor, n: int, straight: int, counts: torch.Tensor) -> None:
    run(nibble_counts_kernel, triton.cdiv(n, COUNTED), _in_words(x), counts, n, STRAIGHT=bool(straight), N=COUNTED)


def nibble_sizes(x: torch.Tensor, n: int, widths: torch.Tensor, straight: int, sizes: torch.Tensor) -> None:
    run(nibble_sizes_kernel, _units(n), _in_words(x), sizes, n, *_numbers(widths), STRAIGHT=bool(straight), N=UNIT)


def nibble_encode(x: torch.Tensor, n: int, widths: torch.Tensor, straight: int, ends: torch.Tensor, words: torch.Tensor
                  ) -> None:
    run(nibble_encode_kernel, _units(n), _in_words(x), ends, words, n, *_numbers(widths), STRAIGHT=bool(straight),
        N=UNIT)


def nibble_decode(payload: torch.Tensor, n: int, widths: torch.Tensor, straight: int, ends: torch.Tensor,
                  x: torch.Tensor) -> None:
    run(nibble_decode_kernel, _units(n), payload, ends, _in_words(x), n, *_numbers(widths), STRAIGHT=bool(straight),
        N=UNIT)


def rice_sizes(x: torch.Tensor, n: int, word: int, sizes: torch.Tensor) -> None:
    run(rice_sizes_kernel, _units(n), x, sizes, n, word, warps=WARPS, STRAIGHT=bool(word >> 62), N=UNIT)


def rice_encode(x: torch.Tensor, n: int, word: int, ends: torch.Tensor, words: torch.Tensor) -> None:
    run(rice_encode_kernel, _units(n), x, ends, words, n, word, warps=WARPS, STRAIGHT=bool(word >> 62), N=UNIT)


def rice_decode(payload: torch.Tensor, n: int, word: int, ends: torch.Tensor, x: torch.Tensor) -> None:
    run(rice_decode_kernel, _units(n), payload, ends, x, n, word, warps=WARPS, STRAIGHT=bool(word >> 62), N=UNIT)


def lines(tiles: torch.Tensor, n: int, blocks: torch.Tensor) -> None:
    blocks.view(torch.int8).view(n, 8, 8).copy_(tiles.permute(2, 1, 0))


def tiles(blocks: torch.Tensor, n: int, out: torch.Tensor) -> None:
    out.copy_(blocks.view(torch.int8).view(n, 8, 8).permute(2, 1, 0))
