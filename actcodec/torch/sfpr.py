"""SFPR of torch tensors, bit-equal to ``golden/jpegact/sfpr.py`` (JPEG-ACT, section III-B)."""

from functools import cache
from typing import Any, NamedTuple

import torch

from actcodec.golden.jpegact import sfpr
from actcodec.torch import kernels, packing

__all__ = ["Planes", "Scales", "dequantize", "magnitudes", "planes", "quantize", "scales"]

TINY = torch.finfo(torch.float32).tiny
PLAIN = 2.0**125  # with a scale up to this, a subnormal value is below half a step


class Planes(NamedTuple):
    """A tensor as ``rows`` of ``length`` values that share a scale: row i has scale i % ``channels``."""

    rows: int
    length: int
    channels: int


class Scales(NamedTuple):
    """The scales of a tensor, float32 [channels]: k compresses, r decompresses. ``plain``: no NaN, Inf or subnormal
    number can matter, as far as operations of PyTorch on the CPU know; kernels need not know."""

    k: torch.Tensor
    r: torch.Tensor
    plain: bool


def planes(view: Any) -> Any:
    """:class:`Planes` of a tensor seen as golden's ``view``."""
    if view.channels == 1:
        return Planes(1, view.rows * view.width, 1)
    return Planes(view.rows // view.height, view.height * view.width, view.channels)


def magnitudes(x: torch.Tensor) -> torch.Tensor:
    """The largest finite magnitude of each row."""
    magnitude = x.abs()
    return torch.where(magnitude < torch.inf, magnitude, 0).amax(1)


@cache
def _bounds(scaling, cap, clip):
    """Where the largest magnitude lands, how many times as large as the smallest scale others may be, the smallest
    magnitude that matters, and the smallest scale."""
    peak = sfpr.peak(clip)
    return float(peak), float(sfpr.limit(scaling, cap)), float(peak / sfpr.LARGEST), float(sfpr.SMALLEST)


def scales(x: torch.Tensor, view: Any, magnitudes: Any = magnitudes, scaling: str = "channel",
           cap: float | None = None, clip: float = sfpr.S) -> Any:
    """The :class:`Scales` of a contiguous float32 tensor. ``magnitudes`` is that function, or the same compiled; the
    other arguments are golden's."""
    shape, plain = planes(view), False
    peak, limit, floor, smallest = _bounds(scaling, cap, clip)
    if native := kernels.of(__name__, x):
        k, r = torch.empty(2, shape.channels, device=x.device).unbind()
        native.scales(x, *shape, peak, limit, floor, smallest, k, r)
        return Scales(k, r, plain)
    x = x.view(shape.rows, shape.length)
    if not x.is_cuda:
        low, high = torch.aminmax(x, dim=1)
        largest = torch.maximum(high, -low)  # NaN, if there is one
        plain = bool(torch.isfinite(largest).all())
    if not plain:
        largest = magnitudes(x)
    largest = largest.view(-1, shape.channels).amax(0)
    largest = torch.where(largest < TINY, 0, largest)
    peak = torch.full_like(largest, peak)
    most = torch.maximum(largest, largest.max() / torch.full_like(largest, limit))
    k = torch.div(peak, most.clamp(min=floor)).bfloat16().float()
    k = torch.where(largest == 0, 0, k.clamp(min=smallest))
    r = torch.where(k == 0, 0, torch.div(torch.ones_like(k), k))
    return Scales(k, r, plain and bool((k <= PLAIN).all()))


def quantize(x: torch.Tensor, view: Any, scale: Any, signs: bool = False) -> torch.Tensor:
    """Flat int8 values of a contiguous float32 tensor and its scales. The product of 24 and 8 bits is exact in float64,
    so it is rounded only once."""
    shape = planes(view)
    if native := kernels.of(__name__, x):
        y = torch.empty(x.numel(), dtype=torch.int8, device=x.device)
        native.quantize(x, *shape, scale.k, signs, y)
        return y
    x, k = x.view(shape.rows, shape.length), scale.k.double().repeat(shape.rows // shape.channels)[:, None]
    y = torch.empty(x.shape, dtype=torch.int8, device=x.device)
    for rows, columns in _pieces(x):
        piece = x[rows, columns]
        value = piece if scale.plain else torch.where((piece.abs() >= TINY) & (piece.abs() < torch.inf), piece, 0)
        rounded = value.double().mul_(k[rows]).round_()
        if signs:
            rounded = torch.where((rounded == 0) & (value > 0), 1, rounded)
        if not scale.plain:
            rounded = torch.where(piece.isinf(), 128 * piece.sign(), rounded)
        y[rows, columns] = rounded.clamp_(-128, 127)
    return y.view(-1)


def dequantize(y: torch.Tensor, view: Any, scale: Any, dtype: torch.dtype) -> torch.Tensor:
    """Flat values of flat int8 ones; other than float32 by kernels alone. Each product is rounded to float32, once."""
    shape = planes(view)
    if native := kernels.of(__name__, y, dtype=dtype):
        x = torch.empty(y.numel(), dtype=dtype, device=y.device)
        native.dequantize(y, *shape, scale.r, x)
        return x
    x = torch.mul(y.view(shape.rows, shape.length), scale.r.repeat(shape.rows // shape.channels)[:, None])
    return (x if scale.plain else x.add_(0.0)).view(-1)  # -128 times 0 would be -0.0


def _pieces(x):
    """Slices of rows and columns, of about :func:`~actcodec.torch.packing.part_of` values."""
    rows, columns = x.shape
    wide = min(columns, packing.part_of(x))
    tall = max(packing.part_of(x) // wide, 1)
    for i in range(0, rows, tall):
        for j in range(0, columns, wide):
            yield slice(i, i + tall), slice(j, j + wide)
