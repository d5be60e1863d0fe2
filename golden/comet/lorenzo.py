"""Lorenzo prediction: the difference of a value to its neighbours, on the left, above, or both (COMET, section 3.4; SZ
and cuSZ).

Two layouts. `flat`: the tensor in memory order as one row, without padding. `tiled`: the tensor as 2-D array in the
order in which the sectors of its 8x8 tiles pass (`actcodec.golden.offload.blocks.order`), padding left out. Values of a
group (32 consecutive sectors, or four consecutive tiles) are never predicted from those of another.

A `shape` is NCHW or [N, F]; or it is a `View`, as which a lane's descriptor may have any rows. Flat ones follow one
another as one row where they are whole sectors. Where they are not, padding is between them, and the first value of
a row has no neighbour.
"""

import math
from dataclasses import dataclass

import numpy as np

from actcodec.golden.offload import blocks

GROUP = blocks.GROUP * blocks.BLOCK
SECTORS = GROUP // blocks.LANES  # of a group
_MODULUS = 1 << 12  # of all sums: with it any prediction can be undone


@dataclass(frozen=True)
class Config:
    """How a tensor is predicted. Raises ValueError for `vertical` in the flat layout, which has no rows."""

    tiled: bool
    horizontal: bool  # predict from the left
    vertical: bool  # predict from above
    signed: bool  # whether small negative residuals have small symbols; if not, they have the largest

    def __post_init__(self):
        if self.vertical and not self.tiled:
            raise ValueError("a configuration that predicts vertically has to be tiled")


CONFIGS = {
    "none+": Config(tiled=False, horizontal=False, vertical=False, signed=False),
    "none": Config(tiled=False, horizontal=False, vertical=False, signed=True),
    "line": Config(tiled=False, horizontal=True, vertical=False, signed=True),
    "row": Config(tiled=True, horizontal=True, vertical=False, signed=True),
    "column": Config(tiled=True, horizontal=False, vertical=True, signed=True),
    "plane": Config(tiled=True, horizontal=True, vertical=True, signed=True),
}


def seen(shape, tiled):
    """The view of a shape in a layout; flat, of one row wherever that makes no difference.

    Raises ValueError for a shape that has no view, and for a tiled one of no tiles (W < 8 or N * C * H < 8).
    """
    view = _view(shape)
    if tiled:
        if not view.tileable:
            raise ValueError(f"shape {tuple(shape)} has no tiles: W and N * C * H have to be at least 8")
        return view
    if view is shape and view.width % blocks.LANES:
        return view
    return blocks.View(1, view.rows * view.width, 1, 1, False)


def _view(shape):
    return shape if isinstance(shape, blocks.View) else blocks.view(shape)


def legal(shape):
    """The configurations of `CONFIGS` that tensors of a shape can have."""
    tiles = _view(shape).tileable
    return [config for config in CONFIGS.values() if tiles or not config.tiled]


def order(shape, tiled):
    """Indices, in memory order, of the values of a tensor in coding order. Raises as `seen` does."""
    view = seen(shape, tiled)
    index = np.arange(view.rows * view.width)
    if not tiled:
        return index
    index = blocks.sectors(index + 1, view, True).reshape(-1)
    return index[index > 0] - 1  # padding is 0


def groups(shape, tiled):
    """Number of the group of each value in coding order. Raises as `seen` does."""
    view, index = seen(shape, tiled), order(shape, tiled)
    return index // GROUP if view.rows == 1 else _number(view, tiled, *np.divmod(index, view.width)) // _together(tiled)


def _number(view, tiled, row, column):
    """Number of the tile, or, flat, of the sector, that a value is in."""
    return row // (blocks.LANES if tiled else 1) * view.tiles_per_row + column // blocks.LANES


def _together(tiled):
    """Tiles, or, flat, sectors of a group."""
    return blocks.GROUP if tiled else SECTORS


def _neighbours(view, tiled):
    """The array in which neighbours lie side by side: its shape, who has a left one, and which rows have one above."""
    if view.rows == 1:
        rows = -(-view.width // GROUP)
        return (rows, GROUP), np.broadcast_to(np.arange(GROUP) > 0, (rows, GROUP)), np.zeros((rows, 1), bool)
    row, column = np.arange(view.rows)[:, None], np.arange(view.width)
    number = _number(view, tiled, row, column)
    edge = (column == 0) | (column % blocks.LANES == 0) & (number % _together(tiled) == 0)
    return (view.rows, view.width), ~edge, (row % blocks.LANES != 0) & (row % view.height != 0)


def _differences(x, joined, axis):
    """x minus what is in front of it, where that is `joined` to it."""
    before = np.roll(x, 1, axis)
    return x - np.where(joined, before, 0)


def _sums(d, joined, axis):
    """The reverse of `_differences`: sums of what is joined, modulo 2^32."""
    total = np.cumsum(d, axis, d.dtype)
    place = np.arange(d.shape[axis]).reshape((-1, 1) if axis == 0 else (1, -1))
    first = np.maximum.accumulate(np.broadcast_to(np.where(joined, 0, place), d.shape), axis)
    return total - np.take_along_axis(total - d, first, axis)


def residuals(q, shape, config):
    """Symbols u (uint16, 0 to 4095) of the integers q (-2048 to 2047) of a tensor of `shape`, in coding order.

    Modulo 2^12, with 0 for a neighbour that does not exist: v = q - q(above), d = v - v(left), each only where its
    switch is on. Signed: u = 2d for d >= 0, else -2d - 1, with d in -2048..2047; unsigned: u = d in 0..4095. Raises as
    `seen` does.
    """
    index = order(shape, config.tiled)
    plane, left, above = _neighbours(seen(shape, config.tiled), config.tiled)
    d = np.zeros(math.prod(plane), np.int32)
    d[: index.size] = np.reshape(q, -1)
    d = d.reshape(plane)
    if config.vertical:
        d = _differences(d, above, 0)
    if config.horizontal:
        d = _differences(d, left, 1)
    d = _wrapped(d) if config.signed else d % _MODULUS
    u = np.where(d < 0, -2 * d - 1, 2 * d) if config.signed else d
    return u.reshape(-1)[index].astype(np.uint16)


def _wrapped(d):
    """d modulo 2^12, as -2048..2047."""
    return (d + _MODULUS // 2) % _MODULUS - _MODULUS // 2


def restore(u, shape, config):
    """Integers q (int16, -2048 to 2047, of `shape`, or of a view's rows) of symbols u in coding order: the reverse of
    `residuals`. Raises as `seen` does.
    """
    index = order(shape, config.tiled)
    plane, left, above = _neighbours(seen(shape, config.tiled), config.tiled)
    u = np.asarray(u, np.int32)
    q = np.zeros(math.prod(plane), np.int32)
    q[index] = np.where(u % 2, -(u // 2) - 1, u // 2) if config.signed else u
    q = q.reshape(plane)
    if config.horizontal:
        q = _sums(q, left, 1)
    if config.vertical:
        q = _sums(q, above, 0)
    dimensions = shape[:2] if isinstance(shape, blocks.View) else shape
    return _wrapped(q).reshape(-1)[: index.size].reshape(dimensions).astype(np.int16)
