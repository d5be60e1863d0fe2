"""Binarize: one bit for each value of a ReLU's output (Gist, section III; JPEG-ACT, section II-B1, calls it BRC)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.common.content import octets

_INFINITE = np.int32(0x7F800000)


def forward(x: ArrayLike) -> NDArray[np.uint8]:
    """Mask of the positive values of `x` (float32, any shape, memory order), as bytes.

    Bit i (byte i // 8, least significant bit first) is x_i > 0, also of a subnormal number; NaN and -0.0 give 0. The
    last byte is filled with zeros.
    """
    # As integers, since a process may tell its processor to take subnormal numbers for zeros.
    words = np.ravel(np.asarray(x, np.float32)).view(np.int32)
    positive = words > 0
    positive &= words <= _INFINITE
    return np.packbits(positive, bitorder="little")


def backward(dy: np.ndarray, mask: ArrayLike) -> np.ndarray:
    """Gradient through the ReLU: a bit-exact copy of `dy` where the mask's bit is set, +0.0 elsewhere; shape of `dy`.

    Raises ValueError unless `mask` is uint8 and has exactly one bit (rounded up to whole bytes) for each value.
    """
    mask = octets(mask)
    if mask.size != -(-dy.size // 8):
        raise ValueError(f"mask has {mask.size} bytes, {dy.size} values need {-(-dy.size // 8)}")
    bits = np.unpackbits(mask, count=dy.size, bitorder="little").reshape(dy.shape)
    return np.where(bits, dy, np.zeros(1, dy.dtype))
