"""Addition of float32 numbers in which subnormals count as zero."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

QUIET_NAN = np.uint32(0x7FC0_0000)


def flush(x: ArrayLike) -> NDArray[np.float32]:
    """`x` (float32) with +0.0 or -0.0 for subnormal numbers, by their sign."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def add(a: ArrayLike, b: ArrayLike) -> NDArray[np.float32]:
    """a + b as in IEEE 754, to nearest, ties to even; but subnormal operands and results count as zeros of the same
    sign, and every NaN is the same one, quiet and positive.

    A sum below the smallest normal number is exact, so that it does not matter whether it is flushed before or after
    rounding.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = flush(flush(a) + flush(b))
    return np.where(np.isnan(total), QUIET_NAN.view(np.float32), total)
