"""A2DTWP's Bitpack: ``golden/a2dtwp``. A tensor is a flat array in memory order, without padding."""

import math

import numpy as np

from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed
from actcodec.golden.a2dtwp import bitpack

__all__ = ["Bitpack"]


class Bitpack(Codec):
    @property
    def roundto(self):
        return self.mode.parameter["roundto"]

    def compress(self, x, cdus=1):
        return Compressed(self.mode.name, x.shape, bitpack.pack(x, self.roundto).tobytes())

    def decompress(self, compressed):
        c = compressed
        return bitpack.unpack(np.frombuffer(c.payload, np.uint8), self.roundto, c.length).reshape(c.shape)

    def size(self, shape, **options):
        return self.roundto * math.prod(shape)
