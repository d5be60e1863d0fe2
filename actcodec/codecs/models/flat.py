"""Modes that see a tensor as a flat array in memory order."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.codec import Codec, LaneCodec, LanePayload
from actcodec.codecs.compressed import Compressed
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream

__all__ = ["Flat", "view"]

WIDEST = 2**24 - 8  # values of a row that a lane can have


def view(shape: Sequence[int]) -> blocks.View:
    """The tensor as one row, or, where that makes no difference, as rows of one sector. Raises ValueError where neither
    fits a descriptor."""
    size = math.prod(shape)
    if size % blocks.LANES == 0:
        return blocks.View(size // blocks.LANES, blocks.LANES, 1, 1, False)
    if size > WIDEST:
        raise ValueError(f"shape {tuple(shape)} has {size} values, in a lane legal are multiples of {blocks.LANES}, "
                         f"and up to {WIDEST}")
    return blocks.View(1, size, 1, 1, False)


class Flat(LaneCodec):
    """A mode whose last stage keeps the top bits of words, as many of each.

    A file has the values one after another, whatever the number of CDUs, without what fills up the last block of the
    lanes' payload. Its bytes are those of :meth:`content`.
    """

    def content(self, words: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The bytes in a file, uint8, of words that have the values of interest in their top bits."""
        raise NotImplementedError

    def words(self, content: NDArray[np.uint8], count: int) -> NDArray[np.float32]:
        """The reverse of :meth:`content`, for ``count`` values."""
        raise NotImplementedError

    def view(self, shape: Sequence[int]) -> blocks.View:
        return view(shape)

    def pack(self, c: LanePayload, **options: Any) -> Compressed:
        sizes = np.full(c.blocks, self.path.coder.shortest)
        payload, _ = stream.deinterleave(np.frombuffer(c.payload, np.uint8), sizes, c.cdus)
        words = self.path.coder.decode(payload, sizes, (-1,), {})[: math.prod(c.shape)]
        return Compressed(self.mode.name, c.shape, self.content(words).tobytes(), {"cdus": c.cdus})

    def unpack(self, compressed: Compressed) -> LanePayload:
        c = compressed
        words = np.zeros(self.view(c.shape).blocks(False) * blocks.BLOCK, np.float32)
        words[: c.length] = self.words(np.frombuffer(c.payload, np.uint8), c.length)
        content, sizes = self.path.coder.encode(words, {})
        payload, _ = stream.interleave(content, sizes, c.cdus)
        return LanePayload(self.mode, c.shape, payload.tobytes(), None, {}, c.cdus)

    check, saturated = Codec.check, Codec.saturated  # neither needs what passes the stream
