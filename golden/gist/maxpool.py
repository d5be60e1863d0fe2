"""Max pooling with the map from Y to X: for each output the place of the maximum in its window (Gist, section IV-A).

Tensors are [..., H, W], any number of planes. A place is i * k + j for row i and column j of the k x k window, counted
from the window's corner whether that lies in the padding or not.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.common import fadd
from actcodec.golden.common.content import octets


def size(length: int, k: int, stride: int, padding: int) -> int:
    """Outputs along a dimension of `length` values; ValueError if that is no legal pooling."""
    for name, value, legal in (("k", k, (2, 3)), ("stride", stride, (1, 2, 3)), ("padding", padding, (0, 1))):
        if value not in legal:
            raise ValueError(f"{name} is {value}, legal are {', '.join(map(str, legal))}")
    if length < 1 or length + 2 * padding < k:
        raise ValueError(f"a dimension of {length} with padding {padding} has no window of {k}")
    return (length + 2 * padding - k) // stride + 1


def _windows(shape, k, stride, padding):
    """For each of k * k places in row-major order its number and where the outputs find it in a padded plane."""
    reach = [slice(o, o + (size(n, k, stride, padding) - 1) * stride + 1, stride) for n in shape for o in range(k)]
    for i in range(k):
        for j in range(k):
            yield i * k + j, (..., reach[i], reach[k + j])


def _padded(x, padding):
    return np.pad(x, [(0, 0)] * (x.ndim - 2) + [(padding, padding)] * 2)


def forward(x: NDArray[np.float32], k: int, stride: int, padding: int) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """The maxima of the windows of `x`, bit-exact copies, and their places (uint8), both [..., Ho, Wo].

    Of equal values, +0.0 and -0.0 among them, the first counts. A NaN is greater than all, the last one as in PyTorch.
    Padding never is a maximum.
    """
    plane = x.shape[-2:]
    shape = *x.shape[:-2], *(size(length, k, stride, padding) for length in plane)
    inside = _padded(np.ones(plane, bool), padding)
    x = _padded(np.asarray(x, np.float32), padding)
    y, place, begun = np.zeros(shape, np.float32), np.zeros(shape, np.uint8), np.zeros(shape, bool)
    for number, window in _windows(plane, k, stride, padding):
        value, real = x[window], inside[window]
        better = real & (~begun | (value > y) | np.isnan(value))
        y, place, begun = np.where(better, value, y), np.where(better, np.uint8(number), place), begun | real
    return y, place


def legal(place: ArrayLike, height: int, width: int, k: int, stride: int, padding: int) -> NDArray[np.bool]:
    """Which of `place` [..., Ho, Wo] lie in their window, and not in the padding."""
    inside = _padded(np.ones((height, width), bool), padding)
    result = np.zeros(np.shape(place), bool)
    for number, window in _windows((height, width), k, stride, padding):
        result |= (place == number) & inside[window]
    return result


def backward(dy: ArrayLike, place: np.ndarray, height: int, width: int, k: int, stride: int,
             padding: int) -> NDArray[np.float32]:
    """Gradient of maps [..., height, width] from that of the outputs, `dy`, and the places of the maxima.

    Where windows overlap, gradients are added up in raster order of the outputs, starting from +0.0, by `fadd.add`.
    What points into the padding or out of its window is dropped. Raises ValueError as `size` does, and for gradients or
    places of another shape than outputs have.
    """
    dy, outputs = np.asarray(dy, np.float32), tuple(size(length, k, stride, padding) for length in (height, width))
    if np.shape(place) != dy.shape or dy.shape[-2:] != outputs:
        raise ValueError(f"gradients are {dy.shape} and places {np.shape(place)}, the outputs of a map {outputs}")
    dx = np.zeros((*dy.shape[:-2], height + 2 * padding, width + 2 * padding), np.float32)
    # The later of two outputs that share a value has it further up in its window, or further to the left.
    for number, window in reversed(list(_windows((height, width), k, stride, padding))):
        dx[window] = np.where(place == number, fadd.add(dx[window], dy), dx[window])
    return dx[..., padding : padding + height, padding : padding + width]


def pack(place: ArrayLike) -> NDArray[np.uint8]:
    """Places as bytes, two in each, the first in the low half; the last byte is filled with zeros. ValueError for
    places that do not fit."""
    flat = np.ravel(place)
    if np.any(flat >> 4):
        raise ValueError(f"places are {flat.min()} to {flat.max()}, legal are 0 to 15")
    flat = np.pad(flat.astype(np.uint8), (0, flat.size % 2))
    return flat[0::2] | flat[1::2] << np.uint8(4)


def unpack(packed: ArrayLike, count: int) -> NDArray[np.uint8]:
    """Undoes `pack` for `count` places; ValueError unless `packed` is uint8 and has the bytes that these need."""
    pairs = octets(packed, count)
    if pairs.size != -(-count // 2):
        raise ValueError(f"the map has {pairs.size} bytes, {count} places need {-(-count // 2)}")
    return np.stack([pairs & 15, pairs >> 4], axis=1).reshape(-1)[:count]
