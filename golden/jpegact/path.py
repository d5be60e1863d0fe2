"""The stages of JPEG-ACT's modes, a model for each function of ``rtl/jpegact/path.py``; `cdu` composes them.

A stage works on consecutive blocks: int8 or float32 [n, 64], or [n, 8, 8] in a mode of tiles. `settings` are the
numbers that hardware has in its registers, by name. `Stage` and `Coder` say what a stage can define.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from actcodec.golden.gist import binarize
from actcodec.golden.jpegact import dct, div, nibble, quantize, rice, rle, sfpr, steps, zvc
from actcodec.golden.offload.blocks import BLOCK, Payload


class Stage:
    """Passes blocks on as they are."""

    rows: DTypeLike = np.float32  # what a tensor has, if the stage comes first
    dtype: DTypeLike | None = None  # of the values that it gives, if it is another one

    def settings(self, **options: Any) -> dict[str, int]:
        """The settings that follow from a mode's options alone."""
        return {}

    def forward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return x

    def backward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return x


class Coder(Stage):
    """Ends a path: it makes bytes of blocks."""

    shortest = 1  # bytes of a block

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Payload (uint8) of blocks, one after another, and the bytes of each."""
        raise NotImplementedError

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        """The blocks of a payload, as an array of ``shape``. Raises ValueError for a malformed block."""
        raise NotImplementedError

    def sizes(self, payload: bytes, n: int) -> NDArray[np.int64]:
        """Bytes of each of the n blocks of a payload. Raises ValueError where they do not add up to its length."""
        raise NotImplementedError


class Sfpr(Stage):
    """Rows, each with a scale, become int8; it comes first."""

    dtype = np.int8
    quantize = staticmethod(sfpr.quantize)
    dequantize = staticmethod(sfpr.dequantize)


class Codes(Stage):
    """int8 that SFPR has made elsewhere, in its place."""

    rows = dtype = np.int8


class Halves(Stage):
    """Words of 16 bits as they are."""

    rows = dtype = np.uint16


class Align(Stage):
    """The order of sectors in memory, which an array of blocks does not have."""


class Whole(Stage):
    """int8 past SH's rounding, which finds no fraction."""


class Dct(Stage):
    """DCT and iDCT."""

    def forward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return dct.forward(x)

    def backward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return dct.inverse(x)


class Shift(Stage):
    """SH; the table of shifts is called ``table``."""

    def settings(self, dqt: ArrayLike | str = "optL", **options: Any) -> dict[str, int]:
        return {"table": quantize.word(quantize.shifts(quantize.table(dqt) if isinstance(dqt, str) else dqt))}

    def forward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return quantize.shift(x.reshape(-1, BLOCK), quantize.of_word(settings["table"]).reshape(-1)).reshape(x.shape)

    def backward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return quantize.unshift(x, quantize.of_word(settings["table"]))


class Steps(Stage):
    """DIV in quarters, with a dead zone."""

    def settings(self, dqt: ArrayLike | str = "optL", dead_zone: int = 0, **options: Any) -> dict[str, int]:
        steps.check(dead_zone)
        quarters = steps.steps(steps.table(dqt) if isinstance(dqt, str) else dqt)
        return {"steps": steps.word(quarters), "dead_zone": dead_zone}

    def forward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        quarters = steps.of_word(settings["steps"]).reshape(-1)
        return steps.quantize(x.reshape(-1, BLOCK), quarters, settings["dead_zone"]).reshape(x.shape)

    def backward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return steps.dequantize(x, steps.of_word(settings["steps"]))


class Divide(Stage):
    """DIV."""

    def settings(self, dqt: ArrayLike | str = "jpeg80", **options: Any) -> dict[str, int]:
        return {"divisors": div.Table(div.table(dqt) if isinstance(dqt, str) else np.asarray(dqt)).word}

    def forward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return div.quantize(x, div.Table.of(settings["divisors"]).divisors)

    def backward(self, x: np.ndarray, settings: Mapping[str, int]) -> np.ndarray:
        return div.dequantize(x, div.Table.of(settings["divisors"]).divisors)


class Fixed(Coder):
    """Blocks that all have the same size."""

    def bytes(self, x: np.ndarray) -> NDArray[np.uint8]:
        """The payload of blocks."""
        raise NotImplementedError

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        payload = self.bytes(x)
        return payload, self.sizes(payload, x.size // BLOCK)

    def sizes(self, payload: Payload, n: int) -> NDArray[np.int64]:
        if len(payload) != n * self.shortest:
            raise ValueError(f"payload has {len(payload)} bytes, {n} blocks have {n * self.shortest}")
        return np.full(n, self.shortest)


class Plain(Fixed):
    """What ends a path without a coder: values of ``dtype`` as they are."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.item = np.dtype(dtype)
        self.shortest = BLOCK * self.item.itemsize

    def bytes(self, x: np.ndarray) -> NDArray[np.uint8]:
        return x.reshape(-1).view(np.uint8)

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        return payload.view(self.item).reshape(shape)


class Binarize(Fixed):
    """BRC: 1.0 or +0.0 comes back."""

    shortest = BLOCK // 8

    def bytes(self, x: np.ndarray) -> NDArray[np.uint8]:
        return binarize.forward(x)

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        return np.unpackbits(payload, bitorder="little").astype(np.float32).reshape(shape)


class Zvc(Coder):
    """ZVC of ``item``, for values of ``restored``."""

    shortest = zvc.MASK
    item: np.dtype
    restored: DTypeLike

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return zvc.encode(x.view(self.item).reshape(-1, BLOCK))

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        return zvc.expand(payload, sizes, self.item).view(self.restored).reshape(shape)

    def sizes(self, payload: bytes, n: int) -> NDArray[np.int64]:
        return zvc.sizes(payload, n, self.item.itemsize)


class Zvc8(Zvc):
    item, restored = np.dtype(np.uint8), np.dtype(np.int8)


class Zvc32(Zvc):
    """cDMA+."""

    item, restored = np.dtype(np.uint32), np.dtype(np.float32)


class Zvc16(Zvc):
    """cDMA+ of words of 16 bits."""

    rows = restored = np.uint16
    item = np.dtype(np.uint16)


class Rle(Coder):
    """RLE and RLD."""

    shortest = 2

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return rle.encode(x)

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        return rle.decode(payload, len(sizes)).reshape(shape)

    def sizes(self, payload: bytes, n: int) -> NDArray[np.int64]:
        return rle.sizes(payload, n)


class Planes(Coder):
    """A ``code`` in bit planes, with a table under the name ``table``. Tiles pass it column by column, as they leave
    the DCT."""

    code: Any  # the module
    table: str

    def fit(self, x: np.ndarray, settings: Mapping[str, int]) -> dict[str, int]:
        """The table under which these blocks are smallest. Values that are no coefficients may have no sign: they get
        a straight table where that is smaller."""
        if x.ndim == 3:
            return {self.table: self.code.fit(self._lines(x)).word}
        tables = [self.code.fit(x, straight) for straight in (False, True)]
        return {self.table: min(tables, key=lambda table: int(self.code.measure(x, table).sum())).word}

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        return self.code.encode(self._lines(x), self.table_of(settings))

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        x = self.code.decode(payload, len(sizes), self.table_of(settings)).reshape(shape)
        return x.swapaxes(1, 2) if x.ndim == 3 else x

    def sizes(self, payload: bytes, n: int) -> NDArray[np.int64]:
        return self.code.sizes(payload, n)

    def table_of(self, settings: Mapping[str, int]) -> Any:
        """The table in the settings."""
        return self.code.Table.of(settings[self.table])

    @staticmethod
    def _lines(x: np.ndarray) -> np.ndarray:
        return x.swapaxes(1, 2).reshape(-1, BLOCK) if x.ndim == 3 else x


class Nibble(Planes):
    code, table = nibble, "nibble_table"


class Rice(Planes):
    code, table = rice, "rice_table"
