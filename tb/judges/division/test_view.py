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


SHAPES = [*oracle.SHAPES, *random_shapes(120)]


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
        x = 1 + np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
        blocks = view.split(x, v)
        expected = [[[1 + i for i in indices] + [0] * (8 - len(indices)) for *_, indices in block]
                    for block in oracle.blocks_of(shape)]
        assert blocks.tolist() == expected, shape
        assert np.array_equal(blocks > 0, view.segments(v).exists)
        assert np.array_equal(view.join(blocks, v).reshape(shape), x)


def test_planes_are_what_their_name_says():
    for shape in SHAPES:
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


def test_a_block_has_at_most_four_segments():
    assert max(codec.block_sizes(view.view(shape), 2).max() for shape in SHAPES) == 16 + 4


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
