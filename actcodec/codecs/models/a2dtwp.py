"""A2DTWP's Bitpack: ``golden/a2dtwp``."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models.flat import Flat
from actcodec.golden.a2dtwp import bitpack

__all__ = ["Bitpack"]


class Bitpack(Flat):
    @property
    def roundto(self) -> int:
        return self.mode.parameter["roundto"]

    def compress(self, x: np.ndarray, cdus: int = 1, dtype: str = "float32", **options: Any) -> Compressed:
        return Compressed(self.mode.name, x.shape, self.content(x).tobytes(), {"cdus": cdus})

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return self.words(np.frombuffer(c.payload, np.uint8), c.length).reshape(c.shape)

    def content(self, words: NDArray[np.float32]) -> NDArray[np.uint8]:
        return bitpack.pack(words, self.roundto)

    def words(self, content: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
        return bitpack.unpack(content, self.roundto, count)

    def size(self, shape: Sequence[int], dtype: str = "float32", **options: Any) -> int:
        return self.roundto * math.prod(shape)
