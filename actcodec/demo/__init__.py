"""The activations that come with the package, and ``actcodec demo``, which compresses them."""

import io
from importlib import resources

import numpy as np
from numpy.typing import NDArray

__all__ = ["sample"]


def sample() -> dict[str, NDArray[np.float32]]:
    """The activations that come with the package: {producing layer: float32 NCHW}. ``conv*`` are dense, ``ReLU*``
    sparse; from a ResNet-20 trained on CIFAR-10, a batch of 4."""
    data = resources.files("actcodec").joinpath("data/resnet20.npz").read_bytes()
    with np.load(io.BytesIO(data), allow_pickle=False) as tensors:
        return dict(tensors)
