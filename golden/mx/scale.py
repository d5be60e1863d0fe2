"""The scale of 32 values that share one: a power of two as a byte, E8M0 (OCP Microscaling Formats v1.0, sections 5.4.1
and 6.3; the rules `rceil` and `even` are those of TransformerEngine and torchao)."""

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.mx.element import BIAS, NAN, Format, words

__all__ = ["GROUP", "RULES", "scales"]

GROUP = 32  # values that share a scale
RULES = ("rceil", "floor", "even")

_MAGNITUDE, _NORMAL, _INFINITE = np.uint32(0x7FFFFFFF), np.uint32(0x00800000), np.uint32(0x7F800000)


def scales(x: NDArray[np.float32], form: Format, rule: str) -> NDArray[np.uint8]:
    """The scale (uint8 [...]) of each row of ``x``, float32 [..., 32]: X stands for 2^(X - 127).

    The largest magnitude, f * 2^k with 1 <= f < 2, decides; neither NaN nor infinities count, nor subnormal numbers. X
    is 0 where there is none, and 255 where there is a NaN that the element format does not have. Raises TypeError
    unless ``x`` is float32, ValueError for rows of another length, and unless ``rule`` is one of RULES.
    """
    bits = words(x) & _MAGNITUDE
    if x.shape[-1:] != (GROUP,):
        raise ValueError(f"shape is {x.shape}, legal is [..., {GROUP}]")
    if rule not in RULES:
        raise ValueError(f"unknown rule {rule!r}, legal are {', '.join(RULES)}")
    most = np.where((bits >= _NORMAL) & (bits < _INFINITE), bits, 0).max(axis=-1).view(np.float32).astype(np.float64)
    f, k = np.frexp(most)
    f, k = 2 * f, k.astype(np.int64) - 1
    up = {
        "rceil": f > np.ldexp(form.most, -form.emax),
        "floor": False,
        "even": np.floor(np.ldexp(f, form.mantissa) + 0.5) == 2 << form.mantissa,
    }[rule]
    scale = np.where(most == 0, 0, np.clip(k - form.emax + up, -BIAS, BIAS) + BIAS)
    if form.nan is None:
        scale = np.where((bits > _INFINITE).any(axis=-1), NAN, scale)
    return scale.astype(np.uint8)
