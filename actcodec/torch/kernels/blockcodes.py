"""The nibble and Rice codes on a GPU: the functions of ``blockcodes.cpp``."""

from __future__ import annotations

from actcodec.torch.kernels.blocks import UNIT
from actcodec.torch.kernels.nibble import nibble_counts, nibble_decode, nibble_encode, nibble_sizes
from actcodec.torch.kernels.rice import rice_decode, rice_encode, rice_sizes

__all__ = ["UNIT", "nibble_counts", "nibble_decode", "nibble_encode", "nibble_sizes", "rice_decode", "rice_encode",
           "rice_sizes"]
