"""The whole path: a tensor to the payload that leaves n CDUs, and back (JPEG-ACT, section III and Table II)."""

import math
from dataclasses import dataclass

import numpy as np

from golden.gist import binarize
from golden.jpegact import blocks, dct, quantize, sfpr, stream, zvc

SCALED = ("sfpr", "sfpr-zvc", "jpeg-act")  # modes with a scale for each channel
BLOCK_BYTES = {"raw": 256, "sfpr": 64, "brc": 8}  # modes whose blocks all have the same size
ITEM = {"sfpr-zvc": np.dtype(np.uint8), "jpeg-act": np.dtype(np.uint8), "zvc": np.dtype(np.uint32)}  # what ZVC counts
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


def compress(x, mode, dqt="optL", cdus=1):
    """Compress a float32 tensor (NCHW or [N, F]) as `cdus` CDUs do together: Compressed.

    `mode` is one of MODES; jpeg-act falls back to sfpr-zvc where W < 8 or N * C * H < 8. `dqt` is the name of a table
    or a table of 64 values (see `quantize`). Raises TypeError unless `x` is a float32 array, ValueError for an empty
    tensor, another number of dimensions, an unknown mode or DQT, and unless `cdus` is an int, 1 to 8.
    """
    mode = effective_mode(x, mode)
    name, dqt = (dqt, quantize.table(dqt)) if isinstance(dqt, str) else ("custom", dqt)
    table = quantize.shifts(dqt)
    view = blocks.view(x.shape)
    tiled = mode == "jpeg-act"
    k = None
    if mode in SCALED:
        k = sfpr.scales(x).k
        y = sfpr.quantize(x.reshape(view.rows, view.width), k[view.channel, None])
        data = blocks.split(y, view, tiled)
        if tiled:
            data = quantize.shift(dct.forward(data), table)
        data = data.reshape(-1, blocks.BLOCK).view(np.uint8)
    else:
        data = blocks.split(np.ascontiguousarray(x).view(np.uint32), view, tiled)

    if mode in ITEM:
        payload, sizes = zvc.encode(data)
    else:
        payload = binarize.forward(data.view(np.float32)) if mode == "brc" else data.reshape(-1).view(np.uint8)
        sizes = np.full(len(data), BLOCK_BYTES[mode])
    payload, _ = stream.interleave(payload, sizes, cdus)
    name, table = (name, table) if tiled else (None, None)
    return Compressed(mode, x.shape, name, table, k, cdus, payload.tobytes())


def decompress(compressed):
    """The float32 tensor of a Compressed.

    Lossless in modes raw and zvc; 1.0 or +0.0 in mode brc. Raises ValueError if the payload's masks do not add up to
    its length.
    """
    c, view, n = compressed, compressed.view, compressed.blocks
    payload = np.frombuffer(c.payload, np.uint8)
    item = ITEM.get(c.mode)
    sizes = zvc.sizes(payload, n, item.itemsize) if item else np.full(n, BLOCK_BYTES[c.mode])
    payload, _ = stream.deinterleave(payload, sizes, c.cdus)
    if item:
        data = zvc.decode(payload, n, item)
    elif c.mode == "brc":
        data = binarize.backward(np.ones((n, blocks.BLOCK), np.float32), payload)
    else:
        data = payload.view(np.int8 if c.mode == "sfpr" else np.float32)

    if c.mode in SCALED:
        data = data.view(np.int8)
        if c.tiled:
            data = dct.inverse(quantize.unshift(data.reshape(-1, 8, 8), c.table))
        k = c.scales[view.channel, None]
        x = sfpr.dequantize(blocks.join(data, view, c.tiled), sfpr.reciprocal(k))
    else:
        x = blocks.join(data, view, c.tiled).view(np.float32)
    return x.reshape(c.shape)
