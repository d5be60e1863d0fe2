"""DIVISION: ``golden/division``. Side information are the scales k of the planes, as bfloat16."""

from typing import NamedTuple

import numpy as np

from actcodec.codecs import find
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models.cdu import check_scales, packed_scales, unpacked_scales
from actcodec.codecs.models.gist import check_bytes
from actcodec.golden.division import codec, memory, stream, table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr

__all__ = ["beside", "check", "compress", "compressed", "decompress", "fit", "job", "saturated", "side_bytes", "size",
           "stored", "view"]

SMALLEST = np.finfo(np.float32).tiny  # of k other than 0


class Stored(NamedTuple):
    """A compressed tensor as a lane is told of it."""

    mode: str  # of the lane
    shape: tuple[int, ...]
    payload: bytes
    scales: np.ndarray
    cdus: int
    blocks: int
    table: None = None

    @property
    def payload_bytes(self):
        return len(self.payload)


def view(shape):
    return views.view(shape).jpegact


def fitted(x, bits, lfc, offset):
    """A tensor's table, and whether there is an offset."""
    if lfc == "auto":
        return table.auto(x, bits, offset)
    return table.table(x, bits, lfc == "on", offset), lfc == "on"


def fit(x, lane, seed=0, rounding="stochastic", lfc="auto", offset="mean"):
    planes, with_lfc = fitted(x, lane.format.row, lfc, offset)
    words = planes.k.view(np.uint32) | planes.delta.view(np.uint8)
    return words, {"seed": seed, "lfc": int(with_lfc), "minimum": int(offset == "min"),
                   "nearest": int(rounding == "nearest")}


def job(bits, seed, rounding, lfc, offset):
    return {"options": {"seed": seed, "rounding": rounding, "lfc": lfc, "offset": offset}}


def compressed(lane, shape, payload, cdus, result, bits, **options):
    return Compressed("division", shape, payload, {"bits": bits, "cdus": cdus}, packed_scales(result.scales))


def stored(compressed):
    c = compressed
    lane, seen = find(c.mode).variant(c.options), views.view(c.shape)
    name = lane.name if seen.tiled else lane.fallback
    settings = {setting.name: 0 for setting in lane.told}  # which only compression looks at
    return Stored(name, c.shape, c.payload, unpacked_scales(c.side), c.cdus, seen.blocks), settings


def compress(x, mode, bits, seed, rounding, lfc, offset, cdus):
    planes, with_lfc = fitted(x, bits, lfc, offset)
    encoded = codec.encode(x, planes, bits, seed, with_lfc, rounding, offset)
    payload = stream.interleave(encoded.payload, views.view(x.shape), bits, cdus)
    return Compressed(mode.name, x.shape, payload, {"bits": bits, "cdus": cdus}, packed_scales(planes.k))


def decompress(compressed):
    c, bits = compressed, compressed.options["bits"]
    payload = stream.deinterleave(c.payload, views.view(c.shape), bits, c.cdus)
    return codec.decode(payload, unpacked_scales(c.side), c.shape, bits)


def side_bytes(shape, mode, **options):
    return 2 * views.view(shape).planes


def size(shape, mode, bits, **options):
    return codec.size(shape, bits) + side_bytes(shape, mode)


def beside(network, graph, minibatch, bits, **options):
    """What the paper has to compare with."""
    yield "DIVISION, appendix P", memory.appendix(graph, minibatch, bits)
    if bits == 2 and minibatch in memory.MINIBATCHES:
        for name, totals in memory.TABLE_1A.get(network, {}).items():
            if total := totals[memory.MINIBATCHES.index(minibatch)]:
                yield f"{name}, Table 1a", total * 2**30


def check(compressed):
    c = compressed
    check_bytes(c, codec.size(c.shape, c.options["bits"]))
    check_scales(unpacked_scales(c.side), SMALLEST)


def saturated(x, compressed):
    """Values that SFPR clips: infinities, as the scales leave room for all others."""
    view = views.view(x.shape)
    k = unpacked_scales(compressed.side)[view.plane, None]
    return sfpr.counts(np.reshape(x, (view.rows, view.width)), k).saturated
