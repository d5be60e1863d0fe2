"""Tensor view, blocks and sector order against plain loops."""

import numpy as np
import pytest

from actcodec.golden.offload import blocks
from tb.judges import oracles

VIEWS = [(shape, False) for shape in oracles.SHAPES]
VIEWS += [(shape, True) for shape in oracles.SHAPES if blocks.view(shape).tileable]


def numbered(shape):
    """A tensor whose values say where they are."""
    return np.arange(1, np.prod(shape) + 1, dtype=np.int32).reshape(shape)


@pytest.mark.parametrize("shape", oracles.SHAPES)
def test_view_gives_every_row_its_width_and_channel(shape):
    view, rows = blocks.view(shape), oracles.rows_of(numbered(shape))
    assert (view.rows, view.width) == (len(rows), len(rows[0][0]))
    assert list(view.channel) == [channel for _, channel in rows]
    assert view.channels >= max(view.channel) + 1


@pytest.mark.parametrize(
    "shape, expected",
    [
        ((2, 3, 7, 13), (42, 13, 3, 7, True)),
        ((1, 1, 7, 8), (7, 8, 1, 7, False)),
        ((5, 3, 2, 7), (15, 14, 3, 1, False)),
        ((9, 3, 1, 8), (27, 8, 3, 1, True)),
        ((9, 3, 7, 1), (9, 21, 1, 1, False)),
        ((13, 70), (13, 70, 1, 1, False)),
    ],
)
def test_view_classes(shape, expected):
    assert blocks.view(shape) == expected


@pytest.mark.parametrize("shape, tiled", VIEWS)
def test_blocks_are_tiles_in_raster_order_or_eight_sectors_in_memory_order(shape, tiled):
    x, view = numbered(shape), blocks.view(shape)
    data = blocks.split(x, view, tiled)
    assert data.reshape(len(data), -1).tolist() == oracles.blocks_of(x, tiled)
    assert len(data) == view.blocks(tiled)


@pytest.mark.parametrize("shape, tiled", VIEWS)
def test_join_reverses_split(shape, tiled):
    x, view = numbered(shape), blocks.view(shape)
    assert np.array_equal(blocks.join(blocks.split(x, view, tiled), view, tiled).reshape(shape), x)


@pytest.mark.parametrize("tiles", range(1, 11))
@pytest.mark.parametrize("tile_rows", range(1, 8))
def test_tiled_sectors_pass_a_group_at_a_time(tiles, tile_rows):
    order = blocks.order(blocks.view((1, 1, 8 * tile_rows, 8 * tiles)), True)
    assert order.tolist() == oracles.sector_order(8 * tile_rows, tiles)


@pytest.mark.parametrize("shape, tiled", VIEWS)
def test_each_group_of_sectors_holds_the_values_of_its_four_blocks(shape, tiled):
    x, view = numbered(shape), blocks.view(shape)
    sectors, data = blocks.sectors(x, view, tiled), blocks.split(x, view, tiled).reshape(-1, 64)
    for group in range(0, len(data), 4):
        expected = np.sort(data[group : group + 4], axis=None)
        values = np.sort(sectors[8 * group : 8 * group + 32], axis=None)
        assert np.array_equal(values[values > 0], expected[expected > 0])


@pytest.mark.parametrize("shape", [(), (4,), (1, 2, 3), (1, 2, 3, 4, 5), (0, 4), (1, 0, 8, 8)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="dimension"):
        blocks.view(shape)
