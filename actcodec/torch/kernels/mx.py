"""MX on a GPU (``mx.cpp``)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import FRACTION, INFINITE, MAGNITUDE, NORMAL, QUIET, bits_of, float_of, run, store

__all__ = ["decode", "encode"]

GROUPS = 32  # of a program
GROUP, BIAS, NAN_SCALE = tl.constexpr(32), tl.constexpr(127), tl.constexpr(255)
WHOLE = tl.constexpr(1.5 * 2.0**23)  # to which a float32 is added that is to be rounded, to even


@triton.jit
def power(exponent):
    return float_of(exponent + BIAS << FRACTION)


@triton.jit
def scaled(x, exponent):
    """x times 2^exponent, in two halves: some powers are subnormal numbers, or none at all."""
    return x * power(exponent >> 1) * power(exponent - (exponent >> 1))


@triton.jit
def values_of(rows, width, padded, N: tl.constexpr):
    """A program's groups, the places of their values, [N, 32], and which of these exist: rows are padded, and their
    end, too."""
    group = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    value = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    row, column = value // padded, value % padded
    return group, row * width + column, (row < rows) & (column < width)


@triton.jit
def scale_of(bits, emax, threshold, NANS: tl.constexpr):
    """The scales of groups, int32 [N], by the bits of magnitudes; a fraction of the largest one that is more than
    ``threshold`` rounds its exponent up."""
    most = tl.max(tl.where(bits < INFINITE, bits, 0), 1)
    exponent = (most >> FRACTION) - BIAS - emax + ((most & NORMAL - 1) > threshold).to(tl.int32)
    scale = tl.where(most < NORMAL, 0, tl.minimum(tl.maximum(exponent, -127), 127) + BIAS)
    return tl.where(tl.max(bits, 1) > INFINITE, NAN_SCALE, scale) if NANS else scale


@triton.jit
def store_codes(out, group, groups, code, WIDTH: tl.constexpr, N: tl.constexpr):
    """Stores codes, int32 [N, 32], of 4, 6 or 8 bits, one after the other."""
    inside = (group < groups)[:, None]
    if WIDTH == 8:
        tl.store(out + group[:, None] * 32 + tl.arange(0, 32)[None, :], code.to(tl.uint8), inside)
    elif WIDTH == 4:
        low, high = tl.split(tl.reshape(code, (N, 16, 2)))
        tl.store(out + group[:, None] * 16 + tl.arange(0, 16)[None, :], (low | high << 4).to(tl.uint8), inside)
    else:
        even, odd = tl.split(tl.reshape(code, (N, 8, 2, 2)))
        c0, c2 = tl.split(even)
        c1, c3 = tl.split(odd)
        word = c0 | c1 << 6 | c2 << 12 | c3 << 18
        place = group[:, None] * 24 + tl.arange(0, 8)[None, :] * 3
        for i in tl.static_range(3):
            tl.store(out + place + i, (word >> 8 * i).to(tl.uint8), inside)


@triton.jit
def load_codes(data, group, groups, WIDTH: tl.constexpr):
    """The inverse of :func:`store_codes`."""
    number = tl.arange(0, 32)[None, :]
    inside = (group < groups)[:, None]
    if WIDTH == 8:
        return tl.load(data + group[:, None] * 32 + number, inside, 0).to(tl.int32)
    bit = number * WIDTH
    first = group[:, None] * 4 * WIDTH + bit // 8
    word = tl.load(data + first, inside, 0).to(tl.int32)
    if WIDTH == 6:  # of which some reach into the next byte
        word |= tl.load(data + first + 1, inside & (bit % 8 > 2), 0).to(tl.int32) << 8
    return word >> bit % 8 & (1 << WIDTH) - 1


@triton.jit
def encode_kernel(x, scales, codes, groups, rows, width, padded, emax, threshold, largest, infinity, nan,
                  EXPONENT: tl.constexpr, MANTISSA: tl.constexpr, OFFSET: tl.constexpr, NANS: tl.constexpr,
                  WIDTH: tl.constexpr, N: tl.constexpr):
    """Codes are ``largest`` at the most, but that of an infinity, ``infinity``, and of a NaN, ``nan``; with NANS, all
    codes of its group are 0. OFFSET is the bias of the elements' exponents."""
    group, place, inside = values_of(rows, width, padded, N)
    value = tl.load(x + place, inside, 0).to(tl.float32)
    word = bits_of(value)
    bits = word & MAGNITUDE
    scale = scale_of(bits, emax, threshold, NANS)
    tl.store(scales + group, scale.to(tl.uint8), group < groups)
    magnitude = float_of(tl.where((bits >= NORMAL) & (bits < INFINITE), bits, 0))
    s = scaled(magnitude, 127 - scale[:, None])
    if EXPONENT > 0:
        octave = tl.maximum((bits_of(s) >> FRACTION) - BIAS - 1 + OFFSET, 0)
        code = (s * power(-octave + (MANTISSA + OFFSET - 1)) + WHOLE - WHOLE).to(tl.int32) + (octave << MANTISSA)
    else:
        code = (s * 2.0 ** (MANTISSA + OFFSET - 1) + WHOLE - WHOLE).to(tl.int32)
    code = tl.minimum(code, largest)
    code = tl.where(bits == INFINITE, infinity, code)
    if EXPONENT > 0:
        code = tl.where(word < 0, code | 2 ** (EXPONENT + MANTISSA), code)
    else:
        code = tl.where(word < 0, -code, code) & 0xFF
    if NANS:
        code = tl.where(scale[:, None] == NAN_SCALE, 0, code)
    else:
        code = tl.where(bits > INFINITE, nan, code)
    store_codes(codes, group, groups, code, WIDTH, N)


@triton.jit
def decoded(code, largest, infinity, nan, EXPONENT: tl.constexpr, MANTISSA: tl.constexpr, OFFSET: tl.constexpr):
    """Values of codes at a scale of 1, without subnormal numbers of float32."""
    if EXPONENT == 0:
        return (code << 24 >> 24).to(tl.float32) * 2.0 ** -MANTISSA
    SIGN, REBIAS = 1 << EXPONENT + MANTISSA, BIAS - OFFSET << FRACTION
    magnitude = code & SIGN - 1
    word = magnitude << FRACTION - MANTISSA
    first = tl.full(code.shape, REBIAS + NORMAL, tl.int32)
    bits = tl.where(word < NORMAL, bits_of(float_of(word + first) - float_of(first)), word + REBIAS)
    bits = tl.where((magnitude == infinity) & (infinity != largest), INFINITE, bits)
    bits = tl.where((magnitude > infinity) & (nan >= 0), QUIET, bits)
    return float_of(bits | (code & SIGN) << 31 - EXPONENT - MANTISSA)


@triton.jit
def decode_kernel(codes, scales, x, groups, rows, width, padded, largest, infinity, nan, EXPONENT: tl.constexpr,
                  MANTISSA: tl.constexpr, OFFSET: tl.constexpr, WIDTH: tl.constexpr, N: tl.constexpr):
    group, place, inside = values_of(rows, width, padded, N)
    scale = tl.load(scales + group, group < groups, 0).to(tl.int32)[:, None]
    value = decoded(load_codes(codes, group, groups, WIDTH), largest, infinity, nan, EXPONENT, MANTISSA, OFFSET)
    bits = bits_of(scaled(value, scale - BIAS))
    magnitude = bits & MAGNITUDE
    bits = tl.where(magnitude < NORMAL, bits ^ magnitude, bits)
    store(x, place, float_of(tl.where((magnitude > INFINITE) | (scale == NAN_SCALE), QUIET, bits)), inside)


def encode(x: torch.Tensor, rows: int, width: int, padded: int, emax: int, threshold: int, exponent: int, mantissa: int,
           bias: int, largest: int, infinity: int, nan: int, bits: int, scales: torch.Tensor,
           codes: torch.Tensor) -> None:
    """Scales, and codes of ``bits`` each, of rows that are padded; ``nan`` below 0: of a format that has none."""
    run(encode_kernel, triton.cdiv(len(scales), GROUPS), x, scales, codes, len(scales), rows, width, padded, emax,
        threshold, largest, infinity, nan, EXPONENT=exponent, MANTISSA=mantissa, OFFSET=bias, NANS=nan < 0,
        WIDTH=bits, N=GROUPS)


def decode(codes: torch.Tensor, scales: torch.Tensor, rows: int, width: int, padded: int, exponent: int, mantissa: int,
           bias: int, largest: int, infinity: int, nan: int, bits: int, x: torch.Tensor) -> None:
    """The inverse of :func:`encode`."""
    run(decode_kernel, triton.cdiv(len(scales), GROUPS), codes, scales, x, len(scales), rows, width, padded, largest,
        infinity, nan, EXPONENT=exponent, MANTISSA=mantissa, OFFSET=bias, WIDTH=bits, N=GROUPS)
