"""Where those sectors of a tensor lie that one CDU of several takes (JPEG-ACT, section III-C; docs/formats.md, "Sector
order")."""

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.offload.blocks import GROUP, LANES, View, order
from actcodec.golden.offload.memory.traffic import WORD, Places


def blocks(view: View, tiled: bool, cdus: int) -> NDArray[np.int64]:
    """Blocks of each CDU: [cdus]. Groups of four go to the CDUs in turn."""
    block = np.arange(view.blocks(tiled))
    return np.bincount(block // GROUP % cdus, minlength=cdus)


def places(view: View, tiled: bool, base: int, stride: int, cdus: int = 1, cdu: int = 0,
           size: int = WORD) -> Places:
    """Places of the sectors of CDU `cdu`, eight for each of its blocks, of values of `size` bytes.

    `base` is the byte address of the first value, `stride` the bytes from row to row. Padding has no words; its address
    and channel are those of the rows that would follow. Slot 1 are the sectors in the second row of tiles of a group,
    where a group's rows of tiles pass side by side.
    """
    tiles, index = view.tiles_per_row, order(view, tiled)
    index = np.concatenate([index, np.arange(index.size, LANES * view.blocks(tiled))])
    group = np.arange(index.size) // (GROUP * LANES)
    index, group = index[group % cdus == cdu], group[group % cdus == cdu]
    row, tile = np.divmod(index, tiles)
    words = np.where(row < view.rows, np.minimum(view.width - LANES * tile, LANES), 0)
    side_by_side = tiled and tiles > 2 and tiles != GROUP
    slot = (row // LANES - group * GROUP // tiles) * side_by_side
    return Places(base + row * stride + LANES * size * tile, words, row // view.height % view.channels, slot)
