"""SFPR on a GPU (``sfpr.cpp``, with the same functions)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import INFINITE, MAGNITUDE, NORMAL, bfloat16_of, bits_of, float_of, run, store

__all__ = ["dequantize", "dequantized", "quantize", "quantized", "rounded", "scales"]

VALUES = 1024  # of a program
CHANNELS = 1024  # at a time
# A number this large has no fraction in float64, but room for 32 bits: adding it rounds to nearest even.
WHOLE = tl.constexpr(1.5 * 2.0**52)


@triton.jit
def pieces(rows, length, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A program's rows, the places of its values, [ROWS, COLUMNS], and which of them exist."""
    program, across = tl.program_id(0), tl.cdiv(length, COLUMNS)
    row = (program // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = program % across * COLUMNS + tl.arange(0, COLUMNS)
    return row, row[:, None] * length + column[None, :], (row < rows)[:, None] & (column < length)[None, :]


@triton.jit
def largest_kernel(x, most, rows, length, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Largest finite magnitude of each channel, in its bits."""
    row, place, inside = pieces(rows, length, ROWS, COLUMNS)
    bits = bits_of(tl.load(x + place, inside, 0).to(tl.float32)) & MAGNITUDE
    tl.atomic_max(most + row % channels, tl.max(tl.where(bits < INFINITE, bits, 0), 1), row < rows, sem="relaxed")


@triton.jit
def scales_kernel(most, k, r, channels, peak, limit, floor, smallest, N: tl.constexpr, PARTS: tl.constexpr):
    """k and r of all channels. One program does it, as each of them may depend on the largest magnitude of all."""
    top = tl.zeros((N,), tl.int32)
    for part in range(PARTS):
        channel = part * N + tl.arange(0, N)
        top = tl.maximum(top, tl.load(most + channel, channel < channels, 0))
    top = tl.max(top, 0)
    least = tl.div_rn(float_of(tl.where(top < NORMAL, 0, top)), limit)
    for part in range(PARTS):
        channel = part * N + tl.arange(0, N)
        bits = tl.load(most + channel, channel < channels, 0)
        bits = tl.where(bits < NORMAL, 0, bits)
        own = tl.maximum(tl.maximum(float_of(bits), least), floor)
        scale = float_of(bfloat16_of(tl.div_rn(tl.zeros((N,), tl.float32) + peak, own)) << 16)
        scale = tl.where(bits == 0, 0.0, tl.maximum(scale, smallest))
        inverse = tl.div_rn(tl.full((N,), 1.0, tl.float32), tl.where(bits == 0, 1.0, scale))
        tl.store(k + channel, scale, channel < channels)
        tl.store(r + channel, tl.where(bits == 0, 0.0, inverse), channel < channels)


@triton.jit
def rounded(x):
    """The integers nearest to float64 numbers of at most 31 bits, to even."""
    return ((x + WHOLE) - WHOLE).to(tl.int32)


@triton.jit
def quantized(x, k, SIGNS: tl.constexpr):
    """Integers from -128 to 127, int32, of float32 values and scales. The product is exact in float64."""
    bits = bits_of(x)
    magnitude = bits & MAGNITUDE
    value = tl.where((magnitude >= NORMAL) & (magnitude < INFINITE), x, 0.0)
    product = value.to(tl.float64) * k.to(tl.float64)
    y = rounded(tl.minimum(tl.maximum(product, -128.0), 127.0))
    if SIGNS:
        y = tl.where((y == 0) & (value > 0), 1, y)
    return tl.where(magnitude == INFINITE, tl.where(bits < 0, -128, 127), y)


@triton.jit
def dequantized(y, r):
    return y.to(tl.float32) * r + 0.0  # -128 times 0 would be -0.0


@triton.jit
def quantize_kernel(x, k, y, rows, length, channels, SIGNS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, place, inside = pieces(rows, length, ROWS, COLUMNS)
    scale = tl.load(k + row % channels)[:, None]
    value = tl.load(x + place, inside, 0).to(tl.float32)
    tl.store(y + place, quantized(value, scale, SIGNS).to(tl.int8), inside)


@triton.jit
def dequantize_kernel(y, r, x, rows, length, channels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row, place, inside = pieces(rows, length, ROWS, COLUMNS)
    value = dequantized(tl.load(y + place, inside, 0), tl.load(r + row % channels)[:, None])
    store(x, place, value, inside)


def _span(rows: int, length: int) -> tuple[int, dict[str, int]]:
    """How many programs cover ``rows`` of ``length`` values with :func:`pieces`, and its constants."""
    columns = min(triton.next_power_of_2(length), VALUES)
    tall = VALUES // columns
    return triton.cdiv(rows, tall) * triton.cdiv(length, columns), {"ROWS": tall, "COLUMNS": columns}


def scales(x: torch.Tensor, rows: int, length: int, channels: int, peak: float, limit: float, floor: float,
           smallest: float, k: torch.Tensor, r: torch.Tensor) -> None:
    most = torch.zeros(channels, dtype=torch.int32, device=x.device)
    programs, constants = _span(rows, length)
    run(largest_kernel, programs, x, most, rows, length, channels, **constants)
    wide = min(triton.next_power_of_2(channels), CHANNELS)
    run(scales_kernel, 1, most, k, r, channels, peak, limit, floor, smallest, N=wide, PARTS=triton.cdiv(channels, wide))


def quantize(x: torch.Tensor, rows: int, length: int, channels: int, k: torch.Tensor, signs: bool, y: torch.Tensor
             ) -> None:
    programs, constants = _span(rows, length)
    run(quantize_kernel, programs, x, k, y, rows, length, channels, SIGNS=signs, **constants)


def dequantize(y: torch.Tensor, rows: int, length: int, channels: int, r: torch.Tensor, x: torch.Tensor) -> None:
    programs, constants = _span(rows, length)
    run(dequantize_kernel, programs, y, r, x, rows, length, channels, **constants)
