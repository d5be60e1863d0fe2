"""Measures the tables of ``docs/ratios.md`` of quantizer ``div`` beside ``sh``, COMET, SZ3, zfp and MX: at equal L2
errors of the tensors, and at equal errors of their channels.

``python -m docs.quantizers`` records them as ``quantizers`` and ``channels`` of ``docs/records/measured.json``, from
which :mod:`docs.measured` writes the tables. It needs the packages ``pysz`` and ``zfpy``.
"""

from functools import partial

import actcodec
from actcodec.golden.jpegact import dqt_steps, rice, steps
from actcodec.golden.mx.element import FORMATS
from actcodec.metrics import channel_error, relative_error
from docs import measured
from docs.beside import best, views, ways, zfp
from docs.ratios import sample

__all__ = ["channel_rows", "rows"]

CODERS = ("zvc", "nibble", "rice")
TABLES = ("optL", "optH", "jpeg60")
MXFP8 = "MXFP8"  # its error is below that of any table, but above that of 8 bits
SAME = 1 + 1e-6  # sums of other orders and precision
ALL = (dqt_steps.SCALINGS, (0,))
PAPERS = [((dqt_steps.PAPER,), (zone,)) for zone in steps.DEAD_ZONES]


def compressed(x, name, coder="zvc"):
    """The file whose error the others are held to."""
    return actcodec.compress(x, "jpeg-act", dqt=name, coder=coder) if name in TABLES else (
        actcodec.compress(x, "mx", format="e4m3"))


def smallest(x, mode, choices, limit, error=relative_error):
    """Bytes of the smallest file among those options whose error is within the limit."""
    files = [actcodec.compress(x, mode, **options) for options in choices]
    return min((c.nbytes for c in files if error(x, actcodec.decompress(c)) <= limit), default=None)


def divided(x, limit, scalings, zones, error=relative_error):
    """Bytes of the file of each coder with the scales, among these, and the steps that are best for rice and have
    an error within the limit."""
    choice = dqt_steps.best([dqt_steps.sample(x)], rice, limit * SAME, scalings=scalings, dead_zones=zones,
                            channels=error is channel_error)
    options = {"quantizer": "div", "dqt": choice.quarters / 4, "dead_zone": choice.dead_zone}
    files = [actcodec.compress(x, "jpeg-act", coder=coder, **options, **choice.scaling._asdict()) for coder in CODERS]
    assert error(x, actcodec.decompress(files[0])) <= limit * SAME**2
    return [c.nbytes for c in files]


def comet(x, bound):
    """Bytes of COMET's file by the largest error, and what comes back."""
    c = actcodec.compress(x, "comet", error_bound=bound)
    return c.nbytes, actcodec.decompress(c)


def others(x, limit, error=relative_error):
    """Bytes of COMET, SZ3, zfp and MX."""
    ours = smallest(x, "comet", [{"l2": limit}], limit) if error is relative_error else (
        best(x, [partial(comet, x)], error, limit))
    return (ours, best(x, ways(x), error, limit),
            best(x, [partial(zfp, x, shape=shape) for shape in views(x)], error, limit),
            smallest(x, "mx", [{"format": name} for name in FORMATS], limit, error))


def rows():
    """Those of the first table: words, and ratios."""
    tensors = sample("conv")
    before = sum(x.nbytes for x in tensors)
    for name in (*TABLES, MXFP8):
        limits = [relative_error(x, actcodec.decompress(compressed(x, name))) for x in tensors]
        each = list(zip(tensors, limits, strict=True))
        beside = [before / sum(sizes) for sizes in zip(*(others(x, limit) for x, limit in each), strict=True)]
        div = [] if name == MXFP8 else [[divided(x, limit, *way) for x, limit in each] for way in (*PAPERS, ALL)]
        for at, coder in enumerate(CODERS):
            if name == MXFP8:
                ours = [sum(smallest(x, "sfpr-zvc", [{"coder": coder}], limit) for x, limit in each)]
            else:
                ours = [sum(compressed(x, name, coder).nbytes for x in tensors)]
                ours += [sum(sizes[at] for sizes in way) for way in div]
            ratios = [before / size for size in ours]
            yield [name, coder, *ratios, *["-"] * (2 + len(PAPERS) - len(ratios)), *beside]


def channel_rows():
    """Those of the second table."""
    tensors = sample("conv")
    before = sum(x.nbytes for x in tensors)
    for name in TABLES:
        limits = [channel_error(x, actcodec.decompress(compressed(x, name))) for x in tensors]
        sizes = []
        for x, limit in zip(tensors, limits, strict=True):
            div = [divided(x, limit, *way, channel_error)[-1] for way in (PAPERS[0], PAPERS[1], ALL)]
            sizes.append([compressed(x, name, "rice").nbytes, *div, *others(x, limit, channel_error)])
        yield [name, *(before / sum(size) for size in zip(*sizes, strict=True))]


if __name__ == "__main__":
    measured.record("quantizers", rows())
    measured.record("channels", channel_rows())
