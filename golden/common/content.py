"""Bytes out of which a model makes values."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def octets(content: ArrayLike, count: int = 0) -> NDArray[np.uint8]:
    """`content`, of `count` values, as an array. Raises ValueError unless it is uint8 and `count` is at least 0."""
    content = np.asarray(content)
    if content.dtype != np.uint8:
        raise ValueError(f"content is {content.dtype}, has to be uint8")
    if count < 0:
        raise ValueError(f"count is {count}, has to be at least 0")
    return content
