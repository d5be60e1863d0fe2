"""Search for quantization tables (JPEG-ACT, section IV, equations 10 to 12), and what suits tables of shifts better.

All searches weigh the size of the payload against the relative error |x - x*| / |x| of the tensors (root of the mean of
its squares). The DCT is orthonormal, so that the squared error is a sum over the 64 frequencies, known for each shift
without decompressing anything. What SFPR and the inverse's rounding to int8 add is a constant, counted once.

- `frontier` and `best`: for ZVC the size is such a sum as well, and the best tables of shifts are found exactly,
  frequency by frequency.
- `descend`: for `nibble` and `rice`, step by step on real sizes.

The paper's own method, for divisors of any value, is `dqt_gradient`; steps in quarters are the matter of `dqt_steps`.

DQT[0], which carries the mean, stays 8 (a shift of 3) as in the paper, unless the caller wants another value or any.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.jpegact import dct, quantize, sfpr
from actcodec.golden.offload import blocks

SHIFTS = 8
FIRST = 3  # shift of the first frequency
TRIES = 10  # pairs of steps that are measured before the coder's tables are fitted anew


class Sample(NamedTuple):
    """What a search needs of a tensor, or of some of its tiles."""

    coefficients: np.ndarray  # of `dct.forward`, int32 [n, 8, 8]
    weights: np.ndarray  # [n]: from squared steps of SFPR to the squared relative error of the tensor
    rest: float  # squared relative error of SFPR and of the rounding to int8
    tiles: int  # of the tensor
    values: int  # of the tensor
    power: float  # mean square of the tensor's values

    @property
    def share(self) -> float:
        """Tiles of the tensor for each one that is here."""
        return self.tiles / len(self.weights)


@dataclass(frozen=True, eq=False)
class Counts:
    """Size under ZVC and squared error of every frequency under every shift; counts of several tensors may be added."""

    tensors: int
    nbytes: int  # of the float32 tensors
    tiles: int
    nonzeros: np.ndarray  # [8 shifts, 8, 8]
    errors: np.ndarray  # [8 shifts, 8, 8], squared and relative, summed over tensors
    rest: float

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))

    def error(self, shifts: NDArray[np.uint8]) -> np.ndarray:
        """Relative error of the tensors under tables of shifts, [..., 8, 8]."""
        return np.sqrt((_pick(self.errors, shifts) + self.rest) / self.tensors)

    def size(self, shifts: NDArray[np.uint8]) -> np.ndarray:
        """Bytes of the payloads under ZVC and tables of shifts, [..., 8, 8]."""
        return blocks.BLOCK // 8 * self.tiles + _pick(self.nonzeros, shifts)


class Frontier(NamedTuple):
    """Tables of which none has both a higher ratio and a lower error than another, the highest ratio first."""

    shifts: np.ndarray  # uint8 [m, 8, 8]
    ratios: np.ndarray  # bytes of the float32 tensors over bytes of the payloads
    errors: np.ndarray  # relative


class Choice(NamedTuple):
    """A table for a coder that has tables of its own."""

    shifts: np.ndarray  # uint8 [8, 8]
    tables: list  # the coder's, one for each tensor
    ratio: float
    error: float


def _pick(costs, shifts):
    """Sum over frequencies of costs [8, 8, 8] under tables of shifts [..., 8, 8]."""
    row, column = np.mgrid[:8, :8]
    return costs[shifts, row, column].sum(axis=(-2, -1))


def sample(x: NDArray[np.float32], most: int | None = None) -> Sample:
    """Sample of a float32 tensor; of more than `most` tiles only as many, at equal distances.

    A tile that lies in several channels has the mean of their weights, and its padding none. Raises ValueError for a
    tensor that has no tiles, is not finite or is all zeros, TypeError unless `x` is float32.
    """
    view = blocks.view(x.shape)
    if not view.tileable:
        raise ValueError(f"shape {x.shape} is too small for the DCT")
    k, r = sfpr.scales(x)
    squares = float(np.square(x, dtype=np.float64).sum())
    if not np.isfinite(squares) or not squares:
        raise ValueError("tensor is all zeros, or not finite")
    y = sfpr.quantize(x.reshape(view.rows, view.width), k[view.channel, None])
    step = np.broadcast_to(np.square(r[view.channel, None], dtype=np.float64), y.shape)
    rest = np.square(sfpr.dequantize(y, r[view.channel, None]).reshape(x.shape) - x, dtype=np.float64).sum()
    tiles = blocks.split(y, view, True)
    weights = blocks.split(step, view, True).mean(axis=(1, 2)) / squares
    some = np.linspace(0, len(tiles) - 1, min(most or len(tiles), len(tiles))).astype(int)
    return Sample(
        dct.forward(tiles[some]), weights[some] * (len(tiles) / len(some)), (rest + step.sum() / 12) / squares,
        len(tiles), x.size, squares / x.size,
    )  # fmt: skip


def _quantized(sample):
    """Quantized values under every shift, int8 [8, n, 8, 8]."""
    return np.stack([quantize.shift(sample.coefficients, s) for s in range(SHIFTS)])


def count(sample: Sample) -> Counts:
    """Counts of a Sample."""
    q = _quantized(sample)
    restored = np.stack([quantize.unshift(v, s) for s, v in enumerate(q)])
    difference = sample.coefficients / 2.0**dct.FRACTION_BITS - restored
    errors = np.einsum("snij,n->sij", np.square(difference), sample.weights)
    return Counts(1, 4 * sample.values, sample.tiles, sample.share * np.count_nonzero(q, axis=1), errors, sample.rest)


def total(samples: Iterable[Sample]) -> Counts:
    """Counts of several samples."""
    return reduce(add, map(count, samples))


def frontier(counts: Counts, first: int | None = FIRST) -> Frontier:
    """The tables that are best for ZVC: Frontier.

    Each has the least size + weight * squared error for some weight, which every frequency decides by itself. The
    weights at which one changes its choice are known, so these are all such tables, exactly: the corners of the convex
    hull of all tables. What lies above the hull, between two neighbours, is not looked for. `first` is the shift of the
    first frequency, None for any.
    """
    size, error = counts.nonzeros.reshape(SHIFTS, 64), counts.errors.reshape(SHIFTS, 64)
    a, b = np.triu_indices(SHIFTS, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (size[a] - size[b]) / (error[b] - error[a])
    change = np.unique(change[np.isfinite(change) & (change > 0)])
    weights = [change[:1] / 2, (change[1:] + change[:-1]) / 2, 2 * change[-1:]] if change.size else [[1.0]]
    shifts = np.stack([(size + w * error).argmin(axis=0) for w in np.concatenate(weights)]).astype(np.uint8)
    if first is not None:
        shifts[:, 0] = first
    shifts = shifts[np.any(np.diff(shifts, axis=0, prepend=np.uint8(SHIFTS)), axis=1)].reshape(-1, 8, 8)
    return Frontier(shifts, counts.nbytes / counts.size(shifts), counts.error(shifts))


def reaches(errors: np.ndarray, ratios: np.ndarray, error: float | None, ratio: float | None) -> NDArray[np.bool]:
    """Where an error is at most `error`, or a ratio at least `ratio`; ValueError unless one of the two is given."""
    if (error is None) == (ratio is None):
        raise ValueError("either the error or the ratio has to be given")
    return errors <= error if ratio is None else ratios >= ratio


def unreachable(errors: Collection[float] | np.ndarray, ratios: Collection[float] | np.ndarray, error: float | None,
                ratio: float | None) -> ValueError:
    limit = f"an error of {error}" if ratio is None else f"a ratio of {ratio}"
    return ValueError(
        f"no table has {limit}: errors are {min(errors):.4g} to {max(errors):.4g}, "
        f"ratios {min(ratios):.4g} to {max(ratios):.4g}"
    )


def best(counts: Counts, error: float | None = None, ratio: float | None = None,
         first: int | None = FIRST) -> NDArray[np.uint8]:
    """The table of `frontier` with the highest ratio for an error, or the lowest error for a ratio: uint8 [8, 8].

    Raises ValueError unless one of the two is given, and if no table reaches it.
    """
    shifts, ratios, errors = frontier(counts, first)
    reached = np.flatnonzero(reaches(errors, ratios, error, ratio))
    if not reached.size:
        raise unreachable(errors, ratios, error, ratio)
    return shifts[reached[0 if ratio is None else -1]]


def descend(samples: Sequence[Sample], coder: Any, error: float | None = None, ratio: float | None = None,
            first: int | None = FIRST) -> Choice:
    """A table for `coder` (the module `nibble` or `rice`), and the coder's own tables: Choice.

    As `best`, on the real sizes of the samples' tiles, which are no sums over frequencies. Starts from the table of
    `frontier` that just reaches the error or ratio. A step moves one or two shifts by 1, so that one may gain what the
    other one loses; the best of all steps is taken, until none helps, also after the coder's tables are fitted anew.
    It takes a second or a few for each thousand tiles.
    """
    counts = total(samples)
    order = np.arange(64).reshape(8, 8).T.reshape(64)  # column by column, as the coders have a tile
    place = np.arange(64)
    errors = counts.errors.reshape(SHIFTS, 64)[:, order] / counts.tensors
    choices = [_quantized(s).reshape(SHIFTS, -1, 64)[..., order] for s in samples]
    goal = int(ratio is not None)  # what has to become small: 0, the size, or 1, the error

    def values(shifts):
        return [c[shifts, :, place].T for c in choices]

    def costs(shifts, tables):
        parts = zip(samples, values(shifts), tables, strict=True)
        size = sum(s.share * coder.measure(v, table).sum() for s, v, table in parts)
        return np.array([size / counts.nbytes, errors[shifts, place].sum() + counts.rest / counts.tensors])

    def fitted(shifts):
        tables = [coder.fit(v) for v in values(shifts)]
        return tables, costs(shifts, tables)

    def reached(cost):
        return reaches(cost[1] ** 0.5, 1 / cost[0], error, ratio)

    starts = frontier(counts, first).shifts.reshape(-1, 64)[:: -1 if goal else 1, order].astype(int)
    at = bisect_left(starts, True, key=lambda shifts: bool(reached(fitted(shifts)[1])))
    if at == len(starts):
        ends = np.array([fitted(shifts)[1] for shifts in starts])
        raise unreachable(np.sqrt(ends[:, 1]), 1 / ends[:, 0], error, ratio)
    shifts = starts[at]
    tables, cost = fitted(shifts)

    one = np.eye(64, dtype=int)[first is not None :]
    while True:
        steps = np.vstack([np.zeros(64, int), one, -one])
        steps = steps[np.all((shifts + steps >= 0) & (shifts + steps < SHIFTS), axis=1)]
        change = np.array([costs(shifts + step, tables) - cost for step in steps])
        a, b = np.triu_indices(len(steps), 1)
        both = change[a] + change[b]  # nearly: two shifts may meet in a block or a group
        good = np.flatnonzero((both[:, goal] < 0) & reached((cost + both).T))
        for pair in good[np.argsort(both[good, goal])[:TRIES]]:
            moved = shifts + steps[a[pair]] + steps[b[pair]]
            new = costs(moved, tables)
            if new[goal] < cost[goal] and reached(new):
                shifts, cost = moved, new
                break
        else:
            others, new = fitted(shifts)
            if new[0] >= cost[0]:
                break
            tables, cost = others, new
    return Choice(shifts[order].reshape(8, 8).astype(np.uint8), tables, 1 / cost[0], cost[1] ** 0.5)
