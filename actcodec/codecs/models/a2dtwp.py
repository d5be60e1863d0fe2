"""A2DTWP's Bitpack: ``golden/a2dtwp``. A tensor is a flat array in memory order, without padding."""

import math

import numpy as np

from actcodec.codecs import find
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models.gist import check_bytes
from actcodec.golden.a2dtwp import bitpack

__all__ = ["check", "compress", "decompress", "size"]


def compress(x, mode, cdus=1):
    return Compressed(mode.name, x.shape, bitpack.pack(x, mode.parameter["roundto"]).tobytes())


def decompress(compressed):
    c = compressed
    roundto = find(c.mode).parameter["roundto"]
    return bitpack.unpack(np.frombuffer(c.payload, np.uint8), roundto, c.length).reshape(c.shape)


def size(shape, mode, **options):
    return mode.parameter["roundto"] * math.prod(shape)


def check(compressed):
    check_bytes(compressed, size(compressed.shape, find(compressed.mode)))
