"""Measures the table of ``docs/ratios.md`` that has COMET beside JPEG-ACT, SZ3, zfp and cuSZ, at equal errors.

``python -m docs.beside`` records it as ``beside`` of ``docs/records/measured.json``, from which :mod:`docs.measured`
writes the table. It needs the packages ``pysz`` and ``zfpy``.
"""

import heapq
import tempfile
from functools import partial

import numpy as np
import pysz
import zfpy

import actcodec
from actcodec.golden.comet import prequantise
from actcodec.metrics import relative_error
from docs import measured
from docs.ratios import sample

__all__ = ["best", "rows", "ways"]

# Whose errors the others have, on which tensors: the first word of their names, mode, options.
YARDSTICKS = {"optL": ("conv", "jpeg-act", {"dqt": "optL"}), "optH": ("conv", "jpeg-act", {"dqt": "optH"}),
              "sfpr-zvc": ("ReLU", "sfpr-zvc", {})}
CODERS = ("zvc", "nibble", "rice")
STEPS = 24  # of a bisection
TILE, DICTIONARY = 16, 512  # cuSZ's, of 2-D data; differences beyond are outliers


def largest(x, y):
    return float(np.abs(y.astype(np.float64) - x).max())


def sz3(x, bound, algorithm, shape):
    """SZ3's bytes of the tensor seen in that shape, and what comes back."""
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
        file.write(f"[GlobalSettings]\nCmprAlgo = {algorithm}\n[AlgoSettings]\nLorenzo = YES\nLorenzo2ndOrder = NO\n"
                   "Regression = NO\nRegression2ndOrder = NO\n")
        file.flush()
        config = pysz.szConfig(shape)
        config.loadcfg(file.name)
        config.errorBoundMode, config.absErrorBound = pysz.szErrorBoundMode.ABS, bound
        stream = pysz.sz.compress(np.ascontiguousarray(x.reshape(shape)), config)[0]
    return stream.size, pysz.sz.decompress(stream, np.float32, shape)[0].reshape(x.shape)


def views(x):
    """The shapes in which a compressor may see a tensor of [N, C, H, W]: as it is, and with leading axes as one."""
    return [(x.size // int(np.prod(x.shape[axis:])), *x.shape[axis:]) for axis in range(1, x.ndim)]


def defaults(x):
    """SZ3's default."""
    return [partial(sz3, x, algorithm="ALGO_INTERP_LORENZO", shape=shape) for shape in views(x)]


def ways(x):
    """Its default, Lorenzo in one and two dimensions, and no prediction."""
    return defaults(x) + [partial(sz3, x, algorithm=algorithm, shape=shape) for algorithm, shape in (
        ("ALGO_LORENZO_REG", (x.size,)), ("ALGO_LORENZO_REG", views(x)[-1]), ("ALGO_NOPRED", (x.size,)))]


def zfp(x, bound, shape):
    stream = zfpy.compress_numpy(x.reshape(shape), tolerance=bound)
    return len(stream), zfpy.decompress_numpy(stream).reshape(x.shape)


def most(x, codec, error, limit):
    """Bytes by the largest bound at which the error is within the limit, as if it rose with the bound. A bound may well
    be above every value: zfp keeps far less than it."""
    largest = float(np.abs(x).max())
    low, high = largest * 2.0**-20, largest * 2.0**6
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if error(x, codec(bound=middle)[1]) <= limit else (low, middle)
    return codec(bound=low)[0]


def best(x, codecs, error, limit):
    """The fewest bytes of several codecs."""
    return min(most(x, codec, error, limit) for codec in codecs)


def huffman(counts):
    """Bits of the best prefix code, of whatever length."""
    heap = [int(count) for count in counts if count]
    heapq.heapify(heap)
    bits = sum(heap) if len(heap) == 1 else 0
    while len(heap) > 1:
        pair = heapq.heappop(heap) + heapq.heappop(heap)
        bits += pair
        heapq.heappush(heap, pair)
    return bits


def cusz(x, s):
    """Bytes of cuSZ's codes alone at that step: differences in two dimensions within tiles, and 8 bytes an outlier."""
    q = prequantise.quantize(x, s)[0].reshape(-1, x.shape[-1]).astype(int)
    q = np.pad(q, [(0, -size % TILE) for size in q.shape])
    tiles = q.reshape(q.shape[0] // TILE, TILE, -1, TILE)
    for axis in (1, 3):
        tiles = np.diff(tiles, axis=axis, prepend=0)
    d = tiles.reshape(q.shape)[: x.size // x.shape[-1], : x.shape[-1]]
    beyond = np.abs(d) >= DICTIONARY
    return huffman(np.bincount(np.where(beyond, 0, d + DICTIONARY).reshape(-1))) / 8 + 8 * np.count_nonzero(beyond)


def row(kind, mode, options, error):
    """Ratios of all tensors of a kind."""
    tensors = sample(kind)
    sizes = []
    for x in tensors:
        coded = [actcodec.compress(x, mode, coder=coder, **options) for coder in CODERS]
        limit = error(x, actcodec.decompress(coded[0]))
        ours = actcodec.compress(x, "comet", **({"l2": limit} if error is relative_error else {"error_bound": limit}))
        assert error(x, actcodec.decompress(ours)) <= limit
        step = float((np.frombuffer(ours.side, "<u2", 1).astype(np.uint32) << 16).view(np.float32)[0])
        others = [best(x, codecs, error, limit)
                  for codecs in (defaults(x), ways(x), [partial(zfp, x, shape=shape) for shape in views(x)])]
        sizes.append([*(len(one.payload) for one in (*coded, ours)), *others[:2], cusz(x, step), others[2]])
    return sum(x.nbytes for x in tensors) / np.sum(sizes, axis=0)


def rows():
    """Those of the table: words, and ratios."""
    for name, (kind, mode, options) in YARDSTICKS.items():
        for error, words in ((relative_error, "L2 error"), (largest, "largest error")):
            yield ["dense" if kind == "conv" else kind, words, name, *map(float, row(kind, mode, options, error))]


if __name__ == "__main__":
    measured.record("beside", rows())
