"""The modes of a CDU: ``golden/jpegact/cdu.py``. Side information are the scales, as bfloat16."""

import numpy as np

from actcodec.codecs import find
from actcodec.codecs.compressed import Compressed
from actcodec.golden.jpegact import cdu, sfpr
from actcodec.golden.offload import blocks

__all__ = ["check", "check_payload", "check_scales", "compress", "decompress", "packed_scales", "saturated",
           "side_bytes", "size", "unpacked_scales"]


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


def side_bytes(shape, mode, **options):
    return 2 * blocks.view(shape).channels if mode.scaled else 0


def size(shape, mode, **options):
    """None where it depends on the values."""
    if mode.format.shortest != mode.format.longest:
        return None
    return blocks.view(shape).blocks(mode.tiled) * mode.format.longest + side_bytes(shape, mode)


def check(compressed):
    c, mode = compressed, find(compressed.mode)
    check_payload(c, blocks.view(c.shape).blocks(mode.tiled), mode.format.shortest, mode.format.longest)
    of_golden(c)


def check_payload(compressed, count, shortest, longest):
    """Raises ValueError unless the payload can be that of ``count`` blocks."""
    c = compressed
    if not count * shortest <= c.payload_bytes <= count * longest:
        raise ValueError(f"a payload of {c.payload_bytes} bytes cannot hold {count} blocks of mode {c.mode}")


def check_scales(k, smallest=sfpr.SMALLEST):
    """Raises ValueError unless all are 0, or from ``smallest`` to the largest scale."""
    if not np.all((k == 0) | (k >= smallest) & (k <= sfpr.LARGEST)):
        raise ValueError("a scale is not a bfloat16 number that a tensor can have")


def saturated(x, compressed):
    """Values that SFPR clips."""
    return 0 if not find(compressed.mode).scaled else sfpr.counts(x, unpacked_scales(compressed.side)).saturated
