"""Measures the table of ``docs/ratios.md`` of quantizer ``div`` beside ``sh``, COMET, SZ3, zfp and MX, at equal errors.

``python -m docs.quantizers`` records it as ``quantizers`` of ``docs/records/measured.json``, from which
:mod:`docs.measured` writes the table. It needs the packages ``pysz`` and ``zfpy``.
"""

from functools import partial

import actcodec
from actcodec.golden.jpegact import steps
from actcodec.golden.mx.element import FORMATS
from actcodec.metrics import relative_error
from docs import measured
from docs.beside import best, views, ways, zfp
from docs.ratios import sample

__all__ = ["rows"]

CODERS = ("zvc", "nibble", "rice")
TABLES = ("optL", "optH", "jpeg60")
MXFP8 = "MXFP8"  # its error is below that of any table, but above that of 8 bits


def compressed(x, name, coder="zvc"):
    """The file whose error the others are held to."""
    return actcodec.compress(x, "jpeg-act", dqt=name, coder=coder) if name in TABLES else (
        actcodec.compress(x, "mx", format="e4m3"))


def smallest(x, mode, choices, limit):
    """Bytes of the smallest file among those options whose error is within the limit."""
    files = [actcodec.compress(x, mode, **options) for options in choices]
    return min(c.nbytes for c in files if relative_error(x, actcodec.decompress(c)) <= limit)


def divided(x, coder, zone, limit):
    """Bytes of the file with the largest step whose error is within the limit."""
    low, high = 8, steps.MOST + 1  # quarters
    while high - low > 1:
        middle = (low + high) // 2
        c = actcodec.compress(x, "jpeg-act", coder=coder, quantizer="div", dqt=middle / 4, dead_zone=zone)
        low, high = (middle, high) if relative_error(x, actcodec.decompress(c)) <= limit else (low, middle)
    return smallest(x, "jpeg-act", [{"coder": coder, "quantizer": "div", "dqt": low / 4, "dead_zone": zone}], limit)


def others(x, limit):
    """Bytes of COMET, SZ3, zfp and MX."""
    return (smallest(x, "comet", [{"l2": limit}], limit), best(x, ways(x), relative_error, limit),
            best(x, [partial(zfp, x, shape=shape) for shape in views(x)], relative_error, limit),
            smallest(x, "mx", [{"format": name} for name in FORMATS], limit))


def rows():
    """Those of the table: words, and ratios."""
    tensors = sample("conv")
    before = sum(x.nbytes for x in tensors)
    for name in (*TABLES, MXFP8):
        limits = [relative_error(x, actcodec.decompress(compressed(x, name))) for x in tensors]
        each = list(zip(tensors, limits, strict=True))
        beside = [before / sum(sizes) for sizes in zip(*(others(x, limit) for x, limit in each), strict=True)]
        for coder in CODERS:
            if name == MXFP8:
                ours = [sum(smallest(x, "sfpr-zvc", [{"coder": coder}], limit) for x, limit in each)]
            else:
                ours = [sum(compressed(x, name, coder).nbytes for x in tensors)]
                ours += [sum(divided(x, coder, zone, limit) for x, limit in each) for zone in steps.DEAD_ZONES]
            ratios = [before / size for size in ours]
            yield [name, coder, *ratios, *["-"] * (1 + len(steps.DEAD_ZONES) - len(ratios)), *beside]


if __name__ == "__main__":
    measured.record("quantizers", rows())
