"""Compressed blocks as the CDUs give and take them, for the benches of what stands between CDUs and DMA."""

from dataclasses import replace

import numpy as np

from actcodec.codecs import Mode, Stage, lane_modes
from actcodec.golden.jpegact import zvc
from actcodec.golden.offload.blocks import GROUP
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.wire.block_format import BlockFormat
from tb.harness import chunk
from tb.offload.trim import TRIM

KINDS = ("any", "zero", "full", "tiny", "mixed")
OWN = {mode.name: mode for mode in (TRIM, *(
    Mode(name, code, (Stage("", format=BlockFormat(kind, row)),)) for name, code, kind, row in (
        ("segment", 58, "segment", 3), ("segments", 59, "segments", 4), ("narrow", 57, "segments", 1),
        ("three", 56, "fixed", 3), ("half", 55, "fixed", 16))), *(mode.halves for mode in lane_modes() if mode.halves))}
"""The benches' own modes, some of which are nothing but a format of blocks; and those of 16-bit words."""

WIDTHS = (2, 1000, 3, 9, 7, 33, 1, 5, 20, 4, 65, 6, 8, 12, 31, 64, 16, 100, 47)  # sectors of a row


def modes(names):
    """The modes of these names, the benches' own among them."""
    return tuple(OWN.get(name) or lane_modes(name)[0] for name in names)


def place(count):
    """Of a tensor of ``count`` blocks in memory's order: sectors in a row, and how many its last block lacks."""
    return WIDTHS[count % len(WIDTHS)], count * 5 % 8


def segments(count):
    """Which rows of its blocks begin a segment: bool [blocks, 8]."""
    width, void = place(count)
    sector = np.arange(8 * count)
    return (((sector % 8 == 0) | (sector % width == 0)) & (sector < 8 * count - void)).reshape(count, 8)


def block_format(mode):
    """That of a mode, by its name."""
    return modes([mode])[0].format


def row_bytes(names):
    """Most bytes of a row, for a unit that can do the modes of these names."""
    return max(8, *(block_format(name).row for name in names))


def first_bytes(names):
    """Most bytes of a block's first chunk: a row, and what is in front of it, at least as much as a mask."""
    return max(8 + row_bytes(names), *(block_format(name).head + 8 for name in names))


def blocks(random, mode, count, kind="any"):
    """Payload (uint8) and sizes of ``count`` random blocks, one after the other in ascending order."""
    form = block_format(mode)
    if form.kind in ("fixed", "halves"):
        sizes = np.full(count, form.longest)
        return random.integers(0, 256, sizes.sum(), np.uint8), sizes
    if form.segmented:
        sizes = 8 * form.row + (segments(count).sum(axis=1) if form.kind == "segments" else np.ones(count, int))
        return random.integers(0, 256, sizes.sum(), np.uint8), sizes
    if form.halves:
        return with_halves(random, form, *blocks_of(random, replace(form, halves=False), count, kind))
    return blocks_of(random, form, count, kind)


def with_halves(random, form, payload, sizes):
    """Blocks with a mask or a first byte get two bytes more, for their halves."""
    result = []
    for block in cut(payload, sizes):
        two = random.integers(0, 256, 2, np.uint8)
        if form.kind == "mask":
            result += [two, block]
            continue
        first = int(block[0]) + 2 if form.bits == 8 else int(block[0]) & 0xC0 | int(block[0]) + 2 & 63
        result += [np.array([first], np.uint8), two, block[1:]]
    return np.concatenate(result), sizes + 2


def blocks_of(random, form, count, kind):
    """As :func:`blocks`, of a format with a mask or a first byte."""
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
    if form.halves and form.bits == 6:
        return {0: 64, 1: 66}.get(first % 64, int(first % 64))
    return int(first) if form.bits == 8 else 64 if first % 64 == 63 else int(first % 64)


def split(block, mode, begins=None):
    """A block as eight pairs: a byte of mask (0 if there is none; of a counted block the first byte, with the first
    row; of one of halves the first half's byte, and behind it the other's; whether a segment begins there, of which
    ``begins`` has a bit for each row), and the bytes of that row."""
    form = block_format(mode)
    if form.segmented:
        flags = [k == 0 for k in range(8)] if form.kind == "segment" else begins.tolist()
        ends = np.cumsum([form.row + flag for flag in flags])
        return [(int(flag), row.tobytes()) for flag, row in zip(flags, np.split(block, ends[:-1]), strict=True)]
    if form.kind == "fixed":
        return [(0, row.tobytes()) for row in block.reshape(8, -1)]
    if form.kind == "halves":
        return [(int(block[min(k, 1)]), row.tobytes()) for k, row in enumerate(block[form.head :].reshape(8, -1))]
    if form.kind == "counted":
        return [(int(block[0]) if k == 0 else 0, block[form.head + form.row * k :][: form.row].tobytes())
                for k in range(8)]
    mask, words = block[form.head - zvc.MASK : form.head], block[form.head :]
    ends = np.cumsum(np.bitwise_count(mask).astype(int)) * form.item
    return [(int(byte), row.tobytes()) for byte, row in zip(mask, np.split(words, ends[:-1]), strict=True)]


def chunks(block, mode, size, begins=None):
    """A block as a CDU's eight chunks; a counted one's have up to 16 bytes each, or a row's, in any way."""
    form = block_format(mode)
    if form.kind == "counted":
        random, left, result = np.random.default_rng(block), block.tobytes(), []
        most = [16] * 8 if form.row == 8 else [1 + form.row, *[form.row] * 7]
        for k in range(8):
            count = int(random.integers(max(not k, len(left) - sum(most[k + 1 :])), min(most[k], len(left)),
                                        endpoint=True))
            result.append(chunk(left[:count], 0, size))
            left = left[count:]
        return result
    rows = split(block, mode, begins)
    front = block[: form.head].tobytes()
    return [chunk((b"" if k else front) + row, 0, size) for k, (_, row) in enumerate(rows)]


def halves(block, form):
    """The bytes of a block's halves, as a number."""
    at = form.head - 10 if form.kind == "mask" else 1
    return int.from_bytes(block[at : at + 2].tobytes(), "little") if form.halves else 0


def cut(payload, sizes):
    """The blocks of a payload, as a list."""
    return np.split(payload, np.cumsum(sizes)[:-1])


def owner(count, cdus):
    """The CDU of each of ``count`` blocks, in ascending order."""
    return np.arange(count) // GROUP % cdus


def even(random, mode, most=40):
    """As :func:`blocks`, of a number up to ``most`` that fills packets; of any that does where that is not luck."""
    if block_format(mode).segmented or block_format(mode).kind == "halves":
        candidates = (blocks(random, mode, count) for count in range(2, 1000))
        return next((payload, sizes) for payload, sizes in candidates if len(payload) % stream.PACKET == 0)
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
