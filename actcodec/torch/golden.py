"""Any mode of the registry for torch tensors: its torch version, or its NumPy model, which makes the real payload,
but slowly.

A codec has ``mode``, ``options``, ``encode``, ``decode``, and ``waits``: whether the CPU has to see values, and so
waits for a GPU.
"""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from actcodec import codecs, engines
from actcodec.codecs.compressed import view
from actcodec.torch import kernels
from actcodec.torch.own import Codec, Own
from actcodec.torch.packed import Packed

__all__ = ["ENGINES", "Golden", "codec"]

ENGINES = ("torch", "compiled", "golden")

_said: set[str] = set()


class Golden:
    """The NumPy model of a mode, with the options of ``actcodec.compress``. Raises ValueError."""

    waits = True

    def __init__(self, mode: str, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` moves the words of a tensor of 16 bits."""
        return self.mode.halves is not None and x.dtype in kernels.HALVES

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions; bools are 0
        and 1."""
        if self.reads(x):  # without NumPy's bfloat16, which may not be installed
            words = x.cpu().view(torch.uint16).numpy().reshape(view(x.shape))
            compressed = self.mode.model.compress(words, dtype=str(x.dtype).partition(".")[2], **self.options)
        else:
            compressed, _ = engines.compress("golden", x.float().cpu().numpy(), self.mode.name, **self.options)
        size, side = compressed.payload_bytes, len(compressed.side)
        # memory of the tensor's device, from its allocator
        content = bytearray(compressed.payload + compressed.side)
        data = torch.frombuffer(content, dtype=torch.uint8).to(x.device, copy=True)
        rest = replace(compressed, payload=b"", side=b"")
        return Packed(compressed.mode, tuple(x.shape), (data, rest), size, side, size + side,
                      getattr(torch, compressed.dtype))

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        data, rest = packed.data
        content = data.cpu().numpy().tobytes()
        compressed = replace(rest, payload=content[:packed.payload], side=content[packed.payload:])
        values = codecs.find(compressed.mode).model.decompress(compressed.seen)
        x = torch.from_numpy(values if values.flags.writeable else values.copy()).to(data.device)
        return (x.view(getattr(torch, compressed.dtype)) if compressed.halves else x).view(packed.shape)


def codec(mode: str | Codec, options: Mapping[str, Any], engine: str = "torch") -> Any:
    """The codec of a mode: with the ``engine`` "torch", or "compiled", its torch version if it has one for these
    options; otherwise, with a warning that is given once, and with "golden", :class:`Golden`. A
    :class:`~actcodec.torch.Codec` is used as it is."""
    if isinstance(mode, Codec):
        return Own(mode)
    lane = codecs.find(mode).variant(codecs.find(mode).option_values(options))
    if engine != "golden" and lane.torch:
        return codecs.import_object(lane.torch)(mode, engine == "compiled", **options)
    if engine != "golden" and lane.name not in _said:
        _said.add(lane.name)
        warnings.warn(f"mode {lane.name} has no torch version: its NumPy model does the work, on the CPU",
                      stacklevel=3)
    return Golden(mode, **options)
