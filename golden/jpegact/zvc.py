"""ZVC, zero value compression (JPEG-ACT, sections II-B4 and III-F, figure 4).

A block of 64 items becomes an 8-byte mask, bit i (byte i // 8, least significant bit first) set where item i is not
zero, and the non-zero items in ascending order. Items are bytes, or the 4-byte words (little endian) of cDMA+, where
zero means that all bits are.
"""

import numpy as np

from golden.jpegact.blocks import BLOCK

MASK = BLOCK // 8  # bytes
ITEMS = (1, 4)  # bytes of an item


def _check(item):
    if item not in ITEMS:
        raise ValueError(f"items have {item} bytes, legal are 1 and 4")


def _array(payload):
    return payload if isinstance(payload, np.ndarray) else np.frombuffer(payload, np.uint8)


def encode(blocks):
    """Compress `blocks` ([n, 64] or [n, 8, 8]): the payload (uint8) and the size of each block in bytes (int64).

    Items are of any type of 1 or 4 bytes and count by their bits, so the float -0.0 is not zero. Raises ValueError for
    another type or shape.
    """
    blocks = np.asarray(blocks)
    n, item = len(blocks), blocks.dtype.itemsize
    _check(item)
    if blocks.shape[1:] not in ((BLOCK,), (8, 8)):
        raise ValueError(f"shape of the blocks is {blocks.shape}, legal are [n, {BLOCK}] and [n, 8, 8]")
    blocks = np.ascontiguousarray(blocks, blocks.dtype.newbyteorder("<")).view(f"<u{item}").reshape(n, BLOCK)
    nonzero = blocks != 0
    mask = np.packbits(nonzero, axis=1, bitorder="little")
    keep = np.hstack([np.ones((n, MASK), bool), nonzero.repeat(item, axis=1)])
    return np.hstack([mask, blocks.view(np.uint8)])[keep], MASK + item * np.count_nonzero(nonzero, axis=1)


def sizes(payload, n, item=1):
    """Sizes in bytes (int64) of the `n` blocks, of items of `item` bytes, that follow each other in `payload`.

    The payload is bytes or an array of uint8. Raises ValueError if it is not exactly as long as its masks say, and
    unless `item` is 1 or 4.
    """
    _check(item)
    payload = _array(payload)
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
    """The `n` blocks ([n, 64]) of items of `dtype` (of 1 or 4 bytes) in `payload`; the reverse of `encode`.

    The payload is bytes or an array of uint8. Raises ValueError if it is not exactly as long as its masks say, and for
    a type of another size.
    """
    dtype, payload = np.dtype(dtype), _array(payload)
    size = sizes(payload, n, dtype.itemsize)
    mask = (np.cumsum(size) - size)[:, None] + np.arange(MASK)
    data = np.ones(payload.size, bool)
    data[mask] = False
    blocks = np.zeros((n, BLOCK), dtype)
    nonzero = np.unpackbits(payload[mask], axis=1, bitorder="little").astype(bool)
    blocks[nonzero] = payload[data].view(dtype.newbyteorder("<"))
    return blocks
