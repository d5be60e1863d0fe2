"""What the backward pass of an operation needs of a tensor that it saves, if that is less than its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn import functional as F

from actcodec.torch import kernels, saved
from actcodec.torch.packed import Packed
from actcodec.torch.packing import part_of

__all__ = ["EXACT", "SHAPE", "TRUE", "Bit", "Exact", "Need", "Noise", "Places", "Shape"]

MOST_PLACES = 256  # of a window, to fit a byte
HALF = 16  # places that fit half a byte


class Need:
    """What is needed of a tensor."""

    def encode(self, codec: Any, tensor: torch.Tensor) -> Packed:
        """Encodes it; ``codec`` is that of a mode of one bit per value."""
        raise NotImplementedError

    def decode(self, codec: Any, packed: Packed) -> torch.Tensor:
        """A tensor of the same shape that serves in place of the one that was saved."""
        raise NotImplementedError


@dataclass(frozen=True)
class Bit(Need):
    """Whether values are above ``low`` and below ``high``, or equal to them if ``closed``. They are decoded as
    ``inside`` or ``outside``. ``nan``: whether NaN counts as inside."""

    low: float | None
    high: float | None
    inside: float
    outside: float
    closed: bool = False
    nan: bool = False

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """One bool for each value, by the same comparisons as PyTorch's backward passes."""
        if self.nan:
            return (x <= self.low).logical_not_()
        bits = [x >= self.low if self.closed else x > self.low] if self.low is not None else []
        bits += [x <= self.high if self.closed else x < self.high] if self.high is not None else []
        return bits[0].logical_and_(bits[1]) if len(bits) == 2 else bits[0]

    @property
    def sign(self) -> bool:
        """Whether it is x > 0."""
        return (self.low, self.high, self.closed) == (0, None, False)

    def encode(self, codec: Any, tensor: torch.Tensor) -> Packed:
        tensor, shape = tensor.detach(), saved.shape_of(tensor.shape)
        if (self.high is None and not self.closed and getattr(codec, "of_bits", False)
                and tensor.dtype in kernels.VALUES and tensor.is_contiguous() and not tensor.is_neg()):
            return codec.encode(tensor.view(shape), self.low, self.nan)  # in one pass
        return replace(codec.encode(self.of(tensor).contiguous().view(shape)), dtype=tensor.dtype)

    def decode(self, codec: Any, packed: Packed) -> torch.Tensor:
        bits = codec.decode(packed)
        if (self.inside, self.outside) == (1, 0):
            return bits
        return torch.full_like(bits, self.outside).masked_fill_(bits > 0, self.inside)


TRUE = Bit(0, None, 1, 0)
"""Of bools."""


@dataclass(frozen=True)
class Noise(Need):
    """Of a dropout: which values pass. In the tensor that it saves, all of these are equal, and the others 0."""

    def encode(self, codec: Any, tensor: torch.Tensor) -> Packed:
        packed = codec.encode((tensor != 0).contiguous().view(saved.shape_of(tensor.shape)))
        return replace(packed, data=(packed.data, tensor.amax()), side=packed.side + 4, held=packed.held + 4,
                       dtype=tensor.dtype)

    def decode(self, codec: Any, packed: Packed) -> torch.Tensor:
        data, scale = packed.data
        bits = codec.decode(replace(packed, data=data))
        return bits > 0 if scale.dtype is torch.bool else bits.to(scale.dtype).mul_(scale)


@dataclass(frozen=True)
class Shape(Need):
    """Nothing but the shape of the tensor."""


SHAPE = Shape()


@dataclass(frozen=True)
class Exact(Need):
    """Its values, bit for bit: of an operation whose backward pass compares with them or divides by them."""


EXACT = Exact()


@dataclass(frozen=True)
class Places(Need):
    """Of a max pooling: the place of each maximum in its window, in four bits (Gist, section IV-A), or in eight if a
    window has more than 16 places. ``size`` is that of the input's planes."""

    size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]

    mode = "places"

    @property
    def fits(self) -> bool:
        return self.kernel[0] * self.kernel[1] <= MOST_PLACES

    def _corners(self, shape: torch.Size, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        """Row and column, in the plane, of the first place of each window, which may be in the padding."""
        (rows, columns) = (torch.arange(n, device=device) * stride - padding for n, stride, padding
                           in zip(shape[-2:], self.stride, self.padding, strict=True))
        return rows[:, None], columns

    def encode(self, codec: Any, tensor: torch.Tensor) -> Packed:
        row, column = self._corners(tensor.shape, tensor.device)
        place = torch.empty(tensor.shape, dtype=torch.uint8, device=tensor.device)
        flat, flat_place = tensor.reshape(-1, *tensor.shape[-2:]), place.view(-1, *tensor.shape[-2:])
        planes = max(1, part_of(flat) // max(1, tensor.shape[-2] * tensor.shape[-1]))
        for i in range(0, len(flat), planes):
            index = flat[i:i + planes]
            y = (torch.div(index, self.size[1], rounding_mode="floor") - row) // self.dilation[0]
            x = (index % self.size[1] - column) // self.dilation[1]
            flat_place[i:i + planes] = y * self.kernel[1] + x
        data = place.view(-1)
        if self.kernel[0] * self.kernel[1] <= HALF:
            data = F.pad(data, (0, data.numel() % 2))
            data = data[::2] | data[1::2] << 4
        return Packed(self.mode, tuple(tensor.shape), data, data.numel(), 0, data.numel())

    def decode(self, codec: Any, packed: Packed) -> torch.Tensor:
        data, shape = packed.data, torch.Size(packed.shape)
        if self.kernel[0] * self.kernel[1] <= HALF:
            data = torch.stack([data & 15, data >> 4], 1).view(-1)[:shape.numel()]
        row, column = self._corners(shape, data.device)
        place = data.view(shape).long()
        y = torch.div(place, self.kernel[1], rounding_mode="floor") * self.dilation[0] + row
        return y.mul_(self.size[1]).add_(place.remainder_(self.kernel[1]).mul_(self.dilation[1]).add_(column))
