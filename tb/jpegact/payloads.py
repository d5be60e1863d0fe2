"""Compressed blocks as the CDUs give and take them, for the benches of what stands between CDUs and DMA."""

import numpy as np

from golden.jpegact import cdu, stream, zvc
from golden.jpegact.blocks import GROUP
from tb.harness import chunk

ITEMS = {"sfpr-zvc": 1, "jpeg-act": 1, "zvc": 4}  # bytes of a word, of the modes with masks
KINDS = ("any", "zero", "full", "tiny", "mixed")
WIDE = {"raw", "zvc"}


def row_bytes(modes):
    """Most bytes of a row, for a unit that can do ``modes``."""
    return 32 if WIDE & set(modes) else 8


def blocks(random, mode, count, kind="any"):
    """Payload (uint8) and sizes of ``count`` random blocks, one after the other in ascending order."""
    if mode not in ITEMS:
        sizes = np.full(count, cdu.BLOCK_BYTES[mode])
        return random.integers(0, 256, sizes.sum(), np.uint8), sizes
    dtype = np.dtype(f"u{ITEMS[mode]}")
    density = {"any": random.random((count, 1)), "zero": np.zeros((count, 1)), "full": np.ones((count, 1)),
               "tiny": np.full((count, 1), 0.03), "mixed": random.choice([0, 1, 0.9], (count, 1))}[kind]
    values = random.integers(1, np.iinfo(dtype).max, (count, 64), dtype, endpoint=True)
    return zvc.encode(values * (random.random((count, 64)) < density).astype(dtype))


def split(block, mode):
    """A block as eight pairs: a byte of mask (0 if the mode has none), and the bytes of that row."""
    if mode not in ITEMS:
        return [(0, row.tobytes()) for row in block.reshape(8, -1)]
    mask, words = block[: zvc.MASK], block[zvc.MASK :]
    ends = np.cumsum(np.bitwise_count(mask).astype(int)) * ITEMS[mode]
    return [(int(byte), row.tobytes()) for byte, row in zip(mask, np.split(words, ends[:-1]), strict=True)]


def chunks(block, mode, size):
    """A block as a CDU's eight chunks."""
    rows = split(block, mode)
    front = bytes(byte for byte, _ in rows) if mode in ITEMS else b""
    return [chunk((b"" if k else front) + row, 0, size) for k, (_, row) in enumerate(rows)]


def cut(payload, sizes):
    """The blocks of a payload, as a list."""
    return np.split(payload, np.cumsum(sizes)[:-1])


def owner(count, cdus):
    """The CDU of each of ``count`` blocks, in ascending order."""
    return np.arange(count) // GROUP % cdus


def even(random, mode, most=40):
    """As :func:`blocks`, of a number up to ``most`` that fills packets."""
    while True:
        payload, sizes = blocks(random, mode, most)
        fills = np.flatnonzero(np.cumsum(sizes) % stream.PACKET == 0)
        if fills.size:
            return payload[: sizes[: fills[0] + 1].sum()], sizes[: fills[0] + 1]


def packets(payload, null=False):
    """A payload as beats of packets; no bytes are one empty packet. ``null``: which ends all others, too."""
    last = max(-(-len(payload) // stream.PACKET) - (not null), 0)
    return [chunk(bytes(payload[k * stream.PACKET : (k + 1) * stream.PACKET]), k == last, stream.PACKET)
            for k in range(last + 1)]
