"""Gist's modes: ``golden/gist``. A tensor is a flat array in memory order, without padding."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models.flat import Flat
from actcodec.golden.gist import binarize, dpr, ssdc
from actcodec.golden.gist.ssdc import Encoded

__all__ = ["Dpr", "Ssdc", "of_bits"]


class Formatted(Codec):
    """Values in a format of DPR, or in full."""

    @property
    def form(self) -> Any:
        return self.mode.parameter["form"]

    def value_bytes(self, count: int) -> int:
        """Bytes that ``count`` values take: whole words of 32 bits."""
        return 4 * -(-count // (dpr.named(self.form).per_word if self.form else 1))

    def saturated(self, x: NDArray[np.float32], compressed: Compressed) -> int:
        """Values that are larger than any of the format."""
        return int(np.count_nonzero(np.abs(x) > np.float32(dpr.named(self.form).largest))) if self.form else 0


class Dpr(Formatted, Flat):
    """Floats of fewer bits."""

    def compress(self, x: np.ndarray, cdus: int = 1, dtype: str = "float32", **options: Any) -> Compressed:
        return Compressed(self.mode.name, x.shape, dpr.encode(x, self.form).tobytes(), {"cdus": cdus})

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return dpr.decode(np.frombuffer(c.payload, np.uint8), self.form, c.length).reshape(c.shape)

    def content(self, words: NDArray[np.float32]) -> NDArray[np.uint8]:
        return dpr.join(dpr.codes(words, self.form), self.form).view(np.uint8)

    def words(self, content: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
        return dpr.words(dpr.split(content.view("<u4"), self.form)[:count], self.form)

    def size(self, shape: Sequence[int], dtype: str = "float32", **options: Any) -> int:
        return self.value_bytes(math.prod(shape))


class Ssdc(Formatted):
    """Narrow CSR. The payload is values, columns, row counts; side information is the number of values, 8 bytes."""

    def compress(self, x: np.ndarray, cdus: int = 1, **options: Any) -> Compressed:
        payload, count = ssdc.payload(x, self.form)
        return Compressed(self.mode.name, x.shape, payload, side=struct.pack("<Q", count))

    def encoded(self, compressed: Compressed) -> Encoded:
        """Golden's arrays."""
        nonzero, content = struct.unpack("<Q", compressed.side)[0], np.frombuffer(compressed.payload, np.uint8)
        values = self.value_bytes(nonzero)
        columns = values + nonzero
        return ssdc.Encoded(content[:values] if self.form else content[:values].view("<f4"),
                            content[values:columns], content[columns:].view("<u2"))

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return ssdc.decode(self.encoded(c), c.length, self.form).reshape(c.shape)

    def side_bytes(self, shape: Sequence[int], **options: Any) -> int:
        return 8

    def check(self, compressed: Compressed, **more: Any) -> None:
        c = compressed
        nonzero = struct.unpack("<Q", c.side)[0]
        expected = self.value_bytes(nonzero) + nonzero + 2 * -(-c.length // ssdc.ROW)
        if c.payload_bytes != expected:
            raise ValueError(f"payload has {c.payload_bytes} bytes, mode {c.mode} needs {expected}")
        ssdc.places(self.encoded(c), c.length, self.form)


def of_bits(mode: Any, shape: Sequence[int], payload: bytes) -> Compressed:
    """The ``Compressed`` of a file of before, when Binarize was a mode of its own: the bits of a flat array. Raises
    ValueError for a payload of another size."""
    ones = np.broadcast_to(np.ones(1, np.float32), shape)  # no memory before the size is known to be right
    return mode.model.compress(binarize.backward(ones, np.frombuffer(payload, np.uint8)))
