"""MX in torch, in integers and float64, bit-equal to ``golden/mx`` (OCP Microscaling Formats v1.0, section 5).

A tensor's payload is kept as torchao and cuBLAS expect it: a scale of one byte per 32 values, and the elements, as many
per byte as fit; or, with a coder, those that are not 0, or the payload of the nibble and Rice codes, or its sections.
"""

from typing import Any

import numpy as np
import torch

from actcodec import codecs
from actcodec.codecs.compressed import view as model_shape
from actcodec.golden.mx import element
from actcodec.golden.mx.scale import GROUP
from actcodec.golden.offload import blocks
from actcodec.torch import blockcodes, kernels
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed
from actcodec.torch.packing import Sparse, joined, pack_codes, padded, part_of, sparse, unpack_codes

__all__ = ["Mx", "decode_values", "encode_values", "scales"]

MAGNITUDE, NORMAL, INFINITE, QUIET = 0x7FFFFFFF, 0x00800000, 0x7F800000, 0x7FC00000  # of float32
FRACTION, BIAS, NAN = 23, 127, 255
FRACTION64, BIAS64 = 52, 1023
SIX = 4  # codes of six bits in three bytes


class Mx:
    """The mode ``mx`` with its options, as ``actcodec.compress`` takes them; through ``torch.compile`` if ``compile``.
    With the coders ``nibble`` and ``rice`` the CPU waits for the device, to choose a table. Raises ValueError for an
    illegal option."""

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self.form, self.coder = element.FORMATS[self.options["format"]], self.options["coder"]
        self.waits = self.coder in blockcodes.CODERS
        self._width = self.form.width if self.coder == "none" else 8  # of a code as it is kept
        self._threshold, self._layout = threshold_of(self.form, self.options["rule"]), layout(self.form)
        self._plans: dict[Any, Any] = {}
        self._values = torch.from_numpy(values(self.form))
        self._function = compiled if compile else lambda function: function

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        return self._function is not compiled and kernels.read(__name__, x)

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        whole, (view, side) = tuple(x.shape), self._plan(x.shape)
        scale, elements = self._encoded(x, view)
        if self.coder != "none":
            return self._encode(whole, scale, elements, side, x.dtype)
        size = scale.nbytes + elements.nbytes
        return Packed(self.mode.name, whole, (scale, elements), size, 0, size, x.dtype)

    def _encoded(self, x: torch.Tensor, view: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Scales, and codes as they are kept, or, for a coder, one byte each."""
        form, width = self.form, self._width
        if native := kernels.of(__name__, x):
            n = view.blocks(False) * (blocks.BLOCK // GROUP)
            scales_of = torch.empty(n, dtype=torch.uint8, device=x.device)
            codes = torch.empty(n * GROUP * width // 8, dtype=torch.uint8, device=x.device)
            native.encode(x, view.rows, view.width, view.padded_width, form.emax, self._threshold, *self._layout, width,
                          scales_of, codes)
            return scales_of, codes
        x = padded(x.view(view.rows, view.width), blocks.LANES).view(-1)
        x = padded(x, blocks.BLOCK).view(-1, GROUP)
        scale, elements = [], []
        for part in x.split(part_of(x) // GROUP):
            mine = self._function(scales)(part, form, self._threshold)
            scale.append(mine)
            elements.append(pack(self._function(encode_values)(part, mine, form), width))
        return joined(scale), joined(elements)

    def _encode(self, shape: tuple[int, ...], scale: torch.Tensor, codes: torch.Tensor, side: int,
                dtype: torch.dtype) -> Packed:
        """Codes, one byte each, compressed by the coder."""
        size = scale.nbytes
        if self.coder in blockcodes.CODERS:
            smallest, more = blockcodes.smallest(self.coder, codes.view(-1, blocks.BLOCK), (False, True))
            return Packed(self.mode.name, shape, (scale, smallest), size + more, side, scale.nbytes + smallest.nbytes,
                          dtype)
        some = sparse(codes)
        size += len(codes) // blocks.LANES + some.count  # with a bit for each code
        return Packed(self.mode.name, shape, (scale, some), size, 0, scale.nbytes + some.nbytes, dtype)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        scale, elements = packed.data
        (view, _), width = self._plan(packed.shape), self._width
        if isinstance(elements, blockcodes.Encoded):
            elements = blockcodes.decode(self.coder, elements).view(-1)
        elif isinstance(elements, Sparse):
            elements = elements.dense(GROUP * len(scale))
        if native := kernels.of(__name__, scale, elements, dtype=packed.dtype):
            x = torch.empty(packed.shape, dtype=packed.dtype, device=scale.device)
            native.decode(elements, scale, view.rows, view.width, view.padded_width, *self._layout, width, x)
            return x
        table = self._values.to(scale.device)
        x = torch.empty(len(scale), GROUP, dtype=packed.dtype, device=scale.device)
        step = part_of(x) // GROUP
        for i in range(0, len(x), step):
            mine = scale[i:i + step]
            codes = unpack(elements[i * GROUP * width // 8:(i + step) * GROUP * width // 8], width, GROUP * len(mine))
            x[i:i + step] = self._function(decode_values)(codes.view(-1, GROUP), mine, table)
        x = x.view(-1)[:view.rows * view.padded_width].view(view.rows, -1)[:, :view.width]
        return x.reshape(packed.shape)

    def _plan(self, shape):
        """A tensor of a shape as rows, and the bytes of its settings."""
        if shape not in self._plans:
            whole = model_shape(shape)
            side = self.mode.model.side_bytes(whole, **self.options) if self.coder in blockcodes.CODERS else 0
            self._plans[shape] = blocks.view(whole), side
        return self._plans[shape]


def values(form: element.Format) -> np.ndarray:
    """The values of all codes of a byte, float32 [256]; a format of fewer bits uses only the first ones."""
    codes = np.arange(256, dtype=np.uint8)
    return element.decode(codes, np.full(256, BIAS, np.uint8), form)


def power(exponent: torch.Tensor) -> torch.Tensor:
    """2 to the power of integers, float64."""
    return (exponent.long() + BIAS64 << FRACTION64).view(torch.float64)


def threshold_of(form: element.Format, rule: str) -> int:
    """The largest fraction, as bits of a float32, that does not round a scale up."""
    if rule == "rceil":  # the fraction of the format's largest value
        return int((form.most / 2**form.emax - 1) * 2**FRACTION)
    if rule == "even":  # half a unit of the element's last place below the next power rounds up to it
        return NORMAL - (1 << FRACTION - 1 - form.mantissa) - 1
    return NORMAL  # no fraction is above it


def layout(form: element.Format) -> tuple[Any, ...]:
    """What kernels know of a format: bits of exponent and mantissa, bias, and the codes of the largest magnitude, of an
    infinity, and of NaN, or -1."""
    return (form.exponent, form.mantissa, form.bias, form.largest,
            form.largest if form.infinity is None else form.infinity, -1 if form.nan is None else form.nan)


def scales(x: torch.Tensor, form: element.Format, threshold: int) -> torch.Tensor:
    """As golden's ``scale.scales``, of float32 [n, 32]: uint8 [n]. Fractions above ``threshold`` round up."""
    bits = x.view(torch.int32) & MAGNITUDE
    most = torch.where((bits >= NORMAL) & (bits < INFINITE), bits, 0).amax(1)
    fraction, k = most & NORMAL - 1, (most >> FRACTION) - BIAS
    scale = (k - form.emax + (fraction > threshold)).clamp(-BIAS, BIAS) + BIAS
    scale = torch.where(most == 0, 0, scale)
    if form.nan is None:
        scale = torch.where((bits > INFINITE).any(1), NAN, scale)
    return scale.to(torch.uint8)


def encode_values(x: torch.Tensor, scale: torch.Tensor, form: element.Format) -> torch.Tensor:
    """As golden's ``element.encode``: codes, uint8 [n, 32], of float32 [n, 32] and scales [n]."""
    *_, largest, infinity, _ = layout(form)
    bits = x.view(torch.int32) & MAGNITUDE
    infinite, nan = bits == INFINITE, bits > INFINITE
    finite = torch.where((bits >= NORMAL) & (bits < INFINITE), x.abs(), 0).double()
    s = finite * power(BIAS - scale.int())[:, None]
    fraction = form.mantissa + form.bias - 1  # fraction bits of the smallest elements
    if form.exponent:
        octave = ((s.view(torch.int64) >> FRACTION64) - BIAS64 - 1 + form.bias).clamp(min=0)
        code = torch.round(s * power(fraction - octave)).long() + (octave << form.mantissa)
    else:
        code = torch.round(s * 2.0**fraction).long()
    code = code.clamp(max=largest)  # with its scale, no value is twice the largest power
    code = torch.where(infinite, infinity, code)
    negative = x.view(torch.int32) < 0
    signed = code | negative.long() << form.width - 1 if form.exponent else torch.where(negative, -code, code)
    code = signed & 0xFF
    code = torch.where(nan, form.nan, code) if form.nan is not None else torch.where(scale[:, None] == NAN, 0, code)
    return code.to(torch.uint8)


def decode_values(code: torch.Tensor, scale: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """As golden's ``element.decode``: float32 values [n, 32]; ``table`` has those of all codes at a scale of 1."""
    value = table[code.long()].double() * power(scale.int() - BIAS)[:, None]
    x = value.float()
    x = torch.where(x.abs() < torch.finfo(torch.float32).tiny, torch.copysign(torch.zeros_like(x), x), x)
    return torch.where(x.isnan() | (scale[:, None] == NAN), torch.nan, x)


def pack(codes: torch.Tensor, width: int) -> torch.Tensor:
    """Codes of ``width`` bits, packed into flat bytes."""
    if width == 8:
        return codes.view(-1)
    if width != 6:
        return pack_codes(codes.view(-1), width)
    four = codes.view(-1, SIX).int()
    word = four[:, 0] | four[:, 1] << 6 | four[:, 2] << 12 | four[:, 3] << 18
    return torch.stack([word >> 8 * i & 0xFF for i in range(3)], 1).to(torch.uint8).view(-1)


def unpack(data: torch.Tensor, width: int, count: int) -> torch.Tensor:
    """The inverse of :func:`pack`: ``count`` codes."""
    if width == 8:
        return data
    if width != 6:
        return unpack_codes(data, width, count)
    three = data.view(-1, 3).int()
    word = three[:, 0] | three[:, 1] << 8 | three[:, 2] << 16
    return torch.stack([word >> 6 * i & 0x3F for i in range(SIX)], 1).to(torch.uint8).view(-1)
