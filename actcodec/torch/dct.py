"""The 8x8 DCT and its inverse in int32, bit-equal to ``golden/jpegact/dct.py`` (JPEG-ACT, section III-D).

Blocks lie in the last dimension, [8, 8, n], so that every step is one operation on long rows. There is no matrix
product: CUDA has none of integers, and one of floats would round differently, or in TF32.
"""

import math

import torch

__all__ = ["FRACTION_BITS", "forward", "inverse"]

FRACTION_BITS = 6  # of coefficients
COEFFICIENTS = -2048, 2047  # to which the inverse saturates
PIXELS = -128, 127

# sqrt(2) cos(j pi / 16), 11 fraction bits
K1, K2, K3, K4, K5, K6, K7 = (round(math.sqrt(2) * math.cos(j * math.pi / 16) * 2**11) for j in range(1, 8))
ODD = (K1, K3, K5, K7), (K3, -K7, -K1, -K5), (K5, -K1, K7, K3), (K7, -K5, K3, -K1)  # symmetric
FIRST, SECOND = 8, 11  # bits that a pass rounds away


def _rounded(parts, factors, drop):
    """floor((sum of parts times factors + half) / 2^drop), where half is 2^(drop - 1)."""
    total = parts[0] * factors[0]
    for part, factor in zip(parts[1:], factors[1:], strict=True):
        total.add_(part, alpha=factor)
    return total.add_(1 << drop - 1).bitwise_right_shift_(drop)


def _forward(x, dim, drop):
    """The 8-point transform along ``dim``."""
    x = x.unbind(dim)
    sums = [x[i] + x[7 - i] for i in range(4)]
    differences = [x[i] - x[7 - i] for i in range(4)]
    outer, inner = sums[0] - sums[3], sums[1] - sums[2]
    ends, middle = sums[0].add_(sums[3]), sums[1].add_(sums[2])
    y = [None] * 8
    y[0], y[4] = _rounded((ends, middle), (K4, K4), drop), _rounded((ends, middle), (K4, -K4), drop)
    y[2], y[6] = _rounded((outer, inner), (K2, K6), drop), _rounded((outer, inner), (K6, -K2), drop)
    for i, factors in enumerate(ODD):
        y[2 * i + 1] = _rounded(differences, factors, drop)
    return torch.stack(y, dim)


def _inverse(c, dim, drop):
    """The inverse of :func:`_forward`: eight rounded terms, then sums without rounding."""
    c = c.unbind(dim)
    even = [_rounded((c[0], c[4]), (K4, K4), drop), _rounded((c[0], c[4]), (K4, -K4), drop)]
    turned = [_rounded((c[2], c[6]), (K2, K6), drop), _rounded((c[2], c[6]), (K6, -K2), drop)]
    odd = [_rounded(c[1::2], factors, drop) for factors in ODD]
    sums = [even[0] + turned[0], even[1] + turned[1], even[1] - turned[1], even[0] - turned[0]]
    return torch.stack([a + b for a, b in zip(sums, odd, strict=True)] +
                       [a - b for a, b in zip(sums[::-1], odd[::-1], strict=True)], dim)


def forward(blocks: torch.Tensor) -> torch.Tensor:
    """2-D DCT-II of blocks of int8 values, int32 [8, 8, n]: the orthonormal coefficients times 2^FRACTION_BITS, int32,
    vertical frequency first."""
    return _forward(_forward(blocks, 1, FIRST), 0, SECOND)


def inverse(coefficients: torch.Tensor) -> torch.Tensor:
    """Inverse DCT of int32 coefficients [8, 8, n] without fraction bits: int32 values, -128 to 127."""
    x = _inverse(_inverse(coefficients.clamp(*COEFFICIENTS), 0, FIRST), 1, SECOND)
    x[:, :4].add_(32)  # as in golden: half up would lift every pixel, so half of a row has half a step less
    x[:, 4:].add_(31)
    return x.bitwise_right_shift_(6).clamp_(*PIXELS)
