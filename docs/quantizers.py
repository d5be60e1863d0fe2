"""Measures the table of ``docs/ratios.md`` of quantizer ``div`` beside ``sh`` and SZ3, at equal errors.

``python -m docs.quantizers`` records it as ``quantizers`` of ``docs/records/measured.json``, from which
:mod:`docs.measured` writes the table. It needs the package ``pysz``.
"""

import actcodec
from actcodec.golden.jpegact import steps
from actcodec.metrics import relative_error
from docs import measured
from docs.beside import best, ways
from docs.ratios import sample

__all__ = ["rows"]

CODERS = ("zvc", "nibble", "rice")


def divided(x, coder, zone, limit):
    """Bytes of the file with the largest step whose error is within the limit."""
    low, high = 8, steps.MOST + 1  # quarters
    while high - low > 1:
        middle = (low + high) // 2
        c = actcodec.compress(x, "jpeg-act", coder=coder, quantizer="div", dqt=middle / 4, dead_zone=zone)
        low, high = (middle, high) if relative_error(x, actcodec.decompress(c)) <= limit else (low, middle)
    c = actcodec.compress(x, "jpeg-act", coder=coder, quantizer="div", dqt=low / 4, dead_zone=zone)
    assert relative_error(x, actcodec.decompress(c)) <= limit
    return c.nbytes


def rows():
    """Those of the table: words, and ratios."""
    tensors = sample("conv")
    before = sum(x.nbytes for x in tensors)
    for table in ("optL", "optH", "jpeg60"):
        limits = [relative_error(x, actcodec.decompress(actcodec.compress(x, "jpeg-act", dqt=table))) for x in tensors]
        other = sum(best(x, ways(x), relative_error, limit) for x, limit in zip(tensors, limits, strict=True))
        for coder in CODERS:
            sizes = [sum(actcodec.compress(x, "jpeg-act", dqt=table, coder=coder).nbytes for x in tensors)]
            sizes += [sum(divided(x, coder, zone, limit) for x, limit in zip(tensors, limits, strict=True))
                      for zone in steps.DEAD_ZONES]
            yield [table, coder, *(before / size for size in (*sizes, other))]


if __name__ == "__main__":
    measured.record("quantizers", rows())
