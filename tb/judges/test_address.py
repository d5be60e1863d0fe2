"""Places of sectors against the tensor itself, laid out in a flat memory by NumPy's own strides."""

import numpy as np
import pytest

from actcodec.golden.offload import blocks
from actcodec.golden.offload.memory import address, traffic
from tb.judges import oracles

VIEWS = [(shape, False) for shape in oracles.SHAPES]
VIEWS += [(shape, True) for shape in oracles.SHAPES if blocks.view(shape).tileable]
LAYOUTS = [(0, 0), (1, 0), (7, 3), (1024, 65)]  # base, and what lies between rows, in values


@pytest.mark.parametrize("cdus", range(1, 9))
@pytest.mark.parametrize("shape, tiled", VIEWS)
@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_the_cdus_together_gather_the_tensor(shape, tiled, cdus, dtype):
    view, size = blocks.view(shape), np.dtype(dtype).itemsize
    x = np.random.default_rng(cdus).integers(1, np.iinfo(dtype).max, (view.rows, view.width), dtype)
    expected = blocks.sectors(x, view, tiled)
    expected = np.pad(expected, ((0, -len(expected) % 8), (0, 0)))
    base, gap = (size * words for words in LAYOUTS[cdus % len(LAYOUTS)])
    stride = size * view.width + gap
    content = np.random.default_rng(0).integers(1, np.iinfo(dtype).max, (base + view.rows * stride) // size + 8, dtype)
    rows = np.lib.stride_tricks.as_strided(content[base // size :], x.shape, (stride, size))
    rows[...] = x

    counts = address.blocks(view, tiled, cdus)
    assert counts.sum() == view.blocks(tiled)
    for cdu in range(cdus):
        places = address.places(view, tiled, base, stride, cdus, cdu, size)
        groups = [expected[start : start + 32] for start in range(32 * cdu, len(expected), 32 * cdus)]
        mine = np.concatenate([expected[:0], *groups])
        assert len(mine) == 8 * counts[cdu]
        assert np.array_equal(traffic.gather(content, places), mine)


@pytest.mark.parametrize("shape, tiled", VIEWS)
def test_each_sector_has_the_channel_of_its_row(shape, tiled):
    view, rows = blocks.view(shape), oracles.rows_of(np.zeros(shape))
    places = address.places(view, tiled, 0, 4 * view.width)
    there = places.words > 0
    row = places.address[there] // (4 * view.width)
    assert places.channel[there].tolist() == [rows[r][1] for r in row]
    assert np.all(places.channel < view.channels)


@pytest.mark.parametrize("shape, tiled", VIEWS)
@pytest.mark.parametrize("cdus", [1, 3])
def test_a_slot_never_goes_back_within_a_group(shape, tiled, cdus):
    """So that scales are read once for each row of tiles of a group."""
    view = blocks.view(shape)
    for cdu in range(cdus):
        places = address.places(view, tiled, 0, 4 * view.width, cdus, cdu)
        row = places.address // (4 * view.width)
        for start in range(0, row.size, 32):
            for slot in (0, 1):
                mine = row[start : start + 32][places.slot[start : start + 32] == slot]
                assert np.all(np.diff(mine) >= 0)
                assert mine.size == 0 or slot == 0 or np.ptp(mine) < 8
