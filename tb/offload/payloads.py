"""Compressed blocks as the CDUs give and take them, for the benches of what stands between CDUs and DMA."""

import numpy as np

from actcodec.codecs import lane_modes
from actcodec.golden.jpegact import zvc
from actcodec.golden.offload import stream
from actcodec.golden.offload.blocks import GROUP
from tb.harness import chunk
from tb.offload.trim import TRIM

KINDS = ("any", "zero", "full", "tiny", "mixed")


def modes(names):
    """The modes of these names, the benches' own counted one among them."""
    return tuple(TRIM if name == TRIM.name else lane_modes(name)[0] for name in names)


def block_format(mode):
    """That of a mode, by its name."""
    return modes([mode])[0].format


def row_bytes(names):
    """Most bytes of a row, for a unit that can do the modes of these names."""
    return max(8, *(block_format(name).row for name in names))


def blocks(random, mode, count, kind="any"):
    """Payload (uint8) and sizes of ``count`` random blocks, one after the other in ascending order."""
    form = block_format(mode)
    if form.kind == "fixed":
        sizes = np.full(count, form.longest)
        return random.integers(0, 256, sizes.sum(), np.uint8), sizes
    if form.kind == "counted":
        row, most = form.row, 8 * form.row
        follow = {"any": random.integers(0, most + 1, count), "zero": np.zeros(count, int),
                  "full": np.full(count, most), "tiny": random.integers(0, 3, count),
                  "mixed": random.choice([0, row - 1, row, min(most, 127), most], count)}[kind]
        if form.bits == 6:
            follow[follow == 63] = 64
        heads = np.cumsum(follow + 1) - follow - 1
        payload = random.integers(0, 256, (follow + 1).sum(), np.uint8)
        payload[heads] = follow if form.bits == 8 else np.minimum(follow, 63) | random.integers(0, 4, count) << 6
        return payload, follow + 1
    dtype = np.dtype(f"u{form.item}")
    density = {"any": random.random((count, 1)), "zero": np.zeros((count, 1)), "full": np.ones((count, 1)),
               "tiny": np.full((count, 1), 0.03), "mixed": random.choice([0, 1, 0.9], (count, 1))}[kind]
    values = random.integers(1, np.iinfo(dtype).max, (count, 64), dtype, endpoint=True)
    return zvc.encode(values * (random.random((count, 64)) < density).astype(dtype))


def follows(first, form):
    """How many bytes follow the first one of a counted block."""
    return int(first) if form.bits == 8 else 64 if first % 64 == 63 else int(first % 64)


def split(block, mode):
    """A block as eight pairs: a byte of mask (0 if there is none; of a counted block the first byte, with the first
    row), and the bytes of that row."""
    form = block_format(mode)
    if form.kind == "fixed":
        return [(0, row.tobytes()) for row in block.reshape(8, -1)]
    if form.kind == "counted":
        return [(int(block[0]) if k == 0 else 0, block[1 + form.row * k :][: form.row].tobytes()) for k in range(8)]
    mask, words = block[: zvc.MASK], block[zvc.MASK :]
    ends = np.cumsum(np.bitwise_count(mask).astype(int)) * form.item
    return [(int(byte), row.tobytes()) for byte, row in zip(mask, np.split(words, ends[:-1]), strict=True)]


def chunks(block, mode, size):
    """A block as a CDU's eight chunks; a counted one's have up to 16 bytes each, or a row's, in any way."""
    form = block_format(mode)
    if form.kind == "counted":
        random, left, found = np.random.default_rng(block), block.tobytes(), []
        most = [16] * 8 if form.row == 8 else [1 + form.row, *[form.row] * 7]
        for k in range(8):
            count = int(random.integers(max(not k, len(left) - sum(most[k + 1 :])), min(most[k], len(left)),
                                        endpoint=True))
            found.append(chunk(left[:count], 0, size))
            left = left[count:]
        return found
    rows = split(block, mode)
    front = block[: form.head].tobytes()
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
