"""Collector and splitter: the streams of several CDUs as one payload (JPEG-ACT, section III-G, figure 15)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.offload.blocks import GROUP

PACKET = 128  # bytes that leave at once
MAX_CDUS = 8
TURN = 8  # bytes that a stream without blocks moves when it is its turn


def order(blocks: int, cdus: int) -> NDArray[np.int64]:
    """Numbers of the blocks in the order of the payload; int64 [blocks].

    Group g (four consecutive blocks) is CDU g mod `cdus`'s; of every run of `cdus` groups come first the blocks 0, then
    the blocks 1, and so on; blocks that do not exist are left out. Raises ValueError unless `cdus` is an int, 1 to 8.
    """
    if type(cdus) is not int or not 1 <= cdus <= MAX_CDUS:  # True and 2.0 are none
        raise ValueError(f"cdus is {cdus!r}, legal are the integers 1 to {MAX_CDUS}")
    runs = -(-blocks // (GROUP * cdus))
    number = np.arange(runs * GROUP * cdus).reshape(runs, cdus, GROUP).swapaxes(1, 2).reshape(-1)
    return number[number < blocks]


def reorder(payload: NDArray[np.uint8], sizes: NDArray[np.int64],
            source: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Blocks picked from a payload in the order `source` (indices of blocks): their payload and their sizes."""
    starts = np.cumsum(sizes) - sizes
    picked = sizes[source]
    offset = starts[source] - (np.cumsum(picked) - picked)
    return payload[np.repeat(offset, picked) + np.arange(picked.sum())], picked


def interleave(payload: NDArray[np.uint8], sizes: NDArray[np.int64],
               cdus: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Collector: from blocks in ascending order (payload, uint8, and the size of each in bytes) to the payload's order.

    Returns payload and sizes in the new order. Blocks follow each other with no padding.
    """
    source = order(sizes.size, cdus)
    return (payload, sizes) if cdus == 1 else reorder(payload, sizes, source)


def deinterleave(payload: NDArray[np.uint8], sizes: NDArray[np.int64],
                 cdus: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Splitter: the reverse of `interleave`; `sizes` are in the payload's order, as `zvc.sizes` finds them."""
    source = np.argsort(order(sizes.size, cdus))
    return (payload, sizes) if cdus == 1 else reorder(payload, sizes, source)


def packets(payload: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The payload as the DMA gets it: uint8 [packets, 128], the last one padded with zeros."""
    return np.pad(payload, (0, -payload.size % PACKET)).reshape(-1, PACKET)


def _turns(lengths):
    """Where in the streams, one after the other and each filled up to whole turns, the turns of the payload lie."""
    turns = -(-np.asarray(lengths, np.int64) // TURN)
    return np.argsort(np.concatenate([np.arange(n) for n in turns]), kind="stable")


def weave(streams: Sequence[bytes]) -> bytes:
    """Collector: the streams of several CDUs (bytes), which have no blocks, as one payload.

    CDUs take turns of 8 bytes. The last turn of each is filled up with zeros; from then on it is left out.
    """
    filled = b"".join(data + bytes(-len(data) % TURN) for data in streams)
    return np.frombuffer(filled, np.uint8).reshape(-1, TURN)[_turns([len(data) for data in streams])].tobytes()


def unweave(payload: bytes, lengths: Sequence[int]) -> list[bytes]:
    """Splitter: the streams of `lengths` bytes in such a payload, which may end too soon, or go on: a list of bytes."""
    source = _turns(lengths)
    size = TURN * source.size
    there = np.frombuffer(payload[:size], np.uint8)
    turns, known = np.zeros((2, source.size, TURN), np.uint8)
    turns.reshape(-1)[: there.size], known.reshape(-1)[: there.size] = there, 1
    back = np.argsort(source)
    turns, known, streams, at = turns[back].reshape(-1), known[back].reshape(-1), [], 0
    for length in lengths:
        streams.append(turns[at : at + known[at : at + length].sum()].tobytes())
        at += -(-length // TURN) * TURN
    return streams
