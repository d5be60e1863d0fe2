"""Gist's DPR and SSDC in torch, in integers, bit-equal to ``golden/gist`` (Gist, section III-A).

Kept is a code for each value, in one or two bytes; of SSDC in full, the values. The bytes of the payload, which packs
codes into words and leaves zeros out, are counted.
"""

import torch

from actcodec import codecs
from actcodec.golden.gist import dpr, ssdc
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed

__all__ = ["Dpr", "Ssdc", "dequantize", "quantize"]

MAGNITUDE = 0x7FFFFFFF
INFINITE = 0x7F800000
QUIET = 0x7FC00000
FRACTION = 23  # bits of a float32
BIAS = 127


def bits(number):
    """Of a float32, as an integer."""
    return int(torch.tensor(number, dtype=torch.float32).view(torch.int32))


def quantize(x, exponent, mantissa):
    """Codes, int16, of float32 values; int8 where a code has eight bits. As golden's ``dpr.quantize``."""
    form = dpr.Format(exponent, mantissa, 1)
    drop, base = FRACTION - mantissa, BIAS - form.bias << mantissa
    value = x.view(torch.int32)
    magnitude = value & MAGNITUDE
    rounded = magnitude + ((magnitude >> drop & 1) + (1 << drop - 1) - 1) >> drop  # ties to even, also into an octave
    least, most = bits(form.smallest) >> drop, bits(form.largest) >> drop
    code = torch.where(rounded < least, 0, rounded.clamp(max=most) - base)
    code = torch.where(magnitude > INFINITE, (1 << exponent) - 1 << mantissa | 1 << mantissa - 1, code)
    code = torch.where(value < 0, code | 1 << form.width - 1, code)
    return code.to(torch.int8 if form.width == 8 else torch.int16)


def dequantize(codes, exponent, mantissa):
    """float32 values of what :func:`quantize` gave; so there are no subnormal numbers, and no infinities."""
    form = dpr.Format(exponent, mantissa, 1)
    magnitude = codes.to(torch.int32) & (1 << form.width - 1) - 1
    value = magnitude + (BIAS - form.bias << mantissa) << FRACTION - mantissa
    value = torch.where(magnitude == 0, 0, value)
    value = torch.where(magnitude >> mantissa == (1 << exponent) - 1, QUIET, value)
    sign = codes.to(torch.int32) >> form.width - 1 << 31
    return (value | sign).view(torch.float32)


def nonzero(x):
    """The values with +0.0 for zeros of both signs, and how many are not zero."""
    value = x.view(torch.int32)
    zero = value & MAGNITUDE == 0
    return torch.where(zero, 0, value).view(torch.float32), zero.numel() - torch.count_nonzero(zero)


class Dpr:
    """One of the modes ``dpr-*``, through ``torch.compile`` if ``compile``. Raises ValueError."""

    waits = sparse = False

    def __init__(self, mode, compile=False, **options):
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self.form = self.mode.parameter["form"]
        self._function = compiled if compile else lambda function: function

    def encode(self, x):
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor."""
        form, count, side, data = self.form and dpr.named(self.form), x.numel(), 0, x
        if self.sparse:
            data, count = self._function(nonzero)(x)
            side = 8
        size = 4 * ((count + form.per_word - 1) // form.per_word) if form else 4 * count
        if self.sparse:
            size = size + count + 2 * -(-x.numel() // ssdc.ROW)
        if form:
            data = self._function(quantize)(data, form.exponent, form.mantissa)
        return Packed(self.mode.name, tuple(x.shape), data, size, side, data.numel() * data.element_size())

    def decode(self, packed):
        """The float32 tensor of a :class:`~actcodec.torch.packed.Packed`."""
        form = self.form and dpr.named(self.form)
        return self._function(dequantize)(packed.data, form.exponent, form.mantissa) if form else packed.data


class Ssdc(Dpr):
    """The same of the modes ``ssdc*``."""

    sparse = True
