"""The whole path: a tensor to the payload that leaves n CDUs, and back (JPEG-ACT, section III and Table II)."""

import math
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from actcodec.golden.common import heap
from actcodec.golden.gist import binarize
from actcodec.golden.jpegact import dct, quantize, sfpr, zvc
from actcodec.golden.offload import blocks, stream

SCALED = ("sfpr", "sfpr-zvc", "jpeg-act")  # modes with a scale for each channel
BLOCK_BYTES = {"raw": 256, "sfpr": 64, "brc": 8}  # modes whose blocks all have the same size
ITEM = {"sfpr-zvc": np.dtype(np.uint8), "jpeg-act": np.dtype(np.uint8), "zvc": np.dtype(np.uint32)}  # what ZVC counts
PART = 2048  # blocks at a time, about: what is computed between stays in a cache
MODES = ("raw", "sfpr", "sfpr-zvc", "jpeg-act", "brc", "zvc")


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed tensor: everything that decompression needs.

    Raises ValueError for parts that do not fit together.
    """

    mode: str  # the one that was used: a tensor too small for jpeg-act has sfpr-zvc
    shape: tuple[int, ...]  # of the tensor, 2 or 4 dimensions
    dqt: str | None  # name of the table, "custom" for one without; None unless the mode is jpeg-act
    table: np.ndarray | None  # shifts, uint8 [8, 8]; None unless the mode is jpeg-act
    scales: np.ndarray | None  # k, float32 [channels]; None in a mode without scales
    cdus: int  # 1 to 8
    payload: bytes

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"unknown mode {self.mode!r}, legal are {', '.join(MODES)}")
        view = self.view
        if self.mode == "jpeg-act":
            if not view.tileable:
                raise ValueError(f"shape {self.shape} is too small for mode jpeg-act")
            s = self.table
            if s is None or s.shape != (8, 8) or s.dtype != np.uint8 or np.any(s > 7):
                raise ValueError("mode jpeg-act needs a table of 8 x 8 shifts, uint8, 0 to 7")
        if self.mode in SCALED:
            k = self.scales
            if k is None or k.shape != (view.channels,) or k.dtype != np.float32:
                raise ValueError(f"mode {self.mode} needs {view.channels} float32 scales")
            if np.any(k.view(np.uint32) & 0xFFFF) or not np.all((k == 0) | (k >= sfpr.SMALLEST) & (k <= sfpr.LARGEST)):
                raise ValueError("a scale is not a bfloat16 number that a tensor can have")
        stream.order(0, self.cdus)
        if self.mode in BLOCK_BYTES and self.payload_bytes != self.blocks * BLOCK_BYTES[self.mode]:
            raise ValueError(
                f"payload has {self.payload_bytes} bytes, {self.blocks} blocks in mode {self.mode} "
                f"have {self.blocks * BLOCK_BYTES[self.mode]}"
            )

    @property
    def view(self):
        return blocks.view(self.shape)

    @property
    def tiled(self):
        """Whether a block is an 8x8 tile (else 8 consecutive sectors)."""
        return self.mode == "jpeg-act"

    @property
    def blocks(self):
        """Number of blocks."""
        return self.view.blocks(self.tiled)

    @property
    def payload_bytes(self):
        return len(self.payload)

    @property
    def ratio(self):
        """Bytes of the float32 tensor over bytes of the payload."""
        return 4 * math.prod(self.shape) / self.payload_bytes


def effective_mode(x, mode):
    """The mode that a tensor gets: sfpr-zvc in place of jpeg-act where there is no tile. Raises as `compress` does."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        raise TypeError(f"tensor is {getattr(x, 'dtype', type(x).__name__)}, has to be a float32 array")
    view = blocks.view(x.shape)
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}, legal are {', '.join(MODES)}")
    return "sfpr-zvc" if mode == "jpeg-act" and not view.tileable else mode


def compress(x, mode, dqt="optL", cdus=1, signs=False):
    """Compress a float32 tensor (NCHW or [N, F]) as `cdus` CDUs do together: Compressed.

    `mode` is one of MODES; jpeg-act falls back to sfpr-zvc where W < 8 or N * C * H < 8. `dqt` is the name of a table
    or a table of 64 values (see `quantize`). With `signs`, no positive value becomes 0 in a mode with scales (see
    `sfpr.quantize`); how to decompress does not depend on it. Raises TypeError unless `x` is a float32 array,
    ValueError for an empty tensor, another number of dimensions, an unknown mode or DQT, and unless `cdus` is an int, 1
    to 8.
    """
    mode = effective_mode(x, mode)
    name, dqt = (dqt, quantize.table(dqt)) if isinstance(dqt, str) else ("custom", dqt)
    table = quantize.shifts(dqt)
    stream.order(0, cdus)  # checks
    view = blocks.view(x.shape)
    tiled = mode == "jpeg-act"
    k = sfpr.scales(x).k if mode in SCALED else None
    rows = np.ascontiguousarray(x).reshape(view.rows, view.width)
    heap.settle()
    payload = BytesIO()  # grows in place, and hands out what it has without a copy
    for part in parts(view.blocks(tiled), cdus):
        data, sizes = encode(gather(rows, view, tiled, k, part, signs), mode, table)
        payload.write(stream.interleave(data, sizes, cdus)[0])
    name, table = (name, table) if tiled else (None, None)
    return Compressed(mode, x.shape, name, table, k, cdus, payload.getvalue())


def parts(n, cdus):
    """Numbers of consecutive blocks that are coded together: all CDUs have finished as many groups before and after."""
    run = blocks.GROUP * cdus
    step = max(PART // run, 1) * run
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def gather(x, view, tiled, k, part, signs=False):
    """Blocks of rows `x`, flat: int8 with scales `k`, float32 without."""
    values = np.zeros((part.stop - part.start) * blocks.BLOCK, np.float32 if k is None else np.int8)
    for rows, columns, place in blocks.pieces(view, tiled, part.start, part.stop):
        piece = x[rows, columns]
        if k is not None:
            piece = sfpr.quantize(piece, k[view.channel_of(rows), None], signs)
        blocks.fill(values[place], piece, tiled)
    return values


def scatter(values, view, tiled, r, part, x):
    """The reverse of `gather`, into rows `x`; `r` are the scales that decompress."""
    for rows, columns, place in blocks.pieces(view, tiled, part.start, part.stop):
        piece = x[rows, columns]
        if r is None:
            blocks.drain(values[place], piece, tiled)
            continue
        y = np.empty(piece.shape, np.int8)
        blocks.drain(values[place], y, tiled)
        piece[:] = sfpr.dequantize(y, r[view.channel_of(rows), None])


def encode(values, mode, table):
    """Payload (uint8) and sizes of blocks, as `gather` gives them."""
    if mode == "jpeg-act":
        values = quantize.shift(dct.forward(values.reshape(-1, 8, 8)).reshape(-1, blocks.BLOCK), table.reshape(-1))
    if mode in ITEM:
        return zvc.encode(values.view(ITEM[mode]).reshape(-1, blocks.BLOCK))
    payload = binarize.forward(values) if mode == "brc" else values.view(np.uint8)
    return payload, np.full(values.size // blocks.BLOCK, BLOCK_BYTES[mode])


def decode(payload, sizes, mode, table):
    """The reverse of `encode`."""
    if mode in ITEM:
        values = zvc.expand(payload, sizes, ITEM[mode]).view(np.int8 if mode in SCALED else np.float32)
    elif mode == "brc":
        values = np.unpackbits(payload, bitorder="little").astype(np.float32)
    else:
        values = payload.view(np.int8 if mode in SCALED else np.float32)
    return dct.inverse(quantize.unshift(values.reshape(-1, 8, 8), table)) if mode == "jpeg-act" else values


def decompress(compressed):
    """The float32 tensor of a Compressed.

    Lossless in modes raw and zvc; 1.0 or +0.0 in mode brc. Raises ValueError if the payload's masks do not add up to
    its length.
    """
    c, view, n = compressed, compressed.view, compressed.blocks
    heap.settle()
    payload = np.frombuffer(c.payload, np.uint8)
    sizes = zvc.sizes(c.payload, n, ITEM[c.mode].itemsize) if c.mode in ITEM else np.full(n, BLOCK_BYTES[c.mode])
    r = None if c.scales is None else sfpr.reciprocal(c.scales)
    x, at = np.empty((view.rows, view.width), np.float32), 0
    for part in parts(n, c.cdus):
        end = at + int(sizes[part].sum())
        data, found = stream.deinterleave(payload[at:end], sizes[part], c.cdus)
        scatter(decode(data, found, c.mode, c.table).reshape(-1), view, c.tiled, r, part, x)
        at = end
    return x.reshape(c.shape)
