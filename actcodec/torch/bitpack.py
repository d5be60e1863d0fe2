"""Bitpack in torch, bit-equal to ``golden/a2dtwp`` (A2DTWP, section III): the upper bytes of each value."""

from typing import Any

import torch

from actcodec import codecs
from actcodec.torch import kernels
from actcodec.torch.packed import Packed

__all__ = ["Bitpack"]

WORD = 4  # bytes of a value


class Bitpack:
    """One of the modes ``bitpack-*``; ``compile`` has no effect. Raises ValueError for an illegal option."""

    waits = False

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self._size = self.mode.parameter["roundto"]  # bytes

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        return kernels.read(__name__, x)

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        n = x.numel()
        data = torch.empty(n * self._size, dtype=torch.uint8, device=x.device)
        if native := kernels.of(__name__, x):
            native.encode(x, n, self._size, data)
        else:
            data.view(n, self._size).copy_(x.view(-1).view(torch.uint8).view(n, WORD)[:, WORD - self._size:])
        return Packed(self.mode.name, tuple(x.shape), data, data.nbytes, 0, data.nbytes, x.dtype)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        data, n = packed.data, packed.data.numel() // self._size
        if native := kernels.of(__name__, data, dtype=packed.dtype):
            x = torch.empty(packed.shape, dtype=packed.dtype, device=data.device)
            native.decode(data, n, self._size, x)
            return x
        x = torch.zeros(n, WORD, dtype=torch.uint8, device=data.device)
        x[:, WORD - self._size:] = data.view(n, self._size)
        return x.view(torch.float32).view(packed.shape)
