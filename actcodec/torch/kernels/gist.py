"""Gist's DPR on a GPU (``gist.cpp``)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import FRACTION, INFINITE, MAGNITUDE, QUIET, bits_of, float_of, run, store

__all__ = ["decode", "encode"]

WORDS = 512  # of a program
FORMATS = {8: (4, 3), 10: (5, 4), 16: (5, 10)}  # bits of exponent and mantissa


@triton.jit
def code_of(x, least, most, EXPONENT: tl.constexpr, MANTISSA: tl.constexpr):
    """The code, int32, of a value whose smallest and largest magnitudes, as codes without the base, are these."""
    DROP: tl.constexpr = FRACTION - MANTISSA
    BASE: tl.constexpr = (128 - 2 ** (EXPONENT - 1)) * 2**MANTISSA
    NAN: tl.constexpr = (2**EXPONENT - 1) * 2**MANTISSA + 2 ** (MANTISSA - 1)
    bits = bits_of(x)
    magnitude = bits & MAGNITUDE
    # ties to even, also into an octave; what is not below an infinity needs no rounding, which would overflow
    finite = tl.minimum(magnitude, INFINITE)
    code = finite + (finite >> DROP & 1) + (2 ** (DROP - 1) - 1) >> DROP
    code = tl.where(code < least, 0, tl.minimum(code, most) - BASE)
    code = tl.where(magnitude > INFINITE, NAN, code)
    return tl.where(bits < 0, code | 2 ** (EXPONENT + MANTISSA), code)


@triton.jit
def value_of(code, EXPONENT: tl.constexpr, MANTISSA: tl.constexpr):
    """The inverse of :func:`code_of`, of whose codes the bits above are ignored."""
    DROP: tl.constexpr = FRACTION - MANTISSA
    BASE: tl.constexpr = (128 - 2 ** (EXPONENT - 1)) * 2**MANTISSA
    magnitude = code & 2 ** (EXPONENT + MANTISSA) - 1
    bits = tl.where(magnitude == 0, 0, magnitude + BASE << DROP)
    bits = tl.where(magnitude >> MANTISSA == 2**EXPONENT - 1, QUIET, bits)
    return float_of(bits | code >> EXPONENT + MANTISSA << 31)


@triton.jit
def encode_kernel(x, out, n, words, least, most, EXPONENT: tl.constexpr, MANTISSA: tl.constexpr, PER: tl.constexpr,
                  WORDS: tl.constexpr):
    word = tl.program_id(0).to(tl.int64) * WORDS + tl.arange(0, WORDS)
    data = tl.zeros((WORDS,), tl.int32)
    for i in tl.static_range(PER):
        place = word * PER + i
        value = tl.load(x + place, place < n, 0).to(tl.float32)
        data |= code_of(value, least, most, EXPONENT, MANTISSA) << i * (1 + EXPONENT + MANTISSA)
    tl.store(out + word, data.to(out.dtype.element_ty), word < words)


@triton.jit
def decode_kernel(data, x, n, words, EXPONENT: tl.constexpr, MANTISSA: tl.constexpr, PER: tl.constexpr,
                  WORDS: tl.constexpr):
    word = tl.program_id(0).to(tl.int64) * WORDS + tl.arange(0, WORDS)
    code = tl.load(data + word, word < words, 0).to(tl.int32)
    for i in tl.static_range(PER):
        place = word * PER + i
        store(x, place, value_of(code >> i * (1 + EXPONENT + MANTISSA), EXPONENT, MANTISSA), place < n)


def _constants(width):
    exponent, mantissa = FORMATS[width]
    return {"EXPONENT": exponent, "MANTISSA": mantissa, "PER": 1 if 32 % width == 0 else 32 // width, "WORDS": WORDS}


def encode(x: torch.Tensor, n: int, width: int, least: int, most: int, out: torch.Tensor) -> None:
    run(encode_kernel, triton.cdiv(out.numel(), WORDS), x, out, n, out.numel(), least, most, **_constants(width))


def decode(data: torch.Tensor, n: int, width: int, x: torch.Tensor) -> None:
    run(decode_kernel, triton.cdiv(data.numel(), WORDS), data, x, n, data.numel(), **_constants(width))
