"""Views, blocks, segments and sizes against plain loops, for random shapes; shapes that have no view."""

import numpy as np
import pytest

from actcodec.golden.division import codec, view
from tb.judges import oracles
from tb.judges.division import oracle


def random_shapes(count):
    random = np.random.default_rng(1)
    for _ in range(count):
        edges = random.integers(1, [4, 6, 4, 26, 40])
        yield tuple(edges.tolist()[-random.integers(2, 6) :])


def random_views(count):
    random = np.random.default_rng(2)
    for n in range(count):
        rows, width, planes, height = random.integers(1, (40, (9, 30, 100)[n % 3], 8, 20)).tolist()
        yield view.View(False, rows, width, planes, height)
        yield view.View(True, 8 * -(-rows // 8), 8 + width, planes, 8 * -(-height // 8))


SHAPES = [*oracle.SHAPES, *oracle.VIEWS, *random_shapes(120), *random_views(40)]


def test_rows_of_blocks_and_segments_are_those_of_the_plain_loops():
    for shape in SHAPES:
        v = view.view(shape)
        s = view.segments(v)
        blocks, segments = oracle.blocks_of(shape), oracle.segments_of(shape)
        assert v.blocks == len(blocks) and v.tiled == oracle.rows_of(shape)[0], shape
        assert s.row.tolist() == [[row for _, row, *_ in block] for block in blocks], shape
        assert s.sector.tolist() == [[sector for *_, sector, _ in block] for block in blocks], shape
        assert s.values.tolist() == [[len(indices) for *_, indices in block] for block in blocks], shape
        expected, number = np.full((len(blocks), 8), -1), 0
        for block, parts in zip(expected, segments, strict=True):
            for part in parts:
                block[part] = number
                number += 1
        assert np.array_equal(s.segment, expected), shape
        assert s.plane.tolist() == [block[part[0]][0] for block, parts in zip(blocks, segments, strict=True)
                                    for part in parts], shape
        fronts = [len(oracle.front(block, part, v.tiled)) for block, parts in zip(blocks, segments, strict=True)
                  for part in parts]
        assert (2 ** (s.a + s.c)).tolist() == fronts, shape
        assert np.bincount(s.segment[s.segment >= 0], s.front[s.segment >= 0]).tolist() == fronts, shape


def test_split_gives_the_values_of_the_plain_loops_and_join_takes_them_back():
    for shape in SHAPES:
        v = view.view(shape)
        x = 1 + np.arange(np.prod(oracle.edges(shape)), dtype=np.int32).reshape(oracle.edges(shape))
        blocks = view.split(x, v)
        expected = [[[1 + i for i in indices] + [0] * (8 - len(indices)) for *_, indices in block]
                    for block in oracle.blocks_of(shape)]
        assert blocks.tolist() == expected, shape
        assert np.array_equal(blocks > 0, view.segments(v).exists)
        assert np.array_equal(view.join(blocks, v).reshape(x.shape), x)


def test_planes_are_what_their_name_says():
    for shape in [*oracle.SHAPES, *random_shapes(120)]:
        v = view.view(shape)
        plane = np.repeat(v.plane, v.width)
        n, c, *edges = (shape[0], 1, shape[1]) if len(shape) == 2 else shape
        if np.prod(edges) >= 9:
            assert plane.tolist() == np.repeat(np.arange(n * c), np.prod(edges)).tolist(), shape
        else:
            assert v.planes == n if c * np.prod(edges) >= 9 else 1


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_sizes_are_those_of_the_enumerated_blocks(bits):
    for shape in SHAPES:
        sizes = [8 * bits + len(parts) for parts in oracle.segments_of(shape)]
        assert codec.block_sizes(view.view(shape), bits).tolist() == sizes, shape
        assert codec.size(shape, bits) == sum(sizes), shape


def test_a_block_has_at_most_four_segments_or_eight_if_rows_are_sectors():
    assert max(codec.block_sizes(view.view(shape), 2).max() for shape in SHAPES if view.view(shape).sectors > 1) == 20
    assert max(codec.block_sizes(view.view(shape), 2).max() for shape in SHAPES) == 24


def test_of_each_plane_is_what_numpy_has_of_its_rows():
    random = np.random.default_rng(5)
    for shape in SHAPES:
        v = view.view(shape)
        x = random.integers(-1000, 1000, (v.rows, v.width))
        for ufunc in (np.minimum, np.maximum):
            expected = [ufunc.reduce(x[v.plane == plane], axis=None) if plane in v.plane else 0
                        for plane in range(v.planes)]
            assert view.planewise(ufunc, x, v).tolist() == expected, shape


@pytest.mark.parametrize("changes", [
    {"rows": 0}, {"width": 0}, {"planes": 0}, {"height": 0}, {"tiled": True, "rows": 12},
    {"tiled": True, "height": 12}, {"tiled": True, "width": 7}], ids=str)
def test_views_that_no_tensor_can_have_are_refused(changes):
    good = view.View(False, 16, 8, 2, 8)
    assert view.view(good) == good and view.view(good._replace(tiled=True)).tiled
    with pytest.raises(ValueError, match="legal"):
        view.view(good._replace(**changes))


def test_a_tensor_has_as_many_values_as_its_view():
    x = np.zeros((4, 6), np.float32)
    assert view.of(x, view.View(False, 3, 8, 1, 1)).width == 8
    with pytest.raises(ValueError, match="tensor has 24 values, a view of 3 rows has 27"):
        view.of(x, view.View(False, 3, 9, 1, 1))


def test_sectors_pass_in_the_order_of_jpeg_act():
    for shape in [(2, 3, 16, 24), (1, 2, 8, 8), (1, 1, 16, 13), (3, 5, 8, 40)]:
        v = view.view(shape)
        assert view.order(v).tolist() == oracles.sector_order(v.rows, v.sectors)
    v = view.view((3, 50))
    assert view.order(v).tolist() == list(range(21))


@pytest.mark.parametrize("shape", [(), (8,), (1, 1, 1, 1, 8, 8), (0, 8), (1, 2, 0, 8), (2, 3, -1)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="dimension"):
        view.view(shape)
    with pytest.raises(ValueError, match="dimension"):
        codec.size(shape, 2)
