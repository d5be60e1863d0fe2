"""SH, the shift quantizer, and the quantization tables (JPEG-ACT, section III-F, equations 6 and 7; section IV)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import bits, dct

# ITU-T T.81, table K.1
_LUMINANCE = np.array([
    [16, 11, 10, 16, 24, 40, 51, 61],
    [12, 12, 14, 19, 26, 58, 60, 55],
    [14, 13, 16, 24, 40, 57, 69, 56],
    [14, 17, 22, 29, 51, 87, 80, 62],
    [18, 22, 37, 56, 68, 109, 103, 77],
    [24, 35, 55, 64, 81, 104, 113, 92],
    [49, 64, 78, 87, 103, 121, 120, 101],
    [72, 92, 95, 98, 112, 100, 103, 99],
])


def _jpeg(quality):
    """Luminance table at a quality of 50 to 100, by libjpeg's rule."""
    return np.clip((_LUMINANCE * (200 - 2 * quality) + 50) // 100, 1, 255)


TABLES = {
    "optL": np.full((8, 8), 8),
    "optH": np.array([
        [8, 32, 32, 32, 32, 32, 32, 16],
        [32, 32, 32, 32, 16, 16, 16, 16],
        [32, 32, 32, 32, 16, 16, 16, 16],
        [32, 32, 32, 16, 16, 16, 16, 16],
        [32, 32, 16, 16, 16, 16, 16, 16],
        [32, 16, 16, 16, 16, 16, 16, 16],
        [32, 16, 16, 16, 16, 16, 16, 16],
        [16, 16, 16, 16, 16, 16, 16, 16],
    ]),
    "jpeg80": _jpeg(80),
    "jpeg60": _jpeg(60),
}


def table(name: str) -> NDArray[np.int64]:
    """Quantization table (DQT values, [8, 8], vertical frequency first) of that name; ValueError if there is none."""
    if name not in TABLES:
        raise ValueError(f"unknown DQT {name!r}, legal are {', '.join(TABLES)}, or a table of 64 values")
    return TABLES[name].copy()


def shifts(dqt: ArrayLike) -> NDArray[np.uint8]:
    """log2 of a table's values, rounded to the nearest integer and at most 7: uint8 [8, 8].

    `dqt` holds 64 finite numbers, 1 or more. Raises ValueError for anything else.
    """
    dqt = np.asarray(dqt)
    if dqt.size != 64 or dqt.dtype.kind not in "iuf":
        raise ValueError(f"DQT has {dqt.size} values of type {dqt.dtype}, legal are 64 numbers")
    if not np.all(np.isfinite(dqt) & (dqt >= 1)):
        raise ValueError("DQT has a value that is below 1 or not finite")
    # In float64: NumPy's log2 of small types is a float16, in which values that are not halfway can seem so.
    return np.minimum(np.rint(np.log2(dqt.reshape(8, 8), dtype=np.float64)), 7).astype(np.uint8)


def word(shifts: NDArray[np.uint8]) -> int:
    """A table of shifts in 192 bits: that of row r and column c in bits 24r + 3c + 2 : 24r + 3c."""
    return sum(int(s) << 3 * k for k, s in enumerate(shifts.reshape(-1)))


def of_word(word: int) -> NDArray[np.uint8]:
    """The shifts of a word, uint8 [8, 8]. Raises ValueError unless it is an int of 192 bits."""
    return np.array([bits.word(word, 192) >> 3 * k & 7 for k in range(64)], np.uint8).reshape(8, 8)


def shift(coefficients: NDArray[np.int32], s: ArrayLike) -> NDArray[np.int8]:
    """q = clip(floor(C / 2^s + 1/2), -128, 127), int8, of the fixed-point coefficients of `dct.forward`.

    s, 0 to 7, broadcasts to the coefficients [..., 8, 8]. This is the only rounding between C and q.
    """
    drop = np.asarray(s, np.int32) + dct.FRACTION_BITS
    q = coefficients + (1 << drop - 1)
    q >>= drop
    return np.clip(q, -128, 127, out=q).astype(np.int8)


def unshift(q: ArrayLike, s: ArrayLike) -> NDArray[np.int32]:
    """C = q * 2^s, int32 without fraction bits: -16384 to 16256, which `dct.inverse` saturates."""
    return np.asarray(q, np.int32) << np.asarray(s, np.int32)
