"""DIV with steps in quarters, a quantizer of this project's own for JPEG-ACT's path: finer than SH, in hardware of
DIV's size.

A step is a number of quarters, Q, 2 to 255: 0.5 to 63.75. Magnitudes are rounded up from 1/2 + z/16 on; z, 0 to 3, is
the dead zone. Most values are small, and most of these lie near the lower end of their interval. So a z of 1 costs
little error, and saves more bytes than a coarser step does for the same error.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import bits
from actcodec.golden.jpegact.dct import FRACTION_BITS
from actcodec.golden.jpegact.div import TABLES as TABLES
from actcodec.golden.jpegact.div import table as table  # the tables with names are the same

LEAST, MOST = 2, 255  # quarters of a step
DEAD_ZONES = range(4)
RECIPROCAL_BITS = 7  # fraction bits of a reciprocal


def steps(dqt: ArrayLike) -> NDArray[np.uint8]:
    """A table's values as the quantizer takes them, in quarters: uint8 [8, 8].

    `dqt` holds 64 finite numbers of any type, 0.5 or more, or one for all frequencies. Each is taken to the nearest
    quarter, and to 63.75 if it is larger. Raises ValueError for anything else.
    """
    dqt = np.asarray(dqt)
    if dqt.size not in (1, 64) or dqt.dtype.kind not in "iuf":
        raise ValueError(f"DQT has {dqt.size} values of type {dqt.dtype}, legal are 64 numbers, or one")
    if not np.all(np.isfinite(dqt) & (dqt >= LEAST / 4)):
        raise ValueError(f"DQT has a value that is below {LEAST / 4} or not finite")
    quarters = np.minimum(np.rint(4 * dqt.astype(np.float64)), MOST).astype(np.uint8)
    return np.full((8, 8), quarters) if dqt.size == 1 else quarters.reshape(8, 8)


def word(quarters: NDArray[np.uint8]) -> int:
    """A table in 512 bits: the step of row r and column c in bits 64r + 8c + 7 : 64r + 8c."""
    return int.from_bytes(quarters.tobytes(), "little")


def of_word(word: int) -> NDArray[np.uint8]:
    """The table of a word, uint8 [8, 8]. Raises ValueError unless it is an int of 512 bits."""
    return np.frombuffer(bits.word(word, 512).to_bytes(64, "little"), np.uint8).reshape(8, 8)


def check(dead_zone: int) -> None:
    """Raises ValueError unless the dead zone is one."""
    if type(dead_zone) is not int or dead_zone not in DEAD_ZONES:
        raise ValueError(f"dead_zone is {dead_zone!r}, must be {DEAD_ZONES[0]} to {DEAD_ZONES[-1]}")


def reciprocal(quarters: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """m and s, int32: 2 / Q is nearly m / 2^s. m has 8 bits, 128 to 254: half of 2^s / Q, rounded to the nearest."""
    q = np.asarray(quarters, np.int32)
    far = np.frexp(q - 1.0)[1]  # Q <= 2^far < 2Q
    s = RECIPROCAL_BITS - 1 + far
    return ((2 << s) + (q >> 1)) // q, s


def quantize(coefficients: ArrayLike, quarters: ArrayLike, dead_zone: int) -> NDArray[np.int8]:
    """Nearly q = sign(C) * floor(|C| / step + 1/2 - z / 16), clipped to int8, of the fixed-point coefficients of
    `dct.forward`.

    As in hardware, C is first rounded down to halves: x, -2048 to 2047. The quotient is a product with a reciprocal,
    and the rest is exact: q = clip(floor(x m / 2^s + 1/2 - z / 16)), with + z / 16 where x is negative. For steps that
    are powers of two, m / 2^s is exact as well, and with z = 0 q is SH's. `quarters`, 2 to 255, broadcasts to the
    coefficients [..., 8, 8].
    """
    m, s = reciprocal(quarters)
    x = np.asarray(coefficients) >> FRACTION_BITS - 1
    offset = np.where(x < 0, 8 + dead_zone, 8 - dead_zone) << s - 4
    return np.clip((x * m + offset) >> s, -128, 127).astype(np.int8)


def dequantize(q: ArrayLike, quarters: ArrayLike) -> NDArray[np.int32]:
    """C = floor(q * step + 1/2), int32 without fraction bits: -8160 to 8096, which `dct.inverse` saturates."""
    return (np.asarray(q, np.int32) * np.asarray(quarters, np.int32) + 2) >> 2
