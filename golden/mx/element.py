"""The six element formats of MX, and float32 values of a known scale as their codes, and back (OCP Microscaling
Formats v1.0, section 5.3).

A code has its sign in the top bit; those of fewer than 8 bits stand in the low bits of a byte.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "NAN", "WORD", "Format", "decode", "encode", "words"]

NAN = 255  # the scale of a block that is not a number
BIAS = 127  # of a scale
WORD = np.uint32(0x7FC00000)  # the NaN that comes back

_MAGNITUDE = np.uint32(0x7FFFFFFF)
_NORMAL, _INFINITE = np.uint32(0x00800000), np.uint32(0x7F800000)


@dataclass(frozen=True)
class Format:
    """An element format. ``exponent`` and ``mantissa`` are numbers of bits; without an exponent it is two's complement,
    whose values are those of an exponent that is always 0: code * 2^(1 - ``bias`` - ``mantissa``)."""

    name: str
    exponent: int
    mantissa: int
    bias: int
    largest: int  # code of the greatest value
    infinity: int | None = None  # code
    nan: int | None = None  # code of the NaN that is written; without one, a block has it in its scale

    @property
    def width(self) -> int:
        """Bits."""
        return 1 + (self.exponent or 1) + self.mantissa

    @property
    def emax(self) -> int:
        """Exponent of the greatest value."""
        return (self.largest >> self.mantissa) - self.bias if self.exponent else 0

    @property
    def most(self) -> float:
        """The greatest value."""
        return float(np.ldexp(self.largest & (1 << self.mantissa) - 1 | 1 << self.mantissa, self.emax - self.mantissa))


FORMATS = {one.name: one for one in (
    Format("int8", 0, 6, 1, 127),
    Format("e4m3", 4, 3, 7, 0x7E, nan=0x7F),
    Format("e5m2", 5, 2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    Format("e3m2", 3, 2, 3, 0x1F),
    Format("e2m3", 2, 3, 1, 0x1F),
    Format("e2m1", 2, 1, 1, 0x07),
)}
"""By their names."""


def words(x: NDArray[np.float32]) -> NDArray[np.uint32]:
    """The bits of float32 ``x``. Raises TypeError for any other type."""
    if x.dtype != np.float32:
        raise TypeError(f"tensor is {x.dtype}, has to be float32")
    return x.view(np.uint32)


def encode(x: NDArray[np.float32], scale: NDArray[np.uint8],
           form: Format) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Codes (uint8) of float32 ``x``, and which of them are beyond the greatest value (bool); ``scale`` is a byte for
    each value, and broadcasts to ``x``.

    x / 2^(scale - 127), exact, is rounded once to nearest, ties to even, and saturates. Subnormal numbers count as
    zeros of their sign. In a format without infinity, infinities saturate; in one without NaN, NaN has to be where the
    scale is 255, and there all codes are 0. Raises TypeError unless ``x`` is float32.
    """
    bits = words(x) & _MAGNITUDE
    infinite, nan = bits == _INFINITE, bits > _INFINITE
    finite = np.where((bits >= _NORMAL) & (bits < _INFINITE), np.abs(x), np.float32(0)).astype(np.float64)
    s = np.ldexp(finite, BIAS - scale.astype(np.int32))
    # Above the smallest normal number, `octave` doublings of the element's last bit; two's complement has none.
    octave = np.where(s > 0, np.maximum(np.frexp(s)[1] - 2 + form.bias, 0), 0) if form.exponent else 0
    code = np.rint(np.ldexp(s, form.mantissa + form.bias - 1 - octave)) + octave * (1 << form.mantissa)
    beyond = s >= form.most + np.ldexp(0.5, form.emax - form.mantissa)
    beyond |= infinite if form.infinity is None else False
    code = np.where(beyond, form.largest, code).astype(np.int64)
    if form.infinity is not None:
        code = np.where(infinite, form.infinity, code)
    negative = np.signbit(x)
    code = (np.where(negative, -code, code) & 0xFF) if not form.exponent else code | negative << form.width - 1
    if form.nan is not None:
        return np.where(nan, form.nan, code).astype(np.uint8), beyond
    void = np.broadcast_to(scale == NAN, x.shape)
    return np.where(void, 0, code).astype(np.uint8), beyond & ~void


def decode(code: NDArray[np.uint8], scale: NDArray[np.uint8], form: Format) -> NDArray[np.float32]:
    """float32 of codes (uint8); ``scale`` as in :func:`encode`.

    code * 2^(scale - 127), exact; below the normal numbers of float32 it is a zero of its sign, beyond them infinity.
    NaN is 0x7FC00000.
    """
    code = code.astype(np.int64)
    if form.exponent:
        magnitude = code & (1 << form.width - 1) - 1
        field, mantissa = magnitude >> form.mantissa, magnitude & (1 << form.mantissa) - 1
        value = np.ldexp(np.where(field, mantissa | 1 << form.mantissa, mantissa).astype(np.float64),
                         np.maximum(field, 1) - form.bias - form.mantissa)
        value = np.where(code >> form.width - 1, -value, value)
    else:
        value = np.ldexp(code.astype(np.uint8).view(np.int8).astype(np.float64), -form.mantissa)
    x = np.ldexp(value, scale.astype(np.int32) - BIAS)
    with np.errstate(over="ignore"):
        x = x.astype(np.float32)
    x = np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)
    nan = np.broadcast_to(scale == NAN, x.shape)
    if form.infinity is not None:
        x = np.where(magnitude == form.infinity, np.copysign(np.float32(np.inf), x), x)
        nan = nan | (magnitude > form.infinity)
    elif form.nan is not None:
        nan = nan | (magnitude == form.nan)
    return np.where(nan, WORD, x.view(np.uint32)).view(np.float32)
