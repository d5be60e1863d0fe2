"""The table of ``docs/ratios.md`` that says what a finer quantizer than SH would bring, at equal errors.

``python -m docs.quantizers`` writes it between the lines ``<!-- quantizers -->`` and ``<!-- /quantizers -->``. It needs
the package ``pysz``.
"""

from functools import partial

import numpy as np

import actcodec
from actcodec.golden.jpegact import cdu, dct, nibble, rice, sfpr
from actcodec.golden.offload import blocks
from actcodec.metrics import relative_error
from docs import marks
from docs.beside import most, sz3
from docs.ratios import DOCUMENT, sample

__all__ = ["DOCUMENT", "renewed"]

TABLES = ("optL", "optH")
CODERS = {"nibble": nibble, "rice": rice}
OFFSETS = (0.5, 0.46, 0.42, 0.38)
SIDE = {"nibble": 11, "rice": 8}  # bytes of a table


def quantized(coefficients, quarters, offset):
    """q of one step for all frequencies, in quarters; magnitudes are rounded up from 1 - ``offset`` on."""
    steps = np.abs(coefficients) / (quarters / 4 * 2**dct.FRACTION_BITS)
    return np.clip(np.sign(coefficients) * np.floor(steps + offset), -128, 127).astype(np.int8)


class Tensor:
    """A tensor up to the DCT, and back from the coefficients."""

    def __init__(self, x):
        self.x, self.view, self.scales = x, blocks.view(x.shape), sfpr.scales(x).k
        self.all = slice(0, self.view.blocks(True))
        rows = x.reshape(self.view.rows, self.view.width)
        values = cdu.gather(rows, self.view, True, self.scales, self.all)
        self.coefficients = dct.forward(values.reshape(-1, 8, 8))

    def error(self, q, quarters):
        """The relative error with these quantized coefficients."""
        values = dct.inverse(np.rint(q * (quarters / 4)).astype(np.int32))
        found = np.empty((self.view.rows, self.view.width), np.float32)
        cdu.scatter(values.reshape(-1), self.view, True, sfpr.reciprocal(self.scales), self.all, found)
        return relative_error(self.x, found.reshape(self.x.shape))

    def sizes(self, limit, offset):
        """Bytes by each coder with the largest step whose error is within the limit."""
        low, high = 4, 1020
        while high - low > 1:
            middle = (low + high) // 2
            q = quantized(self.coefficients, middle, offset)
            low, high = (middle, high) if self.error(q, middle) <= limit else (low, middle)
        q = quantized(self.coefficients, low, offset).swapaxes(1, 2).reshape(-1, blocks.BLOCK)
        return [int(coder.measure(q, coder.fit(q)).sum()) + SIDE[name] for name, coder in CODERS.items()]


def lines():
    """The lines of the table."""
    yield f"| errors of | coder | SH | {' | '.join(f'one step, {offset}' for offset in OFFSETS)} | SZ3, better of two |"
    yield "|---|---|---:|" + "---:|" * (len(OFFSETS) + 1)
    tensors = sample("conv")
    before = sum(x.nbytes for x in tensors)
    for table in TABLES:
        shifted, stepped, others = [], [], []
        for x in tensors:
            coded = [actcodec.compress(x, "jpeg-act", dqt=table, coder=coder) for coder in CODERS]
            limit, tensor = relative_error(x, actcodec.decompress(coded[0])), Tensor(x)
            shifted.append([len(one.payload) + SIDE[name] for name, one in zip(CODERS, coded, strict=True)])
            stepped.append([tensor.sizes(limit, offset) for offset in OFFSETS])
            others.append(min(most(x, partial(sz3, x, algorithm=algorithm, shape=shape), relative_error, limit)
                              for algorithm, shape in (("ALGO_INTERP_LORENZO", x.shape),
                                                       ("ALGO_LORENZO_REG", (x.size // x.shape[-1], x.shape[-1])))))
        for k, coder in enumerate(CODERS):
            cells = [np.sum(shifted, axis=0)[k], *np.sum(stepped, axis=0)[:, k], np.sum(others)]
            yield f"| {table} | {coder} | {' | '.join(f'{before / size:.2f}' for size in cells)} |"


def renewed(text):
    """The document with the table of today."""
    return marks.renewed(text, {"quantizers": lines})


if __name__ == "__main__":
    DOCUMENT.write_text(renewed(DOCUMENT.read_text()))
