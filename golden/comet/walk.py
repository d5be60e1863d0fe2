"""A tensor's walk: the sectors of a CDU, in their order, and the place of each."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.comet import lorenzo
from actcodec.golden.offload import blocks
from actcodec.golden.offload.blocks import View

LANES = blocks.LANES


class Walk(NamedTuple):
    """Arrays [n]; `index` is [n, 8], in memory order."""

    count: np.ndarray  # type: ignore[assignment] # a method of tuple; values that the tensor has in the sector, lane 0 and up
    left: np.ndarray  # whether lane 0 has a left neighbour, the last value of the sector before
    above: np.ndarray  # whether its values have neighbours above,
    tile: np.ndarray  # and in which of up to four sectors a row of the group
    index: np.ndarray  # type: ignore[assignment] # of each lane's value; -1 for none

    def __len__(self) -> int:
        return len(self.count)

    @property
    def last(self) -> NDArray[np.bool]:
        """Whether it is the last sector."""
        return np.arange(len(self)) == len(self) - 1

    def lanes(self, values: ArrayLike) -> np.ndarray:
        """Values in memory order, as [n, 8]; 0 where a lane has none."""
        values = np.reshape(values, -1)
        return np.where(self.index >= 0, values[self.index], 0).astype(values.dtype)

    @property
    def order(self) -> NDArray[np.int64]:
        """Indices of the values in coding order."""
        return self.index[self.index >= 0]


def walk(shape: Sequence[int] | View, tiled: bool, cdu: int = 0, cdus: int = 1) -> Walk:
    """The walk of one of `cdus` CDUs, which has every group g with g mod `cdus` = `cdu`. Raises as
    `lorenzo.layout_view`."""
    return through(lorenzo.layout_view(shape, tiled), tiled, cdu, cdus)


def through(view: View, tiled: bool, cdu: int = 0, cdus: int = 1) -> Walk:
    """The same, through a view."""
    index = blocks.sectors(np.arange(1, view.rows * view.width + 1), view, tiled) - 1
    row, column = np.divmod(blocks.order(view, tiled), view.tiles_per_row)
    count = (index >= 0).sum(axis=1)
    if not tiled:
        n, zeros = np.arange(len(index)), np.zeros(len(index), int)
        joined = (column > 0) | (view.width % LANES == 0)
        every, group = Walk(count, (n % lorenzo.SECTORS > 0) & joined, zeros > 0, zeros, index), n // lorenzo.SECTORS
    else:
        tile = row // LANES * view.tiles_per_row + column
        together = view.tiles_per_row if view.tiles_per_row <= 2 else blocks.GROUP
        every = Walk(count, (column > 0) & (tile % blocks.GROUP > 0), (row % LANES > 0) & (row % view.height > 0),
                     tile % together, index)
        group = tile // blocks.GROUP
    own = group % cdus == cdu
    return Walk(*(array[own] for array in every))
