"""Places of sectors for the benches of the memory side: rows of any width and stride, tiles, and anything at random."""

import numpy as np

from actcodec.golden.offload.memory.traffic import Places
from tb.harness import pack

SIZE = 1 << 16  # bytes of memory
TABLE = 0xA000  # where the table of scales lies; the tensors are in front of it
CHANNELS = 600


def rows(base, width, count, stride=None, height=3, tiled=False, size=4):
    """Sectors of ``count`` rows of ``width`` values of ``size`` bytes, ``stride`` bytes apart; ``tiled`` brings eight
    rows of up to four tiles after each other, with rows of padding at the bottom."""
    tiles = -(-width // 8)
    if tiled:
        row, left, tile = np.meshgrid(np.arange(8), np.arange(0, tiles, 4), np.arange(4), indexing="ij")
        row, tile = row.swapaxes(0, 1).reshape(-1), (left + tile).swapaxes(0, 1).reshape(-1)
        row, tile = row[tile < tiles], tile[tile < tiles]
        row = (np.arange(0, count, 8)[:, None] + row).reshape(-1)
        tile = np.resize(tile, row.size)
    else:
        row, tile = np.divmod(np.arange(count * tiles), tiles)
    words = np.where(row < count, np.clip(width - 8 * tile, 0, 8), 0)
    channel = np.minimum(row, count - 1) // height
    return Places(base + row * (stride or size * width) + 8 * size * tile, words, channel, row // 8 % 2)


def anything(random, count, size=4):
    """Sectors anywhere, many of them near the one before, of any number of values, with any channel and slot."""
    near = np.cumsum(random.integers(-2, 16, count)) + random.integers(0, 64)
    word = np.where(random.random(count) < 0.8, near, random.integers(0, TABLE // size, count)) % (TABLE // size - 8)
    channel = np.cumsum(random.random(count) < 0.3) * random.integers(1, 5)
    channel = np.where(random.random(count) < 0.9, channel % CHANNELS, random.integers(0, CHANNELS, count))
    return Places(size * word, random.choice([0, 1, 4, 7, 8, 8, 8, 8], count), channel, random.integers(0, 2, count))


def some(random, kind, size=4):
    """A tensor of a kind, "rows", "strided", "tiles" or "anything", of values of ``size`` bytes."""
    if kind == "anything":
        return anything(random, int(random.integers(1, 120)), size)
    width, count = int(random.integers(1, 60)), int(random.integers(1, 12))
    stride = None if kind == "rows" else size * (width + int(random.integers(0, 40)))
    base = size * int(random.integers(0, 4096))
    return rows(base, width, count, stride, int(random.integers(1, 5)), kind == "tiles", size)


def cases():
    """Tensors that meet what chance may leave out: bursts of every length, and one that meets a border of 4 KiB; lines
    of scales in front of sectors of every kind; every kind of last sector; many sectors in few beats."""
    padding = rows(0, 8, 9, height=1)
    padding.words[8] = 0
    return [*(rows(0, 8 * count, 3, 256) for count in range(1, 9)), rows(0xF80, 8, 40), rows(4, 8, 3, 96),
            rows(0, 8, 20, height=1), rows(4, 8, 20, height=1), rows(4, 2, 20, height=1), padding,
            rows(0, 8, 3, tiled=True), rows(0, 2, 2), rows(4, 8, 1), rows(0x40, 9, 20)]


KINDS = ("rows", "strided", "tiles", "anything")


def tell_size(dut, size):
    """Tells a unit of how many bytes values are, as far as it has ports for that."""
    for name, bytes_ in (("half", 2), ("byte", 1)):
        if hasattr(dut, name):
            getattr(dut, name).value = size == bytes_
        else:
            assert size != bytes_, f"the unit has no {name}"


def payloads(places, width=40):
    """A tensor's places as the payloads of a stream."""
    count = len(places.address)
    return [int(address) | pack([words], 4) << width | int(channel) << width + 4 | int(slot) << width + 36
            | (k == count - 1) << width + 37
            for k, (address, words, channel, slot) in enumerate(zip(*places, strict=True))]
