"""Sizes of blocks in the Rice code under many tables: what :func:`golden.jpegact.rice.fit` minimizes.

All that a table does to a block is a sum, or a maximum, over its 15 anti-diagonals, each of which depends on one k.
Made once for each k, these cost a table little more than an addition for each diagonal.
"""

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.jpegact import bits
from actcodec.golden.offload.blocks import BLOCK, LANES

__all__ = ["DIAGONAL", "DIAGONALS", "GROUPS", "MOST", "RAW", "Sizes"]

GROUPS = 16
DIAGONALS = 15
RAW = 63  # L of a raw block
MOST = 62  # bytes that follow in a block that is not raw
DIAGONAL = np.add.outer(np.arange(LANES), np.arange(LANES)).reshape(BLOCK)
_ORDER = np.argsort(DIAGONAL, kind="stable")
_STARTS = np.searchsorted(DIAGONAL[_ORDER], np.arange(DIAGONALS))


class Sizes:
    """Blocks (uint8 [n, 64]) whose size under any table with k + e <= 8 for all k but the first is soon known."""

    def __init__(self, x: NDArray[np.uint8], straight: bool = False) -> None:
        self.blocks = len(x)
        u = bits.fold(x[x.any(axis=1)], straight).T.copy()  # blocks of zeros have a byte, whatever the table
        self.sums = u.sum(axis=1, dtype=np.int64)
        some = (u != 0).view(np.uint8) if straight else np.uint8(0)
        v = u - some
        shape = DIAGONALS, 8, u.shape[1]
        self._short, self._third, self._need = (np.empty(shape, np.uint8) for _ in range(3))
        for k in range(8):
            quotient = v >> k
            top = np.minimum(quotient, 2 if straight else 3)
            c = top + some
            width = k * some if straight else np.uint8(k)
            planes = (c > 0).view(np.uint8) + (c > 1)
            self._short[:, k] = np.add.reduceat((planes + width)[_ORDER], _STARTS, axis=0)
            self._third[:, k] = np.add.reduceat((c == 3).view(np.uint8)[_ORDER], _STARTS, axis=0)
            self._need[:, k] = bits.length(np.maximum.reduceat((quotient - top)[_ORDER], _STARTS, axis=0))
        length = 8 * some if straight else bits.length(u)  # with any k that is less, the class is above 0
        self._length = np.asarray(length).reshape(GROUPS, BLOCK // GROUPS, u.shape[1])

    def total(self, *parameters: int) -> int:
        """Bytes of all blocks under a table: its k, flags and e."""
        k, (flags,), e = np.split(np.array(parameters), [DIAGONALS, DIAGONALS + 1])
        every = np.arange(DIAGONALS), k
        need, third = self._need[every].max(axis=0), self._third[every]
        i = (need > e[:3, None]).sum(axis=0, dtype=np.uint8)
        total = self._short[every].sum(axis=0, dtype=np.int32)
        total += e[i] * third[1:].sum(axis=0, dtype=np.int32) + np.minimum(e, 8 - k[0])[i] * third[0]
        classes = self._length[GROUPS - flags :] > k[DIAGONAL].reshape(GROUPS, -1, 1)[GROUPS - flags :]
        shown = GROUPS - flags + classes.any(axis=1).sum(axis=0)
        length = total + flags + 4 * shown + 7 >> 3
        raw = (need > e[3]) | (length > MOST)
        return self.blocks + int(np.where(raw, BLOCK, length).sum())
