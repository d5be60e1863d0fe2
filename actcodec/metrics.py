"""Error metrics of a compressed tensor (for sizes see docs/container.md, "Accounting")."""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Errors", "channel_error", "errors", "psnr", "relative_error"]

SMALL = 1e-140  # numbers below it have squares near 0, or 0


def relative_error(x: np.ndarray, recovered: np.ndarray) -> float:
    """Relative L2 error ``|recovered - x| / |x|`` in float64; 0 if both are equal, infinite if only ``x`` is
    all zeros."""
    exact, after = _scaled(x.ravel(), recovered.ravel())
    difference = after - exact
    error, norm = np.linalg.norm(difference), np.linalg.norm(exact)
    return float(error / norm) if norm else (math.inf if error else 0.0)


def channel_error(x: np.ndarray, recovered: np.ndarray) -> float:
    """Root mean square of the channels' relative L2 errors; channels are the second dimension. A channel without error
    counts as 0; an error in a channel that is all zeros makes the result infinite. An array of one dimension has the
    :func:`relative_error` of the whole."""
    if x.ndim < 2:
        return relative_error(x, recovered)
    across = tuple(axis for axis in range(x.ndim) if axis != 1)
    exact, after = _scaled(x, recovered)
    error, norm = (np.square(values).sum(across) for values in (after - exact, exact))
    if (error[norm == 0] > 0).any():
        return math.inf
    return float(np.sqrt(np.mean(np.divide(error, norm, out=np.zeros_like(error), where=norm > 0))))


def psnr(x: np.ndarray, recovered: np.ndarray) -> float:
    """Peak signal to noise ratio in dB; the peak is the range of ``x``, max - min. Infinite if both are equal, minus
    infinity if the error is not finite or the range is 0."""
    exact, after = _scaled(x, recovered)
    mse = np.mean((after - exact) ** 2)
    peak = float(exact.max()) - float(exact.min())
    if not mse:
        return math.inf
    return 20 * math.log10(peak / math.sqrt(mse)) if peak and math.isfinite(mse) else -math.inf


def _scaled(x, recovered):
    # Both in float64, divided by the largest magnitude of x if squares would vanish: ratios of errors stay.
    exact, after = x.astype(np.float64), recovered.astype(np.float64)
    most = float(np.abs(exact).max(initial=0))
    return (exact / most, after / most) if 0 < most < SMALL else (exact, after)


@dataclass(frozen=True)
class Errors:
    """Errors over the values that are finite in the original, and counts of those that are not."""

    relative_error: float
    channel_error: float
    psnr: float
    largest_error: float
    nans: int
    infinities: int


def errors(x: np.ndarray, recovered: np.ndarray) -> Errors:
    """The :class:`Errors` of ``recovered``; there is no error if ``x`` has no finite value."""
    with np.errstate(invalid="ignore"):  # casts of signalling NaNs
        x, y = (np.asarray(values).astype(np.float64) for values in (x, recovered))
    nans, finite = int(np.count_nonzero(np.isnan(x))), np.isfinite(x)
    infinities = x.size - nans - int(np.count_nonzero(finite))
    if not finite.any():
        return Errors(0.0, 0.0, math.inf, 0.0, nans, infinities)
    with np.errstate(over="ignore", invalid="ignore"):
        if infinities + nans:
            channels = channel_error(np.where(finite, x, 0), np.where(finite, y, 0))
            x, y = x[finite], y[finite]
        else:
            channels = channel_error(x, y)
        return Errors(relative_error(x, y), channels, psnr(x, y), float(np.abs(y - x).max()), nans, infinities)
