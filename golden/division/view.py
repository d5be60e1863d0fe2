"""From a tensor to planes, blocks and segments (DIVISION, section 4.1 and appendix D; JPEG-ACT, section III-C).

A plane is one channel of one sample. A block is 64 values, eight rows of a sector: an 8x8 tile of a plane where the
planes have whole ones ("tiled"), else eight sectors in memory order ("flat"). What of a block lies in one row of the
view, so in one plane, is a segment and has one average: all of a tile, or up to 64 values in a row.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.offload import blocks
from actcodec.golden.offload.blocks import LANES
from actcodec.golden.offload.blocks import View as JpegactView

FLAT = 9  # values that a plane, or a sample, needs to be rows of its own: more than a sector

_LOG2 = np.array([0, 0, 1, 1, 2, 2, 2, 2, 3])  # floor(log2(n)), n from 1 to 8


class View(NamedTuple):
    """A tensor seen as a 2-D array; no data moves. Row r belongs to plane (r // height) mod planes.

    `view` makes those of shapes. A descriptor of the accelerator may be any other one, whose rows are as short as one
    value, whose planes come back after the last one, or of which some have no row.
    """

    tiled: bool
    rows: int  # tiled: a multiple of 8, and so is the height
    width: int  # tiled: at least 8
    planes: int
    height: int

    @property
    def sectors(self) -> int:
        """Of a row: T of the RTL."""
        return -(-self.width // LANES)

    @property
    def tail(self) -> int:
        """Values in the last sector of a row, 1 to 8."""
        return self.width - LANES * (self.sectors - 1)

    @property
    def blocks(self) -> int:
        return -(-self.rows * self.sectors // LANES)

    @property
    def plane(self) -> NDArray[np.int64]:
        """Plane of every row."""
        return np.arange(self.rows) // self.height % self.planes

    @property
    def jpegact(self) -> JpegactView:
        """The same rows as JPEG-ACT's view, for what both methods share."""
        return blocks.View(self.rows, self.width, self.planes, self.height, self.tiled)


class Segments(NamedTuple):
    """Where the rows of blocks lie, and the segments they make; integers.

    Of each row of each block, [blocks, 8]: `row` of the view, `sector` in it, number of the `segment`, all -1 in a void
    row (after the end of a flat tensor); `values`, how many values exist, and `front`, how many of them the average
    is over (its first ones). Of each segment: `plane`; `a` and `c`, for 2^a sectors of which 2^c values each are
    averaged; `start`, its first row, counted over all blocks.
    """

    row: np.ndarray
    sector: np.ndarray
    segment: np.ndarray
    values: np.ndarray
    front: np.ndarray
    plane: np.ndarray
    a: np.ndarray
    c: np.ndarray
    start: np.ndarray

    @property
    def exists(self) -> NDArray[np.bool]:
        """Whether there is a value in each lane: bool [blocks, 8, 8]."""
        return np.arange(LANES) < self.values[..., None]

    @property
    def averaged(self) -> NDArray[np.bool]:
        """Whether the average is over it."""
        return np.arange(LANES) < self.front[..., None]


def view(shape: Sequence[int] | View) -> View:
    """View of a tensor of `shape`: [N, F], [N, C, L], [N, C, H, W] or [N, C, D, H, W].

    [N, F] counts as [N, 1, 1, F], [N, C, L] as [N, C, 1, L], [N, C, D, H, W] as [N, C, D * H, W]. Planes of H x W are
    tiled if W >= 8 and 8 divides H. Otherwise rows are planes, or where planes have 8 values or fewer, samples; where
    these are as small, the tensor is one row. A View stands for itself, wherever a shape is asked for. Raises
    ValueError for any other number of dimensions, for an empty tensor, and for a View that no tensor can have.
    """
    if isinstance(shape, View):
        return _checked(shape)
    shape = tuple(map(int, shape))
    if not 2 <= len(shape) <= 5:
        raise ValueError(f"shape {shape} has {len(shape)} dimensions, legal are 2 (N, F) to 5 (N, C, D, H, W)")
    if min(shape) < 1:
        raise ValueError(f"shape {shape} is empty, every dimension has to be at least 1")
    n, c = (shape[0], 1) if len(shape) == 2 else shape[:2]
    h, w = math.prod(shape[2:-1]), shape[-1]
    if w >= LANES and h % LANES == 0:
        return View(True, n * c * h, w, n * c, h)
    if h * w >= FLAT:
        return View(False, n * c, h * w, n * c, 1)
    if c * h * w >= FLAT:
        return View(False, n, c * h * w, n, 1)
    return View(False, 1, n * c * h * w, 1, 1)


def _checked(view):
    for name, least in (("rows", 1), ("width", LANES if view.tiled else 1), ("planes", 1), ("height", 1)):
        if getattr(view, name) < least:
            raise ValueError(f"{name} is {getattr(view, name)}, legal are {least} and more")
    if view.tiled and (view.rows % LANES or view.height % LANES):
        raise ValueError(f"rows and height are {view.rows} and {view.height}, tiled legal are multiples of {LANES}")
    return view


def of(x: np.ndarray, layout: View | None = None) -> View:
    """View of a float32 tensor: `layout`, or that of its shape.

    Raises TypeError for any other tensor, ValueError as `view`, and for another number of values than `layout` has.
    """
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        raise TypeError(f"tensor is {getattr(x, 'dtype', type(x).__name__)}, has to be a float32 array")
    if layout is not None and x.size != layout.rows * layout.width:
        raise ValueError(f"tensor has {x.size} values, a view of {layout.rows} rows has {layout.rows * layout.width}")
    return view(x.shape if layout is None else layout)


def segments(view: View) -> Segments:
    """Segments of a View.

    An average is over a power of two of values, so that it is a shift. Tiled, it is over the first 2^c of the columns
    that exist: fewer than 8 only in a narrow last column of tiles. Flat, it is over the first 2^a whole sectors of the
    segment, or the first 2^c values of a lone narrow one.
    """
    count = view.rows * view.sectors
    number = np.arange(view.blocks * LANES).reshape(-1, LANES)
    if view.tiled:
        tile = np.broadcast_to(np.arange(view.blocks)[:, None], number.shape)
        row, sector, segment = tile // view.sectors * LANES + number % LANES, tile % view.sectors, tile
        start = np.arange(0, number.size, LANES)
        a = np.full(view.blocks, 3)
        c = _LOG2[np.where(sector[:, 0] == view.sectors - 1, view.tail, LANES)]
    else:
        row, sector = number // view.sectors, number % view.sectors
        begins = ((sector == 0) | (number % LANES == 0)) & (number < count)
        start, segment = np.flatnonzero(begins), np.cumsum(begins).reshape(number.shape) - 1
        end = np.append(start[1:], count)
        whole = end - start - ((end % view.sectors == 0) & (view.tail < LANES))
        a, c = _LOG2[whole], np.where(whole > 0, 3, _LOG2[view.tail])
        void = number >= count
        row, sector, segment = (np.where(void, -1, index) for index in (row, sector, segment))
    values = np.where(sector == view.sectors - 1, view.tail, LANES) * (row >= 0)
    front = np.where(number - start[segment] < (1 << a)[segment], (1 << c)[segment], 0) * (row >= 0)
    plane = view.plane[row.reshape(-1)[start]]
    return Segments(row, sector, segment, values, front, plane, a, c, start)


def split(x: np.ndarray, view: View) -> np.ndarray:
    """Blocks of a tensor: `x` of any dtype, in memory order, to [blocks, 8, 8]; zeros where there is no value."""
    return blocks.split(x, view.jpegact, view.tiled).reshape(-1, LANES, LANES)


def join(x: np.ndarray, view: View) -> np.ndarray:
    """The reverse of `split`: [rows, width], the padding dropped."""
    return blocks.join(x, view.jpegact, view.tiled)


def planewise(ufunc: np.ufunc, x: np.ndarray, view: View) -> np.ndarray:
    """`ufunc`, np.minimum or np.maximum, over the values of each plane, of `x` [rows, width]: [planes]. Planes without
    a row have 0."""
    whole = view.rows // view.height
    parts = ufunc.reduce(x[: whole * view.height].reshape(whole, view.height * view.width), axis=1)
    if view.rows % view.height:
        parts = np.append(parts, ufunc.reduce(x[whole * view.height :], axis=None))
    result = np.zeros(view.planes, x.dtype)
    result[: parts.size] = parts[: view.planes]
    ufunc.at(result, np.arange(view.planes, parts.size) % view.planes, parts[view.planes :])
    return result


def order(view: View) -> NDArray[np.int64]:
    """Order in which sectors pass the sector port of a CDU: indices into the sectors in memory order."""
    return blocks.order(view.jpegact, view.tiled)
