"""JPEG-BASE: ``golden/jpegact/base.py``. Side information are the scales, as bfloat16."""

from actcodec.codecs import find
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models import cdu
from actcodec.codecs.models.cdu import packed_scales, side_bytes, unpacked_scales
from actcodec.golden.jpegact import base, sfpr
from actcodec.golden.offload import blocks

__all__ = ["check", "compress", "decompress", "saturated", "side_bytes"]

SHORTEST, LONGEST = 2, 145  # bytes of a block, its length byte included


def compress(x, mode, dqt, cdus):
    if not blocks.view(x.shape).tileable:
        return cdu.compress(x, find(mode.fallback), cdus)
    encoded = base.compress(x, dqt.table, cdus)
    return Compressed(mode.name, x.shape, encoded.payload, {"dqt": dqt, "cdus": cdus}, packed_scales(encoded.scales))


def decompress(compressed):
    c = compressed
    return base.decompress(base.Encoded(unpacked_scales(c.side), c.payload), c.options["dqt"].table, c.shape, c.cdus)


def check(compressed):
    c = compressed
    if not blocks.view(c.shape).tileable:
        raise ValueError(f"shape {c.shape} is too small for mode {c.mode}")
    cdu.check_payload(c, blocks.view(c.shape).blocks(True), SHORTEST, LONGEST)
    cdu.check_scales(unpacked_scales(c.side))


def saturated(x, compressed):
    """Values that SFPR clips."""
    return sfpr.counts(x, unpacked_scales(compressed.side)).saturated
