"""The nibble and Rice codes on a GPU: the functions of ``blockcodes.cpp``."""

from __future__ import annotations

import torch

from actcodec.torch.kernels.blocks import UNIT
from actcodec.torch.kernels.nibble import nibble_counts, nibble_decode, nibble_encode, nibble_sizes
from actcodec.torch.kernels.rice import rice_decode, rice_encode, rice_sizes

__all__ = ["UNIT", "lines", "nibble_counts", "nibble_decode", "nibble_encode", "nibble_sizes", "rice_decode",
           "rice_encode", "rice_sizes", "tiles"]


def lines(tiles: torch.Tensor, n: int, blocks: torch.Tensor) -> None:
    blocks.view(torch.int8).view(n, 8, 8).copy_(tiles.permute(2, 1, 0))


def tiles(blocks: torch.Tensor, n: int, out: torch.Tensor) -> None:
    out.copy_(blocks.view(torch.int8).view(n, 8, 8).permute(2, 1, 0))
