"""The modes of a CDU: ``golden/jpegact/cdu.py``. Side information are the scales, as bfloat16."""

import numpy as np

from actcodec.codecs import find
from actcodec.codecs.compressed import Compressed
from actcodec.golden.jpegact import cdu, sfpr
from actcodec.golden.offload import blocks

__all__ = ["check", "compress", "decompress", "packed_scales", "saturated", "side_bytes", "unpacked_scales"]


def packed_scales(scales):
    return (scales.view(np.uint32) >> 16).astype("<u2").tobytes()  # exact: a scale is a bfloat16


def unpacked_scales(side):
    return (np.frombuffer(side, "<u2").astype(np.uint32) << 16).view(np.float32)


def compress(x, mode, cdus, dqt=None, signs=False):
    c = cdu.compress(x, mode.name, "optL" if dqt is None else dqt.table, cdus, signs)
    options = {"cdus": cdus} | ({"dqt": dqt} if c.table is not None else {})
    return Compressed(c.mode, c.shape, c.payload, options, b"" if c.scales is None else packed_scales(c.scales))


def decompress(compressed):
    return cdu.decompress(of_golden(compressed))


def of_golden(compressed):
    """Golden's ``Compressed``. Raises ValueError."""
    c, dqt = compressed, compressed.options.get("dqt")
    name, table = (dqt.name, dqt.shifts) if dqt else (None, None)
    scales = unpacked_scales(c.side) if find(c.mode).scaled else None
    return cdu.Compressed(c.mode, c.shape, name, table, scales, c.cdus, c.payload)


def side_bytes(shape, mode):
    return 2 * blocks.view(shape).channels if mode.scaled else 0


def check(compressed):
    c, mode = compressed, find(compressed.mode)
    count = blocks.view(c.shape).blocks(mode.tiled)
    least, most = count * mode.format.shortest, count * mode.format.longest
    if not least <= c.payload_bytes <= most:
        raise ValueError(f"a payload of {c.payload_bytes} bytes cannot hold {count} blocks of mode {c.mode}")
    of_golden(c)


def saturated(x, compressed):
    """Values that SFPR clips."""
    return 0 if not find(compressed.mode).scaled else sfpr.counts(x, unpacked_scales(compressed.side)).saturated
