"""SFPR, scaled fix-point precision reduction (JPEG-ACT, section III-B, equations 4 and 5).

The paper has a scale for each channel. The hardware takes any: a host may limit those of channels of small values, as
far as to have one scale for a tensor. Then rounding errors of all channels have more nearly the same size, which is
best for the tensor's relative L2 error, and not for that of its small channels.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.offload import blocks, scan

S = float(scan.PEAK) / 2**7  # the paper's: a channel's largest value lands on 144, and stays 127
SCALINGS = ("channel", "tensor", "cap")
CHOICES = ("scaling", "cap", "clip")  # of a host, as :func:`scales` takes them
CAP = 4.0  # largest k over the smallest, unless another is given
CAPS, CLIPS = (1.0, 65536.0), (0.5, 8.0)  # legal ones, from and to
LARGEST = scan.MOST  # of k
SMALLEST = np.float32(S * 2.0**-121)  # of k other than 0: the scale of the largest float32

_TINY = np.finfo(np.float32).tiny
_MAGNITUDE = np.uint32(0x7FFFFFFF)  # all bits but the sign
_NORMAL, _INFINITE = np.uint32(0x00800000), np.uint32(0x7F800000)  # bits of the smallest normal number, and of infinity
_PART = 1 << 16  # values at a time: what is computed between stays in a cache


class Scales(NamedTuple):
    """A pair for each channel, float32: k compresses (a bfloat16 number), r decompresses; both 0 for a zero channel."""

    k: np.ndarray
    r: np.ndarray


class Counts(NamedTuple):
    """What shows a host that a layer diverges."""

    nans: int
    saturated: int


def _normal(x):
    """x (float32), with +0.0 in place of subnormals, Inf and NaN: x itself if it has none. Raises TypeError for any
    other dtype."""
    if x.dtype != np.float32:
        raise TypeError(f"tensor is {x.dtype}, has to be float32")
    bits = x.view(np.uint32) & _MAGNITUDE
    one = np.uint32(1)  # less one, a zero is larger than any other number
    if bits.size and bits.max() < _INFINITE and (bits - one).min() >= _NORMAL - one:
        return x
    return np.where((bits >= _NORMAL) & (bits < _INFINITE), x, np.float32(0))


def reciprocal(k: NDArray[np.float32]) -> NDArray[np.float32]:
    """r = float32(1 / k), rounded to nearest even; 0 where k is 0."""
    return np.divide(1, k, out=np.zeros_like(k), where=k != 0)


def compressing(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """k of any words (uint32) of a table of scales, as the hardware reads them: float64, since Inf and NaN are numbers
    like all others there. The upper half of a word is a bfloat16 number whose sign does not count, 0 if subnormal."""
    exponent, fraction = (words >> 23 & 0xFF).astype(np.int64), (words >> 16 & 0x7F).astype(np.int64)
    return np.where(exponent > 0, np.ldexp(128.0 + fraction, exponent - 134), 0.0)


def decompressing(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """r of any words (uint32) of a table of scales, as the hardware reads them: float32, without a sign, 0 if
    subnormal, infinite with an exponent of 255."""
    bits = words & _MAGNITUDE
    return np.where(bits < _INFINITE, _normal(bits.view(np.float32)), np.float32(np.inf))


def largest(x: NDArray[np.float32], view: blocks.View) -> NDArray[np.float32]:
    """Largest magnitude of each channel that is finite, 0 if that is subnormal. Raises TypeError unless `x` is
    float32."""
    if x.dtype != np.float32:
        raise TypeError(f"tensor is {x.dtype}, has to be float32")
    planes = x.reshape(-1, view.width * view.height).view(np.uint32)
    most, step = np.zeros(len(planes), np.uint32), max(_PART // planes.shape[1], 1)
    for i in range(0, len(planes), step):
        for j in range(0, planes.shape[1], _PART):
            bits = planes[i : i + step, j : j + _PART] & _MAGNITUDE  # they rise with the magnitude
            maxima = bits.max(axis=1)
            if maxima.max() >= _INFINITE:
                maxima = np.where(bits < _INFINITE, bits, 0).max(axis=1)
            np.maximum(most[i : i + step], maxima, out=most[i : i + step])
    most = most.reshape(-1, view.channels).max(axis=0)
    return np.where(most < _NORMAL, 0, most).astype(np.uint32).view(np.float32)


def limit(scaling: str, cap: float | None) -> np.float32:
    """How many times as large as the smallest k the others may be, by what SCALINGS calls it; for "cap" by `cap`.

    Raises ValueError for another name, and for a cap that is not legal.
    """
    if scaling not in SCALINGS:
        raise ValueError(f"scaling is {scaling!r}, legal are {', '.join(SCALINGS)}")
    cap = CAP if cap is None else _legal("cap", cap, CAPS)
    return np.float32({"channel": np.inf, "tensor": 1.0, "cap": cap}[scaling])


def peak(clip: float) -> np.float32:
    """Where the largest magnitude lands, in steps: S of equation 4 is `clip`. Raises ValueError for one that is not
    legal."""
    return np.float32(_legal("clip", clip, CLIPS) * 2**7)


def _legal(name, value, ends):
    if not ends[0] <= value <= ends[1]:
        raise ValueError(f"{name} is {value}, legal are {ends[0]:g} to {ends[1]:g}")
    return value


def scales(x: NDArray[np.float32], scaling: str = "channel", cap: float | None = None, clip: float = S) -> Scales:
    """Scales of a float32 tensor (NCHW or [N, F]): k and r of shape (channels,).

    k = bfloat16(float32(128 clip / m)), SMALLEST to 2^126, where m is the largest magnitude of the channel, and
    128 clip is 144 unless another `clip`, 0.5 to 8, is given; Inf and NaN do not count, subnormals count as 0. With
    `scaling` "tensor", m is that of all channels; with "cap" at least float32(that / cap). A channel of zeros has k = 0
    in any case. Raises ValueError for a shape that has no view, and unless `scaling` is one of SCALINGS, `cap` (1 to
    65536) and `clip` are legal; TypeError unless `x` is float32.
    """
    return of_largest(largest(x, blocks.view(x.shape)), scaling, cap, clip)


def of_largest(largest: NDArray[np.float32], scaling: str = "channel", cap: float | None = None,
               clip: float = S) -> Scales:
    """Scales of a tensor whose channels have these largest magnitudes. Raises ValueError as `scales` does."""
    most = np.maximum(largest, largest.max() / limit(scaling, cap))
    k = np.where(largest == 0, np.float32(0), np.maximum(scan.scale(most, peak(clip)), SMALLEST))
    return Scales(k, reciprocal(k))


def _along(scale, x):
    """Scale as float64, one-dimensional ones along the channels of x."""
    scale = np.asarray(scale, np.float64)
    if scale.ndim == 1 and scale.size > 1 and x.ndim > 1 and scale.size == x.shape[1]:
        return scale.reshape(-1, *[1] * (x.ndim - 2))
    return scale


def _rounded(x, k):
    """The integers nearest to x * k, ties to even, as float64: the product of 24 and 8 bits is exact there."""
    normal = _normal(x)
    y = np.rint(normal * _along(k, x))
    return y if normal is x else np.where(np.isinf(x), np.where(np.signbit(x), -np.inf, np.inf), y)


def quantize(x: NDArray[np.float32], k: ArrayLike, signs: bool = False) -> NDArray[np.int8]:
    """y = clip(rne(x * k), -128, 127), int8, shape of `x`.

    x is float32; k is one scale, one for each channel (axis 1 of x), or anything that broadcasts to x. The exact
    product is rounded once. Subnormal x counts as 0; NaN gives 0, +Inf 127 and -Inf -128, whatever k is (0 included).
    Raises TypeError unless `x` is float32.

    With `signs`, which the paper does not have, a positive x that is not subnormal gives 1 where it would give 0, so
    that y > 0 exactly where a ReLU lets its gradient through. In a ResNet-20, 1.25 % of the positive values would give
    0, and they make three quarters of the gradient's error under optL; under ZVC, ReLU tensors grow by 1 %.
    """
    y = np.clip(_rounded(x, k), -128, 127).astype(np.int8)
    return np.where((y == 0) & (_normal(x) > 0), np.int8(1), y) if signs else y


def counts(x: NDArray[np.float32], k: ArrayLike) -> Counts:
    """NaNs of `x`, and values that `quantize` clips (rne(x * k) outside [-128, 127]; Inf counts, NaN does not)."""
    y = _rounded(x, k)
    return Counts(int(np.count_nonzero(np.isnan(x))), int(np.count_nonzero((y < -128) | (y > 127))))


def dequantize(y: NDArray[np.int8], r: ArrayLike) -> NDArray[np.float32]:
    """x* = float32(y * r), float32, shape of `y` (int8).

    r as k in `quantize`, or infinite. The exact product is rounded once, to nearest even. A result below the normal
    numbers is +0.0, and so is every zero; scales that `scales` gives yield none but zeros, and never overflow.
    """
    scale = _along(r, y)
    with np.errstate(over="ignore", invalid="ignore"):
        x = y * scale + 0.0  # there is no -0.0 then; 0 times infinity is NaN so far
        x = x.astype(np.float32)
    normal = np.all((scale == 0) | ((scale >= _TINY) & (scale < np.inf)))
    return x if normal else np.where(np.abs(x) >= _TINY, x, np.float32(0))
