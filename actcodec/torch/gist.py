"""Gist's DPR and SSDC in torch, in integers, bit-equal to ``golden/gist`` (Gist, section III-A).

Codes are kept in words, as in the payload; for SSDC, values or codes that are not zero, and a bit for each value
instead of their columns. The size of the payload is counted.
"""

from functools import cache
from typing import Any

import torch

from actcodec import codecs
from actcodec.golden.gist import dpr, ssdc
from actcodec.torch import kernels
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed
from actcodec.torch.packing import Sparse, joined, pack_words, part_of, sparse, unpack_words

__all__ = ["Dpr", "Ssdc", "dequantize", "quantize"]

MAGNITUDE = 0x7FFFFFFF
INFINITE = 0x7F800000
QUIET = 0x7FC00000
FRACTION = 23  # bits of a float32
BIAS = 127
WORD = 32
TYPES = {8: torch.int8, 10: torch.int32, 16: torch.int16}  # of what is kept, by the bits of a code


def bits(number: Any) -> Any:
    """The bits of a float32, as an integer."""
    return int(torch.tensor(number, dtype=torch.float32).view(torch.int32))


@cache
def extremes(form: dpr.Format) -> tuple[int, int]:
    """The smallest magnitude above 0 and the largest, as codes without the format's base."""
    drop = FRACTION - form.mantissa
    return bits(form.smallest) >> drop, bits(form.largest) >> drop


def quantize(x: torch.Tensor, exponent: int, mantissa: int) -> torch.Tensor:
    """Codes of float32 values, int16; int8 if a code has eight bits. As golden's ``dpr.quantize``."""
    form = dpr.Format(exponent, mantissa, 1)
    drop, base = FRACTION - mantissa, BIAS - form.bias << mantissa
    value = x.view(torch.int32)
    magnitude = value & MAGNITUDE
    rounded = magnitude + ((magnitude >> drop & 1) + (1 << drop - 1) - 1) >> drop  # ties to even, with carry
    least, most = extremes(form)
    code = torch.where(rounded < least, 0, rounded.clamp(max=most) - base)
    code = torch.where(magnitude > INFINITE, (1 << exponent) - 1 << mantissa | 1 << mantissa - 1, code)
    code = torch.where(value < 0, code | 1 << form.width - 1, code)
    return code.to(torch.int8 if form.width == 8 else torch.int16)


def dequantize(codes: torch.Tensor, exponent: int, mantissa: int) -> torch.Tensor:
    """The float32 values of codes from :func:`quantize`, which have no subnormal numbers and no infinities."""
    form = dpr.Format(exponent, mantissa, 1)
    magnitude = codes.to(torch.int32) & (1 << form.width - 1) - 1
    value = magnitude + (BIAS - form.bias << mantissa) << FRACTION - mantissa
    value = torch.where(magnitude == 0, 0, value)
    value = torch.where(magnitude >> mantissa == (1 << exponent) - 1, QUIET, value)
    sign = codes.to(torch.int32) >> form.width - 1 << 31
    return (value | sign).view(torch.float32)


class Dpr:
    """One of the modes ``dpr-*``, through ``torch.compile`` if ``compile``. Raises ValueError for an illegal option."""

    waits = sparse = False

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self.form = self.mode.parameter["form"]
        self._function = compiled if compile else lambda function: function

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        return self._function is not compiled and kernels.read(__name__, x)

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor."""
        form, count, side = self.form and dpr.named(self.form), x.numel(), 0
        data, bits = x.view(-1), None
        if self.sparse:
            (bits, data, count), side = sparse(x), 8
            if bits is None:  # all values, in a copy without negative zeros
                data = torch.where(data == 0, 0, data)
        size = 4 * ((count + form.per_word - 1) // form.per_word) if form else 4 * count
        if self.sparse:
            size = size + count + 2 * -(-x.numel() // ssdc.ROW)
        if form:
            data = self._codes(data, form)
        nbytes = data.nbytes + (0 if bits is None else bits.nbytes)
        return Packed(self.mode.name, tuple(x.shape), (data, bits), size, side, nbytes, x.dtype)

    def _codes(self, x, form):
        """The codes of flat values, as they are kept, computed in parts."""
        if native := kernels.of(__name__, x):
            n = x.numel()
            data = torch.empty(-(-n // form.per_word) if WORD % form.width else n, dtype=TYPES[form.width],
                               device=x.device)
            native.encode(x, n, form.width, *extremes(form), data)
            return data
        parts = []
        step = part_of(x) // 12 * 12  # whole words
        for i in range(0, x.numel(), step) or (0,):
            codes = self._function(quantize)(x[i:i + step], form.exponent, form.mantissa)
            parts.append(pack_words(codes, form.width) if WORD % form.width else codes)
        return joined(parts)

    def _values(self, data, form, count, dtype):
        """The inverse of ``_codes``: ``count`` flat values; other than float32 by kernels alone."""
        x = torch.empty(count, dtype=dtype, device=data.device)
        if native := kernels.of(__name__, data, dtype=dtype):
            native.decode(data, count, form.width, x)
            return x
        step = part_of(x) // 12 * 12
        for i in range(0, count, step):
            n = min(step, count - i)
            if WORD % form.width:
                codes = unpack_words(data[i // form.per_word:-(-(i + n) // form.per_word)], form.width, n)
            else:
                codes = data[i:i + n]
            x[i:i + n] = self._function(dequantize)(codes, form.exponent, form.mantissa)
        return x

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        form, (data, bits) = self.form and dpr.named(self.form), packed.data
        count = torch.Size(packed.shape).numel()
        if form:
            number = data.numel() * (form.per_word if WORD % form.width else 1)  # the last word may have spare codes
            data = self._values(data, form, count if bits is None else number, packed.dtype)
        return Sparse(bits, data).dense(count).view(packed.shape)


class Ssdc(Dpr):
    """One of the modes ``ssdc*``, likewise."""

    sparse = True
