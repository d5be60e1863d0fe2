"""From a tensor to sectors and blocks (JPEG-ACT, section III-C; docs/formats.md, "Tensor view" and "Sector order").

A sector is 8 consecutive values of one row (32 bytes of float32). A block is 64 values: an 8x8 tile in DCT mode
("tiled" below), 8 consecutive sectors in every other mode. Rows are padded with zeros on the right to whole sectors,
tiles also at the bottom, and the last block of the other modes at its end.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

LANES = 8
BLOCK = 64
GROUP = 4  # blocks that the 256-byte alignment buffer holds

Payload = bytes | np.ndarray  # of uint8


class View(NamedTuple):
    """A tensor seen as a 2-D array; no data moves."""

    rows: int
    width: int
    channels: int  # how many scales there are
    height: int  # consecutive rows of one channel
    tileable: bool  # whether the DCT applies: W >= 8 and at least 8 rows (JPEG-ACT, Table II)

    @property
    def tiles_per_row(self) -> int:
        """Tiles side by side, which is also the sectors of a row."""
        return -(-self.width // LANES)

    @property
    def padded_width(self) -> int:
        return LANES * self.tiles_per_row

    @property
    def channel(self) -> NDArray[np.int64]:
        """Channel (index of the scale) of every row."""
        return self.channel_of(slice(0, self.rows))

    def channel_of(self, rows: slice) -> NDArray[np.int64]:
        """Channel of each of these rows, a slice."""
        return np.arange(rows.start, rows.stop) // self.height % self.channels

    def blocks(self, tiled: bool) -> int:
        """Number of blocks."""
        return -(-self.rows // LANES) * self.tiles_per_row if tiled else -(-self.rows * self.tiles_per_row // LANES)


def view(shape: Sequence[int]) -> View:
    """View of a tensor of `shape`, NCHW or [N, F] (which counts as [N, F, 1, 1]).

    Raises ValueError for any other number of dimensions and for an empty tensor.
    """
    if len(shape) not in (2, 4):
        raise ValueError(f"shape {tuple(shape)} has {len(shape)} dimensions, legal are 2 (N, F) and 4 (N, C, H, W)")
    if min(shape) < 1:
        raise ValueError(f"shape {tuple(shape)} is empty, every dimension has to be at least 1")
    n, c, h, w = (*map(int, shape), 1, 1)[:4]
    if w >= LANES:
        return View(n * c * h, w, c, h, n * c * h >= LANES)
    if h * w >= LANES:
        return View(n * c, h * w, c, 1, False)
    return View(n, c * h * w, 1, 1, False)


def _padded(x, tall):
    """Rows in whole sectors, their number a multiple of `tall`."""
    bottom, right = -x.shape[0] % tall, -x.shape[1] % LANES
    return np.pad(x, ((0, bottom), (0, right))) if bottom or right else x


def _tall(tiled):
    """Rows of a unit of the order of blocks: of a tile, or of a sector."""
    return LANES if tiled else 1


def pieces(view: View, tiled: bool, first: int, last: int) -> Iterator[tuple[slice, slice, slice]]:
    """The rectangles that the blocks from `first` to before `last` cut out of the view, in their order.

    Each is whole rows of tiles (of sectors, if not tiled), or a part of one such row: (rows, columns, values), slices
    of the view's rows and columns, and of the values of these blocks one after another. What no rectangle covers is
    the padding at the end of the last block.
    """
    tall, tiles = _tall(tiled), view.tiles_per_row
    size = tall * LANES
    begin = at = first * BLOCK // size
    end = min(last * BLOCK // size, -(-view.rows // tall) * tiles)
    while at < end:
        row, tile = divmod(at, tiles)
        whole = 0 if tile else (end - at) // tiles
        count = whole * tiles or min(end - at, tiles - tile)
        yield (slice(row * tall, min((row + max(whole, 1)) * tall, view.rows)),
               slice(tile * LANES, min((tile + count // max(whole, 1)) * LANES, view.width)),
               slice((at - begin) * size, (at - begin + count) * size))
        at += count


def fill(values: np.ndarray, x: np.ndarray, tiled: bool) -> None:
    """Puts the rows of a rectangle into its values, as `pieces` gives both."""
    tall = _tall(tiled)
    x = _padded(x, tall)
    tiles = x.reshape(-1, tall, x.shape[1] // LANES, LANES).swapaxes(1, 2)
    values.reshape(tiles.shape)[:] = tiles


def drain(values: np.ndarray, x: np.ndarray, tiled: bool) -> None:
    """The reverse of `fill`."""
    tall = _tall(tiled)
    tiles = -(-x.shape[1] // LANES)
    rows = values.reshape(-1, tiles, tall, LANES).swapaxes(1, 2).reshape(-1, tiles * LANES)
    x[:] = rows[: x.shape[0], : x.shape[1]]


def split(x: ArrayLike, view: View, tiled: bool) -> np.ndarray:
    """Blocks of a tensor: `x` of any dtype, in memory order, to [n, 8, 8] (tiled) or [n, 64]."""
    x, n = np.reshape(x, (view.rows, view.width)), view.blocks(tiled)
    values = np.zeros(n * BLOCK, x.dtype)
    for rows, columns, place in pieces(view, tiled, 0, n):
        fill(values[place], x[rows, columns], tiled)
    return values.reshape((n, LANES, LANES) if tiled else (n, BLOCK))


def join(blocks: np.ndarray, view: View, tiled: bool) -> np.ndarray:
    """The reverse of `split`: [rows, width], the padding dropped."""
    values, x = blocks.reshape(-1), np.empty((view.rows, view.width), blocks.dtype)
    for rows, columns, place in pieces(view, tiled, 0, view.blocks(tiled)):
        drain(values[place], x[rows, columns], tiled)
    return x


def order(view: View, tiled: bool) -> NDArray[np.int64]:
    """Order in which sectors pass the sector port of a CDU: indices into the sectors in memory order.

    In DCT mode sectors are counted with the padding at the bottom, so index // tiles_per_row may be `view.rows` or
    more: such a sector is all zeros. The group's four tiles pass row by row, even where some lie in the next row of
    tiles; with one or two tiles a row, each row of tiles passes on its own, so that addresses ascend.
    """
    tiles = view.tiles_per_row
    n = view.blocks(tiled)
    if not tiled:
        return np.arange(view.rows * tiles)
    together = tiles if tiles <= 2 else GROUP
    tile = np.arange(math.ceil(n / together) * together).reshape(-1, 1, together)
    sector = (tile // tiles * LANES + np.arange(LANES)[:, None]) * tiles + tile % tiles
    return sector[np.broadcast_to(tile < n, sector.shape)]


def sectors(x: ArrayLike, view: View, tiled: bool) -> np.ndarray:
    """Sectors of a tensor as they pass the sector port of a CDU: [n, 8], dtype of `x`."""
    return _padded(np.reshape(x, (view.rows, view.width)), _tall(tiled)).reshape(-1, LANES)[order(view, tiled)]
