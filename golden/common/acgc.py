"""AC-GC's bound on the error of a convolution's input (Evans, Aamodt, NeurIPS 2021, with the code that its authors
published, github.com/rdevans0/acgc).

A gradient of weights is a sum of products of inputs and gradients of outputs. With a kernel of R x S and a stride of T
an input takes part in R * S / T^2 of them for each output channel. So, by Cauchy and Schwarz, an error dX of the input
changes it by |dW|^2 <= R * S / T^2 * |dX|^2 * |gY|^2. That is at most e^2 / 2 of |gW|^2 if |dX|^2 is within `limit`.
e^2 is the paper's: by its theorem the variance of gradients grows by 1 + e^2 at most. The 2 is in the authors' code.
"""

import math
from collections.abc import Sequence

__all__ = ["bound", "limit", "reuse"]


def reuse(kernel: Sequence[int], stride: Sequence[int]) -> float:
    """Products for each output channel that an input takes part in: R * S / T^2."""
    return math.prod(kernel) / math.prod(stride)


def limit(e2: float, weights: Sequence[float], outputs: Sequence[float], reuses: Sequence[float]) -> float:
    """The greatest |dX|^2 of an input that one convolution reads, or several: squared norms of their gradients of
    weights and of outputs, and :func:`reuse` of each. Infinite where no output has a gradient.

    Raises ValueError unless ``e2``, the paper's e^2, is above 0.
    """
    if not e2 > 0:
        raise ValueError(f"e2 is {e2!r}, must be above 0")
    total = sum(u * y for u, y in zip(reuses, outputs, strict=True))
    return e2 * sum(weights) / (2 * total) if total else math.inf


def bound(limit: float, count: int) -> float:
    """The error of each of ``count`` values with which they are at the limit together."""
    return math.sqrt(limit / count)
