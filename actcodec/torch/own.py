"""User-defined codecs, for :func:`~actcodec.torch.rule`."""

from __future__ import annotations

from typing import Any

import torch

from actcodec import codecs
from actcodec.torch.packed import Packed

__all__ = ["Codec", "Own"]


class Codec:
    """Base class of user-defined codecs, which :func:`~actcodec.torch.rule` accepts in place of a mode.

    >>> import torch
    >>> import actcodec.torch as at
    >>> class Half(at.Codec):
    ...     def encode(self, x):
    ...         return x.half()
    ...     def decode(self, data):
    ...         return data.float()
    ...     def nbytes(self, data):
    ...         return data.nbytes
    >>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.Sigmoid(), torch.nn.Conv2d(16, 16, 3))
    >>> compress = at.Compress(model, rules=[at.rule(Half())])
    >>> with compress:
    ...     loss = model(torch.ones(4, 3, 34, 34)).mean()
    >>> loss.backward()
    >>> [(row.mode, row.ratio) for row in compress.report().rows]
    [('Half', 2.0)]

    Attributes
    ----------
    name : str
        Its name in reports; by default the name of the class.
    lossless : bool
        Whether values are restored bit for bit. If not, masks are kept separately, in a bit per value.
    waits : bool
        Whether the CPU has to see values, so that no CUDA graph can be captured.
    """

    name = ""
    lossless = False
    waits = False

    def encode(self, x: torch.Tensor) -> Any:
        """The data of a contiguous float32 tensor of 1 to 5 dimensions, of any type; not the tensor itself, which may
        change."""
        raise NotImplementedError

    def decode(self, data: Any) -> torch.Tensor:
        """The tensor from the data of :meth:`encode`, with as many values, on the same device. May be called again."""
        raise NotImplementedError

    def nbytes(self, data: Any) -> int:
        """Bytes of memory that the data take."""
        raise NotImplementedError


class OwnMode:
    """The attributes of a mode of the registry, for a :class:`Codec`."""

    tiled = False

    def __init__(self, name: str, lossy: bool) -> None:
        self.name, self.lossy = name, lossy

    def variant(self, options: dict[str, Any]) -> OwnMode:
        return self


class Own:
    """A :class:`Codec` with the interface of all others. Raises ValueError for the name of a mode of the registry."""

    def __init__(self, codec: Codec) -> None:
        name = codec.name or type(codec).__name__
        if name in codecs.MODES:
            raise ValueError(f"a codec is called {name!r}, which is a mode of the registry")
        self._codec, self.mode = codec, OwnMode(name, not codec.lossless)
        self.options: dict[str, Any] = {}
        self.waits = codec.waits

    def encode(self, x: torch.Tensor) -> Packed:
        data = self._codec.encode(x)
        size = self._codec.nbytes(data)
        return Packed(self.mode.name, tuple(x.shape), data, size, 0, size)

    def decode(self, packed: Packed) -> torch.Tensor:
        x = self._codec.decode(packed.data)
        if x.numel() != torch.Size(packed.shape).numel():
            raise ValueError(f"codec {self.mode.name} decodes {x.numel()} values of a tensor of shape {packed.shape}")
        return x
