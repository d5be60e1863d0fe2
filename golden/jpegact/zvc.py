"""ZVC, zero value compression (JPEG-ACT, sections II-B4 and III-F, figure 4).

A block of 64 items becomes an 8-byte mask, bit i (byte i // 8, least significant bit first) set where item i is not
zero, and the non-zero items in ascending order. Items are bytes, or the words of 2 or 4 bytes (little endian) of cDMA+,
where zero means that all bits are.
"""

from struct import Struct
from struct import error as StructError

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from actcodec.golden.offload.blocks import BLOCK, Payload

MASK = BLOCK // 8  # bytes
ITEMS = (1, 2, 4)  # bytes of an item

_MASK = Struct("<Q").unpack_from


def _check(item):
    if item not in ITEMS:
        raise ValueError(f"items have {item} bytes, legal are 1, 2 and 4")


def _array(payload: Payload) -> np.ndarray:
    return payload if isinstance(payload, np.ndarray) else np.frombuffer(payload, np.uint8)


def encode(blocks: ArrayLike) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Compress `blocks` ([n, 64] or [n, 8, 8]): the payload (uint8) and the size of each block in bytes (int64).

    Items are of any type of 1, 2 or 4 bytes and count by their bits, so the float -0.0 is not zero. Raises ValueError
    for another type or shape.
    """
    blocks = np.asarray(blocks)
    item = blocks.dtype.itemsize
    _check(item)
    if blocks.shape[1:] not in ((BLOCK,), (8, 8)):
        raise ValueError(f"shape of the blocks is {blocks.shape}, legal are [n, {BLOCK}] and [n, 8, 8]")
    n = len(blocks)
    blocks = np.ascontiguousarray(blocks, blocks.dtype.newbyteorder("<")).view(f"<u{item}").reshape(n, BLOCK)
    head = MASK // item  # items that a mask takes
    keep = np.ones((n, head + BLOCK), bool)
    nonzero = np.not_equal(blocks, 0, out=keep[:, head:])
    mask = np.packbits(nonzero, axis=1, bitorder="little")
    items = np.hstack([mask.view(blocks.dtype), blocks]).reshape(-1)
    return items[np.flatnonzero(keep)].view(np.uint8), MASK + item * _population(mask)


def _population(mask):
    """Bits that are set in each mask of 8 bytes, int64."""
    return np.bitwise_count(mask.view("<u8")).reshape(-1).astype(np.int64)


def sizes(payload: Payload, n: int, item: int = 1, front: int = 0) -> NDArray[np.int64]:
    """Sizes in bytes (int64) of the `n` blocks, of items of `item` bytes, that follow each other in `payload`; with
    `front` bytes in front of each mask.

    The payload is bytes or an array of uint8. Raises ValueError if it is not exactly as long as its masks say, and
    unless `item` is 1, 2 or 4.
    """
    _check(item)
    data = payload if isinstance(payload, bytes) else _array(payload).tobytes()
    at, end, result, unpack = 0, len(data), [], _MASK
    # A block says where the next one starts, so this walk is serial.
    try:
        for _ in range(n):
            (mask,) = unpack(data, at + front)
            size = front + MASK + item * mask.bit_count()
            result.append(size)
            at += size
    except StructError:  # no room for a mask
        at = -1
    if at != end:
        raise ValueError(f"the masks of {n} blocks do not add up to the payload's {end} bytes")
    return np.array(result, np.int64)


def expand(payload: NDArray[np.uint8], sizes: NDArray[np.int64], dtype: DTypeLike = np.uint8) -> np.ndarray:
    """The blocks ([n, 64]) of items of `dtype` in `payload` (uint8), whose `sizes` in bytes are known and right."""
    n, dtype = len(sizes), np.dtype(dtype)
    masks = payload[(np.cumsum(sizes) - sizes)[:, None] + np.arange(MASK)]
    nonzero = np.flatnonzero(np.unpackbits(masks, bitorder="little").view(bool))
    items = payload.view(dtype.newbyteorder("<"))
    blocks = np.zeros(n * BLOCK, dtype)
    # in front of an item are the items before it, and the masks of its block and of those before
    index = np.arange(nonzero.size)
    index += MASK // dtype.itemsize * (1 + (nonzero >> 6))  # a block's number; a division takes ten times as long
    blocks[nonzero] = items.take(index)
    return blocks.reshape(n, BLOCK)


def decode(payload: Payload, n: int, dtype: DTypeLike = np.uint8) -> np.ndarray:
    """The `n` blocks ([n, 64]) of items of `dtype` (of 1, 2 or 4 bytes) in `payload`; the reverse of `encode`.

    The payload is bytes or an array of uint8. Raises ValueError if it is not exactly as long as its masks say, and for
    a type of another size.
    """
    return expand(_array(payload), sizes(payload, n, np.dtype(dtype).itemsize), dtype)
