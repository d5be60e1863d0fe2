"""How kernels in Triton are launched, and what several of them compute with.

A module here that has the name of a C++ source has its functions, with the same arguments, for tensors on a GPU. Where
that can be, kernels compare and round floats as integers, of which a GPU's compiler can make nothing else.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["FRACTION", "INFINITE", "MAGNITUDE", "NORMAL", "QUIET", "bfloat16_of", "bits_of", "float_of", "join8", "run",
           "split8", "start", "store", "wide"]

# of float32
MAGNITUDE = tl.constexpr(0x7FFFFFFF)
INFINITE = tl.constexpr(0x7F800000)
NORMAL = tl.constexpr(0x00800000)
QUIET = tl.constexpr(0x7FC00000)
FRACTION = tl.constexpr(23)

launches = 0
"""Kernels that have been launched."""
record: Any = None
"""Called at each launch, for tests, with the kernel, its arguments, its constants and its number of warps."""


def run(kernel: Any, programs: int, *arguments: Any, warps: int = 4, **constants: Any) -> None:
    """Launches so many programs of a kernel, on the device of its first argument."""
    global launches
    if not programs:
        return
    launches += 1
    if record is not None:
        record(kernel, arguments, constants, warps)
    device = arguments[0].device
    with torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        start(kernel, programs, arguments, constants, warps)


def start(kernel: Any, programs: int, arguments: Any, constants: Any, warps: int) -> None:
    """Products and sums are rounded one by one, as golden's are."""
    kernel[(programs,)](*arguments, **constants, num_warps=warps, enable_fp_fusion=False)


@triton.jit
def bits_of(x):
    return x.to(tl.int32, bitcast=True)


@triton.jit
def float_of(bits):
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def wide(value):
    """Floats of 16 or 32 bits as float32."""
    if value.dtype == tl.bfloat16:  # Triton's interpreter would flush subnormal numbers
        value = float_of(value.to(tl.int16, bitcast=True).to(tl.int32) << 16)
    return value.to(tl.float32)


@triton.jit
def bfloat16_of(x):
    """The bits of a bfloat16, int32, of a float32 that is no NaN but the usual one; to nearest even."""
    bits = bits_of(x)
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


@triton.jit
def store(x, place, value, inside):
    """Stores float32 values in a tensor of its type, or of 16 bits."""
    if x.dtype.element_ty == tl.bfloat16:  # Triton's interpreter would truncate
        tl.store(x + place, bfloat16_of(value).to(tl.int16).to(tl.bfloat16, bitcast=True), inside)
    else:
        tl.store(x + place, value.to(x.dtype.element_ty), inside)


@triton.jit
def split8(x, N: tl.constexpr):
    """The columns of [N, 8]."""
    even, odd = tl.split(tl.reshape(x, (N, 2, 2, 2)))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    x0, x4 = tl.split(a)
    x1, x5 = tl.split(b)
    x2, x6 = tl.split(c)
    x3, x7 = tl.split(d)
    return x0, x1, x2, x3, x4, x5, x6, x7


@triton.jit
def join8(x, N: tl.constexpr):
    """The inverse of :func:`split8`."""
    even = tl.join(tl.join(x[0], x[4]), tl.join(x[2], x[6]))
    odd = tl.join(tl.join(x[1], x[5]), tl.join(x[3], x[7]))
    return tl.reshape(tl.join(even, odd), (N, 8))
