"""The paper's search for quantization tables, by gradient descent (JPEG-ACT, section IV, equations 10 to 12).

It weighs the entropy of the quantized values against the error, for divisors of any value; DQT[0], which carries the
mean, stays 8. Samples are those of `dqt`, whose searches find better tables of powers of two.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import dct
from actcodec.golden.jpegact.dqt import FIRST, Sample


def _quotients(c, divisors):
    """DIV with divisors of any value [8, 8] of coefficients without fraction bits: q as float64, half up."""
    return np.clip(np.floor(c / divisors + 0.5), -128, 127)


def _histograms(q):
    """How often each value occurs in each of the 64 frequencies of q: [64, 256]."""
    place = q.reshape(-1, 64).astype(int) + 128 + 256 * np.arange(64)
    return np.bincount(place.reshape(-1), minlength=256 * 64).reshape(64, 256)


def _entropy(histogram):
    """Bits of a value, by histograms along the last axis (equation 11; the paper leaves out its sign)."""
    p = histogram / histogram.sum(axis=-1, keepdims=True)
    return -(p * np.log2(p, out=np.zeros_like(p), where=p > 0)).sum(axis=-1)


def _objective(entropy, mse, alpha):
    return (1 - alpha) * 10 * entropy + alpha * 10_000 * np.sqrt(mse)


def _with_slopes(sample, divisors, alpha, difference):
    """Objective of a Sample, and by how much it grows when one divisor (each in turn, [64]) grows by `difference`."""
    c = sample.coefficients / 2.0**dct.FRACTION_BITS
    counts, errors = [], []
    for d in (divisors, divisors + difference):
        q = _quotients(c, d)
        counts.append(_histograms(q))
        errors.append(sample.power * np.einsum("nij,n->ij", np.square(c - q * d), sample.weights).reshape(64))
    every, mse = counts[0].sum(axis=0), errors[0].sum()
    now = _objective(_entropy(every), mse, alpha)
    return now, _objective(_entropy(every - counts[0] + counts[1]), mse - errors[0] + errors[1], alpha) - now


def objective(samples: Sequence[Sample], divisors: ArrayLike, alpha: float) -> float:
    """O of the paper (equation 12) for a table of divisors [8, 8]: the mean over `samples`.

    (1 - alpha) * 10 * H + alpha * 10000 * L2, with H the entropy of all quantized values of a tensor in bits. Equation
    10 prints L2 = |x - x*| / NCHW, which would hardly count: at the paper's alphas everything would be shifted out.
    Read as the root mean square, |x - x*| / sqrt(NCHW), it leads to tables of the authors' form. Quantization is DIV's.
    """
    return float(np.mean([_with_slopes(s, np.asarray(divisors), alpha, 0)[0] for s in samples]))


def gradient_descent(samples: Sequence[Sample], alpha: float, start: float = 8.0, steps: int = 60, rate: float = 128.0,
                     difference: float = 5.0) -> NDArray[np.float64]:
    """The paper's search: divisors, float64 [8, 8], 1 to 255, by gradient descent on `objective`.

    Gradients are forward differences of 5, and DQT[0] is 8. The rate is the paper's 2.0 for the mean over frequencies,
    hence times 64. A difference of 5 is coarse for small divisors, where such a step goes too far: one that makes the
    objective worse is taken back, and the rate halved. For powers of two round the divisors with `quantize.shifts`, as
    the authors do, or better, use `dqt.best`. About 5 ms for a step and 1,500 tiles. Raises ValueError for an
    `alpha` that is not finite.
    """
    if not np.isfinite(alpha):
        raise ValueError(f"alpha is {alpha}, has to be finite")
    divisors = np.full((8, 8), float(start))
    divisors[0, 0] = 2**FIRST
    least = np.inf
    for _ in range(steps + 1):
        each = [_with_slopes(s, divisors, alpha, difference) for s in samples]
        objective, slope = (np.mean(part, axis=0) for part in zip(*each, strict=True))
        if objective < least:
            least, best, down = objective, divisors, -slope.reshape(8, 8) / difference
            down[0, 0] = 0
        else:
            rate /= 2
        divisors = np.clip(best + rate * down, 1, 255)
    return best
