"""What ends the modes of Bitpack and of DPR (see `golden.jpegact.path`): the top bits of words."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.a2dtwp import bitpack
from actcodec.golden.jpegact.path import Fixed
from actcodec.golden.offload.blocks import BLOCK


class Top(Fixed):
    """So many ``bits`` of each word, a float32, one after the other from the lowest bit of a byte on. In words that
    come back the others are zero."""

    bits: ClassVar[int]

    def bytes(self, x: NDArray[np.float32]) -> NDArray[np.uint8]:
        return np.ascontiguousarray(bitpack.pack(x, self.bits // 8))

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> NDArray[np.float32]:
        return bitpack.unpack(payload, self.bits // 8, len(sizes) * BLOCK).reshape(shape)


class Top8(Top):
    bits, shortest = 8, 64


class Top10(Top):
    """Four words to five bytes."""

    bits, shortest = 10, 80
    places = np.arange(0, 40, 10, dtype=np.uint64)

    def bytes(self, x: NDArray[np.float32]) -> NDArray[np.uint8]:
        fives = (x.view(np.uint32) >> 22).reshape(-1, 4).astype(np.uint64) << self.places
        return np.bitwise_or.reduce(fives, axis=1).astype("<u8").view(np.uint8).reshape(-1, 8)[:, :5].reshape(-1)

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> NDArray[np.float32]:
        fives = np.pad(payload.reshape(-1, 5), ((0, 0), (0, 3))).view("<u8")
        return ((fives >> self.places).astype(np.uint32) << 22).view(np.float32).reshape(shape)


class Top16(Top):
    bits, shortest = 16, 128


class Top24(Top):
    bits, shortest = 24, 192
