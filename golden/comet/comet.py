"""The whole codec: a tensor to the streams of n CDUs, and back (COMET, section 3.4 and figure 3, phase 4)."""

from dataclasses import dataclass

import numpy as np

from actcodec.golden.comet import huffman, lorenzo, prequantise
from actcodec.golden.comet.book import Book, build, cost, histogram, information
from actcodec.golden.comet.huffman import Error
from actcodec.golden.comet.interleave import interleave
from actcodec.golden.offload import stream


@dataclass(frozen=True)
class Encoded:
    """A compressed tensor, all but its shape. Raises ValueError for a step that is none, and unless there are 1 to 8
    streams."""

    s: float  # step of the quantizer; s / 2 bounds the error
    config: lorenzo.Config
    book: Book
    streams: tuple[bytes, ...]  # one for each CDU

    def __post_init__(self):
        prequantise.check(self.s)
        stream.order(0, len(self.streams))

    @property
    def payload_bytes(self):
        return sum(map(len, self.streams))


def compress(x, eb, config=None, book=None, cdus=1, view=None):
    """Compress a float32 tensor (NCHW or [N, F]) so that no finite value is off by more than `eb`: Encoded.

    A `view` takes the place of the shape, for a lane's descriptor, which may have any rows: `x` is what lies in them.

    Group g (256 values, or four tiles) is CDU g mod `cdus`'s; each CDU makes a stream of its own, an empty one if it
    has no group. Without `config` or `book`, what costs least is taken (see `choose`). Raises TypeError unless `x` is a
    float32 array, ValueError for a bound that `prequantise.step` refuses, a shape that has no view (or, for a tiled
    configuration, no tiles), and unless `cdus` is an int, 1 to 8.
    """
    stream.order(0, cdus)
    s = prequantise.step(eb)
    q, outliers = prequantise.quantize(x, s)
    shape = view or q.shape
    config, book = _choose(q, shape, [config] if config else lorenzo.legal(shape), book)
    u = lorenzo.residuals(q, shape, config)
    order, owner = lorenzo.order(shape, config.tiled), lorenzo.groups(shape, config.tiled) % cdus
    outliers, x = outliers.reshape(-1)[order], np.reshape(x, -1)[order]
    streams = []
    for cdu in range(cdus):
        own = owner == cdu
        streams.append(interleave(*huffman.steps(u[own], outliers[own], x[own], book)))
    return Encoded(s, config, book, tuple(streams))


def decompress(encoded, shape):
    """The float32 tensor of `shape`, or of a `View`'s rows, that an Encoded is of, and an Error.

    Of a finite value comes the nearest multiple of the step (+0.0 for both zeros), of an outlier its bits. Streams may
    be anything: one that ends early goes on as zero bytes (Error.SHORT), bytes that are left are ignored
    (Error.EXCESS), and all values come. Raises ValueError for a shape that has no view, or no tiles though the
    configuration has.
    """
    config = encoded.config
    order, owner = lorenzo.order(shape, config.tiled), lorenzo.groups(shape, config.tiled) % len(encoded.streams)
    u, outliers, x = (np.empty(order.size, dtype) for dtype in (np.uint16, bool, np.float32))
    error = Error(0)
    for cdu, data in enumerate(encoded.streams):
        own = owner == cdu
        u[own], outliers[own], x[own], found = huffman.decode(data, np.count_nonzero(own), encoded.book)
        error |= found
    result = prequantise.dequantize(lorenzo.restore(u, shape, config), encoded.s)
    result.reshape(-1)[order[outliers]] = x[outliers]
    return result, error


def choose(x, s, configs=None):
    """The configuration whose book costs least for `x` (float32) at step `s`, and that book, of all values' symbols.

    `configs` are those to choose from, by default all of `lorenzo.CONFIGS` that the shape can have: tiled ones need
    tiles. Of equals the first one is taken. Raises ValueError for a tiled one where the shape has no tiles.
    """
    q, _ = prequantise.quantize(x, s)
    return _choose(q, q.shape, configs or lorenzo.legal(q.shape), None)


def _choose(q, shape, configs, book):
    """One of the configurations, and a book if it is None, for the integers of a tensor."""
    if book and len(configs) == 1:
        return configs[0], book
    return cheapest([histogram(lorenzo.residuals(q, shape, c)) for c in configs], configs, book)


def cheapest(counts, configs, book=None):
    """The configuration whose symbols, of these histograms, cost least in a book of their own, or in `book`, and the
    book; of equals the first one."""
    least, best = [information(n) * (1 - 1e-9) for n in counts], None
    for place in np.argsort(least, kind="stable"):
        if best and least[place] > best[0]:
            break  # nor are the others any better
        own = book or build(counts[place])
        best = min(best or (np.inf,), (cost(own, counts[place]), place, own), key=lambda found: found[:2])
    return configs[best[1]], best[2]
