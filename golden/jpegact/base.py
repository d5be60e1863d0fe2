"""JPEG-BASE, the paper's own baseline: a CDU with DIV and RLE in place of SH and ZVC (JPEG-ACT, section III-E).

Each block is RLE's with a length byte in front of it (framing "block") and without DC prediction, so that CDUs can
share the work and a damaged block harms no other one.
"""

from io import BytesIO
from typing import NamedTuple

import numpy as np

from actcodec.golden.common import heap
from actcodec.golden.jpegact import cdu, dct, div, rle, sfpr
from actcodec.golden.offload import blocks, stream

FRAMING = "block"


class Encoded(NamedTuple):
    """A compressed tensor, all but its shape, its table and the number of CDUs."""

    scales: np.ndarray  # k, float32 [channels]
    payload: bytes


def _view(shape):
    view = blocks.view(shape)
    if not view.tileable:
        raise ValueError(f"shape {tuple(shape)} has no tiles, legal are NCHW with W >= 8 and N * C * H >= 8")
    return view


def compress(x, dqt, cdus=1):
    """Compress a float32 tensor (NCHW) as `cdus` CDUs do together: Encoded.

    `dqt` is a table of divisors (see `div.divisors`). Raises TypeError unless `x` is a float32 array, ValueError for
    another table, for a shape that has no tiles, and unless `cdus` is an int, 1 to 8.
    """
    k, d, view = sfpr.scales(x).k, div.divisors(dqt), _view(x.shape)
    stream.order(0, cdus)  # checks
    rows = np.ascontiguousarray(x).reshape(view.rows, view.width)
    heap.settle()
    payload = BytesIO()
    for part in cdu.parts(view.blocks(True), cdus):
        values = cdu.gather(rows, view, True, k, part)
        data, sizes = rle.encode(div.quantize(dct.forward(values.reshape(-1, 8, 8)), d), FRAMING)
        payload.write(stream.interleave(data, sizes, cdus)[0])
    return Encoded(k, payload.getvalue())


def decompress(encoded, dqt, shape, cdus=1):
    """The float32 tensor of `shape` that an Encoded is of.

    Raises ValueError for a payload that is damaged, as far as its codes show (see `rle.decode`), or that is not as long
    as its length bytes say; for another table, and a shape that has no tiles.
    """
    d, view = div.divisors(dqt), _view(shape)
    n, r = view.blocks(True), sfpr.reciprocal(encoded.scales)
    payload = np.frombuffer(encoded.payload, np.uint8)
    heap.settle()
    q = rle.decode(stream.deinterleave(payload, rle.sizes(payload, n, FRAMING), cdus)[0], n, FRAMING)
    x = np.empty((view.rows, view.width), np.float32)
    for part in cdu.parts(n, cdus):
        y = dct.inverse(div.dequantize(q[part].reshape(-1, 8, 8), d))
        cdu.scatter(y.reshape(-1), view, True, r, part, x)
    return x.reshape(shape)
