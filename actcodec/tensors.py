"""Conversion of arrays to float32, on which the modes work, and back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.codecs.compressed import DTYPES, view
from actcodec.golden.offload.memory import formats
from actcodec.metrics import relative_error

__all__ = ["as_float32", "as_floats", "dtype_name", "loss", "restore", "words"]


def dtype_name(dtype: np.dtype) -> str:
    """The name in ``DTYPES`` of a NumPy dtype, of either byte order. bfloat16 is that of ml_dtypes, or two bytes
    without a type, as NumPy reads it from a .npy file. Raises TypeError."""
    if dtype.kind == "V" and dtype.itemsize == 2 and not dtype.names:
        return "bfloat16"
    name = dtype.newbyteorder("=").name
    if name not in DTYPES:
        raise TypeError(f"dtype is {dtype}; actcodec takes {', '.join(DTYPES)}")
    return name


def as_float32(x: ArrayLike) -> tuple[NDArray[np.float32], str]:
    """``(values, dtype)``: a contiguous float32 array of the shape of ``x``, and the name of the type that ``x`` has.

    float16 and bfloat16 are exact, float64 is rounded, int8, codes of SFPR, count as numbers. Raises TypeError for
    anything but an array of such a type, also for masked arrays, ValueError for an illegal shape and for finite values
    beyond float32's range.
    """
    if not isinstance(x, np.ndarray):
        raise TypeError(f"tensor is {type(x).__name__}, must be a NumPy array")
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError("tensor is a masked array, and no mode keeps a mask: pass x.filled(value) or x.data")
    name = dtype_name(x.dtype)
    view(x.shape)
    if name in formats.HALVES:
        return formats.widen(words(x), name), name
    with np.errstate(over="ignore"):
        values = np.ascontiguousarray(x, np.float32)
    if name == "float64" and (beyond := np.isfinite(x) & ~np.isfinite(values)).any():
        raise ValueError(f"tensor has {np.count_nonzero(beyond)} values beyond float32's range, up to "
                         f"{np.abs(x[beyond]).max():.4g}; the largest float32 is {np.finfo(np.float32).max:.4g}")
    return values, name


def as_floats(x: np.ndarray) -> np.ndarray:
    """An array that NumPy can calculate with: ``x`` itself, or, of bfloat16, float32."""
    return as_float32(x)[0] if dtype_name(x.dtype) == "bfloat16" else x


def words(x: np.ndarray) -> NDArray[Any]:
    """The words of an array of 16-bit values, contiguous, uint16; of int8 the codes."""
    if x.dtype == np.int8:
        return np.ascontiguousarray(x)
    order: Any = "<" if x.dtype.kind == "V" else x.dtype.byteorder
    return np.ascontiguousarray(x).view(np.dtype(np.uint16).newbyteorder(order)).astype(np.uint16, copy=False)


def restore(values: np.ndarray, shape: Sequence[int], dtype: str) -> np.ndarray:
    """The reverse of :func:`as_float32` or :func:`words`: an array of that shape and type, rounded as hardware does."""
    values = values.reshape(shape)
    if dtype in formats.HALVES:
        values = values if values.dtype == np.uint16 else formats.narrow(values, dtype)
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16

        return values.view(bfloat16)
    return values.view(np.float16) if dtype == "float16" else values.astype(dtype, copy=False)


def loss(x: np.ndarray) -> str | None:
    """A sentence about the rounding of an array to float32, or None if it is exact."""
    if dtype_name(x.dtype) != "float64":
        return None
    values, _ = as_float32(x)
    if np.array_equal(values, x, equal_nan=True):
        return None
    finite = np.isfinite(x)
    return f"float64 is rounded to float32: relative L2 error {relative_error(x[finite], values[finite]):.1e}"
