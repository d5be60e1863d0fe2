"""The size of blocks in JPEG's run lengths and Huffman codes (ITU-T T.81, section F.1.2), as ``golden/jpegact/rle.py``
encodes them in its framing "block"."""

from functools import cache
from typing import Any

import numpy as np
import torch

from actcodec.golden.jpegact.huffman import EOB, K3, K5, ZRL
from actcodec.golden.jpegact.zigzag import ZIGZAG
from actcodec.torch import kernels

__all__ = ["size"]

ORDER = ZIGZAG.astype(np.int64)
MAGNITUDES = 129  # of an int8 value, 0 among them


@cache
def tables(device: Any) -> Any:
    """The bits of a DC value of each magnitude, int32 [129]; those of an AC value after each run of zeros, int32 [63 *
    129]; the order of values, int64 [64]. An AC value of 0 has none of its own."""
    category = np.array([value.bit_length() for value in range(MAGNITUDES)])
    run = np.arange(63)[:, None]
    codes = K5.length[run % 16 << 4 | category] + category + run // 16 * K5.length[ZRL]
    codes[:, 0] = 0
    return tuple(torch.from_numpy(table.reshape(-1)).to(device) for table in (
        (K3.length[category] + category).astype(np.int32), codes.astype(np.int32), ORDER))


def size(q: torch.Tensor) -> Any:
    """The bytes of the codes of blocks, int8 [8, 8, n], without the bytes of their lengths: a number, or a tensor of
    one."""
    rows = q.view(64, -1)
    first, codes, order = tables(q.device)
    if native := kernels.of(__name__, q):
        return native.size(q, rows.shape[1], order, first, codes, int(K5.length[EOB]))
    bits = first.index_select(0, rows[0].int().abs())
    run = torch.zeros_like(bits)  # zeros before a value, times MAGNITUDES
    for place in ZIGZAG[1:].tolist():
        magnitude = rows[place].int().abs()
        bits += codes.index_select(0, run + magnitude)
        run = (run + MAGNITUDES) * (magnitude == 0)
    bits += int(K5.length[EOB]) * (run > 0)
    return (bits + 7 >> 3).sum()
