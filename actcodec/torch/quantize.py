"""Quantization of coefficients in int32, bit-equal to golden: SH, by shifts, and DIV, by divisors (JPEG-ACT, section
III-E)."""

from typing import Any

import torch

from actcodec.golden.jpegact import div
from actcodec.torch.dct import FRACTION_BITS

__all__ = ["divide", "multiply", "shift", "unshift"]


def shift(c: torch.Tensor, table: Any) -> torch.Tensor:
    """int32 coefficients [8, 8, n], which may change, as q; ``table`` has the shifts, int32 [8, 8, 1]. Half up."""
    drop = table + FRACTION_BITS
    half = torch.bitwise_left_shift(torch.ones_like(drop), drop - 1)
    return c.add_(half).bitwise_right_shift_(drop).clamp_(-128, 127)


def unshift(q: torch.Tensor, table: Any) -> torch.Tensor:
    """int32 coefficients without fraction bits of q, int32."""
    return q << table


def divide(c: torch.Tensor, table: Any) -> torch.Tensor:
    """As :func:`shift`; ``table`` has the divisors. A quotient is a product with a reciprocal, as in golden."""
    reciprocal = ((1 << div.RECIPROCAL_BITS) + table - 1) // table
    c = c.add_(table << FRACTION_BITS - 1).bitwise_right_shift_(FRACTION_BITS).mul_(reciprocal)
    return c.add_(1 << 10).bitwise_right_shift_(div.RECIPROCAL_BITS).clamp_(-128, 127)


def multiply(q: torch.Tensor, table: Any) -> torch.Tensor:
    """As :func:`unshift`."""
    return q * table
