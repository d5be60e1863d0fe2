"""JPEG-ACT's coders behind MX's elements, a model for each function of ``rtl/mx/coded.py`` (see `jpegact/path.py`).

Elements are bytes to a coder, those of fewer bits in the low bits. The two scales of a block pass it: with ZVC they are
in front of the mask; with `nibble` and `rice` they are behind the first byte, which counts them, too: it says 2 more.
Six bits of `rice`'s do, modulo 64, so that there 0 stands for 64 bytes that follow, and 1 for the 66 of a raw block.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.jpegact import bits, path, zvc
from actcodec.golden.jpegact.bits import Fault, Recovered
from actcodec.golden.mx.path import HEAD
from actcodec.golden.offload.blocks import BLOCK

__all__ = ["Coded", "Counted", "Nibble", "Rice", "Zvc"]


class Coded(path.Coder):
    """A ``coder`` of codes, behind blocks' scales: it takes and gives uint8 [n, 2 + 64]."""

    coder: path.Coder
    place = 0  # in a block, of its scales

    def __init__(self) -> None:
        self.shortest = HEAD + self.coder.shortest

    def encode(self, x: np.ndarray, settings: Mapping[str, int]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        payload, sizes = self.coder.encode(values(x), settings)
        starts = np.cumsum(sizes) - sizes
        payload = self.first(payload, starts, HEAD)
        payload = np.insert(payload, np.repeat(starts + self.place, HEAD), x[:, :HEAD].reshape(-1))
        return payload, sizes + HEAD

    def decode(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64], shape: tuple[int, ...],
               settings: Mapping[str, int]) -> np.ndarray:
        where = self._where(sizes)
        scale = payload[where]
        payload = self.first(np.delete(payload, where.reshape(-1)), np.cumsum(sizes - HEAD) - sizes + HEAD, -HEAD)
        codes = self.coder.decode(payload, sizes - HEAD, (len(sizes), BLOCK), settings)
        return np.concatenate([scale, codes.view(np.uint8)], axis=1)

    def scales(self, payload: NDArray[np.uint8], sizes: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Those of blocks of a payload, uint8 [n, 2]."""
        return payload[self._where(sizes)]

    def _where(self, sizes):
        return (np.cumsum(sizes) - sizes + self.place)[:, None] + np.arange(HEAD)

    def first(self, payload: NDArray[np.uint8], starts: NDArray[np.int64], more: int) -> NDArray[np.uint8]:
        """The payload with first bytes, at ``starts``, that count so many ``more``."""
        return payload


class Zvc(Coded):
    coder = path.Zvc8()

    def sizes(self, payload: bytes, n: int) -> NDArray[np.int64]:
        return zvc.sizes(payload, n, front=HEAD)


class Counted(Coded):
    """Behind a first byte of which ``mask`` counts."""

    coder: path.Planes
    place = 1
    mask: int

    def __init__(self) -> None:
        super().__init__()
        first = np.arange(256)
        plain = first & ~self.mask | first - HEAD & self.mask  # the coder's own
        lacks = (self.mask == 255) & (first < HEAD)  # not even the scales
        self._plain = np.where(lacks, 0, plain).astype(np.uint8)
        self._lacks = lacks
        self._legal = self.coder.code.LEGAL[plain] & ~lacks
        self._step = np.where(lacks, 1 + first, np.array(self.coder.code.STEP)[plain] + HEAD).tolist()

    def fit(self, x: np.ndarray, settings: Mapping[str, int]) -> dict[str, int]:
        """The coder's."""
        return self.coder.fit(values(x), settings)

    def sizes(self, payload: bytes, n: int) -> NDArray[np.int64]:
        return bits.sizes(payload, n, self._step, self._legal)

    def first(self, payload: NDArray[np.uint8], starts: NDArray[np.int64], more: int) -> NDArray[np.uint8]:
        payload = payload.copy()
        first = payload[starts]
        payload[starts] = first & (255 - self.mask) | first + np.uint8(more % 256) & self.mask
        return payload

    def recover(self, payload: bytes, n: int, settings: Mapping[str, int]) -> Recovered:
        """`n` blocks of any payload, malformed ones included, uint8 [n, 2 + 64]. Faults are those of the coder's
        ``recover``; and a first byte that does not even count the scales, of a block that gives zeros then."""
        scale, faults, inner, at = np.zeros((n, HEAD), np.uint8), np.zeros(n, np.uint8), [], 0
        for k in range(n):
            there = at < len(payload)
            block = payload[at : at + self._step[payload[at]]] if there else b""
            size = self._step[payload[at]] if there else 1
            at += size
            if at > len(payload) or not there:
                faults[k] = Fault.SHORT
            first = block[0] if there else 0
            if not there or self._lacks[first]:
                faults[k] |= Fault.HEADER if there else 0
                inner.append(b"\0")
                continue
            block = block.ljust(size, b"\0")
            scale[k] = list(block[1 : 1 + HEAD])
            inner.append(bytes([self._plain[first]]) + block[1 + HEAD :])
        code = self.coder.code
        result = code.recover(b"".join(inner), n, self.coder.table_of(settings))
        blocks = np.concatenate([scale, result.blocks.view(np.uint8)], axis=1)
        return Recovered(blocks, faults | result.faults, max(len(payload) - at, 0))


class Nibble(Counted):
    coder, mask = path.Nibble(), 255


class Rice(Counted):
    coder, mask = path.Rice(), 63


def values(x: np.ndarray) -> NDArray[np.int8]:
    """The codes of blocks with scales, as a coder takes them."""
    return np.ascontiguousarray(x[:, HEAD:]).view(np.int8)
