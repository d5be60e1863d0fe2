"""SSDC, sparse storage and dense compute: the narrow CSR (Gist, sections III-A and IV-A).

A tensor, flat in memory order, is seen as rows of 256 values, the last of which may be shorter, so that a column fits
in a byte. Stored are the non-zero values in order, the column of each, and how many each row has. Both +0.0 and -0.0
are zero; everything else, NaN and subnormal numbers among it, is kept bit for bit. The values may then be reduced by
DPR: what is zero is decided before, so a value that DPR rounds to zero stays.
"""

from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.gist import dpr

ROW = 256  # values
PART = 256  # rows at a time: what is computed between stays in a cache


class Encoded(NamedTuple):
    """The three arrays of a tensor."""

    values: np.ndarray  # float32, or uint8: what `dpr.encode` makes of them
    columns: np.ndarray  # uint8, one for each value
    counts: np.ndarray  # uint16, little endian: non-zero values, one for each row


def encode(x: ArrayLike, form: str | None = None) -> Encoded:
    """The arrays of `x` (float32, any shape); `form` names one of DPR's formats, or is None for values in full."""
    bits = words(x)
    count, at = sum(np.count_nonzero(_magnitudes(part)) for part in _slices(bits)), 0
    values, columns, counts = np.empty(count, "<u4"), np.empty(count, np.uint8), []
    for part in parts(bits):
        own = slice(at, at + part.values.size)
        values[own], columns[own] = part.values, part.columns
        counts.append(part.counts)
        at = own.stop
    values = values.view("<f4")
    return Encoded(dpr.encode(values, form) if form else values, columns, np.concatenate([np.empty(0, "<u2"), *counts]))


def payload(x: ArrayLike, form: str | None = None) -> tuple[bytes, int]:
    """The arrays that `encode` makes of `x`, joined, and how many values are not zero. Values in full are never held
    twice."""
    if form:
        arrays = encode(x, form)
        return b"".join(arrays), arrays.columns.size
    data, rest = BytesIO(), []
    for part in parts(words(x)):
        data.write(part.values)
        rest.append(part[1:])
    for arrays in zip(*rest, strict=True):
        data.writelines(arrays)
    return data.getvalue(), sum(columns.size for columns, _ in rest)


def words(x: ArrayLike) -> NDArray[np.uint32]:
    """The words of values (float32, any shape), flat."""
    return np.ascontiguousarray(x, "<f4").reshape(-1).view("<u4")


def _slices(bits):
    return (bits[at : at + PART * ROW] for at in range(0, bits.size, PART * ROW))


def _magnitudes(bits):
    """Words without their signs, 0 for a zero. A comparison of floats would not do: a process may tell its processor to
    take subnormal numbers for zeros."""
    return bits << 1


def parts(bits: NDArray[np.uint32]) -> Iterator[Encoded]:
    """The arrays of words, a few rows at a time, values as words."""
    for part in _slices(bits):
        places = np.flatnonzero(_magnitudes(part))
        counts = np.bincount(places // ROW, minlength=-(-part.size // ROW))
        yield Encoded(part[places], (places % ROW).astype(np.uint8), counts.astype("<u2"))


def places(encoded: Encoded, length: int, form: str | None = None) -> NDArray[np.int64]:
    """Where the values of `encoded` stand among the `length` values of the tensor: ascending integers.

    Raises ValueError if the arrays do not fit together: if a row counts more values than it has room for, if its
    columns do not ascend or lie beyond its end, or if an array has another type than `encode` gives it, or another
    length than the counts ask for.
    """
    counts = _counts(encoded, length, form)
    return np.concatenate([np.zeros(0, np.int64), *(part for _, part in _places(encoded, length, counts))])


def _counts(encoded, length, form):
    """How many values each row has, int64. Types and lengths of all arrays are right then."""
    for name, dtype in zip(Encoded._fields, (np.uint8 if form else "<f4", np.uint8, "<u2"), strict=True):
        if (array := getattr(encoded, name)).dtype != dtype:
            raise ValueError(f"{name} are {array.dtype}, have to be {np.dtype(dtype)}")
    columns, counts = encoded.columns, encoded.counts.astype(np.int64)
    rows = -(-length // ROW)
    if counts.size != rows:
        raise ValueError(f"{counts.size} row counts, {length} values need {rows}")
    room = np.minimum(ROW, length - ROW * np.arange(rows))
    if np.any(counts > room):
        row = int(np.argmax(counts > room))
        raise ValueError(f"row {row} counts {counts[row]} values and has room for {room[row]}")
    total = int(counts.sum())
    if columns.size != total:
        raise ValueError(f"{columns.size} columns, the row counts ask for {total}")
    needed = 4 * -(-total // (dpr.named(form).per_word if form else 1))
    if encoded.values.nbytes != needed:
        raise ValueError(f"{encoded.values.nbytes} bytes of values, the row counts ask for {needed}")
    return counts


def _places(encoded, length, counts):
    """The places in parts of whole rows, each with the slice of its values."""
    columns, ends = encoded.columns, np.cumsum(counts)
    for row in range(0, counts.size, PART):
        part = counts[row : row + PART]
        own = slice(int(ends[row] - counts[row]), int(ends[row + part.size - 1]))
        # Rows ascend, so places ascend exactly if the columns of each row do.
        result = ROW * np.repeat(np.arange(row, row + part.size), part) + columns[own]
        if np.any(np.diff(result) <= 0) or (result.size and result[-1] >= length):
            raise ValueError("columns do not ascend, or lie beyond the end of a row")
        yield own, result


def decode(encoded: Encoded, length: int, form: str | None = None) -> NDArray[np.float32]:
    """The `length` values (float32) of which `encode` made the arrays; the reverse of it, but that -0.0 is now +0.0.

    Raises ValueError as `places` does.
    """
    counts = _counts(encoded, length, form)  # before any memory is taken
    values = dpr.decode(encoded.values, form, encoded.columns.size) if form else encoded.values
    bits, dense = np.asarray(values, "<f4").view("<u4"), np.zeros(length, np.uint32)
    for own, where in _places(encoded, length, counts):
        dense[where] = bits[own]
    return dense.view(np.float32)
