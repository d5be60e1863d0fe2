"""DIVISION on a GPU (``division.cpp``, with the same functions).

A program has so many blocks, [N, 8, 8]. Rows of a block that lie in the same row of the tensor are a segment; a block
of a flat tensor may have several.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import INFINITE, MAGNITUDE, NORMAL, bits_of, float_of, run, store
from actcodec.torch.kernels.sfpr import dequantized, quantized, rounded

__all__ = ["decode", "encode", "fit", "segments"]

BLOCKS = 16  # of a program
FRACTION64, BIAS64 = tl.constexpr(52), tl.constexpr(1023)
BFLOAT16 = tl.constexpr(-1 << 45)  # what of a float64 a bfloat16 has as well
LOWEST, HIGHEST = tl.constexpr(-1 << 31), tl.constexpr((1 << 31) - 1)


@triton.jit
def log2_of(n):
    """Floor of the logarithm, of 1 to 8."""
    return (n >= 2).to(tl.int32) + (n >= 4).to(tl.int32) + (n >= 8).to(tl.int32)


@triton.jit
def up(n, d):
    return (n + d - 1) // d


@triton.jit
def rows_of(block, rows, width, sectors, TILED: tl.constexpr):
    """Of each row of blocks, [N, 8]: its row in the tensor, sector there, and number in memory order; the number of the
    first row of its segment, and of the row after the segment."""
    i = tl.arange(0, 8)[None, :]
    number = block[:, None] * 8 + i
    if TILED:
        row, sector = (block // sectors * 8)[:, None] + i, (block % sectors)[:, None] + i * 0
        return row, sector, number, number - i, number - i + 8
    row = number // sectors
    start = tl.maximum(number - i, row * sectors)
    end = tl.minimum(tl.minimum(number - i + 8, (row + 1) * sectors), rows * sectors)
    return row, number % sectors, number, start, end


@triton.jit
def values_of(row, sector, rows, width):
    """The places of the values of blocks, [N, 8, 8], and which of them exist."""
    column = (sector * 8)[:, :, None] + tl.arange(0, 8)[None, None, :]
    return row[:, :, None] * width + column, (row < rows)[:, :, None] & (column < width)


@triton.jit
def level_of(y, exists, layout, width, sectors, LFC: tl.constexpr, LEAST: tl.constexpr, TILED: tl.constexpr,
             N: tl.constexpr):
    """What is taken off integers [N, 8, 8], before it is rounded, in 64ths: of each row of blocks, [N, 8].
    ``layout`` is that of :func:`rows_of`."""
    row, sector, number, start, end = layout
    if not LFC:
        return tl.zeros((N, 8), tl.int32)
    if LEAST:
        own = tl.min(tl.where(exists, y, HIGHEST), 2)
    else:
        tail = width - (sectors - 1) * 8
        if TILED:
            high = 3
            wide = log2_of(tl.where(sector == sectors - 1, tail, 8))
        else:
            whole = (end - start).to(tl.int32) - ((end % sectors == 0) & (tail < 8)).to(tl.int32)
            high = log2_of(whole)
            wide = tl.where(whole > 0, 3, log2_of(tail))
        front = ((number - start) >> high == 0)[:, :, None] & (tl.arange(0, 8)[None, None, :] >> wide[:, :, None] == 0)
        own = tl.sum(tl.where(front & exists, y, 0), 2)
    if TILED:
        total = tl.min(own, 1) if LEAST else tl.sum(own, 1)
        total = total[:, None] + tl.zeros((N, 8), tl.int32)
    else:
        same = row[:, :, None] == row[:, None, :]
        other = own[:, None, :]
        total = tl.min(tl.where(same, other, HIGHEST), 2) if LEAST else tl.sum(tl.where(same, other, 0), 2)
    return total << 6 if LEAST else total << 6 - high - wide


@triton.jit
def values_of_plane(x, plane, part, rows, width, height, sectors, TILED: tl.constexpr, N: tl.constexpr):
    """Part of a plane's values, in blocks, with 0 for what is no normal number, which of them exist, and their
    layout."""
    block = plane * height * sectors // 8 + part * N + tl.arange(0, N)
    layout = rows_of(block, rows, width, sectors, TILED)
    place, exists = values_of(layout[0], layout[1], rows, width)
    exists = exists & (layout[0] // height == plane)[:, :, None]
    value = tl.load(x + place, exists, 0).to(tl.float32)
    magnitude = bits_of(value) & MAGNITUDE
    return tl.where((magnitude >= NORMAL) & (magnitude < INFINITE), value, 0.0), exists, layout


@triton.jit
def extremes(x, plane, scale, rows, width, height, sectors, FINE: tl.constexpr, LFC: tl.constexpr, LEAST: tl.constexpr,
             TILED: tl.constexpr, PARTS: tl.constexpr, N: tl.constexpr):
    """Smallest and largest of a plane's x * scale, rounded, less the level of their segment; in 64ths, before that is
    rounded, if FINE."""
    low, high = tl.full((N,), HIGHEST, tl.int32), tl.full((N,), LOWEST, tl.int32)
    for part in range(PARTS):
        value, exists, layout = values_of_plane(x, plane, part, rows, width, height, sectors, TILED, N)
        y = rounded(value.to(tl.float64) * scale)
        level = level_of(y, exists, layout, width, sectors, LFC, LEAST, TILED, N)[:, :, None]
        rest = y * 64 - level if FINE else y - (level + 32 >> 6)
        low = tl.minimum(low, tl.min(tl.min(tl.where(exists, rest, HIGHEST), 2), 1))
        high = tl.maximum(high, tl.max(tl.max(tl.where(exists, rest, LOWEST), 2), 1))
    return tl.min(low, 0), tl.max(high, 0)


@triton.jit
def fit_kernel(x, k, delta, rows, width, height, sectors, most, BITS: tl.constexpr, LFC: tl.constexpr,
               LEAST: tl.constexpr, TILED: tl.constexpr, PARTS: tl.constexpr, N: tl.constexpr):
    """k and delta of a plane, by a program, as it needs all values of the plane three times and more."""
    SPAN: tl.constexpr = 64 - 2 ** (6 - BITS)
    TOP: tl.constexpr = 128 - 2 ** (6 - BITS)
    plane = tl.program_id(0).to(tl.int64)
    bits = tl.zeros((N,), tl.int32)
    for part in range(PARTS):
        value = values_of_plane(x, plane, part, rows, width, height, sectors, TILED, N)[0]
        bits = tl.maximum(bits, tl.max(tl.max(bits_of(value) & MAGNITUDE, 2), 1))
    top = tl.max(bits, 0)
    exponent = tl.where(top == 0, 0, (top >> 23) - 126)  # that of frexp
    scale = (15 - exponent + BIAS64).to(tl.int64) << FRACTION64
    scale = scale.to(tl.float64, bitcast=True)
    low, high = extremes(x, plane, scale, rows, width, height, sectors, True, LFC, LEAST, TILED, PARTS, N)
    wide = tl.maximum(high - low, 1).to(tl.float64)
    fitted = tl.where(high == low, float("inf"), scale * (SPAN * 64) / wide)
    largest = float_of(top).to(tl.float64)
    other = (tl.zeros_like(largest) + TOP) / tl.where(top == 0, 1.0, largest)
    fitted = tl.minimum(tl.minimum(fitted, tl.where(top == 0, float("inf"), other)), most)
    fitted = (fitted.to(tl.int64, bitcast=True) & BFLOAT16).to(tl.float64, bitcast=True)
    own = tl.where(top == 0, 0.0, fitted.to(tl.float32))
    scale = own.to(tl.float64)
    low, high = extremes(x, plane, scale, rows, width, height, sectors, False, LFC, LEAST, TILED, PARTS, N)
    while high - low > SPAN:
        own = float_of(bits_of(own) - 65536)  # the bfloat16 below
        scale = own.to(tl.float64)
        low, high = extremes(x, plane, scale, rows, width, height, sectors, False, LFC, LEAST, TILED, PARTS, N)
    tl.store(k + plane, own)
    tl.store(delta + plane, tl.maximum(low, -128).to(tl.int8))


@triton.jit
def rotated(x, left: tl.constexpr):
    """16-bit numbers, rotated to the left."""
    return (x << left | x >> 16 - left) & 0xFFFF


@triton.jit
def random_of(block, low, high, N: tl.constexpr):
    """The random number of each row of blocks, uint32 [N, 8]; ``low`` and ``high`` are halves of the seed."""
    group = block >> 2
    a, b = (group >> 16).to(tl.int32) & 0xFFFF, (group & 0xFFFF).to(tl.int32)
    for i in tl.static_range(8):
        a = (rotated(a, 9) + b & 0xFFFF) ^ (high if i % 2 else low)
        b = rotated(b, 2) ^ a
    s = a.to(tl.uint32) << 16 | b.to(tl.uint32) | 1
    own = ((block & 3).to(tl.int32) * 8)[:, None] + tl.arange(0, 8)[None, :]
    result = tl.zeros((N, 8), tl.uint32)
    for i in tl.static_range(32):
        s ^= s << 13
        s ^= s >> 17
        s ^= s << 5
        result = tl.where(own == i, s[:, None], result)
    return result.to(tl.int32, bitcast=True)


@triton.jit
def segment_of(start, block, sectors, period, TILED: tl.constexpr):
    """The number of the segment that starts with a row: segments start with blocks and with rows of the tensor, and
    ``period`` rows of blocks are from one place where both start to the next."""
    if TILED:
        return block[:, None] + start * 0
    return up(start, 8) + up(start, sectors) - up(start, period)


@triton.jit
def encode_kernel(x, k, delta, codes, bases, blocks, rows, width, height, sectors, period, seed_low, seed_high,
                  BITS: tl.constexpr, LFC: tl.constexpr, LEAST: tl.constexpr, NEAREST: tl.constexpr,
                  TILED: tl.constexpr, N: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    layout = rows_of(block, rows, width, sectors, TILED)
    row, sector, number, start, _ = layout
    place, exists = values_of(row, sector, rows, width)
    plane = row // height
    scale = tl.load(k + plane, row < rows, 0)[:, :, None]
    y = quantized(tl.load(x + place, exists, 0).to(tl.float32), scale, False)
    mean = level_of(y, exists, layout, width, sectors, LFC, LEAST, TILED, N) + 32 >> 6
    base = tl.minimum(tl.maximum(mean + tl.load(delta + plane, row < rows, 0).to(tl.int32), -128), 127)
    segment = segment_of(start, block, sectors, period, TILED)
    tl.store(bases + segment, base.to(tl.int8), (number == start) & (row < rows))
    lane = tl.arange(0, 8)
    if NEAREST:
        random = tl.full((N, 8, 8), 2 ** (5 - BITS), tl.int32)
    else:
        phase = random_of(block, seed_low, seed_high, N)[:, :, None] >> (lane % 2 * 5)[None, None, :] & 31
        pair = lane // 2
        pair = pair ^ pair >> 1
        random = (phase ^ ((pair & 1) * 16 + (pair >> 1) * 8)[None, None, :]) >> BITS - 1
    # rows past the last one are empty, with a base of 0
    base = tl.where(row < rows, base, 0)[:, :, None]
    code = tl.minimum(tl.maximum(y - base + random, 0), 63) >> 6 - BITS
    word = tl.sum(code << (lane * BITS)[None, None, :], 2)
    for i in tl.static_range(BITS):
        tl.store(codes + number * BITS + i, (word >> 8 * i).to(tl.uint8), (block < blocks)[:, None])


@triton.jit
def decode_kernel(codes, bases, r, x, blocks, rows, width, height, sectors, period, BITS: tl.constexpr,
                  TILED: tl.constexpr, N: tl.constexpr):
    block = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    row, sector, number, start, _ = rows_of(block, rows, width, sectors, TILED)
    place, exists = values_of(row, sector, rows, width)
    base = tl.load(bases + segment_of(start, block, sectors, period, TILED), row < rows, 0).to(tl.int32)
    word = tl.zeros((N, 8), tl.int32)
    for i in tl.static_range(BITS):
        word |= tl.load(codes + number * BITS + i, (block < blocks)[:, None], 0).to(tl.int32) << 8 * i
    code = word[:, :, None] >> (tl.arange(0, 8) * BITS)[None, None, :] & 2**BITS - 1
    y = tl.minimum(base[:, :, None] + (code << 6 - BITS), 127)
    store(x, place, dequantized(y, tl.load(r + row // height, row < rows, 0)[:, :, None]), exists)


def _geometry(tiled, rows, width, height):
    """Blocks, and what of the view kernels need."""
    sectors = triton.cdiv(width, 8)
    return triton.cdiv(rows * sectors, 8), (rows, width, height, sectors, math.lcm(sectors, 8))


def segments(tiled: bool, rows: int, width: int, height: int) -> int:
    blocks, (_, _, _, sectors, period) = _geometry(tiled, rows, width, height)
    count = rows * sectors
    return blocks if tiled else blocks + rows - triton.cdiv(count, period)


def fit(x: torch.Tensor, tiled: bool, rows: int, width: int, height: int, bits: int, first: bool, last: bool,
        least: bool, most: float, k: torch.Tensor, delta: torch.Tensor) -> None:
    _, (*shape, _) = _geometry(tiled, rows, width, height)
    parts = triton.cdiv(triton.cdiv(height * shape[-1], 8) + 1, BLOCKS)  # a plane may begin inside of a block
    for lfc in range(first, last + 1):
        run(fit_kernel, rows // height, x, k[lfc - first], delta[lfc - first], *shape, most, BITS=bits, LFC=bool(lfc),
            LEAST=least, TILED=tiled, PARTS=parts, N=BLOCKS)


def encode(x: torch.Tensor, tiled: bool, rows: int, width: int, height: int, k: torch.Tensor, delta: torch.Tensor,
           bits: int, lfc: bool, least: bool, seed: int, nearest: bool, codes: torch.Tensor, bases: torch.Tensor
           ) -> None:
    blocks, shape = _geometry(tiled, rows, width, height)
    run(encode_kernel, triton.cdiv(blocks, BLOCKS), x, k, delta, codes, bases, blocks, *shape, seed & 0xFFFF,
        seed >> 16, BITS=bits, LFC=lfc, LEAST=least, NEAREST=nearest, TILED=tiled, N=BLOCKS)


def decode(codes: torch.Tensor, bases: torch.Tensor, tiled: bool, rows: int, width: int, height: int, r: torch.Tensor,
           bits: int, x: torch.Tensor) -> None:
    blocks, shape = _geometry(tiled, rows, width, height)
    run(decode_kernel, triton.cdiv(blocks, BLOCKS), codes, bases, r, x, blocks, *shape, BITS=bits, TILED=tiled,
        N=BLOCKS)
