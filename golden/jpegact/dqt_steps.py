"""Search for scales, step and dead zone of DIV in quarters together: one step for all frequencies, except where values
would clip.

Sizes and errors are those of the codec itself, on all tiles of the tensors or on some. A step for each frequency, found
by descent on real sizes, has a ratio that is only 0.1 to 0.3 % higher on tensors that it was not fitted to.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.jpegact import dct, dqt, sfpr, steps
from actcodec.golden.offload import blocks


class Scaling(NamedTuple):
    """How scales are chosen: the arguments of `sfpr.scales`."""

    scaling: str
    cap: float | None
    clip: float


PAPER = Scaling("channel", None, sfpr.S)
SCALINGS = tuple(Scaling(scaling, cap, clip) for clip in (sfpr.S, 1.0) for scaling, cap in (
    ("channel", None), ("cap", 8.0), ("cap", 4.0), ("cap", 2.8), ("cap", 2.0), ("cap", 1.4), ("tensor", None)))
FEW, BEST = 256, 3  # tiles of a tensor with which all ways are tried, and how many of these with all tiles


@dataclass(frozen=True, eq=False)
class Sample:
    """Tiles of a tensor, all or some."""

    x: np.ndarray  # float32 [n, 8, 8], padding 0
    channel: np.ndarray  # of each row, [n, 8]
    inside: np.ndarray  # what is no padding, bool [n, 8, 8]
    largest: np.ndarray  # magnitude of each channel of the tensor
    tiles: int  # of the tensor
    values: int  # of the tensor

    def thinned(self, most: int) -> "Sample":
        """Of more than `most` tiles only as many, at equal distances."""
        some = np.linspace(0, len(self.x) - 1, min(most, len(self.x))).astype(int)
        return replace(self, x=self.x[some], channel=self.channel[some], inside=self.inside[some])

    def by_channel(self, x: np.ndarray) -> np.ndarray:
        """Sums of squares of values [n, 8, 8]."""
        rows = np.einsum("nij,nij->ni", x, x, dtype=np.float64)
        return np.bincount(self.channel.reshape(-1), rows.reshape(-1), len(self.largest))


class Scaled(NamedTuple):
    """A Sample under some scales."""

    sample: Sample
    coefficients: np.ndarray  # of `dct.forward`, int32 [n, 8, 8]
    r: np.ndarray  # [n, 8, 1]


class Choice(NamedTuple):
    """What a tensor may be compressed with, and what samples come to with it."""

    scaling: Scaling
    dead_zone: int
    step: int  # quarters, of all frequencies
    least: np.ndarray  # but where values would clip, uint8 [8, 8]
    ratio: float
    error: float

    @property
    def quarters(self) -> NDArray[np.uint8]:
        """The table."""
        return np.maximum(self.least, np.uint8(self.step))


def sample(x: NDArray[np.float32], most: int | None = None) -> Sample:
    """Sample of a float32 tensor; of more than `most` tiles only as many. Raises ValueError for a tensor that has no
    tiles, is not finite or is all zeros, TypeError unless `x` is float32."""
    view = blocks.view(x.shape)
    if not view.tileable:
        raise ValueError(f"shape {x.shape} is too small for the DCT")
    largest = sfpr.largest(x, view)
    if not np.isfinite(x).all() or not largest.any():
        raise ValueError("tensor is all zeros, or not finite")
    place = np.arange(view.blocks(True))
    rows = blocks.LANES * (place // view.tiles_per_row)[:, None] + np.arange(blocks.LANES)
    columns = blocks.LANES * (place % view.tiles_per_row)[:, None] + np.arange(blocks.LANES)
    inside = (rows < view.rows)[:, :, None] & (columns < view.width)[:, None, :]
    channel = rows // view.height % view.channels
    whole = Sample(blocks.split(x, view, True), channel, inside, largest, len(place), x.size)
    return whole.thinned(most or len(place))


def scaled(sample: Sample, scaling: Scaling = PAPER) -> Scaled:
    """A Sample under the scales of its tensor."""
    scales = sfpr.of_largest(sample.largest, *scaling)
    y = sfpr.quantize(sample.x, scales.k[sample.channel][:, :, None])
    return Scaled(sample, dct.forward(y), scales.r[sample.channel][:, :, None])


def floors(samples: Sequence[Scaled]) -> NDArray[np.uint8]:
    """The smallest steps with which no coefficient clips, in quarters: uint8 [8, 8]. That of the mean is 8 where values
    use the whole range."""
    most, least = np.zeros((2, 8, 8), np.int64)
    for s in samples:
        np.maximum(most, s.coefficients.max(axis=0), out=most)
        np.minimum(least, s.coefficients.min(axis=0), out=least)
    eighths = np.maximum(most / 255, -least / 257) * 8 / 2**dct.FRACTION_BITS  # up to 127.5 and down to -128.5 steps
    return np.clip(np.ceil(eighths), steps.LEAST, steps.MOST).astype(np.uint8)


def measured(samples: Sequence[Scaled], coder: Any, quarters: NDArray[np.uint8], dead_zone: int,
             channels: bool = False) -> tuple[float, float]:
    """The ratio of all samples, with the coder's tables fitted to each, and the root of the mean of their squared
    relative errors, or with `channels` of those of all channels. `coder` is the module `nibble` or `rice`, None for
    ZVC."""
    return _ratio(samples, coder, quarters, dead_zone), _error(samples, quarters, dead_zone, channels)


def _error(samples, quarters, dead_zone, channels):
    samples = [s for s in samples if s.sample.x.any()]  # tiles that are all zeros have no relative error
    squares = 0.0
    for s in samples:
        y = dct.inverse(steps.dequantize(steps.quantize(s.coefficients, quarters, dead_zone), quarters))
        noise = s.sample.by_channel(np.where(s.sample.inside, y * s.r - s.sample.x, np.float32(0)))
        power = s.sample.by_channel(s.sample.x)
        if channels:
            squares += np.mean(np.divide(noise, power, out=np.zeros_like(noise), where=power > 0))
        else:
            squares += noise.sum() / power.sum()
    return float(np.sqrt(squares / max(len(samples), 1)))


def _ratio(samples, coder, quarters, dead_zone):
    size = 0.0
    for s in samples:
        q = steps.quantize(s.coefficients, quarters, dead_zone)
        values = np.ascontiguousarray(q.swapaxes(1, 2)).reshape(-1, blocks.BLOCK)
        if coder:
            least = int(coder.measure(values, coder.fit(values)).sum())
        else:
            least = blocks.BLOCK // 8 * len(values) + int(np.count_nonzero(values))
        size += s.sample.tiles / len(values) * least
    return sum(4 * s.sample.values for s in samples) / size


def best(samples: Sequence[Sample], coder: Any = None, error: float | None = None, ratio: float | None = None,
         scalings: Collection[Scaling] = (PAPER,), dead_zones: Collection[int] = steps.DEAD_ZONES,
         channels: bool = False) -> Choice:
    """The Choice with the highest ratio for an error, or the lowest error for a ratio, among these ways.

    Ratio and error rise with the step, so that bisection finds it in each way. Where tensors have more than FEW tiles,
    all ways are tried with these, and the BEST with all. Raises ValueError unless one of the two is given, and if no
    step reaches it.
    """
    if (error is None) == (ratio is None):
        raise ValueError("either the error or the ratio has to be given")
    ways = list(product(scalings, dead_zones))
    few = [one.thinned(FEW) for one in samples]
    if len(ways) > BEST and any(len(a.x) < len(b.x) for a, b in zip(few, samples, strict=True)):
        ways = [(one.scaling, one.dead_zone) for one in _ranked(few, coder, error, ratio, ways, channels)[0]] or ways
        ways = ways[:BEST]
    ranked, attempts = _ranked(samples, coder, error, ratio, ways, channels)
    if not ranked:
        raise dqt.unreachable([one.error for one in attempts], [one.ratio for one in attempts], error, ratio)
    return ranked[0]


def _ranked(samples, coder, error, ratio, ways, channels):
    """A Choice for each way that reaches what is asked for, the best first; and what the first and the last steps of
    all ways come to."""
    every, ranked, attempts = range(steps.LEAST, steps.MOST + 1), [], []
    for scaling in dict.fromkeys(scaling for scaling, _ in ways):
        tensors = [scaled(one, scaling) for one in samples]
        least = floors(tensors)
        for zone in [zone for other, zone in ways if other == scaling]:
            @cache
            def at(step, zone=zone, scaling=scaling, tensors=tensors, least=least):
                quarters = np.maximum(least, np.uint8(step))
                return Choice(scaling, zone, step, least, *measured(tensors, coder, quarters, zone, channels))

            @cache
            def reaches(step, zone=zone, at=at, tensors=tensors, least=least):
                if error is None:
                    return at(step).ratio >= ratio
                return _error(tensors, np.maximum(least, np.uint8(step)), zone, channels) <= error

            def misses(step, reaches=reaches):
                return not reaches(step)

            # for an error the last step that has it, or else the first; for a ratio the first
            place = bisect_left(every, True, key=misses) - 1 if ratio is None else bisect_left(every, True, key=reaches)
            if 0 <= place < len(every):
                ranked.append(at(every[place]))
            else:
                attempts += [at(every[0]), at(every[-1])]
    return sorted(ranked, key=lambda one: -one.ratio if ratio is None else one.error), attempts
