"""DIVISION: ``golden/division``. Side information are the scales k of the planes, as bfloat16."""

import numpy as np

from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models.cdu import check_scales, packed_scales, unpacked_scales
from actcodec.codecs.models.gist import check_bytes
from actcodec.golden.division import codec, memory, stream, table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr

__all__ = ["beside", "check", "compress", "decompress", "saturated", "side_bytes", "size"]

SMALLEST = np.finfo(np.float32).tiny  # of k other than 0


def compress(x, mode, bits, seed, rounding, lfc, offset, cdus):
    if lfc == "auto":
        planes, with_lfc = table.auto(x, bits, offset)
    else:
        with_lfc = lfc == "on"
        planes = table.table(x, bits, with_lfc, offset)
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
