"""Bits, narrow codes, and tensors without their zeros, on a GPU (``packing.cpp``)."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from actcodec.torch.kernels.launch import run, store, wide

__all__ = ["pack_above", "pack_codes", "pack_positive", "scatter", "sparse", "unpack", "unpack_codes", "unpack_values"]

BYTES = 256  # of bits, of a program


@triton.jit
def octets(n, BYTES: tl.constexpr):
    """The places of a program's bytes, those of the eight values of each, [BYTES, 8], and which of these exist."""
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    place = byte[:, None] * 8 + tl.arange(0, 8)[None, :]
    return byte, place, place < n


@triton.jit
def packed(bits):
    """Bytes, int32, of eight bits each, the first one lowest."""
    return tl.sum(bits.to(tl.int32) << tl.arange(0, 8)[None, :], 1)


@triton.jit
def spread(byte):
    """The inverse of :func:`packed`: int32, [BYTES, 8]."""
    return byte.to(tl.int32)[:, None] >> tl.arange(0, 8)[None, :] & 1


@triton.jit
def pack_kernel(x, out, ends, n, low, NAN: tl.constexpr, NONZERO: tl.constexpr, BYTES: tl.constexpr):
    """Bits of whether values are above ``low``, or, with NAN, are no numbers, or of whether they are not 0 and how many
    are not."""
    byte, place, inside = octets(n, BYTES)
    value = tl.load(x + place, inside, 0)
    if value.dtype == tl.int1:
        value = value.to(tl.int8)
    if value.dtype.is_floating():
        value = wide(value)
    if NONZERO:
        bits = value != 0
    elif NAN:
        bits = (value <= low) == 0
    else:
        bits = value > low
    tl.store(out + byte, packed(bits).to(tl.uint8), byte * 8 < n)
    if NONZERO:
        tl.store(ends + tl.program_id(0), tl.sum(tl.sum(bits.to(tl.int32), 1), 0))


@triton.jit
def unpack_kernel(bits, out, n, BYTES: tl.constexpr):
    byte, place, inside = octets(n, BYTES)
    one = spread(tl.load(bits + byte, byte * 8 < n, 0))
    if out.dtype.element_ty.is_floating():
        store(out, place, one.to(tl.float32), inside)
    else:
        tl.store(out + place, one.to(out.dtype.element_ty), inside)


@triton.jit
def count_kernel(bits, ends, n, BYTES: tl.constexpr):
    """How many bits of a program are 1. Bits past the last value are 0."""
    byte = octets(n, BYTES)[0]
    one = spread(tl.load(bits + byte, byte * 8 < n, 0))
    tl.store(ends + tl.program_id(0), tl.sum(tl.sum(one, 1), 0))


@triton.jit
def ranks(one, ends, BYTES: tl.constexpr):
    """The place of each value among those whose bits, int32 [BYTES, 8], are 1; ``ends`` has how many the programs up to
    this one have."""
    flat = tl.reshape(one, (BYTES * 8,))
    before = tl.cumsum(flat, 0) - flat
    return tl.reshape(before, (BYTES, 8)) + (tl.load(ends + tl.program_id(0)) - tl.sum(flat, 0))


@triton.jit
def gather_kernel(x, bits, ends, values, n, BYTES: tl.constexpr):
    byte, place, inside = octets(n, BYTES)
    one = spread(tl.load(bits + byte, byte * 8 < n, 0))
    tl.store(values + ranks(one, ends, BYTES), tl.load(x + place, inside, 0), one != 0)


@triton.jit
def scatter_kernel(bits, values, ends, out, n, BYTES: tl.constexpr):
    byte, place, inside = octets(n, BYTES)
    one = spread(tl.load(bits + byte, byte * 8 < n, 0))
    tl.store(out + place, tl.load(values + ranks(one, ends, BYTES), one != 0, 0), inside)


@triton.jit
def places(PER: tl.constexpr, BYTES: tl.constexpr):
    """Of so many codes a byte: their bytes, their numbers in a byte, and their places."""
    byte = tl.program_id(0).to(tl.int64) * BYTES + tl.arange(0, BYTES)
    number = tl.arange(0, PER)[None, :]
    return byte, number, byte[:, None] * PER + number


@triton.jit
def pack_codes_kernel(codes, out, n, BITS: tl.constexpr, BYTES: tl.constexpr):
    PER: tl.constexpr = 8 // BITS
    byte, number, place = places(PER, BYTES)
    code = tl.load(codes + place, place < n, 0).to(tl.int32)
    tl.store(out + byte, tl.sum(code << number * BITS, 1).to(tl.uint8), byte * PER < n)


@triton.jit
def unpack_codes_kernel(data, codes, n, BITS: tl.constexpr, BYTES: tl.constexpr):
    PER: tl.constexpr = 8 // BITS
    byte, number, place = places(PER, BYTES)
    word = tl.load(data + byte, byte * PER < n, 0).to(tl.int32)[:, None]
    tl.store(codes + place, (word >> number * BITS & 255 >> 8 - BITS).to(tl.uint8), place < n)


def _programs(n, per=8):
    return triton.cdiv(n, per * BYTES)


def pack_positive(x: torch.Tensor, n: int, kind: int, out: torch.Tensor) -> None:
    run(pack_kernel, _programs(n), x, out, out, n, 0, NAN=False, NONZERO=False, BYTES=BYTES)


def pack_above(x: torch.Tensor, n: int, low: float, nan: int, out: torch.Tensor) -> None:
    run(pack_kernel, _programs(n), x, out, out, n, low, NAN=nan != 0, NONZERO=False, BYTES=BYTES)


def unpack(bits: torch.Tensor, count: int, out: torch.Tensor) -> None:
    run(unpack_kernel, _programs(8 * count), bits, out, 8 * count, BYTES=BYTES)


def unpack_values(bits: torch.Tensor, n: int, out: torch.Tensor) -> None:
    run(unpack_kernel, _programs(n), bits, out, n, BYTES=BYTES)


def sparse(numbers: torch.Tensor, x: torch.Tensor) -> tuple[Any, torch.Tensor, int]:
    """The bits of which ``numbers`` are not 0, the values of ``x`` there, and how many these are; if that saves no
    memory, None and all values. The CPU waits for the number."""
    n = x.numel()
    bits = torch.empty(triton.cdiv(n, 8), dtype=torch.uint8, device=x.device)
    counts = torch.empty(_programs(n), dtype=torch.int32, device=x.device)
    run(pack_kernel, _programs(n), numbers, bits, counts, n, 0, NAN=False, NONZERO=True, BYTES=BYTES)
    ends = counts.cumsum(0)
    count = int(ends[-1])
    if bits.nbytes + count * x.itemsize >= x.nbytes:
        return None, x, count
    values = torch.empty(count, dtype=x.dtype, device=x.device)
    run(gather_kernel, _programs(n), x, bits, ends, values, n, BYTES=BYTES)
    return bits, values, count


def scatter(bits: torch.Tensor, values: torch.Tensor, count: int, n: int, size: int, out: torch.Tensor) -> None:
    counts = torch.empty(_programs(n), dtype=torch.int32, device=bits.device)
    run(count_kernel, _programs(n), bits, counts, n, BYTES=BYTES)
    run(scatter_kernel, _programs(n), bits, values, counts.cumsum(0), out, n, BYTES=BYTES)


def pack_codes(codes: torch.Tensor, n: int, bits: int, data: torch.Tensor) -> None:
    run(pack_codes_kernel, _programs(n, 8 // bits), codes, data, n, BITS=bits, BYTES=BYTES)


def unpack_codes(data: torch.Tensor, n: int, bits: int, codes: torch.Tensor) -> None:
    run(unpack_codes_kernel, _programs(n, 8 // bits), data, codes, n, BITS=bits, BYTES=BYTES)
