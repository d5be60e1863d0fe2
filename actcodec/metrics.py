"""How good a compressed tensor is: size and error (spec of the sizes: docs/container.md, "Accounting")."""

import math

import numpy as np

__all__ = ["psnr", "ratio_with_side", "relative_error", "tensor_bytes"]


def tensor_bytes(compressed):
    """Bytes of the float32 tensor."""
    return 4 * math.prod(compressed.shape)


def ratio_with_side(compressed, file_bytes):
    """Bytes of the tensor over all bytes of the file: header, tables and scales count too."""
    return tensor_bytes(compressed) / file_bytes


def relative_error(x, recovered):
    """Relative L2 error ``|recovered - x| / |x|`` in float64; 0 if both are equal, infinite if only ``x`` is 0."""
    error = np.linalg.norm((recovered.astype(np.float64) - x).ravel())
    norm = np.linalg.norm(x.astype(np.float64).ravel())
    return error / norm if norm else (math.inf if error else 0.0)


def psnr(x, recovered):
    """Peak signal to noise ratio in dB; the peak is the range of ``x``, max - min. Infinite where both are equal."""
    mse = np.mean((recovered.astype(np.float64) - x) ** 2)
    peak = float(x.max()) - float(x.min())
    if not mse:
        return math.inf
    return 20 * math.log10(peak / math.sqrt(mse)) if peak else -math.inf
