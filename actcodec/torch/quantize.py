"""Quantization of coefficients in int32, bit-equal to golden: SH, by shifts, and DIV, by divisors (JPEG-ACT, section
III-E) or by steps in quarters."""

from typing import Any

import numpy as np
import torch

from actcodec.golden.jpegact import div, quantize, steps
from actcodec.torch.dct import FRACTION_BITS

__all__ = ["WAYS", "divide", "multiply", "shift", "step", "unshift", "unstep"]


def shift(c: torch.Tensor, table: Any) -> torch.Tensor:
    """Quantizes int32 coefficients [8, 8, n], and may overwrite them; ``table`` has the shifts, int32 [8, 8, 1]. Rounds
    half up."""
    drop = table + FRACTION_BITS
    half = torch.bitwise_left_shift(torch.ones_like(drop), drop - 1)
    return c.add_(half).bitwise_right_shift_(drop).clamp_(-128, 127)


def unshift(q: torch.Tensor, table: Any) -> torch.Tensor:
    """The inverse of :func:`shift`: int32 coefficients without fraction bits."""
    return q << table


def divide(c: torch.Tensor, table: Any) -> torch.Tensor:
    """As :func:`shift`; ``table`` has the divisors. Division multiplies by a reciprocal, as in golden."""
    reciprocal = ((1 << div.RECIPROCAL_BITS) + table - 1) // table
    c = c.add_(table << FRACTION_BITS - 1).bitwise_right_shift_(FRACTION_BITS).mul_(reciprocal)
    return c.add_(1 << 10).bitwise_right_shift_(div.RECIPROCAL_BITS).clamp_(-128, 127)


def multiply(q: torch.Tensor, table: Any) -> torch.Tensor:
    """The inverse of :func:`divide`, likewise."""
    return q * table


def step(c: torch.Tensor, table: Any) -> torch.Tensor:
    """As :func:`shift`; ``table`` has quarters of steps, reciprocals, their bits and the dead zone, int32 [4, 8, 8,
    1]."""
    _, reciprocal, bits, zone = table
    x = c.bitwise_right_shift_(FRACTION_BITS - 1)
    offset = torch.where(x < 0, 8 + zone, 8 - zone) << bits - 4
    return x.mul_(reciprocal).add_(offset).bitwise_right_shift_(bits).clamp_(-128, 127)


def unstep(q: torch.Tensor, table: Any) -> torch.Tensor:
    """The inverse of :func:`step`, likewise."""
    return q * table[0] + 2 >> 2


def _steps(settings):
    quarters = steps.of_word(settings["steps"])
    return np.stack([quarters, *steps.reciprocal(quarters), np.full((8, 8), settings["dead_zone"])])


WAYS = {
    "shift": (shift, unshift, lambda settings: quantize.of_word(settings["table"])),
    "divide": (divide, multiply, lambda settings: div.Table.of(settings["divisors"]).divisors),
    "steps": (step, unstep, _steps),
}
"""By the names of the stages: both directions, and the table of a mode's settings."""
