"""The formats of docs/formats.md once more, as plain loops over single values: slow, and easy to check by eye."""

from collections import deque
from math import ceil

import numpy as np

from actcodec.golden.gist import dpr
from actcodec.golden.jpegact import dct, div, quantize, rle, sfpr, steps

SHAPES = [
    (1, 1, 8, 8), (2, 3, 7, 13), (1, 5, 56, 56), (4, 16, 32, 32), (3, 2, 9, 24), (1, 64, 14, 14), (2, 40, 1, 1),
    (3, 5, 2, 7), (2, 3, 2, 3), (1, 1, 1, 1), (9, 1, 1, 8), (1, 1, 1, 9), (1, 2, 40, 16), (1, 1, 36, 8), (13, 70),
    (1, 1),
]  # fmt: skip


def rows_of(x):
    """The 2-D view: a list of (values of the row, channel)."""
    n, c, h, w = (*x.shape, 1, 1)[:4]
    x = x.reshape(n, c, h, w)
    if w >= 8:
        return [(list(x[i, j, y]), j) for i in range(n) for j in range(c) for y in range(h)]
    if h * w >= 8:
        return [(list(x[i, j].ravel()), j) for i in range(n) for j in range(c)]
    return [(list(x[i].ravel()), 0) for i in range(n)]


def padded_rows(x, tiled, zero=0):
    """Rows, each as a list of sectors of 8 values, padded on the right, and at the bottom if tiled."""
    rows = [values + [zero] * (-len(values) % 8) for values, _ in rows_of(x)]
    if tiled:
        rows += [[zero] * len(rows[0])] * (-len(rows) % 8)
    return [[row[i : i + 8] for i in range(0, len(row), 8)] for row in rows]


def blocks_of(x, tiled, zero=0):
    """Blocks, each a list of 64 values."""
    rows = padded_rows(x, tiled, zero)
    if tiled:
        corners = [(y, i) for y in range(0, len(rows), 8) for i in range(len(rows[0]))]
        return [[v for row in rows[y : y + 8] for v in row[i]] for y, i in corners]
    values = [v for row in rows for sector in row for v in sector]
    values += [zero] * (-len(values) % 64)
    return [values[i : i + 64] for i in range(0, len(values), 64)]


def sector_order(rows, tiles):
    """Sector indices at a CDU's port in DCT mode, `rows` padded to a multiple of 8."""
    order = []
    total = rows // 8 * tiles
    for first in range(0, total, 4):
        group = [t for t in range(first, first + 4) if t < total]
        parts = [group] if tiles >= 3 else [group[:2], group[2:]] if tiles == 2 else [[t] for t in group]
        for part in parts:
            for row in range(8):
                order += [(t // tiles * 8 + row) * tiles + t % tiles for t in part]
    return order


def zvc_block(items, size):
    """One block of 64 unsigned integers of `size` bytes, compressed."""
    mask, data = bytearray(8), b""
    for i, item in enumerate(items):
        if item:
            mask[i // 8] |= 1 << i % 8
            data += int(item).to_bytes(size, "little")
    return bytes(mask) + data


def collected(blocks, cdus):
    """Payload of a list of blocks (bytes): each CDU has a queue for every group; one block from each CDU in turn."""
    queues = [deque() for _ in range(cdus)]
    for group in range(ceil(len(blocks) / 4)):
        queues[group % cdus].append(deque(blocks[4 * group : 4 * group + 4]))
    payload = b""
    while any(queues):
        groups = [queue.popleft() for queue in queues if queue]
        while any(groups):
            payload += b"".join(group.popleft() for group in groups if group)
    return payload


def payload_of(x, mode, dqt, cdus, code=None, dead_zone=0, k=None):
    """The whole path. Arithmetic is golden's, one value or block at a time; it has judges of its own. ``code`` makes
    the bytes of 64 values, those of tiles column by column, where a mode has another coder than ZVC. ``k``: the scale
    of each row, [rows, 1], of which the tensor then has two dimensions."""
    if mode in ("raw", "zvc"):
        blocks = blocks_of(x.view("u4"), False)
        coded = [np.array(b, "<u4").tobytes() if mode == "raw" else zvc_block(b, 4) for b in blocks]
    elif mode == "brc":
        bits = [sum(1 << i for i, v in enumerate(b) if v > 0) for b in blocks_of(x, False, x.dtype.type(0))]
        coded = [b.to_bytes(8, "little") for b in bits]
    elif mode.startswith(("dpr-", "bitpack-")):
        form = mode.partition("-")[2]
        size = dpr.named(form).width if mode.startswith("dpr-") else 8 * int(form)
        codes = dpr.quantize(x, form) if mode.startswith("dpr-") else x.view("u4") >> 32 - size
        coded = [sum(int(v) << size * i for i, v in enumerate(b)).to_bytes(8 * size, "little")
                 for b in blocks_of(codes, False)]
    else:
        y = sfpr.quantize(x, sfpr.scales(x).k if k is None else k)
        tiled = mode.startswith("jpeg-")
        blocks = blocks_of(y, tiled, y.dtype.type(0))
        if tiled:
            tile = [dct.forward(y.dtype.type(b).reshape(8, 8)) for b in blocks]
        if mode == "jpeg-base":
            quotients = [div.quantize(t, div.divisors(div.table(dqt))) for t in tile]
            return collected([rle.encode(q[None])[0].tobytes() for q in quotients], cdus)
        if tiled:
            shifts, quarters = quantize.shifts(quantize.table(dqt)), steps.steps(steps.table(dqt))
            levels = [steps.quantize(t, quarters, dead_zone) if "-div" in mode else quantize.shift(t, shifts)
                      for t in tile]
            blocks = [list(q.ravel(order="F" if code else "C")) for q in levels]
        if code:
            return collected([code([int(v) for v in b]) for b in blocks], cdus)
        blocks = [[int(v) & 0xFF for v in b] for b in blocks]
        coded = [bytes(b) if mode == "sfpr" else zvc_block(b, 1) for b in blocks]
    return collected(coded, cdus)
