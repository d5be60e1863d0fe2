"""Lorenzo prediction: the difference of a value to its neighbours, on the left, above, or both (COMET, section 3.4; SZ
and cuSZ).

Two layouts. `flat`: the tensor in memory order as one row, without padding. `tiled`: the tensor as 2-D array in the
order in which the sectors of its 8x8 tiles pass (`actcodec.golden.offload.blocks.order`), padding left out. Values of a
group (32 consecutive sectors, or four consecutive tiles) are never predicted from those of another.

A `shape` is NCHW or [N, F]; or it is a `View`, as which a lane's descriptor may have any rows. Flat ones follow one
another as one row where they are whole sectors. Where they are not, padding is between them, and the first value of
a row has no neighbour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.offload import blocks
from actcodec.golden.offload.blocks import View

GROUP = blocks.GROUP * blocks.BLOCK
SECTORS = GROUP // blocks.LANES  # of a group
PART = 1 << 16  # values at a time: what is computed between stays in a cache
_MODULUS = 1 << 12  # of all sums: with it any prediction can be undone


@dataclass(frozen=True)
class Config:
    """How a tensor is predicted. Raises ValueError for `vertical` in the flat layout, which has no rows."""

    tiled: bool
    horizontal: bool  # predict from the left
    vertical: bool  # predict from above
    signed: bool  # whether small negative residuals have small symbols; if not, they have the largest

    def __post_init__(self) -> None:
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


def layout_view(shape: Sequence[int] | View, tiled: bool) -> View:
    """The view of a shape in a layout; flat, of one row wherever that makes no difference.

    Raises ValueError for a shape that has no view, and for a tiled one of no tiles (W < 8 or N * C * H < 8).
    """
    view = _view(shape)
    if tiled:
        if not view.tileable:
            raise ValueError(f"shape {tuple(shape)} has no tiles: W and N * C * H have to be at least 8")
        return view
    if isinstance(shape, View) and view.width % blocks.LANES:
        return view
    return blocks.View(1, view.rows * view.width, 1, 1, False)


def _view(shape):
    return shape if isinstance(shape, blocks.View) else blocks.view(shape)


def legal(shape: Sequence[int] | View) -> list[Config]:
    """The configurations of `CONFIGS` that tensors of a shape can have."""
    tiles = _view(shape).tileable
    return [config for config in CONFIGS.values() if tiles or not config.tiled]


def dimensions(shape: Sequence[int] | View) -> tuple[int, ...]:
    """Those of a tensor: a shape itself, or rows and width of a View."""
    return tuple(shape[:2]) if isinstance(shape, blocks.View) else tuple(shape)


def order(shape: Sequence[int] | View, tiled: bool) -> NDArray[np.int64]:
    """Indices, in memory order, of the values of a tensor in coding order. Raises as `layout_view` does."""
    view = layout_view(shape, tiled)
    return _order(view) if tiled else np.arange(view.rows * view.width)


def _order(view):
    index = blocks.sectors(np.arange(1, view.rows * view.width + 1), view, True).reshape(-1)
    return index[index > 0] - 1  # padding is 0


def _number(view, tiled, row, column):
    """Number of the tile, or, flat, of the sector, that a value is in."""
    return row // (blocks.LANES if tiled else 1) * view.tiles_per_row + column // blocks.LANES


def groups(shape: Sequence[int] | View, tiled: bool) -> NDArray[np.int64]:
    """Number of the group of each value in coding order. Raises as `layout_view` does."""
    first, numbers = 0, []
    for part in parts(shape, tiled):
        numbers.append(first + part.group)
        first += part.groups
    return np.concatenate(numbers)


class Part(NamedTuple):
    """Whole groups that follow each other, in memory and in coding order: both have the same places."""

    values: slice  # of the tensor, flattened
    shape: tuple[int, int]  # of the array in which neighbours lie side by side, perhaps with a fill at the end
    order: np.ndarray | None  # of the values in coding order: indices in memory order; None if they are the same
    left: np.ndarray  # int16: -1 where a value has a left neighbour, else 0
    above: np.ndarray  # whether each row has one above, [rows, 1]
    group: np.ndarray  # of each value in coding order, counted from the part's first
    groups: int  # how many there are


def parts(shape: Sequence[int] | View, tiled: bool) -> Iterator[Part]:
    """A tensor of `shape` in Parts. Raises as `layout_view` does."""
    view = layout_view(shape, tiled)
    if view.rows == 1:
        left = np.broadcast_to(-(np.arange(GROUP) > 0).astype(np.int16), (PART // GROUP, GROUP))
        group = np.arange(PART) // GROUP
        for i in range(0, view.width, PART):
            count = min(view.width - i, PART)
            rows = -(-count // GROUP)
            yield Part(slice(i, i + count), (rows, GROUP), None, left[:rows], np.zeros((rows, 1), bool), group[:count],
                       rows)
        return
    tall, together = (blocks.LANES, blocks.GROUP) if tiled else (1, SECTORS)
    step = together * tall * max(1, PART // (together * tall * view.width))
    known = 0
    for first in range(0, view.rows, step):
        rows = min(view.rows - first, step)
        if rows != known:
            known, own = rows, view._replace(rows=rows)
            order = _order(own) if tiled else None
            number = _number(view, tiled, np.arange(rows)[:, None], np.arange(view.width))
            column = np.arange(view.width)
            left = -((column > 0) & ((column % blocks.LANES > 0) | (number % together > 0))).astype(np.int16)
            group = (number // together).reshape(-1)
            group = group[order] if tiled else group
        row = np.arange(first, first + rows)[:, None]
        above = (row % blocks.LANES != 0) & (row % view.height != 0)
        yield Part(slice(first * view.width, (first + rows) * view.width), (rows, view.width), order, left, above,
                   group, int(group[-1]) + 1)


def _differences(q, part, config):
    """Residuals of a part's integers, in memory order; int16, not yet modulo 2^12."""
    d = np.zeros(part.shape, np.int16)
    d.reshape(-1)[: q.size] = q
    if config.vertical:
        d[1:] -= np.where(part.above[1:], d[:-1], 0)
    if config.horizontal:
        d[:, 1:] -= d[:, :-1] & part.left[:, 1:]
    return d.reshape(-1)[: q.size]


def _sums(d, joined):
    """The reverse of a difference: sums, modulo 2^16, of what is joined to the one before along the first axis."""
    total, first = np.cumsum(d, 0, d.dtype), np.flatnonzero(~joined)
    before = total[first - 1]
    before[0] = 0
    return total - np.repeat(before, np.diff(first, append=len(d)), axis=0)


def residuals(q: ArrayLike, shape: Sequence[int] | View, config: Config) -> NDArray[np.uint16]:
    """Symbols u (uint16, 0 to 4095) of the integers q (-2048 to 2047) of a tensor of `shape`, in coding order.

    Modulo 2^12, with 0 for a neighbour that does not exist: v = q - q(above), d = v - v(left), each only where its
    switch is on. Signed: u = 2d for d >= 0, else -2d - 1, with d in -2048..2047; unsigned: u = d in 0..4095. Raises as
    `layout_view` does.
    """
    u, q = np.empty(np.size(q), np.uint16), np.reshape(q, -1)
    for part in parts(shape, config.tiled):
        own = symbols(q[part.values], part, config)
        u[part.values] = own if part.order is None else own[part.order]
    return u


def symbols(q: np.ndarray, part: Part, config: Config) -> NDArray[np.uint16]:
    """Symbols of a Part's integers, in memory order."""
    d = _wrapped(_differences(q, part, config))
    return (d << 1 ^ d >> 15 if config.signed else d & _MODULUS - 1).view(np.uint16)


def _wrapped(d):
    """d (int16) modulo 2^12, as -2048..2047."""
    return d << 4 >> 4


def restore(u: ArrayLike, shape: Sequence[int] | View, config: Config) -> NDArray[np.int16]:
    """Integers q (int16, -2048 to 2047, of `shape`, or of a view's rows) of symbols u in coding order: the reverse of
    `residuals`. Raises as `layout_view` does.
    """
    u, result = np.asarray(u, np.uint16), np.empty(np.size(u), np.int16)
    for part in parts(shape, config.tiled):
        result[part.values] = integers(u[part.values], part, config)
    return result.reshape(dimensions(shape))


def integers(u: ArrayLike, part: Part, config: Config) -> NDArray[np.int16]:
    """Integers of a Part, in memory order, of its symbols in coding order."""
    d, u = np.zeros(part.shape, np.int16), np.asarray(u).view(np.int16)
    d.reshape(-1)[slice(u.size) if part.order is None else part.order] = u >> 1 ^ -(u & 1) if config.signed else u
    if config.horizontal:
        d = _sums(d.reshape(-1), part.left.reshape(-1) != 0).reshape(part.shape)
    if config.vertical:
        d = _sums(d, part.above[:, 0])
    return _wrapped(d).reshape(-1)[: u.size]
