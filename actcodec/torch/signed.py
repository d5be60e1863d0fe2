"""Values of a ReLU with exact signs, for tensors whose users are unknown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from actcodec.torch.packed import Packed

__all__ = ["Signed"]


class Signed:
    """A lossy ``codec``, and ``bits``, a codec of one bit per value, for tensors without a negative value: exactly the
    values that were above 0 are above 0 after decoding."""

    def __init__(self, codec: Any, bits: Any) -> None:
        self._codec, self._bits = codec, bits
        self.mode, self.options, self.waits = codec.mode, codec.options, codec.waits
        self.mask = bits.mode.name

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        return all(hasattr(one, "reads") and one.reads(x) for one in (self._codec, self._bits))

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        one, two = self._codec.encode(x), self._bits.encode(x)
        rest = [replace(each, data=None) for each in (one, two)]  # apart, as only data move to the host
        return Packed(one.mode, one.shape, (one.data, two.data, rest), one.payload + two.payload, one.side + two.side,
                      one.held + two.held, one.dtype)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        *both, rest = packed.data
        values, bits = (codec.decode(replace(one, data=data)) for codec, one, data
                        in zip((self._codec, self._bits), rest, both, strict=True))
        return torch.where(bits > 0, values.clamp(min=torch.finfo(values.dtype).tiny), 0)
