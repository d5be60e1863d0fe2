"""ZVC, zero value compression (JPEG-ACT, sections II-B4 and III-F, figure 4).

A block of 64 items becomes an 8-byte mask, bit i (byte i // 8, least significant bit first) set where item i is not
zero, and the non-zero items in ascending order. Items are bytes, or the 4-byte words (little endian) of cDMA+, where
zero means that all bits are.
"""

import numpy as np

from golden.jpegact.blocks import BLOCK

MASK = BLOCK // 8  # bytes


def encode(blocks):
    """Compress `blocks` ([n, 64], uint8 or uint32): the payload (uint8) and the size of each block in bytes (int64)."""
    n, item = len(blocks), blocks.dtype.itemsize
    nonzero = blocks != 0
    mask = np.packbits(nonzero, axis=1, bitorder="little")
    data = np.ascontiguousarray(blocks, blocks.dtype.newbyteorder("<")).view(np.uint8)
    keep = np.hstack([np.ones((n, MASK), bool), nonzero.repeat(item, axis=1)])
    return np.hstack([mask, data])[keep], MASK + item * np.count_nonzero(nonzero, axis=1)


def sizes(payload, n, item=1):
    """Sizes in bytes (int64) of the `n` blocks, of items of `item` bytes, that follow each other in `payload` (uint8).

    Raises ValueError if the payload is not exactly as long as its masks say.
    """
    # A block says where the next one starts. Where each position would lead if a block started there is found for all
    # positions at once; then doubling the stride of the jumps finds the true starts in log2(n) steps.
    end, lost = payload.size, payload.size + 1
    ones = np.concatenate([[0], np.cumsum(np.bitwise_count(payload), dtype=np.int64)])
    jump = np.full(lost + 1, lost)
    room = max(end - MASK + 1, 0)  # positions where a mask has room
    jump[:room] = np.arange(MASK, MASK + room) + item * (ones[MASK:] - ones[:room])
    jump[:room][jump[:room] > end] = lost
    starts = np.zeros(1, np.int64)
    while starts.size <= n:
        starts = np.concatenate([starts, jump[starts]])
        jump = jump[jump]
    if starts[n] != end:
        raise ValueError(f"the masks of {n} blocks do not add up to the payload's {end} bytes")
    return np.diff(starts[: n + 1])


def decode(payload, n, dtype=np.uint8):
    """The `n` blocks ([n, 64]) of items of `dtype` (uint8 or uint32) in `payload` (uint8); the reverse of `encode`.

    Raises ValueError if the payload is not exactly as long as its masks say.
    """
    dtype = np.dtype(dtype)
    size = sizes(payload, n, dtype.itemsize)
    mask = (np.cumsum(size) - size)[:, None] + np.arange(MASK)
    data = np.ones(payload.size, bool)
    data[mask] = False
    blocks = np.zeros((n, BLOCK), dtype)
    nonzero = np.unpackbits(payload[mask], axis=1, bitorder="little").astype(bool)
    blocks[nonzero] = payload[data].view(dtype.newbyteorder("<"))
    return blocks
