"""The stages of JPEG-ACT's modes, a model for each function of ``rtl/jpegact/path.py``; `cdu` composes them.

A stage works on consecutive blocks: int8 or float32 [n, 64], or [n, 8, 8] in a mode of tiles. `settings` are the
numbers that hardware has in its registers, by name. `Stage` and `Coder` say what a stage can define.
"""

import numpy as np

from actcodec.golden.gist import binarize
from actcodec.golden.jpegact import dct, div, nibble, quantize, rice, rle, sfpr, steps, zvc
from actcodec.golden.offload.blocks import BLOCK


class Stage:
    """Passes blocks on as they are."""

    dtype = None  # of the values that it gives, if it is another one

    def settings(self, **options):
        """The settings that follow from a mode's options alone."""
        return {}

    def forward(self, x, settings):
        return x

    def backward(self, x, settings):
        return x


class Coder(Stage):
    """Ends a path: it makes bytes of blocks."""

    shortest = 1  # bytes of a block

    def encode(self, x, settings):
        """Payload (uint8) of blocks, one after another, and the bytes of each."""
        raise NotImplementedError

    def decode(self, payload, sizes, shape, settings):
        """The blocks of a payload, as an array of ``shape``. Raises ValueError for a malformed block."""
        raise NotImplementedError

    def sizes(self, payload, n):
        """Bytes of each of the n blocks of a payload. Raises ValueError where they do not add up to its length."""
        raise NotImplementedError


class Sfpr(Stage):
    """Rows, each with a scale, become int8; it comes first."""

    dtype = np.int8
    quantize = staticmethod(sfpr.quantize)
    dequantize = staticmethod(sfpr.dequantize)


class Align(Stage):
    """The order of sectors in memory, which an array of blocks does not have."""


class Whole(Stage):
    """int8 past SH's rounding, which finds no fraction."""


class Dct(Stage):
    """DCT and iDCT."""

    def forward(self, x, settings):
        return dct.forward(x)

    def backward(self, x, settings):
        return dct.inverse(x)


class Shift(Stage):
    """SH; the table of shifts is called ``table``."""

    def settings(self, dqt="optL", **options):
        return {"table": quantize.word(quantize.shifts(quantize.table(dqt) if isinstance(dqt, str) else dqt))}

    def forward(self, x, settings):
        return quantize.shift(x.reshape(-1, BLOCK), quantize.of_word(settings["table"]).reshape(-1)).reshape(x.shape)

    def backward(self, x, settings):
        return quantize.unshift(x, quantize.of_word(settings["table"]))


class Steps(Stage):
    """DIV in quarters, with a dead zone."""

    def settings(self, dqt="optL", dead_zone=0, **options):
        steps.check(dead_zone)
        quarters = steps.steps(steps.table(dqt) if isinstance(dqt, str) else dqt)
        return {"steps": steps.word(quarters), "dead_zone": dead_zone}

    def forward(self, x, settings):
        quarters = steps.of_word(settings["steps"]).reshape(-1)
        return steps.quantize(x.reshape(-1, BLOCK), quarters, settings["dead_zone"]).reshape(x.shape)

    def backward(self, x, settings):
        return steps.dequantize(x, steps.of_word(settings["steps"]))


class Divide(Stage):
    """DIV."""

    def settings(self, dqt="jpeg80", **options):
        return {"divisors": div.Table(div.table(dqt) if isinstance(dqt, str) else dqt).word}

    def forward(self, x, settings):
        return div.quantize(x, div.Table.of(settings["divisors"]).divisors)

    def backward(self, x, settings):
        return div.dequantize(x, div.Table.of(settings["divisors"]).divisors)


class Fixed(Coder):
    """Blocks that all have the same size."""

    def encode(self, x, settings):
        payload = self.bytes(x)
        return payload, self.sizes(payload, x.size // BLOCK)

    def sizes(self, payload, n):
        if len(payload) != n * self.shortest:
            raise ValueError(f"payload has {len(payload)} bytes, {n} blocks have {n * self.shortest}")
        return np.full(n, self.shortest)


class Plain(Fixed):
    """What ends a path without a coder: values of ``dtype`` as they are."""

    def __init__(self, dtype):
        self.item = np.dtype(dtype)
        self.shortest = BLOCK * self.item.itemsize

    def bytes(self, x):
        return x.reshape(-1).view(np.uint8)

    def decode(self, payload, sizes, shape, settings):
        return payload.view(self.item).reshape(shape)


class Binarize(Fixed):
    """BRC: 1.0 or +0.0 comes back."""

    shortest = BLOCK // 8

    def bytes(self, x):
        return binarize.forward(x)

    def decode(self, payload, sizes, shape, settings):
        return np.unpackbits(payload, bitorder="little").astype(np.float32).reshape(shape)


class Zvc(Coder):
    """ZVC of ``item``, for values of ``restored``."""

    shortest = zvc.MASK

    def encode(self, x, settings):
        return zvc.encode(x.view(self.item).reshape(-1, BLOCK))

    def decode(self, payload, sizes, shape, settings):
        return zvc.expand(payload, sizes, self.item).view(self.restored).reshape(shape)

    def sizes(self, payload, n):
        return zvc.sizes(payload, n, self.item.itemsize)


class Zvc8(Zvc):
    item, restored = np.dtype(np.uint8), np.int8


class Zvc32(Zvc):
    """cDMA+."""

    item, restored = np.dtype(np.uint32), np.float32


class Rle(Coder):
    """RLE and RLD."""

    shortest = 2

    def encode(self, x, settings):
        return rle.encode(x)

    def decode(self, payload, sizes, shape, settings):
        return rle.decode(payload, len(sizes)).reshape(shape)

    def sizes(self, payload, n):
        return rle.sizes(payload, n)


class Planes(Coder):
    """A ``code`` in bit planes, with a table under the name ``table``. Tiles pass it column by column, as they leave
    the DCT."""

    def fit(self, x, settings):
        """The table under which these blocks are smallest. Values that are no coefficients may have no sign: they get
        a straight table where that is smaller."""
        if x.ndim == 3:
            return {self.table: self.code.fit(self._lines(x)).word}
        tables = [self.code.fit(x, straight) for straight in (False, True)]
        return {self.table: min(tables, key=lambda table: int(self.code.measure(x, table).sum())).word}

    def encode(self, x, settings):
        return self.code.encode(self._lines(x), self._table(settings))

    def decode(self, payload, sizes, shape, settings):
        x = self.code.decode(payload, len(sizes), self._table(settings)).reshape(shape)
        return x.swapaxes(1, 2) if x.ndim == 3 else x

    def sizes(self, payload, n):
        return self.code.sizes(payload, n)

    def _table(self, settings):
        return self.code.Table.of(settings[self.table])

    @staticmethod
    def _lines(x):
        return x.swapaxes(1, 2).reshape(-1, BLOCK) if x.ndim == 3 else x


class Nibble(Planes):
    code, table = nibble, "nibble_table"


class Rice(Planes):
    code, table = rice, "rice_table"
