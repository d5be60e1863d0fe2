"""DIV, the division quantizer of JPEG-BASE (JPEG-ACT, section III-E), by reciprocals, and its tables.

Two of the tables are not those of SH: what the paper calls optL and optH in its rows for DIV are the optimised tables
before they went to powers of two, as its authors published them with their code.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import bits
from actcodec.golden.jpegact.dct import FRACTION_BITS
from actcodec.golden.jpegact.quantize import TABLES as _SHIFTED

RECIPROCAL_BITS = 19  # fraction bits of a reciprocal; with 18 some quotients of 86 divisors are not exact

TABLES = _SHIFTED | {
    "optL-div": np.array([
        [8, 7, 7, 7, 7, 6, 6, 6],
        [8, 7, 7, 7, 6, 6, 6, 6],
        [7, 7, 6, 6, 6, 6, 6, 6],
        [7, 6, 6, 6, 6, 6, 5, 5],
        [7, 6, 6, 6, 6, 6, 5, 5],
        [7, 6, 6, 6, 6, 6, 5, 5],
        [7, 6, 6, 6, 6, 5, 5, 5],
        [6, 6, 6, 6, 5, 5, 5, 5],
    ]),
    "optH-div": np.array([
        [8, 26, 25, 25, 24, 24, 23, 22],
        [26, 24, 24, 23, 22, 22, 21, 20],
        [26, 24, 24, 23, 22, 21, 20, 20],
        [25, 23, 23, 22, 21, 21, 20, 19],
        [25, 23, 22, 21, 21, 20, 19, 19],
        [24, 22, 21, 20, 20, 20, 19, 19],
        [23, 21, 20, 20, 19, 19, 19, 19],
        [22, 20, 20, 19, 19, 19, 19, 19],
    ]),
}


def table(name: str) -> NDArray[np.int64]:
    """Quantization table (DQT values, [8, 8], vertical frequency first) of that name; ValueError if there is none."""
    if name not in TABLES:
        raise ValueError(f"unknown DQT {name!r}, legal are {', '.join(TABLES)}, or a table of 64 values")
    return TABLES[name].copy()


def divisors(dqt: ArrayLike) -> NDArray[np.uint8]:
    """A table's values as DIV takes them: uint8 [8, 8].

    `dqt` holds 64 whole numbers, 1 to 255, of any type. Raises ValueError for anything else.
    """
    dqt = np.asarray(dqt)
    if dqt.size != 64 or dqt.dtype.kind not in "iuf":
        raise ValueError(f"DQT has {dqt.size} values of type {dqt.dtype}, legal are 64 numbers")
    if not np.all((dqt >= 1) & (dqt <= 255) & (np.rint(dqt) == dqt)):
        raise ValueError("DQT has a value that is not a whole number, 1 to 255")
    return dqt.reshape(8, 8).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Table:
    """A table as the hardware needs it: `divisors`, as the function of that name gives them. Raises ValueError for
    anything else."""

    divisors: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "divisors", divisors(self.divisors))

    @property
    def word(self) -> int:
        """The table in 512 bits: the value of row r and column c in bits 64r + 8c + 7 : 64r + 8c."""
        return int.from_bytes(self.divisors.tobytes(), "little")

    @classmethod
    def of(cls, word: int) -> Self:
        """The table of a word. Raises ValueError unless it is an int of 512 bits, none of whose bytes is 0."""
        return cls(np.frombuffer(bits.word(word, 512).to_bytes(64, "little"), np.uint8))


def reciprocal(d: ArrayLike) -> NDArray[np.int32]:
    """m = ceil(2^19 / D), int32, 2056 to 2^19: what the hardware multiplies by."""
    return -(-(2**RECIPROCAL_BITS) // np.asarray(d, np.int32))


def quantize(coefficients: NDArray[np.int32], d: ArrayLike) -> NDArray[np.int8]:
    """q = clip(floor(C / D + 1/2), -128, 127), int8, of the fixed-point coefficients of `dct.forward`.

    d, 1 to 255, broadcasts to the coefficients [..., 8, 8]. Rounds half up, so D = 2^s gives what `quantize.shift`
    does; the paper says no more than "round to nearest". As in hardware the quotient is a product: v = floor(C + D / 2)
    has no fraction bits any more (-1024 to 1151), and floor(v / D) = floor((v m + 2^10) / 2^19) with m = `reciprocal`.
    2^10 makes up for m being rounded up, which takes a negative v too far; it is below the distance of a positive
    quotient to the next one. This is exact for every C and D.
    """
    v = (coefficients + (np.asarray(d, np.int32) << FRACTION_BITS - 1)) >> FRACTION_BITS
    return np.clip((v * reciprocal(d) + 2**10) >> RECIPROCAL_BITS, -128, 127).astype(np.int8)


def dequantize(q: ArrayLike, d: ArrayLike) -> NDArray[np.int32]:
    """C = q * D, int32 without fraction bits: -32640 to 32385, which `dct.inverse` saturates."""
    return np.asarray(q, np.int32) * np.asarray(d, np.int32)
