"""A tensor's coefficients as grayscale JPEG files, which any viewer opens (ITU-T T.81, annex B; JFIF 1.01).

A file holds what JPEG-BASE keeps of a dense tensor: SFPR's values are the samples (0 is the gray 128), DIV's table is
the file's, the scan is the stream of `rle` with dc "pred" and a zero byte stuffed behind each 0xFF. It is the file that
libjpeg would write of these coefficients, byte for byte.
"""

import struct

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import dct, div, huffman, rle, sfpr
from actcodec.golden.jpegact.zigzag import ZIGZAG
from actcodec.golden.offload import blocks

LIMIT = 65496  # samples: the multiple of 8 below libjpeg's limit of 65,500, which is a little less than T.81's


def _segment(marker, *parts):
    body = b"".join(parts)
    return struct.pack(">BBH", 0xFF, marker, 2 + len(body)) + body


def write(q: NDArray[np.int8], dqt: ArrayLike, tiles: int) -> bytes:
    """A JPEG file (bytes) of the quantized coefficients `q` (int8 [n, 64] or [n, 8, 8], vertical frequency first).

    They are tiles in raster order, `tiles` side by side; the picture is 8 * tiles wide and 8 * n / tiles high. `dqt`
    is the table, as in `div.divisors`. Raises ValueError for a table, type or shape that is not legal, if the last row
    of tiles is not complete, and for a picture that is empty, or wider or higher than LIMIT.
    """
    d = div.divisors(dqt)
    payload, sizes = rle.encode(q, "stream", "pred")
    if type(tiles) is not int or tiles < 1 or sizes.size % tiles:
        raise ValueError(f"tiles is {tiles!r}, legal are the divisors of the number of blocks, {sizes.size}")
    width, height = 8 * tiles, 8 * (sizes.size // tiles)
    if not (height and max(width, height) <= LIMIT):
        raise ValueError(f"picture is {height} high and {width} wide, legal are 8 to {LIMIT}")
    return b"".join([
        b"\xff\xd8",  # SOI
        _segment(0xE0, b"JFIF\0", bytes([1, 1, 0, 0, 1, 0, 1, 0, 0])),  # version 1.01, square samples, no thumbnail
        _segment(0xDB, b"\0", d.reshape(-1)[ZIGZAG].tobytes()),  # DQT: table 0
        _segment(0xC0, struct.pack(">BHHB3B", 8, height, width, 1, 1, 0x11, 0)),  # SOF0: baseline, one component
        *(_segment(0xC4, bytes([kind]), table.counts, table.symbols)  # DHT
          for kind, table in ((0, huffman.K3), (0x10, huffman.K5))),
        _segment(0xDA, bytes([1, 1, 0, 0, 63, 0])),  # SOS
        payload.tobytes().replace(b"\xff", b"\xff\0"),
        b"\xff\xd9",  # EOI
    ])  # fmt: skip


def quantized(x: NDArray[np.float32], dqt: ArrayLike) -> NDArray[np.int8]:
    """DIV's coefficients of a float32 tensor (NCHW), int8 [n, 8, 8]: SFPR, DCT, division by the table `dqt`.

    Raises TypeError unless `x` is a float32 array, ValueError for another table, and for a shape that has no tiles (W <
    8 or N * C * H < 8).
    """
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        raise TypeError(f"tensor is {getattr(x, 'dtype', type(x).__name__)}, has to be a float32 array")
    view = blocks.view(x.shape)
    if not view.tileable:
        raise ValueError(f"shape {x.shape} has no tiles, legal are NCHW with W >= 8 and N * C * H >= 8")
    y = sfpr.quantize(x.reshape(view.rows, view.width), sfpr.scales(x).k[view.channel, None])
    return div.quantize(dct.forward(blocks.split(y, view, tiled=True)), div.divisors(dqt))


def files(x: NDArray[np.float32], dqt: ArrayLike | str = "jpeg80") -> list[bytes]:
    """A float32 tensor (NCHW) as JPEG files (a list of bytes), from its first rows to its last.

    A picture has the tensor's N * C * H rows below each other, padded with zeros to tiles of 8 x 8; what is above LIMIT
    goes on in another file. `dqt` is the name of a table of `div`, or a table. Raises as `quantized` does, and for a
    tensor wider than LIMIT and an unknown name.
    """
    dqt = div.table(dqt) if isinstance(dqt, str) else dqt
    q, tiles = quantized(x, dqt), blocks.view(x.shape).tiles_per_row
    most = LIMIT // 8 * tiles
    return [write(q[first : first + most], dqt, tiles) for first in range(0, len(q), most)]
