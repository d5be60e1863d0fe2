"""Formats of a value in memory: 16-bit words widened to float32, which all stages work on, and float32 rounded to them;
and int8, the codes of SFPR, which stay what they are.

Source: IEEE 754-2019, sections 3.4 and 5.4.2 (float16); bfloat16 is the upper half of a float32.
"""

import numpy as np
from numpy.typing import NDArray

FORMATS = ("float32", "bfloat16", "float16", "int8")
"""By their codes in the descriptor."""

HALVES = FORMATS[1:3]
"""Those of 16 bits."""

CODES = FORMATS[3]
"""That of 8."""


def bytes_of(form: str) -> int:
    """Bytes of a value. Raises ValueError for an unknown format."""
    if form not in FORMATS:
        raise ValueError(f"unknown format {form!r}, legal are {', '.join(FORMATS)}")
    return {"float32": 4, CODES: 1}.get(form, 2)


def widen(words: NDArray[np.uint16], form: str) -> NDArray[np.float32]:
    """The float32 values of 16-bit words (uint16): exactly, subnormal numbers and payloads of NaNs included."""
    bits = np.asarray(words, np.uint16).astype(np.uint32)
    if form == "bfloat16":
        return (bits << 16).view(np.float32)
    sign, exponent, mantissa = (bits & 0x8000) << 16, bits >> 10 & 31, bits & 1023
    normal = exponent + np.uint32(127 - 15) << 23 | mantissa << 13
    special = np.uint32(0x7F800000) | mantissa << 13
    small = (mantissa.astype(np.float32) * np.float32(2.0**-24)).view(np.uint32)  # exact
    magnitude = np.select([exponent == 0, exponent == 31], [small, special], normal)
    return (sign | magnitude).astype(np.uint32).view(np.float32)


def narrow(values: NDArray[np.float32], form: str) -> NDArray[np.uint16]:
    """The 16-bit words (uint16) nearest to float32 values, ties to even, rounded once.

    What rounds to more than the largest number becomes infinity; subnormal numbers are made. A NaN keeps its sign and
    the upper bits of its mantissa, and is quiet.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    sign, magnitude = (bits >> 16 & 0x8000).astype(np.uint16), bits & np.uint32(0x7FFFFFFF)
    if form == "bfloat16":
        digits, quiet = _rounded(magnitude, np.uint32(16)), magnitude >> 16 | 0x40
    else:
        # Below the smallest normal number the digits end at 2^-24, whatever the exponent.
        exponent = np.maximum(magnitude >> 23, np.uint32(1))
        significand = magnitude & np.uint32(0x7FFFFF) | np.where(magnitude >> 23, np.uint32(0x800000), np.uint32(0))
        small = _rounded(significand, np.clip(126 - exponent.astype(np.int32), 13, 25).astype(np.uint32))
        normal = _rounded(np.maximum(magnitude, np.uint32(113 << 23)) - np.uint32(112 << 23), np.uint32(13))
        digits = np.minimum(np.where(exponent < 113, small, normal), 0x7C00)
        quiet = (magnitude >> 13 & 0x3FF) | 0x7E00
    return sign | np.where(magnitude > 0x7F800000, quiet, digits).astype(np.uint16)


def _rounded(x: NDArray[np.uint32], places: NDArray[np.uint32] | np.uint32) -> NDArray[np.uint32]:
    """x / 2^places, rounded to nearest, ties to even."""
    one = np.uint32(1)
    return x + ((one << places - one) - one + (x >> places & one)) >> places
