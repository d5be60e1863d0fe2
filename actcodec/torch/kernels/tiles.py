"""SFPR, DCT and quantization of 8x8 tiles on a GPU (``tiles.cpp``).

A thread has a tile, whose 64 numbers are 64 vectors of a program: both passes need no other thread.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.torch import dct
from actcodec.torch.kernels.launch import join8, run, split8, store
from actcodec.torch.kernels.sfpr import dequantized, quantized

__all__ = ["decode", "encode"]

TILES = 32  # of a program
FRACTION_BITS = tl.constexpr(dct.FRACTION_BITS)
FIRST, SECOND = tl.constexpr(dct.FIRST), tl.constexpr(dct.SECOND)
RECIPROCAL_BITS = tl.constexpr(19)
ONE = tl.constexpr(1)
K1, K2, K3, K4, K5, K6, K7 = map(tl.constexpr, (dct.K1, dct.K2, dct.K3, dct.K4, dct.K5, dct.K6, dct.K7))


@triton.jit
def forward(x, DROP: tl.constexpr):
    """The 8-point transform of eight vectors, of which each result is rounded once."""
    a0, a1, a2, a3 = x[0] + x[7], x[1] + x[6], x[2] + x[5], x[3] + x[4]
    d0, d1, d2, d3 = x[0] - x[7], x[1] - x[6], x[2] - x[5], x[3] - x[4]
    outer, inner, ends, middle = a0 - a3, a1 - a2, a0 + a3, a1 + a2
    half = ONE << DROP - 1
    return ((ends + middle) * K4 + half >> DROP,
            d0 * K1 + d1 * K3 + d2 * K5 + d3 * K7 + half >> DROP,
            outer * K2 + inner * K6 + half >> DROP,
            d0 * K3 - d1 * K7 - d2 * K1 - d3 * K5 + half >> DROP,
            (ends - middle) * K4 + half >> DROP,
            d0 * K5 - d1 * K1 + d2 * K7 + d3 * K3 + half >> DROP,
            outer * K6 - inner * K2 + half >> DROP,
            d0 * K7 - d1 * K5 + d2 * K3 - d3 * K1 + half >> DROP)


@triton.jit
def inverse(c, DROP: tl.constexpr):
    """The inverse of :func:`forward`: eight rounded terms, then sums without rounding."""
    half = ONE << DROP - 1
    e0, e1 = (c[0] + c[4]) * K4 + half >> DROP, (c[0] - c[4]) * K4 + half >> DROP
    t0, t1 = c[2] * K2 + c[6] * K6 + half >> DROP, c[2] * K6 - c[6] * K2 + half >> DROP
    o0 = c[1] * K1 + c[3] * K3 + c[5] * K5 + c[7] * K7 + half >> DROP
    o1 = c[1] * K3 - c[3] * K7 - c[5] * K1 - c[7] * K5 + half >> DROP
    o2 = c[1] * K5 - c[3] * K1 + c[5] * K7 + c[7] * K3 + half >> DROP
    o3 = c[1] * K7 - c[3] * K5 + c[5] * K3 - c[7] * K1 + half >> DROP
    s0, s1, s2, s3 = e0 + t0, e1 + t1, e1 - t1, e0 - t0
    return s0 + o0, s1 + o1, s2 + o2, s3 + o3, s3 - o3, s2 - o2, s1 - o1, s0 - o0


@triton.jit
def column_of(x, j: tl.constexpr):
    """Number j of each of eight tuples."""
    return x[0][j], x[1][j], x[2][j], x[3][j], x[4][j], x[5][j], x[6][j], x[7][j]


@triton.jit
def quantized_coefficient(c, table, f: tl.constexpr, WAY: tl.constexpr):
    """By shifts, divisors, or steps in quarters, as the functions of quantize.py."""
    t = tl.load(table + f)
    if WAY == 0:
        drop = t + FRACTION_BITS
        y = c + (1 << drop - 1) >> drop
    elif WAY == 1:
        reciprocal = ((ONE << RECIPROCAL_BITS) + t - 1) // t
        y = (c + (t << FRACTION_BITS - 1) >> FRACTION_BITS) * reciprocal + (1 << 10) >> RECIPROCAL_BITS
    else:
        reciprocal, bits, zone = tl.load(table + 64 + f), tl.load(table + 128 + f), tl.load(table + 192 + f)
        x = c >> FRACTION_BITS - 1
        y = x * reciprocal + (tl.where(x < 0, 8 + zone, 8 - zone) << bits - 4) >> bits
    return tl.minimum(tl.maximum(y, -128), 127)


@triton.jit
def coefficient(q, table, f: tl.constexpr, WAY: tl.constexpr):
    """The inverse of :func:`quantized_coefficient`, saturated."""
    t = tl.load(table + f)
    if WAY == 0:
        c = q << t
    elif WAY == 1:
        c = q * t
    else:
        c = q * t + 2 >> 2
    return tl.minimum(tl.maximum(c, -2048), 2047)


@triton.jit
def row_of_tiles(tile, i: tl.constexpr, blocks, across, rows, width, N: tl.constexpr):
    """Row i of so many tiles: its row in the tensor, the places of its values, [N, 8], and which of them exist."""
    row = tile // across * 8 + i
    column = (tile % across * 8)[:, None] + tl.arange(0, 8)[None, :]
    return row, row[:, None] * width + column, ((tile < blocks) & (row < rows))[:, None] & (column < width)


@triton.jit
def place_of(tile, blocks, i: tl.constexpr, j: tl.constexpr, LINES: tl.constexpr):
    """The place of a coefficient of tiles: in a block, column by column, if LINES, or in a row of all tiles."""
    return tile * 64 + 8 * j + i if LINES else (8 * i + j) * blocks + tile


@triton.jit
def encode_kernel(x, k, table, q, blocks, across, rows, width, height, channels, SIGNS: tl.constexpr,
                  WAY: tl.constexpr, LINES: tl.constexpr, N: tl.constexpr):
    tile = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    lines = ()
    for i in tl.static_range(8):
        row, place, inside = row_of_tiles(tile, i, blocks, across, rows, width, N)
        scale = tl.load(k + row // height % channels)[:, None]
        value = quantized(tl.load(x + place, inside, 0).to(tl.float32), scale, SIGNS)
        lines = lines + (forward(split8(value, N), FIRST),)
    for j in tl.static_range(8):
        column = forward(column_of(lines, j), SECOND)
        for i in tl.static_range(8):
            y = quantized_coefficient(column[i], table, 8 * i + j, WAY)
            tl.store(q + place_of(tile, blocks, i, j, LINES), y.to(tl.int8), tile < blocks)


@triton.jit
def decode_kernel(q, table, r, x, blocks, across, rows, width, height, channels, WAY: tl.constexpr,
                  LINES: tl.constexpr, N: tl.constexpr):
    tile = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    columns = ()
    for j in tl.static_range(8):
        column = ()
        for i in tl.static_range(8):
            y = tl.load(q + place_of(tile, blocks, i, j, LINES), tile < blocks, 0).to(tl.int8).to(tl.int32)
            column = column + (coefficient(y, table, 8 * i + j, WAY),)
        columns = columns + (inverse(column, FIRST),)
    # as in golden: half up would lift every pixel, so half of a row has half a step less
    half = tl.where(tl.arange(0, 8) < 4, 32, 31)[None, :]
    for i in tl.static_range(8):
        value = join8(inverse(column_of(columns, i), SECOND), N)
        value = tl.minimum(tl.maximum(value + half >> 6, -128), 127)
        row, place, inside = row_of_tiles(tile, i, blocks, across, rows, width, N)
        store(x, place, dequantized(value, tl.load(r + row // height % channels)[:, None]), inside)


def _geometry(rows, width):
    """Programs, and the blocks, tiles side by side, rows and width of the tensor."""
    across = triton.cdiv(width, 8)
    blocks = triton.cdiv(rows, 8) * across
    return triton.cdiv(blocks, TILES), (blocks, across, rows, width)


def encode(x: torch.Tensor, rows: int, width: int, height: int, channels: int, k: torch.Tensor, signs: bool, way: int,
           lines: bool, table: torch.Tensor, q: torch.Tensor) -> None:
    """A plane of ``height`` rows has a scale."""
    programs, shape = _geometry(rows, width)
    run(encode_kernel, programs, x, k, table, q, *shape, height, channels, warps=1, SIGNS=signs, WAY=way, LINES=lines,
        N=TILES)


def decode(q: torch.Tensor, rows: int, width: int, height: int, channels: int, r: torch.Tensor, way: int, lines: bool,
           table: torch.Tensor, x: torch.Tensor) -> None:
    """The inverse of :func:`encode`."""
    programs, shape = _geometry(rows, width)
    run(decode_kernel, programs, q, table, r, x, *shape, height, channels, warps=1, WAY=way, LINES=lines, N=TILES)
