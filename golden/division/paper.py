"""The paper's own arithmetic, in float64, for any block and number of bits; what it predicts about sizes and spectra.

For comparisons: no unit computes this. Sections 3.2 and 4, appendices A, C, D and P of Wang et al., *DIVISION: Memory
Efficient Training via Dual Activation Precision*, ICML 2023. A tensor is [N, F], [N, C, L], [N, C, H, W] or
[N, C, D, H, W].
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Cached(NamedTuple):
    """What is kept of an activation map: (H^L, V^H, step, delta) of section 4.1."""

    lfc: np.ndarray  # float64 [N, C, ...], bfloat16 numbers
    codes: np.ndarray  # uint8, shape of the tensor
    step: np.ndarray  # float64 [N, C, 1, ...]
    delta: np.ndarray


def _check(block, bits):
    for name, value, legal in ("block", block, range(1, 1 << 31)), ("bits", bits, range(1, 9)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value not in legal:
            raise ValueError(f"{name} is {value!r}, legal are the integers {legal[0]} to {legal[-1]}")


def _planes(shape):
    """[N, C, ...]: [N, F] is a plane of one row for each sample."""
    shape = tuple(shape)
    if not 2 <= len(shape) <= 5 or min(shape) < 1:
        raise ValueError(f"shape {shape} is not [N, F] to [N, C, D, H, W], every dimension at least 1")
    return (shape[0], 1, shape[1]) if len(shape) == 2 else shape


def _bfloat16(x):
    """float64 numbers rounded to the nearest bfloat16, ties to even, subnormal ones and overflow aside; float64."""
    bits = np.ascontiguousarray(x, np.float64).view(np.uint64)
    one, half = np.uint64(1), np.uint64((1 << 44) - 1)
    return (bits + half + (bits >> np.uint64(45) & one) >> np.uint64(45) << np.uint64(45)).view(np.float64)


def pool(x: np.ndarray, block: int) -> NDArray[np.float64]:
    """Average pooling: windows of `block`, or of the whole axis where that is shorter (footnote 5); stride the same.

    An axis of n values gives floor(n / block) means (appendix D.1); the rest is in none.
    """
    for axis in range(2, x.ndim):
        window = min(block, x.shape[axis])
        means = x.shape[axis] // window
        x = np.take(x, range(means * window), axis)
        x = x.reshape(*x.shape[:axis], means, window, *x.shape[axis + 1 :]).mean(axis + 1)
    return x


def upsample(x: np.ndarray, shape: Sequence[int]) -> NDArray[np.float64]:
    """Nearest interpolation: index i of n values takes floor(i * means / n)."""
    for axis in range(2, x.ndim):
        x = np.take(x, np.arange(shape[axis]) * x.shape[axis] // shape[axis], axis)
    return x


def compress(x: ArrayLike, block: int = 8, bits: int = 2, rng: "np.random.Generator | None" = None) -> Cached:
    """Cached of a tensor: equation 9, with the stochastic rounding of `rng`, a NumPy generator (default: a new one).

    HFC is taken against the LFC as it is cached, in bfloat16. Step and delta stay float64, so that the rounding is
    unbiased: the paper caches them in bfloat16, which moves a plane by up to 2^-9 of both.
    Raises ValueError for other shapes, unless `block` is a positive int, and unless `bits` is one, 1 to 8.
    """
    _check(block, bits)
    shape = np.shape(x)
    x = np.asarray(x, np.float64).reshape(_planes(shape))
    axes = tuple(range(2, x.ndim))
    lfc = _bfloat16(pool(x, block))
    hfc = x - upsample(lfc, x.shape)
    delta = hfc.min(axes, keepdims=True)
    step = (hfc.max(axes, keepdims=True) - delta) / (2**bits - 1)
    exact = np.divide(hfc - delta, step, out=np.zeros_like(hfc), where=step > 0)
    uniform = (rng or np.random.default_rng()).random(x.shape)
    codes = np.minimum(np.floor(exact + uniform), 2**bits - 1).astype(np.uint8)
    return Cached(lfc, codes.reshape(shape), step, delta)


def decompress(cached: Cached) -> NDArray[np.float64]:
    """The tensor, float64: equation 10."""
    codes = cached.codes.reshape(_planes(cached.codes.shape))
    x = upsample(cached.lfc, codes.shape) + (cached.step * codes + cached.delta)
    return x.reshape(cached.codes.shape)


def cached_bytes(shape: Sequence[int], block: int = 8, bits: int = 2) -> float:
    """Bytes of a Cached by the terms of appendix P: two for each of a plane's means, `bits` a value, four a plane.

    As there, a plane of n values in d dimensions has n / min(block^d, n) means, which need not be an integer.
    """
    _check(block, bits)
    n, c, *edges = _planes(shape)
    plane = prod(edges)
    return n * c * (2 * plane / min(block ** len(edges), plane) + bits * plane / 8 + 4)


def theorem_cnn(n: int, block: int = 8, bits: int = 2) -> float:
    """Theorem 3A (equation 54): ratio of a conv-BN-ReLU block of planes of n x n values."""
    _check(block, bits)
    return 9 / (4 / min(block**2, n**2) + bits / 4 + 8 / n**2 + 1 / 8)


def theorem_mlp(n: int, block: int = 8, bits: int = 2) -> float:
    """Theorem 3B (equation 56): ratio of a linear-ReLU block of n features."""
    _check(block, bits)
    return 5 / (2 / min(block, n) + bits / 8 + 4 / n + 1 / 8)


def spectrum(x: ArrayLike, share: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """lambda^L and lambda^H of each plane, float64 [N, C] (theorem 3.1): norms of its frequencies below and above W.

    W is `share` times the edge, rounded, at least 1; the DCT is orthonormal, so that norms are those of the LFC and the
    HFC of equations 4 and 5. Figure 4 and table 5 show means over planes and their ratios.
    Raises ValueError for other shapes, and unless `share` is above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share is {share!r}, legal is what is above 0 and at most 1")
    x = np.asarray(x, np.float64).reshape(_planes(np.shape(x)))
    low = 1.0
    for axis in range(2, x.ndim):
        n = x.shape[axis]
        frequency, place = np.indices((n, n))
        basis = np.cos(np.pi / n * (place + 0.5) * frequency) * np.where(frequency, np.sqrt(2 / n), np.sqrt(1 / n))
        x = np.moveaxis(np.tensordot(x, basis, (axis, 1)), -1, axis)
        low = np.multiply.outer(low, np.arange(n) < max(1, round(share * n)))
    axes, square = tuple(range(2, x.ndim)), np.square(x)
    return tuple(np.sqrt((square * mask).sum(axes)) for mask in (low, 1 - low))
