"""A2DTWP's Bitpack: ``golden/a2dtwp``. A tensor is a flat array in memory order, without padding."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed
from actcodec.golden.a2dtwp import bitpack

__all__ = ["Bitpack"]


class Bitpack(Codec):
    @property
    def roundto(self) -> int:
        return self.mode.parameter["roundto"]

    def compress(self, x: np.ndarray, cdus: int = 1, **options: Any) -> Compressed:
        return Compressed(self.mode.name, x.shape, bitpack.pack(x, self.roundto).tobytes())

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return bitpack.unpack(np.frombuffer(c.payload, np.uint8), self.roundto, c.length).reshape(c.shape)

    def size(self, shape: Sequence[int], **options: Any) -> int:
        return self.roundto * math.prod(shape)
