"""The code book: canonical Huffman codes of 1 to 8 bits whose lengths never fall with the symbol (COMET, section 2.2;
the customised Huffman coding of SZ), and how a host makes one from a histogram.

Symbols 0 to U-1 stand for themselves, the last one, U, is the escape. The shortest codes are numerically smallest, and
a code's first bit is its most significant one. Residuals fall with their magnitude, so the best lengths rise nearly
by themselves; in return a book is seven bytes, and needs no tables in hardware.
"""

import operator
from collections.abc import Iterable
from typing import Any, Self, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_LENGTH = 8
MAX_SYMBOLS = 255  # without the escape
SYMBOLS = 1 << 12
BINS = 32
BIN_MAX = (1 << 24) - 1
_DIRECT = 16  # symbols with a bin of their own
_SHARES = 1 << MAX_LENGTH - np.arange(1, MAX_LENGTH + 1)  # of all 8-bit patterns that a code of each length takes
ONE_BYTE = 224  # symbols from U on whose escape has one byte; it is two for others


class Book:
    """A complete code book.

    `counts` are n_1 to n_8, how many symbols have a code of each length. Attributes, arrays but for U: U, the escape's
    symbol, 1 to 255; length and code of each symbol 0 to U; for the lengths 1 to 8, end (where their codes end, left
    aligned in 8 bits) and delta (symbol minus code, modulo 256). Raises ValueError for a book that is not complete: the
    sum of n_l * 2^(8-l) has to be 256.
    """

    def __init__(self, counts: Iterable[SupportsIndex]) -> None:
        self.counts = tuple(map(operator.index, counts))
        shares = sum(map(operator.mul, self.counts, _SHARES.tolist()))  # without a limit to an int
        if len(self.counts) != MAX_LENGTH or min(self.counts) < 0 or shares != 256:
            raise ValueError(f"code book {self.counts} is not complete: "
                             "the sum of n_l * 2^(8-l) for l = 1..8 has to be 256")
        n = np.array(self.counts)
        self.U = sum(self.counts) - 1
        self.end = np.cumsum(n * _SHARES)
        shorter = np.cumsum(n) - n
        self.delta = (shorter - np.append(0, self.end[:-1]) // _SHARES) % 256
        self.length = np.repeat(np.arange(1, MAX_LENGTH + 1), n)
        self.code = (np.arange(self.U + 1) - self.delta[self.length - 1]) % 256

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Book) and self.counts == other.counts

    def __hash__(self) -> int:
        return hash(self.counts)

    def __repr__(self) -> str:
        return f"Book({self.counts})"

    def to_bytes(self) -> bytes:
        """n_1 to n_7, a byte each; n_8 follows from them."""
        return bytes(self.counts[:-1])

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The book in 7 bytes. Raises ValueError unless they make a complete one."""
        if len(data) != MAX_LENGTH - 1:
            raise ValueError(f"a code book has 7 bytes, not {len(data)}")
        return cls([*data, 256 - np.dot(list(data), _SHARES[:-1])])


def _bins(u):
    """Bin of the histogram unit of symbols u: each its own below 16, then two an octave."""
    u = np.asarray(u, np.int64)
    octave = np.frexp(np.maximum(u, 1))[1] - 1  # floor(log2(u))
    return np.where(u < _DIRECT, u, _DIRECT + 2 * (octave - 4) + (u >> np.maximum(octave - 1, 0) & 1))


def histogram(u: ArrayLike, sampled: bool = False) -> NDArray[np.int64]:
    """How often each symbol occurs in a stream's symbols `u`: int64 [4096]; or, `sampled`, what the histogram unit
    counts: int64 [32].

    The unit counts one value of each round of eight, that of lane (number of the round) mod 8, in 32 bins of 24 bits
    that saturate. Where the last round has no such value it counts the 0 that fills it up.
    """
    u = np.asarray(u)
    if not sampled:
        return np.bincount(u, minlength=SYMBOLS)
    rounds = np.pad(u, (0, -len(u) % 8)).reshape(-1, 8)
    number = np.arange(len(rounds))
    return np.minimum(np.bincount(_bins(rounds[number, number % 8]), minlength=BINS), BIN_MAX)


def spread(bins: ArrayLike) -> NDArray[np.float64]:
    """Histogram of 4096 symbols, float64, in which the symbols of a bin are equally frequent."""
    of = _bins(np.arange(SYMBOLS))
    return (np.asarray(bins) / np.bincount(of))[of]


def cost(book: Book, histogram: ArrayLike, penalty: int = 0) -> int:
    """Bits of the codes of a histogram's symbols, with 8 + `penalty` for a byte of an escape.

    Outliers, and the bits that other lanes give meanwhile, do not count.
    """
    histogram = np.asarray(histogram)
    direct, one, two = np.split(histogram, [book.U, min(book.U + ONE_BYTE, SYMBOLS)])
    bytes_ = one.sum() + 2 * two.sum()
    return direct @ book.length[:-1] + (one.sum() + two.sum()) * book.length[-1] + (8 + penalty) * bytes_


def lengths(weights: ArrayLike, limit: int = MAX_LENGTH) -> NDArray[np.int64]:
    """Code lengths of least cost of at most `limit` bits for symbols of `weights` that never fall: package-merge
    (Larmore and Hirschberg, 1990). At least 2 and at most 2^limit weights."""
    weights = np.asarray(weights)
    merged, levels = weights, [np.ones(len(weights), bool)]
    for _ in range(limit - 1):
        packages = merged[: len(merged) // 2 * 2].reshape(-1, 2).sum(axis=1)
        merged = np.concatenate([weights, packages])
        source = np.argsort(merged, kind="stable")
        merged = merged[source]
        levels.append(source < len(weights))
    result = np.zeros(len(weights), int)
    items = 2 * len(weights) - 2
    for single in reversed(levels):
        singles = int(np.count_nonzero(single[:items]))
        result[:singles] += 1
        items = 2 * (items - singles)
    return result


def information(histogram: ArrayLike) -> float:
    """Bits that any code needs for a histogram's symbols, at least: their entropy."""
    counts = np.asarray(histogram, np.float64)
    return float(_weight(counts.sum()) - _weight(counts).sum())


def _weight(counts):
    """n log2(n)."""
    return counts * np.log2(np.maximum(counts, 1e-300))


def _least(histogram, candidates, penalty):
    """Less than `cost` of any book with U = 1 to `candidates`, float64 [candidates]."""
    U = np.arange(1, candidates + 1)
    above = histogram.sum() - np.append(0, np.cumsum(histogram))  # how many symbols there are from each one on
    escaped, wide = above[U], above[np.minimum(U + ONE_BYTE, SYMBOLS)]
    direct = np.cumsum(_weight(histogram.astype(np.float64)))[:candidates]
    codes = _weight(float(histogram.sum())) - direct - _weight(escaped.astype(np.float64))
    return (codes + (8 + penalty) * (escaped + wide)) * (1 - 1e-9) - 1e-6


def build(histogram: ArrayLike, penalty: int = 16) -> Book:
    """The Book of least cost for a histogram of 4096 symbols, an escape's byte counted as 8 + `penalty` bits.

    For every U: the counts made falling by pooling adjacent violators, an escape no heavier than the symbol before it,
    and lengths by package-merge; of equals the smallest U. `penalty` stands for the time that an escape takes.
    """
    histogram = np.asarray(histogram)
    used = np.flatnonzero(histogram)
    candidates = min(MAX_SYMBOLS, int(used[-1]) + 1 if used.size else 1)  # codes that nothing uses only cost
    escaped = histogram.sum() - np.cumsum(histogram[:candidates])
    least = _least(histogram, candidates, penalty)
    pools: list[tuple[Any, int]] = []  # sum of weights, and symbols
    falling = []
    for U in range(1, candidates + 1):
        pools.append((histogram[U - 1], 1))
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] < pools[-1][0] * pools[-2][1]:
            pools[-2:] = [(pools[-2][0] + pools[-1][0], pools[-2][1] + pools[-1][1])]
        falling.append(tuple(pools))

    best: Any = None
    for place in np.argsort(least, kind="stable"):
        if best and least[place] > best[0]:
            break  # nor are the others any better
        weights = [total / n for total, n in falling[place] for _ in range(int(n))]
        weights = [min(escaped[place], weights[-1]), *reversed(weights)]
        book = Book(np.bincount(lengths(weights), minlength=MAX_LENGTH + 1)[1:])
        best = min(best or (np.inf,), (cost(book, histogram, penalty), place, book), key=lambda one: one[:2])
    return best[2]
