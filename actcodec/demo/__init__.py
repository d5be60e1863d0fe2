"""The package's sample of activations, and ``actcodec demo``, which compresses it."""

import io
from importlib import resources

import numpy as np
from numpy.typing import NDArray

__all__ = ["sample"]


def sample() -> dict[str, NDArray[np.float32]]:
    """The package's sample: {layer: its output, float32 NCHW}, a batch of 4 from a ResNet-20 trained on CIFAR-10.
    ``conv*`` are dense, ``ReLU*`` sparse."""
    data = resources.files("actcodec").joinpath("data/resnet20.npz").read_bytes()
    with np.load(io.BytesIO(data), allow_pickle=False) as tensors:
        return dict(tensors)
