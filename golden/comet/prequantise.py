"""Prequantisation: float32 values as integer multiples of a step, within an error bound that holds for every value
(COMET, sections 2.2 and 3.4; the dual quantisation of cuSZ).

A step has 8 significant bits (it is a bfloat16) and an integer has 11, so that their product is exact in float32. The
quotient is rounded once, half away from zero, as in cuSZ and SZ3. So a value is never off by more than half a step,
with no tolerance, and a zero stays zero: the paper's filter of small values finds nothing to do.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST = 2047  # of |q|
LARGEST_STEP = 2.0**112  # 2047 of them are still finite
SMALLEST_STEP = 2.0**-125  # one of them is still normal, and subnormals are below half of it
_BITS = 8
PART = 1 << 16  # values at a time: what is computed between stays in a cache


def step(eb: float) -> float:
    """s, the largest number with 8 significant bits that is at most 2 * eb, and at most 2^112; a float.

    `eb` is the absolute error bound, 2^-126 or more; s / 2 is the bound that holds. Raises ValueError for a smaller
    bound, 0, a negative one and NaN. Infinity is a bound as well, and gives 2^112.
    """
    bound = min(eb, LARGEST_STEP)  # before it is a float, as an int may be of any size
    if not bound >= SMALLEST_STEP / 2:
        raise ValueError(f"error bound is {eb}, legal are 2^-126 (1.18e-38) and more")
    fraction, exponent = math.frexp(min(2 * float(bound), LARGEST_STEP))
    return math.ldexp(math.floor(math.ldexp(fraction, _BITS)), exponent - _BITS)


def check(s: float) -> None:
    """Raises ValueError unless `s` is a step: 8 significant bits, 2^-125 to 2^112."""
    if not SMALLEST_STEP <= s <= LARGEST_STEP or math.ldexp(math.frexp(s)[0], _BITS) % 1:
        raise ValueError(f"step is {s}, legal are numbers of 8 significant bits from 2^-125 to 2^112")


def tensor(x: ArrayLike) -> NDArray[np.float32]:
    """`x` as an array. Raises TypeError unless it is float32."""
    x = np.asarray(x)
    if x.dtype != np.float32:
        raise TypeError(f"tensor is {x.dtype}, has to be float32")
    return x


def quantize(x: ArrayLike, s: float) -> tuple[NDArray[np.int16], NDArray[np.bool]]:
    """q = sign(x) * floor(|x| / s + 1/2) of real numbers, int16, and whether x is an outlier, bool; shapes of `x`.

    x is float32. Outliers are NaN, infinities, and what would be beyond 2047 either way; their q is 0. Raises TypeError
    unless `x` is float32, ValueError for a step that is none.
    """
    x = tensor(x)
    check(s)
    q, outliers = np.empty(x.shape, np.int16), np.empty(x.shape, bool)
    flat = np.ascontiguousarray(x).reshape(-1)
    for i in range(0, flat.size, PART):
        part = slice(i, i + PART)
        q.reshape(-1)[part], outliers.reshape(-1)[part] = _quantize(flat[part], s)
    return q, outliers


def _quantize(x, s):
    """Of one part."""
    outliers = ~(np.abs(x) < np.float32((LARGEST + 0.5) * s))  # a bound of 20 significant bits
    if outliers.any():
        x = np.where(outliers, np.float32(0), x)
    # Exact: a quotient of 24 by 8 bits is a half, or further away from it than float64 rounds. Subnormals, which count
    # as zeros, are below half of any step. What becomes an integer loses its fraction, whatever its sign is.
    quotient = x.astype(np.float64)
    quotient /= s
    quotient += np.copysign(np.float32(0.5), x)
    return quotient.astype(np.int16), outliers


def dequantize(q: ArrayLike, s: float) -> NDArray[np.float32]:
    """x* = q * s, float32, exactly; shape of `q` (integers, -2048 to 2047). q = 0 gives +0.0.

    Raises ValueError for a step that is none.
    """
    check(s)
    return np.asarray(q).astype(np.float32) * np.float32(s)
