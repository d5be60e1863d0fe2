"""The whole path: a tensor to the payload that leaves n CDUs, and back (JPEG-ACT, section III and Table II)."""

import math
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from actcodec.golden.common import heap
from actcodec.golden.gist import binarize
from actcodec.golden.jpegact import dct, div, nibble, quantize, rice, rle, sfpr, steps, zvc
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream

BASE = "jpeg-base"  # the paper's baseline: DIV and RLE in place of SH and ZVC
STEPPED = ("jpeg-act-div", "jpeg-act-div-nibble", "jpeg-act-div-rice")  # DIV with steps in quarters in place of SH
CODERS = {f"{path}-{name}": coder for path in ("sfpr", "jpeg-act", "jpeg-act-div")
          for name, coder in (("nibble", nibble), ("rice", rice))}  # in place of ZVC
TABLES = {mode: coder.Table for mode, coder in CODERS.items()} | {BASE: div.Table}  # what hardware is told besides
FALLBACK = {"jpeg-act": "sfpr-zvc", "jpeg-act-div": "sfpr-zvc", BASE: "sfpr"}
FALLBACK |= {f"{path}-{name}": f"sfpr-{name}" for path in ("jpeg-act", "jpeg-act-div") for name in ("nibble", "rice")}
TILED = tuple(FALLBACK)  # modes of which a block is an 8x8 tile
SCALED = ("sfpr", "sfpr-zvc", *TILED, "sfpr-nibble", "sfpr-rice")  # modes with a scale for each channel
BLOCK_BYTES = {"raw": 256, "sfpr": 64, "brc": 8}  # modes whose blocks all have the same size
ITEM = dict.fromkeys(("sfpr-zvc", "jpeg-act", "jpeg-act-div"), np.dtype(np.uint8))  # what ZVC counts
ITEM |= {"zvc": np.dtype(np.uint32)}
PART = 2048  # blocks at a time, about: what is computed between stays in a cache
MODES = ("raw", "sfpr", "sfpr-zvc", "jpeg-act", "brc", "zvc")
LEGAL = (*MODES, *CODERS, "jpeg-act-div", BASE)
FITTED = 16  # parts of a tensor, at most, that its coder's table is fitted to


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed tensor: everything that decompression needs.

    Raises ValueError for parts that do not fit together.
    """

    mode: str  # the one that was used: a tensor too small for tiles has that of FALLBACK
    shape: tuple[int, ...]  # of the tensor, 2 or 4 dimensions
    dqt: str | None  # name of the table, "custom" for one without; None unless blocks are tiles
    table: np.ndarray | None  # shifts, or in modes of STEPPED quarters, uint8 [8, 8]; None with neither
    scales: np.ndarray | None  # k, float32 [channels]; None in a mode without scales
    cdus: int  # 1 to 8
    payload: bytes
    code: nibble.Table | rice.Table | div.Table | None = None  # the coder's table, or DIV's; None unless there is one

    def __post_init__(self):
        if self.mode not in LEGAL:
            raise ValueError(f"unknown mode {self.mode!r}, legal are {', '.join(LEGAL)}")
        view = self.view
        if self.tiled:
            if not view.tileable:
                raise ValueError(f"shape {self.shape} is too small for mode {self.mode}")
            if self.mode != BASE:
                self._check_table()
        if self.mode in TABLES and not isinstance(self.code, TABLES[self.mode]):
            raise ValueError(f"mode {self.mode} needs the table of its coder, or of DIV, not {self.code!r}")
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

    def _check_table(self):
        low, high, what = (steps.LEAST, steps.MOST, "quarters") if self.mode in STEPPED else (0, 7, "shifts")
        s = self.table
        if s is None or s.shape != (8, 8) or s.dtype != np.uint8 or np.any((s < low) | (s > high)):
            raise ValueError(f"mode {self.mode} needs a table of 8 x 8 {what}, uint8, {low} to {high}")

    @property
    def view(self):
        return blocks.view(self.shape)

    @property
    def tiled(self):
        """Whether a block is an 8x8 tile (else 8 consecutive sectors)."""
        return self.mode in TILED

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
    """The mode that a tensor gets: that of FALLBACK where there is no tile. Raises as `compress` does."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        raise TypeError(f"tensor is {getattr(x, 'dtype', type(x).__name__)}, has to be a float32 array")
    view = blocks.view(x.shape)
    if mode not in LEGAL:
        raise ValueError(f"unknown mode {mode!r}, legal are {', '.join(LEGAL)}")
    return mode if view.tileable else FALLBACK.get(mode, mode)


def compress(x, mode, dqt="optL", cdus=1, signs=False, code=None, dead_zone=0):
    """Compress a float32 tensor (NCHW or [N, F]) as `cdus` CDUs do together: Compressed.

    `mode` is one of LEGAL; those of tiles fall back as FALLBACK tells where W < 8 or N * C * H < 8. `dqt` is the name
    of a table or a table of 64 values (see `quantize`, `steps` for modes of STEPPED, which also have a `dead_zone`, and
    `div` for jpeg-base). With `signs`, no positive value becomes 0 in a mode with scales (see `sfpr.quantize`). How to
    decompress depends on neither of the two. `code` is the table of the mode's coder; without it one is fitted to the
    tensor, by `fit`. Raises TypeError unless `x` is a float32 array, ValueError for an empty tensor, another number of
    dimensions, an unknown mode or DQT, and unless `cdus` is an int, 1 to 8, and `dead_zone` 0 to 3.
    """
    steps.check(dead_zone)
    asked, mode = mode, effective_mode(x, mode)
    name = dqt if isinstance(dqt, str) else "custom"
    if mode not in TABLES:
        code = None
    elif code is None or mode == BASE:
        code = fit(x, asked, dqt, signs, dead_zone)
    table = None if asked == BASE else table_of(asked, dqt)
    stream.order(0, cdus)  # checks
    view = blocks.view(x.shape)
    k = sfpr.scales(x).k if mode in SCALED else None
    rows = np.ascontiguousarray(x).reshape(view.rows, view.width)
    payload = to_payload(rows, view, mode, k, table, code, cdus, signs, dead_zone)
    name, table = (name, table) if mode in TILED else (None, None)
    return Compressed(mode, x.shape, name, table, k, cdus, payload, code)


def to_payload(rows, view, mode, k=None, table=None, code=None, cdus=1, signs=False, dead_zone=0):
    """The payload (bytes) of `rows`, float32, through any View.

    `k` are the scales of its channels, `table` is what `table_of` gives, `code` the table of the mode's coder, or of
    DIV; each only in the modes that have it. The others as in `compress`.
    """
    tiled, payload = mode in TILED, BytesIO()  # grows in place, and hands out what it has without a copy
    heap.settle()
    for part in parts(view.blocks(tiled), cdus):
        data, sizes = encode(gather(rows, view, tiled, k, part, signs), mode, table, code, dead_zone)
        payload.write(stream.interleave(data, sizes, cdus)[0])
    return payload.getvalue()


def fit(x, mode, dqt="optL", signs=False, dead_zone=0):
    """The table of the coder of `mode` under which a tensor is smallest, or a part of it if it is large; that of DIV
    is the `dqt`.

    Values without a sign, such as those of a ReLU, get a straight table where that is smaller. Arguments as in
    `compress`, and raises as it does.
    """
    if mode == BASE:
        return div.Table(div.table(dqt) if isinstance(dqt, str) else dqt)
    table = table_of(mode, dqt) if mode in TILED else None
    mode, view = effective_mode(x, mode), blocks.view(x.shape)
    rows = np.ascontiguousarray(x).reshape(view.rows, view.width)
    return fit_rows(rows, view, mode, sfpr.scales(x).k, table, signs, dead_zone)


def fit_rows(rows, view, mode, k, table=None, signs=False, dead_zone=0):
    """The same of rows through any View, in a mode of CODERS; arguments as in `to_payload`."""
    tiled, coder = mode in TILED, CODERS[mode]
    found = parts(view.blocks(tiled), 1)
    found = found[:: -(-len(found) // FITTED)]
    values = np.concatenate([lines(gather(rows, view, tiled, k, part, signs), mode, table, dead_zone)
                             for part in found])
    if tiled:
        return coder.fit(values)
    return min((coder.fit(values, straight) for straight in (False, True)),
               key=lambda code: int(coder.measure(values, code).sum()))


def table_of(mode, dqt):
    """What a mode's quantizer takes of a DQT: shifts, or quarters, uint8 [8, 8]."""
    named, numbers = (steps, steps.steps) if mode in STEPPED else (quantize, quantize.shifts)
    return numbers(named.table(dqt) if isinstance(dqt, str) else dqt)


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


def coefficients(values, mode, table, dead_zone=0):
    """Quantized coefficients of tiles, int8 [n, 64], vertical frequency first."""
    found, table = dct.forward(values.reshape(-1, 8, 8)).reshape(-1, blocks.BLOCK), table.reshape(-1)
    return steps.quantize(found, table, dead_zone) if mode in STEPPED else quantize.shift(found, table)


def lines(values, mode, table, dead_zone=0):
    """Blocks, as `gather` gives them, in the order in which coders other than ZVC number their values: int8 [n, 64]."""
    if mode not in TILED:
        return values.reshape(-1, blocks.BLOCK)
    found = coefficients(values, mode, table, dead_zone)
    return found.reshape(-1, 8, 8).swapaxes(1, 2).reshape(-1, blocks.BLOCK)


def encode(values, mode, table, code=None, dead_zone=0):
    """Payload (uint8) and sizes of blocks, as `gather` gives them."""
    if mode in CODERS:
        return CODERS[mode].encode(lines(values, mode, table, dead_zone), code)
    if mode == BASE:
        return rle.encode(div.quantize(dct.forward(values.reshape(-1, 8, 8)), code.divisors))
    if mode in TILED:
        values = coefficients(values, mode, table, dead_zone)
    if mode in ITEM:
        return zvc.encode(values.view(ITEM[mode]).reshape(-1, blocks.BLOCK))
    payload = binarize.forward(values) if mode == "brc" else values.view(np.uint8)
    return payload, np.full(values.size // blocks.BLOCK, BLOCK_BYTES[mode])


def decode(payload, sizes, mode, table, code=None):
    """The reverse of `encode`."""
    if mode == BASE:
        return dct.inverse(div.dequantize(rle.decode(payload, len(sizes)).reshape(-1, 8, 8), code.divisors))
    if mode in CODERS:
        values = CODERS[mode].decode(payload, len(sizes), code)
        if mode in TILED:
            values = values.reshape(-1, 8, 8).swapaxes(1, 2)
    elif mode in ITEM:
        values = zvc.expand(payload, sizes, ITEM[mode]).view(np.int8 if mode in SCALED else np.float32)
    elif mode == "brc":
        values = np.unpackbits(payload, bitorder="little").astype(np.float32)
    else:
        values = payload.view(np.int8 if mode in SCALED else np.float32)
    if mode not in TILED:
        return values
    return dct.inverse((steps.dequantize if mode in STEPPED else quantize.unshift)(values.reshape(-1, 8, 8), table))


def sizes_of(compressed):
    """Bytes of each block of a Compressed, in the payload's order. Raises ValueError as `decompress` does."""
    return block_sizes(compressed.payload, compressed.blocks, compressed.mode)


def block_sizes(payload, n, mode):
    """Bytes of each of the `n` blocks of a payload, in its order. Raises ValueError as `decompress` does."""
    if mode in CODERS:
        return CODERS[mode].sizes(payload, n)
    if mode == BASE:
        return rle.sizes(payload, n)
    return zvc.sizes(payload, n, ITEM[mode].itemsize) if mode in ITEM else np.full(n, BLOCK_BYTES[mode])


def decompress(compressed):
    """The float32 tensor of a Compressed.

    Lossless in modes raw and zvc; 1.0 or +0.0 in mode brc. Raises ValueError if the payload's masks, or lengths, do not
    add up to its length, and for a malformed block: which one, counted in the tensor's part that the message names.
    """
    c = compressed
    r = None if c.scales is None else sfpr.reciprocal(c.scales)
    return from_payload(c.payload, c.view, c.mode, r, c.table, c.code, c.cdus).reshape(c.shape)


def from_payload(payload, view, mode, r=None, table=None, code=None, cdus=1):
    """The reverse of `to_payload`: rows, float32 [rows, width]. `r` are the scales that decompress. Raises ValueError
    as `decompress` does."""
    tiled, n = mode in TILED, view.blocks(mode in TILED)
    heap.settle()
    sizes = block_sizes(payload, n, mode)
    payload = np.frombuffer(payload, np.uint8)
    x, at = np.empty((view.rows, view.width), np.float32), 0
    for part in parts(n, cdus):
        end = at + int(sizes[part].sum())
        data, found = stream.deinterleave(payload[at:end], sizes[part], cdus)
        try:
            values = decode(data, found, mode, table, code)
        except ValueError as error:
            raise ValueError(f"{error}, from block {part.start} on" if part.start else str(error)) from error
        scatter(values.reshape(-1), view, tiled, r, part, x)
        at = end
    return x
