"""DIVISION in torch, in integers, bit-equal to ``golden/division`` (DIVISION, sections 4.1 and 4.2).

It keeps the codes, as many per byte as fit, and the level of each segment. The size of the payload follows from the
shape.
"""

from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch.nn import functional as F

from actcodec import codecs
from actcodec.codecs.compressed import view as model_shape
from actcodec.golden.division import codec, dither, parts, table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr as golden_sfpr
from actcodec.golden.offload.blocks import BLOCK, GROUP, LANES
from actcodec.torch import kernels, packing, sfpr
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed
from actcodec.torch.packing import joined, pack_codes, unpack_codes

__all__ = ["Division"]

LOW = 0xFFFF
WORD = 0xFFFFFFFF
BIAS, FRACTION = 1023, 52  # of a float64
BFLOAT16 = -1 << 45  # what of a float64 a bfloat16 has as well
STEP = 1 << 16  # from a bfloat16 to the next one, in the bits of a float32


class Segments(NamedTuple):
    """Golden's segments as tensors. ``number``: the segment of each row of all blocks, int64 [blocks * 8], one past the
    last for a void row; None if each block is a segment. ``front``: the values that are averaged, bool [blocks, 8, 8];
    ``exists``: the values of the tensor, likewise; both None if these are all. For each segment: ``shift``, the bits by
    which the sum of its front becomes a mean in 64ths, and ``plane``."""

    number: torch.Tensor | None
    front: torch.Tensor | None
    exists: torch.Tensor | None
    shift: torch.Tensor
    plane: torch.Tensor

    @classmethod
    def of(cls, view: Any, device: Any) -> Self:
        segments = views.segments(view)

        def moved(array):
            return torch.from_numpy(np.ascontiguousarray(array)).to(device)

        whole = view.tiled and view.tail == LANES
        number = None if view.tiled else moved(
            np.where(segments.segment < 0, segments.start.size, segments.segment).reshape(-1))
        return cls(number, None if whole else moved(segments.averaged), None if whole else moved(segments.exists),
                   moved((6 - segments.a - segments.c).astype(np.int32))[:, None], moved(segments.plane))

    def sums(self, rows: torch.Tensor) -> torch.Tensor:
        """The sum for each segment, [segments, 1], of an integer per row of each block, [blocks, 8]."""
        if self.number is None:
            return rows.sum(1, keepdim=True, dtype=rows.dtype)
        total = torch.zeros(len(self.plane) + 1, dtype=rows.dtype, device=rows.device)
        return total.index_add_(0, self.number, rows.view(-1))[:-1, None]

    def least(self, rows: torch.Tensor) -> torch.Tensor:
        """The smallest one for each segment, likewise."""
        if self.number is None:
            return rows.amin(1, keepdim=True)
        total = torch.full((len(self.plane) + 1,), torch.iinfo(rows.dtype).max, dtype=rows.dtype, device=rows.device)
        return total.scatter_reduce_(0, self.number, rows.view(-1), "amin")[:-1, None]

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        """A number per segment, [segments, 1], copied to all of its rows, [blocks, 8 or 1, 1]; 0 for void ones."""
        if self.number is None:
            return values[:, None]
        return F.pad(values, (0, 0, 0, 1)).index_select(0, self.number).view(-1, LANES, 1)


segments_of = lru_cache(32)(Segments.of)  # those of some views, as shapes may change all the time


class Division:
    """The mode ``division`` with its options, as ``actcodec.compress`` takes them; through ``torch.compile`` if
    ``compile``. The CPU waits for the device to learn whether a table fits. Raises ValueError for an illegal option."""

    waits = True

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self._function = compiled if compile else lambda function: function

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        return self._function is not compiled and kernels.read(__name__, x)

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        shape, bits, offset = model_shape(x.shape), self.options["bits"], self.options["offset"]
        view = views.view(shape)
        values = x.view(view.planes, -1)
        k, delta, lfc = self._table(values, view)
        scales = sfpr.Scales(k, torch.where(k == 0, 0, torch.div(torch.ones_like(k), k)), False)
        if native := kernels.of(__name__, x):
            code = torch.empty(BLOCK * bits // 8 * view.blocks, dtype=torch.uint8, device=x.device)
            base = torch.empty(native.segments(*view_arguments(view)), 1, dtype=torch.int8, device=x.device)
            native.encode(x, *view_arguments(view), k, delta, bits, lfc, offset == "min", self.options["seed"],
                          self.options["rounding"] == "nearest", code, base)
        else:
            code, base = self._encode(values, view, scales, delta, lfc)
        return Packed(self.mode.name, tuple(x.shape), (code, base, scales.r, bits), codec.size(shape, bits),
                      2 * view.planes, code.nbytes + base.nbytes + scales.r.nbytes, x.dtype)

    def _encode(self, values, view, scales, delta, lfc):
        """Codes and levels of all values, computed in parts."""
        bits, offset = self.options["bits"], self.options["offset"]
        codes, bases, blocks, device = [], [], 0, values.device
        for part, planes, _ in parts.pieces(view, packing.part_of(values)):
            # not compiled: its 32 steps take minutes
            random = noise(part, bits, self.options["seed"], self.options["rounding"], device, blocks // GROUP)
            code, base = self._function(encode_values)(
                values[planes], part, segments_of(part, device), scales_of(scales, planes), delta[planes], random,
                (bits, lfc, offset))
            codes.append(pack_codes(code, bits))
            bases.append(base)
            blocks += part.blocks
        return joined(codes), joined(bases)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        code, base, r, bits = packed.data
        view = views.view(model_shape(packed.shape))
        x = torch.empty(packed.shape, dtype=packed.dtype, device=code.device)
        if native := kernels.of(__name__, code, base, dtype=packed.dtype):
            native.decode(code, base, *view_arguments(view), r, bits, x)
            return x
        values = x.view(view.planes, -1)
        size = BLOCK * bits // 8
        for part, planes, _ in parts.pieces(view, packing.part_of(x)):
            segments = segments_of(part, code.device)
            mine, code = code[:size * part.blocks], code[size * part.blocks:]
            level_of, base = base[:len(segments.plane)], base[len(segments.plane):]
            blocks = unpack_codes(mine, bits, BLOCK * part.blocks).view(-1, LANES, LANES)
            q = self._function(level)(blocks, level_of, part, segments, bits)
            scales = sfpr.Scales(r[planes], r[planes], False)
            y = self._function(sfpr.dequantize)(q, part.jpegact, scales, torch.float32)
            values[planes] = y.view(planes.stop - planes.start, -1)
        return x

    def _table(self, x, view):
        """k (float32), delta (int8) and whether there is an offset, as golden's ``table``."""
        lfc = self.options["lfc"]
        both = lfc == "auto" and (view.tiled or view.sectors >= LANES)
        ways = (False, True) if both else (lfc == "on",)
        k, delta = self._fitted(x, view, ways)
        if both:
            plain, pooled = (table.cost(one) for one in k.cpu().numpy())
            best = int(not plain < pooled)
            return k[best], delta[best], ways[best]
        return k[0], delta[0], ways[0]

    def _fitted(self, x, view, ways):
        """k and delta of all planes, [ways, planes], without and with an offset."""
        if native := kernels.of(__name__, x):
            k = torch.empty(len(ways), view.planes, device=x.device)
            delta = torch.empty(len(ways), view.planes, dtype=torch.int8, device=x.device)
            native.fit(x, *view_arguments(view), self.options["bits"], ways[0], ways[-1],
                       self.options["offset"] == "min", float(golden_sfpr.LARGEST), k, delta)
            return k, delta
        fits = [self._fitted_part(self._function(normal)(x[planes]), part, segments_of(part, x.device), lfc)
                for lfc in ways for part, planes, _ in parts.pieces(view, packing.part_of(x))]
        return tuple(joined(list(one)).view(len(ways), -1) for one in zip(*fits, strict=True))

    def _fitted_part(self, x, view, segments, lfc):
        bits, offset = self.options["bits"], self.options["offset"]
        span, top = 64 - (1 << 6 - bits), 128 - (1 << 6 - bits)
        largest = x.abs().amax(1).double()
        scale = (15 + BIAS - torch.frexp(largest).exponent.long() << FRACTION).view(torch.float64)
        low, high = self._function(extremes)(x, view, segments, scale, (lfc, offset, True))
        k = torch.minimum(quotient(span * 64 * scale, (high - low).double()), quotient(torch.full_like(largest, top),
                                                                                       largest))
        k = (k.clamp(max=float(golden_sfpr.LARGEST)).view(torch.int64) & BFLOAT16).view(torch.float64).float()
        k = torch.where(largest == 0, 0, k)
        while True:
            low, high = self._function(extremes)(x, view, segments, k.double(), (lfc, offset, False))
            wide = high - low > span
            if not wide.any():
                return k, low.clamp(min=-128).to(torch.int8)
            k = torch.where(wide, (k.view(torch.int32) - STEP).view(torch.float32), k)


def view_arguments(view: Any) -> tuple[int, ...]:
    """The arguments of kernels for a view."""
    return view.tiled, view.rows, view.width, view.height


def scales_of(scales: sfpr.Scales, planes: slice) -> sfpr.Scales:
    """The scales of some planes."""
    return sfpr.Scales(scales.k[planes], scales.r[planes], scales.plain)


def quotient(numerator: torch.Tensor, divisor: torch.Tensor) -> torch.Tensor:
    """The quotient of float64 numbers; infinite for a divisor of 0."""
    return torch.where(divisor == 0, torch.inf, numerator / divisor)


def normal(x: torch.Tensor) -> torch.Tensor:
    """``x`` with 0 for subnormal and non-finite numbers."""
    magnitude = x.abs()
    return torch.where((magnitude >= sfpr.TINY) & (magnitude < torch.inf), x, 0)


def split(y: torch.Tensor, view: Any) -> torch.Tensor:
    """Blocks [blocks, 8, 8] of values in memory order."""
    y = F.pad(y.reshape(view.rows, view.width), (0, -view.width % LANES))
    if view.tiled:
        return y.view(-1, LANES, view.sectors, LANES).transpose(1, 2).reshape(-1, LANES, LANES)
    return F.pad(y.view(-1), (0, -y.numel() % LANES**2)).view(-1, LANES, LANES)


def join(blocks: torch.Tensor, view: Any) -> torch.Tensor:
    """The inverse of :func:`split`: flat values."""
    if view.tiled:
        blocks = blocks.view(-1, view.sectors, LANES, LANES).transpose(1, 2)
    return blocks.reshape(-1)[:view.rows * view.sectors * LANES].view(view.rows, -1)[:, :view.width].reshape(-1)


def exact(y: torch.Tensor, segments: Any, lfc: bool, offset: str) -> torch.Tensor:
    """The offset of each segment of integers (int32), before rounding, in 64ths: int32 [segments, 1]."""
    if not lfc:
        return torch.zeros_like(segments.shift)
    if offset == "min":
        if segments.exists is not None:
            y = torch.where(segments.exists, y, torch.iinfo(y.dtype).max)
        return segments.least(y.amin(2)) << 6
    front = y if segments.front is None else y * segments.front
    return segments.sums(front.sum(2, dtype=y.dtype)) << segments.shift


def extremes(x: torch.Tensor, view: Any, segments: Any, scale: Any, way: Any) -> Any:
    """The smallest and the largest value of each plane, of values [planes, n] times ``scale`` (float64 [planes]),
    rounded, minus the offset of the segment; in 64ths, with the offset before rounding, if ``fine``. ``way`` is (lfc,
    offset, fine)."""
    lfc, offset, fine = way
    y = torch.round(x.double() * scale[:, None]).to(torch.int32)
    if lfc:
        blocks = split(y, view)
        level = exact(blocks, segments, lfc, offset)
        if not fine:
            level = level + 32 >> 6
        rest = join((blocks * 64 if fine else blocks) - segments.spread(level), view)
    else:
        rest = y * 64 if fine else y
    return torch.aminmax(rest.view(view.planes, -1), dim=1)


def rotated(x: torch.Tensor, left: int) -> torch.Tensor:
    """16-bit numbers, rotated to the left."""
    return (x << left | x >> 16 - left) & LOW


def noise(view: Any, bits: int, seed: int, rounding: str, device: Any, first: int = 0) -> torch.Tensor:
    """The number that is added to each value before truncation to a code: int16 [blocks, 8, 8]. As golden's
    ``dither.noise``; ``first`` is the number of the first group of blocks."""
    if rounding == "nearest":
        return torch.full((1, 1, 1), 1 << 5 - bits, dtype=torch.int16, device=device)
    group = first + torch.arange(-(-view.blocks // GROUP), device=device)
    keys, a, b = (seed & LOW, seed >> 16), group >> 16, group & LOW
    for i in range(8):
        a = (rotated(a, 9) + b & LOW) ^ keys[i % 2]
        b = rotated(b, 2) ^ a
    s, rows = a << 16 | b | 1, []
    for _ in range(GROUP * LANES):
        s = s ^ (s << 13 & WORD)
        s = s ^ s >> 17
        s = s ^ (s << 5 & WORD)
        rows.append((s & 1023).to(torch.int16))
    phases = torch.stack(rows, 1).view(-1, LANES)[:view.blocks]
    pairs = torch.stack([phases & 31, phases >> 5 & 31], 2).repeat(1, 1, LANES // 2)
    return (pairs ^ torch.from_numpy(dither.LANE.astype(np.int16)).to(device)) >> bits - 1


def encode_values(x: torch.Tensor, view: Any, segments: Any, scales: Any, delta: torch.Tensor, random: torch.Tensor,
          way: Any) -> Any:
    """The codes of a tensor, flat uint8, with its table and :func:`noise`, and the level of each segment, int8
    [segments, 1]. ``way`` is (bits, lfc, offset)."""
    bits, lfc, offset = way
    y = split(sfpr.quantize(x, view.jpegact, scales), view).to(torch.int16)
    mean = exact(y.to(torch.int32), segments, lfc, offset) + 32 >> 6
    base = (mean + delta[segments.plane][:, None]).clamp(-128, 127).to(torch.int16)
    code = (y - segments.spread(base) + random).clamp(0, 63) >> 6 - bits
    return code.to(torch.uint8).reshape(-1), base.to(torch.int8)


def level(code: Any, base: Any, view: Any, segments: Any, bits: Any) -> Any:
    """The inverse of :func:`encode_values`: flat int8 values of its codes, as [blocks, 8, 8], and levels."""
    base = segments.spread(base.to(torch.int16))
    return join((base + (code.to(torch.int16) << 6 - bits)).clamp(max=127).to(torch.int8), view)
