"""Bitpack in torch, bit-equal to ``golden/a2dtwp`` (A2DTWP, section III): the upper bytes of each value."""

from typing import Any

import torch

from actcodec import codecs
from actcodec.torch.packed import Packed

__all__ = ["Bitpack"]

WORD = 4  # bytes of a value


class Bitpack:
    """One of the modes ``bitpack-*``; ``compile`` has no effect. Raises ValueError for an illegal option."""

    waits = False

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self._bytes = self.mode.parameter["roundto"]

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        data = x.view(-1).view(torch.uint8).view(-1, WORD)[:, WORD - self._bytes:].clone(
            memory_format=torch.contiguous_format)
        return Packed(self.mode.name, tuple(x.shape), data, data.nbytes, 0, data.nbytes)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The float32 tensor of a :class:`~actcodec.torch.packed.Packed`."""
        data = packed.data
        x = torch.zeros(len(data), WORD, dtype=torch.uint8, device=data.device)
        x[:, WORD - self._bytes:] = data
        return x.view(torch.float32).view(packed.shape)
