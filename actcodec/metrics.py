"""How good a compressed tensor is: its error (for sizes see docs/container.md, "Accounting")."""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Errors", "errors", "psnr", "relative_error"]


def relative_error(x: np.ndarray, recovered: np.ndarray) -> float:
    """Relative L2 error ``|recovered - x| / |x|`` in float64; 0 if both are equal, infinite if only ``x`` is 0."""
    error = np.linalg.norm((recovered.astype(np.float64) - x.astype(np.float64)).ravel())
    norm = np.linalg.norm(x.astype(np.float64).ravel())
    return float(error / norm) if norm else (math.inf if error else 0.0)


def psnr(x: np.ndarray, recovered: np.ndarray) -> float:
    """Peak signal to noise ratio in dB; the peak is the range of ``x``, max - min. Infinite where both are equal, minus
    infinity where the error is not finite or there is no range."""
    mse = np.mean((recovered.astype(np.float64) - x.astype(np.float64)) ** 2)
    peak = float(x.max()) - float(x.min())
    if not mse:
        return math.inf
    return 20 * math.log10(peak / math.sqrt(mse)) if peak and math.isfinite(mse) else -math.inf


@dataclass(frozen=True)
class Errors:
    """Error over the values that are finite before, and how many are not."""

    relative_error: float
    psnr: float
    largest_error: float
    nans: int
    infinities: int


def errors(x: np.ndarray, recovered: np.ndarray) -> Errors:
    """:class:`Errors` of what became of ``x``. Without any finite value there is no error."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        x, y = (np.asarray(values).astype(np.float64).ravel() for values in (x, recovered))
    nans, finite = int(np.count_nonzero(np.isnan(x))), np.isfinite(x)
    infinities = x.size - nans - int(np.count_nonzero(finite))
    if infinities + nans:
        x, y = x[finite], y[finite]
    if not x.size:
        return Errors(0.0, math.inf, 0.0, nans, infinities)
    with np.errstate(over="ignore", invalid="ignore"):
        return Errors(relative_error(x, y), psnr(x, y), float(np.abs(y - x).max()), nans, infinities)
