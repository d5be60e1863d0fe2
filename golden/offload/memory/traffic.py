"""Memory traffic: the beats and bursts that places of sectors make, and what they read and write (JPEG-ACT, section
III-C).

A beat is 32 bytes, what a port carries in a cycle; its index is its address over 32. A place is where a sector lies:
its address, how many values it has (none for padding, which touches no memory), the channel whose scale it needs, and
the slot, of two, that keeps the line of scales with it. A value has `WORD` bytes, or 2 in a tensor of 16 bits.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.offload.blocks import LANES

WORD = 4
BEAT = 32
LIMIT = 8  # beats of a burst


class Places(NamedTuple):
    """Places of the sectors of a tensor; integers of one length, addresses multiples of a value's size."""

    address: np.ndarray
    words: np.ndarray
    channel: np.ndarray
    slot: np.ndarray


class Beats(NamedTuple):
    """Beats in the order of memory accesses: their index, whether they are lines of scales, whose sector's they are."""

    index: np.ndarray  # type: ignore[assignment] # tuple has a method of that name, which nobody needs
    scale: np.ndarray
    sector: np.ndarray


def _before(values, chosen):
    """For each position the value at the last chosen position in front of it; -1 if there is none."""
    position = np.maximum.accumulate(np.where(chosen, np.arange(chosen.size), -1))
    position = np.concatenate([[-1], position[:-1]])
    return np.where(position < 0, -1, values[position])


def beats(places: Places, scales: int | None = None, gather: bool = True, size: int = WORD) -> Beats:
    """Beats of `places`, in order, of values of `size` bytes.

    A sector touches the beat of its first value and that of its last one, unless it is the one touched last before.
    With `scales`, the address of the table of scales, a line of it is read in front of the sector where the sector's
    slot does not hold that line yet. Without `gather` nothing but scales is touched.
    """
    address, words = np.asarray(places.address, np.int64), np.asarray(places.words, np.int64)
    some = words > 0
    first, last = address // BEAT, (address + size * (words - 1)) // BEAT
    line = np.asarray(places.channel, np.int64) // (BEAT // WORD)
    missing = np.zeros(some.size, bool)
    for slot in (0, 1):
        used = np.asarray(places.slot) == slot
        missing |= used & (line != _before(line, used))
    index = np.stack([(scales or 0) // BEAT + line, first, last], axis=1)
    chosen = np.stack([missing & (scales is not None), gather & some & (first != _before(last, some)),
                       gather & some & (first != last)], axis=1)
    kind, sector = np.broadcast_to([True, False, False], chosen.shape), np.arange(some.size)[:, None] + np.zeros(3, int)
    return Beats(index[chosen], kind[chosen], sector[chosen])


def bursts(beats: Beats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Address and number of beats of the longest bursts: beats one after the other that lie in the same 256 bytes.

    A line of scales is a burst of its own.
    """
    index = beats.index
    joins = (np.diff(index) == 1) & (index[1:] % LIMIT != 0) & ~beats.scale[1:] & ~beats.scale[:-1]
    starts = np.flatnonzero(np.concatenate([index[:1] >= 0, ~joins]))
    return index[starts] * BEAT, np.diff(np.append(starts, index.size))


def _words(places, size):
    """Index of each word of each sector [n, 8] in memory, and which of them there are."""
    lane = np.arange(LANES)
    return np.asarray(places.address)[:, None] // size + lane, lane < np.asarray(places.words)[:, None]


def gather(memory: np.ndarray, places: Places) -> np.ndarray:
    """Sectors [n, 8], read from a memory of words, uint32 or uint16; zeros where a sector has no value."""
    index, there = _words(places, memory.itemsize)
    return np.where(there, memory[np.where(there, index, 0)], memory.dtype.type(0))


def scatter(memory: np.ndarray, places: Places, sectors: np.ndarray) -> np.ndarray:
    """The memory after the sectors were written to their places."""
    index, there = _words(places, memory.itemsize)
    result = memory.copy()
    result[index[there]] = sectors[there]
    return result


def scales(memory: NDArray[np.uint32], places: Places, table: int) -> NDArray[np.uint32]:
    """The scale of each sector, uint32 [n], from the table at address `table`."""
    return memory[table // WORD + np.asarray(places.channel)]
