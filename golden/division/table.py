"""The table of a tensor: a scale k and the smallest HFC, delta, of each plane (DIVISION, section 4.1, equation 9).

The step of the paper's quantizer is in k: it is 2^F / k, with F = 6 - bits. Any table is legal; one that was made from
other values may clip.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.division import average, dither
from actcodec.golden.division import view as views
from actcodec.golden.division.parts import parts
from actcodec.golden.division.view import View
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.blocks import LANES

_MAGNITUDE = np.uint32(0x7FFFFFFF)  # all bits of a float32 but the sign
_NORMAL, _INFINITE = np.uint32(0x00800000), np.uint32(0x7F800000)  # bits of the smallest normal number, and of infinity
_DOWN = np.uint64((1 << 64) - (1 << 45))  # what of a float64 a bfloat16 has as well


class Table(NamedTuple):
    """Of each plane. SFPR reads k from the upper half of a word of the table, delta lies in its low byte."""

    k: np.ndarray  # float32, a bfloat16 number, 0 to 2^126
    delta: np.ndarray  # int8


def bfloat16_down(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest bfloat16 not above each positive normal number, at most 2^126; float32."""
    x = np.minimum(np.asarray(x, np.float64), np.float64(sfpr.LARGEST))
    return (x.view(np.uint64) & _DOWN).view(np.float64).astype(np.float32)


def _quotient(numerator, divisor):
    """By 0 it is as good as infinite."""
    return np.divide(numerator, divisor, out=np.full(divisor.shape, np.inf), where=divisor != 0)


def table(x: NDArray[np.float32], bits: int = 2, lfc: bool = True, offset: str = "mean",
          view: View | None = None) -> Table:
    """Table for a float32 tensor: the finest steps with which no value clips and decoding never saturates.

    k starts at the smaller one of (64 - 2^F) / (largest - smallest HFC) and (128 - 2^F) / (largest magnitude), rounded
    down to a bfloat16, and becomes smaller until what SFPR's rounding makes of the plane fits as well. Subnormal and
    non-finite x count as 0. `lfc` and `offset` as in `average.exact`; with offset "min" the HFC is what lies above
    the smallest value of a segment, so that every delta is 0. `view`: how the tensor is seen, if not by its shape.
    Raises TypeError unless `x` is a float32 array, ValueError for a shape that has no view, one that does not fit it,
    and for other bits and offsets.
    """
    dither.check(bits)
    view = views.of(x, view)
    x = np.reshape(x, (view.rows, view.width))
    k, delta = np.empty(view.planes, np.float32), np.empty(view.planes, np.int8)
    for part, segments, planes, rows in parts(view):
        k[planes], delta[planes] = _table(x[rows], part, segments, bits, lfc, offset)
    return Table(k, delta)


def _table(x, view, segments, bits, lfc, offset):
    """The same, of rows that are a View."""
    words = x.view(np.uint32) & _MAGNITUDE  # one less, they make a zero larger than any other number
    if words.max() >= _INFINITE or (words - np.uint32(1)).min() < _NORMAL - 1:
        x = np.where((words >= _NORMAL) & (words < _INFINITE), x, np.float32(0))
    step = 1 << 6 - bits
    span, top = 64 - step, 128 - step
    ends = [views.planewise(ufunc, x, view).astype(np.float64) for ufunc in (np.minimum, np.maximum)]

    def extremes(scale, dtype, level, unit=1):
        """Smallest and largest of the integers x * scale of each plane, in `unit`, less the level of their segment."""
        if not lfc:
            return (unit * np.rint(end * scale) for end in ends)  # rounding keeps the order
        y = views.split(np.rint(x * scale[view.plane, None]).astype(dtype), view)
        rest = unit * y - level(y, segments, lfc, offset).astype(dtype)[segments.segment, None]
        # Of whole tiles the order within a plane does not matter.
        rest = rest.reshape(x.shape) if view.tiled and view.tail == LANES else views.join(rest, view)
        return (views.planewise(ufunc, rest, view) for ufunc in (np.minimum, np.maximum))

    largest = np.maximum(-ends[0], ends[1])
    scale = np.ldexp(1.0, 15 - np.frexp(largest)[1])
    low, high = extremes(scale, np.int32, average.exact, 64)
    k = bfloat16_down(np.minimum(_quotient(span * 64 * scale, high - low), _quotient(top, largest)))
    k[largest == 0] = 0
    while True:
        # k <= top / largest, so that no magnitude is above top, before rounding or after it.
        low, high = extremes(k.astype(np.float64), np.int16, average.level)
        wide = high - low > span
        if not wide.any():
            return Table(k, np.maximum(low, -128).astype(np.int8))
        k.view(np.uint32)[wide] -= 1 << 16


def auto(x: np.ndarray, bits: int = 2, offset: str = "mean") -> tuple[Table, bool]:
    """Table for a float32 tensor, and whether to encode it with an LFC.

    Without, where the planes are flat and have fewer than 8 sectors (delta is offset enough), and where it gives the
    smaller mean square of a step over all planes, the sum of 1 / k^2. `offset` is that of the LFC. Raises as `table`.
    """
    view = views.of(x)
    plain = table(x, bits, lfc=False)
    if not view.tiled and view.sectors < 8:
        return plain, False
    pooled = table(x, bits, offset=offset)
    return (plain, False) if cost(plain.k) < cost(pooled.k) else (pooled, True)


def cost(k: NDArray[np.float32]) -> float:
    """The sum of the squares of all steps."""
    return np.square(sfpr.reciprocal(k.astype(np.float64))).sum()
