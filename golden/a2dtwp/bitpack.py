"""Bitpack and Bitunpack: float32 cut to its most significant bytes (A2DTWP, section III)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.common.content import octets


def _check(roundto):
    if roundto not in (1, 2, 3, 4):
        raise ValueError(f"RoundTo must be 1, 2, 3 or 4 bytes, not {roundto!r}")


def pack(x: ArrayLike, roundto: int) -> NDArray[np.uint8]:
    """The `roundto` most significant bytes of each float32 of `x` (any shape, memory order), without rounding, little
    endian inside, back to back: uint8."""
    _check(roundto)
    words = np.ravel(np.asarray(x, np.float32)).view(np.uint32).astype("<u4")
    return words.view(np.uint8).reshape(-1, 4)[:, 4 - roundto :].reshape(-1)


def unpack(content: ArrayLike, roundto: int, count: int) -> NDArray[np.float32]:
    """The first `count` values (float32) of what :func:`pack` gave; the bytes that it dropped are zero.

    Raises ValueError if `content` is not uint8 or has too few bytes for so many values, and for a negative `count`.
    """
    _check(roundto)
    content = octets(content, count)
    if content.size < count * roundto:
        raise ValueError(f"{count} values of {roundto} bytes need {count * roundto} bytes, there are {content.size}")
    upper = content[: count * roundto].reshape(count, roundto)
    return np.pad(upper, ((0, 0), (4 - roundto, 0))).reshape(-1).view("<u4").astype(np.uint32).view(np.float32)
