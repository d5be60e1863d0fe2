"""Average pooling: the LFC of a segment, and the base that is stored (DIVISION, section 4.1)."""

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.division import view as views
from actcodec.golden.division.view import Segments, View

OFFSETS = ("mean", "min")


def exact(y: np.ndarray, segments: Segments, lfc: bool = True, offset: str = "mean") -> NDArray[np.int64]:
    """What is taken off the values of each segment, before rounding, in 64ths: int64 [segments].

    `y` has integers, [blocks, 8, 8]. The offset is the mean over the front of a segment (see `view.segments`), or the
    smallest of all its values, "min", which costs hardware a tree of minima in place of one of sums; 0 without `lfc`.
    Raises ValueError for any other offset.
    """
    if offset not in OFFSETS:
        raise ValueError(f"offset is {offset!r}, legal are {', '.join(OFFSETS)}")
    if not lfc:
        return np.zeros(segments.start.size, np.int64)
    if offset == "min":
        rows = np.min(y, axis=-1, where=segments.exists, initial=np.iinfo(y.dtype).max)
        return np.minimum.reduceat(rows.reshape(-1), segments.start).astype(np.int64) << 6
    dtype = np.promote_types(y.dtype, np.int32)
    if np.all(segments.front == y.shape[-1]):  # of all values, which takes a third of the time
        rows = np.einsum("brl->br", y, dtype=dtype)
    else:
        rows = np.einsum("brl,brl->br", y, segments.averaged, dtype=dtype)
    return np.add.reduceat(rows.reshape(-1), segments.start, dtype=np.int64) << 6 - segments.a - segments.c


def level(y: np.ndarray, segments: Segments, lfc: bool = True, offset: str = "mean") -> NDArray[np.int64]:
    """L of each segment, int64: `exact` rounded to an integer, half up."""
    return exact(y, segments, lfc, offset) + 32 >> 6


def bases(y: NDArray[np.int8], view: View, delta: NDArray[np.int8], lfc: bool = True, offset: str = "mean",
          segments: Segments | None = None) -> NDArray[np.int8]:
    """What is stored of each segment: int8 [segments], L + delta of its plane, clipped.

    `y` is int8 [blocks, 8, 8], `delta` int8 [planes], the smallest HFC of each plane; so decoding needs neither delta
    nor a second addition. `lfc` and `offset` as in `exact`; `segments` are the View's, if they are known.
    """
    segments = views.segments(view) if segments is None else segments
    return np.clip(level(y, segments, lfc, offset) + delta[segments.plane], -128, 127).astype(np.int8)
