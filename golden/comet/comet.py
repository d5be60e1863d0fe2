"""The whole codec: a tensor to the streams of n CDUs, and back (COMET, section 3.4 and figure 3, phase 4)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.comet import huffman, lorenzo, prequantise
from actcodec.golden.comet.book import SYMBOLS, Book, build, cost, histogram, information
from actcodec.golden.comet.huffman import Error
from actcodec.golden.comet.interleave import interleave
from actcodec.golden.comet.lorenzo import Config
from actcodec.golden.offload.blocks import View
from actcodec.golden.offload.wire import stream


@dataclass(frozen=True)
class Encoded:
    """A compressed tensor, all but its shape. Raises ValueError for a step that is none, and unless there are 1 to 8
    streams."""

    s: float  # step of the quantizer; s / 2 bounds the error
    config: lorenzo.Config
    book: Book
    streams: tuple[bytes, ...]  # one for each CDU

    def __post_init__(self) -> None:
        prequantise.check(self.s)
        stream.order(0, len(self.streams))

    @property
    def payload_bytes(self) -> int:
        return sum(map(len, self.streams))


def compress(x: NDArray[np.float32], eb: float, config: Config | None = None, book: Book | None = None, cdus: int = 1,
             view: View | None = None) -> Encoded:
    """Compress a float32 tensor (NCHW or [N, F]) so that no finite value is off by more than `eb`: Encoded.

    A `view` takes the place of the shape, for a lane's descriptor, which may have any rows: `x` is what lies in them.

    Group g (256 values, or four tiles) is CDU g mod `cdus`'s; each CDU makes a stream of its own, an empty one if it
    has no group. Without `config` or `book`, what costs least is taken (see `choose`). Raises TypeError unless `x` is a
    float32 array, ValueError for a bound that `prequantise.step` refuses, a shape that has no view (or, for a tiled
    configuration, no tiles), a `view` of another number of values, and unless `cdus` is an int, 1 to 8.
    """
    stream.order(0, cdus)
    s, x = prequantise.step(eb), prequantise.tensor(x)
    shape = _shape(x, view)
    if not (config and book):
        config, book = choose(x, s, [config] if config else None, book, view)
    x = np.reshape(x, -1)
    # symbols, places of outliers, their values: of each CDU, in parts
    own: list[list[tuple[np.ndarray, ...]]] = [[] for _ in range(cdus)]
    sizes = [0] * cdus
    for part, owner in _owned(shape, config, cdus):
        q, outliers = prequantise.quantize(x[part.values], s)
        order = slice(None) if part.order is None else part.order
        u, outliers = lorenzo.symbols(q, part, config)[order], outliers[order]
        for cdu in range(cdus):
            mine = slice(None) if cdus == 1 else owner == cdu
            symbols, places = u[mine], np.flatnonzero(outliers[mine])
            floats = x[part.values][order][mine][places] if places.size else x[:0]
            own[cdu].append((symbols, places + sizes[cdu], floats))
            sizes[cdu] += symbols.size
    streams = []
    while own:
        symbols, places, floats = (np.concatenate(pieces) for pieces in zip(*own.pop(0), strict=True))
        streams.append(interleave(*huffman.sparse_steps(symbols, places, floats, book)))
    return Encoded(s, config, book, tuple(streams))


def _shape(x, view):
    """What a tensor is seen as."""
    if view and x.size != view.rows * view.width:
        raise ValueError(f"tensor has {x.size} values, a view of {view.rows} rows has {view.rows * view.width}")
    return view or x.shape


def decompress(encoded: Encoded, shape: Sequence[int] | View) -> tuple[NDArray[np.float32], Error]:
    """The float32 tensor of `shape`, or of a `View`'s rows, that an Encoded is of, and an Error.

    Of a finite value comes the nearest multiple of the step (+0.0 for both zeros), of an outlier its bits. Streams may
    be anything: one that ends early goes on as zero bytes (Error.SHORT), bytes that are left are ignored
    (Error.EXCESS), and all values come. Raises ValueError for a shape that has no view, or no tiles though the
    configuration has.
    """
    config, cdus = encoded.config, len(encoded.streams)
    result = np.empty(math.prod(lorenzo.dimensions(shape)), np.float32)
    decoded, error, at = [], Error(0), [0] * cdus
    counts = np.array([0] * cdus if cdus > 1 else [result.size])
    if cdus > 1:
        for _, owner in _owned(shape, config, cdus):
            counts += np.bincount(owner, minlength=cdus)
    for data, count in zip(encoded.streams, counts, strict=True):
        symbols, places, floats, own_error = huffman.sparse_decode(data, int(count), encoded.book)
        decoded.append((symbols, places, floats))
        error |= own_error

    for part, owner in _owned(shape, config, cdus):
        own, outliers = result[part.values], []
        u = np.empty(own.size, np.uint16)
        for cdu, (symbols, places, floats) in enumerate(decoded):
            mine = np.flatnonzero(owner == cdu) if cdus > 1 else np.arange(own.size)
            u[mine] = symbols[at[cdu] : at[cdu] + mine.size]
            begin, end = np.searchsorted(places, (at[cdu], at[cdu] + mine.size))
            outliers.append((mine[places[begin:end] - at[cdu]], floats[begin:end]))
            at[cdu] += mine.size
        own[:] = prequantise.dequantize(lorenzo.integers(u, part, config), encoded.s)
        for places, floats in outliers:
            own[places if part.order is None else part.order[places]] = floats
    return result.reshape(lorenzo.dimensions(shape)), error


def _owned(shape, config, cdus):
    """The parts of a tensor, and which CDU has each of their values in coding order; None if there is only one."""
    first = 0
    for part in lorenzo.parts(shape, config.tiled):
        yield part, (first + part.group) % cdus if cdus > 1 else None
        first += part.groups


def choose(x: NDArray[np.float32], s: float, configs: Sequence[Config] | None = None, book: Book | None = None,
           view: View | None = None) -> tuple[Config, Book]:
    """The configuration whose book costs least for `x` (float32) at step `s`, and that book, of all values' symbols.

    `configs` are those to choose from, by default all of `lorenzo.CONFIGS` that the shape can have: tiled ones need
    tiles. Of equals the first one is taken. A `book` that is given is the one of all. `view` as in `compress`. Raises
    ValueError for a tiled one where the shape has no tiles, and for a `view` of another number of values.
    """
    x = prequantise.tensor(x)
    shape = _shape(x, view)
    configs = configs or lorenzo.legal(shape)
    x, counts = x.reshape(-1), {config: np.zeros(SYMBOLS, np.int64) for config in configs}
    for tiled in {config.tiled for config in configs}:
        for part in lorenzo.parts(shape, tiled):
            q, _ = prequantise.quantize(x[part.values], s)
            for config in configs:
                if config.tiled == tiled:
                    counts[config] += histogram(lorenzo.symbols(q, part, config))
    return cheapest([counts[config] for config in configs], configs, book)


def cheapest(counts: Sequence[np.ndarray], configs: Sequence[Config], book: Book | None = None) -> tuple[Config, Book]:
    """The configuration whose symbols, of these histograms, cost least in a book of their own, or in `book`, and the
    book; of equals the first one."""
    least = [information(n) * (1 - 1e-9) for n in counts]
    best: Any = None
    for place in np.argsort(least, kind="stable"):
        if best and least[place] > best[0]:
            break  # nor are the others any better
        own = book or build(counts[place])
        best = min(best or (np.inf,), (cost(own, counts[place]), place, own), key=lambda one: one[:2])
    return configs[best[1]], best[2]
