"""Bit strings out of fields of different widths."""

import numpy as np
from numpy.typing import NDArray


def packed(words: NDArray[np.uint64], lengths: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Words one after the other, in bytes whose bits they fill from the most significant one, uint8; zeros at the end.

    `words` are uint64, `lengths` (int64) their bits, at most 64; a word has no bit above its length.
    """
    if not words.size:
        return np.zeros(0, np.uint8)
    end = np.cumsum(lengths)
    start = end - lengths
    size, place, down = int(end[-1]), start >> 6, (start & 63).astype(np.uint64)
    words = words << (64 - lengths).astype(np.uint64)  # left aligned; one without bits is 0 before and after the shift
    first = np.flatnonzero(np.diff(place, prepend=-1))  # of the words that begin in the same 64 bits
    last = np.append(first[1:], words.size) - 1  # the only one of them that can go on in the next 64
    data = np.zeros((size >> 6) + 2, np.uint64)
    data[place[first]] = np.bitwise_or.reduceat(words >> down, first)
    data[place[last] + 1] |= words[last] << 1 << np.uint64(63) - down[last]
    return data.astype(">u8").view(np.uint8)[: -(-size // 8)]


def merged(values: NDArray[np.uint8], lengths: NDArray[np.uint8],
           count: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Each `count` fields, a power of two, as one word; uint8 values of at most 8 bits, and their lengths. The first
    one is the most significant: words (uint64) and their lengths (int64)."""
    fill = -values.size % count
    if fill:
        values, lengths = np.pad(values, (0, fill)), np.pad(lengths, (0, fill))
    width = 8
    while count > 1:
        width, count = 2 * width, count // 2
        values, lengths = values.astype(f"u{width // 8}"), lengths.astype(np.uint8)
        values = values[::2] << lengths[1::2] | values[1::2]
        lengths = lengths[::2] + lengths[1::2]
    return values.astype(np.uint64), lengths.astype(np.int64)
