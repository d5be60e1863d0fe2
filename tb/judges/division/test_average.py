"""The averages against PyTorch's average pooling, in bfloat16 and exact, and against Python's integers."""

import numpy as np
import pytest

from actcodec.golden.division import average, codec, table, view
from actcodec.golden.jpegact import sfpr
from tb.judges.division import oracle

torch = pytest.importorskip("torch")


def integers(shape, seed=0, dtype=np.int8):
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(dtype)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_lfc_is_pytorchs_average_pooling_within_a_unit(bits):
    """Its bfloat16, which the paper stores, is less exact: 2^-7 of the values is added to the bound."""
    for name, x in oracle.sample().items():
        t, v = table.table(x, bits), view.view(x.shape)
        s = view.segments(v)
        y = sfpr.quantize(x.reshape(v.rows, v.width), t.k[v.plane, None])
        base = average.bases(view.split(y, v), v, t.delta)
        level = (base - t.delta[s.plane].astype(float)).reshape(*x.shape[:2], x.shape[2] // 8, -1)
        whole = (base > -128).reshape(level.shape)  # not cut off
        assert whole.mean() > 0.99
        k = t.k.reshape(*x.shape[:2], 1, 1).astype(float)
        pooled, magnitude = (torch.nn.functional.avg_pool2d(torch.from_numpy(x).double(), 8).numpy()
                             for x in (x, np.abs(x)))
        assert np.all((np.abs(level - k * pooled) <= 1)[whole]), name
        narrow = torch.nn.functional.avg_pool2d(torch.from_numpy(x).bfloat16(), 8).double().numpy()
        assert np.all((np.abs(level - k * narrow) <= 1 + k * magnitude * 2.0**-7)[whole]), name


def test_lfc_of_integers_is_the_exact_mean_half_up():
    v = view.view((3, 2, 32, 40))
    y = integers((3, 2, 32, 40))
    y[0, 0] = np.arange(1280).reshape(32, 40) % 2 - np.arange(32)[:, None] // 8  # ties
    level = average.level(view.split(y, v), view.segments(v)).reshape(3, 2, 4, 5)
    mean = torch.nn.functional.avg_pool2d(torch.from_numpy(y).double(), 8).numpy()
    assert np.any(mean % 1 == 0.5)
    assert np.array_equal(level, np.floor(mean + 0.5))
    tiles = y.reshape(3, 2, 4, 8, 5, 8).transpose(0, 1, 2, 4, 3, 5).reshape(-1, 64)
    assert level.reshape(-1).tolist() == [(sum(tile) + 32) // 64 for tile in tiles.tolist()]


def test_least_values_are_those_of_pytorchs_max_pooling():
    v = view.view((3, 2, 32, 40))
    y = integers((3, 2, 32, 40))
    level = average.level(view.split(y, v), view.segments(v), offset="min")
    assert np.array_equal(level.reshape(3, 2, 4, 5), -torch.nn.functional.max_pool2d(torch.from_numpy(-y.astype(float)),
                                                                                  8).numpy())


@pytest.mark.parametrize("offset", average.OFFSETS)
def test_averages_of_cut_blocks_are_over_the_front_that_the_plain_loops_find(offset):
    for shape in oracle.SHAPES:
        v = view.view(shape)
        y = integers(shape, dtype=np.int32) * 255  # as wide as what the table is made from
        expected = []
        for block, parts in zip(oracle.blocks_of(shape), oracle.segments_of(shape), strict=True):
            for part in parts:
                if offset == "min":
                    expected.append(64 * min(y.flat[index] for i in part for index in block[i][3]))
                else:
                    indices = oracle.front(block, part, v.tiled)
                    expected.append(64 * sum(y.flat[index] for index in indices) / len(indices))
        s = view.segments(v)
        assert average.exact(view.split(y, v), s, True, offset).tolist() == expected, shape
        assert average.level(view.split(y, v), s, True, offset).tolist() == [
            (2 * e + 64) // 128 for e in expected], shape
        assert not average.exact(view.split(y, v), s, False, offset).any()


def test_bases_are_clipped_to_a_byte():
    v = view.view((1, 2, 8, 16))
    y = np.array([127, 100, -127, -100], np.int8).repeat(64).reshape(4, 8, 8)
    assert average.bases(y, v, np.int8([27, -28])).tolist() == [127, 127, -128, -128]
    assert average.bases(y, v, np.int8([-1, -3])).tolist() == [126, 99, -128, -103]
    assert average.bases(y, v, np.int8([5, -6]), lfc=False).tolist() == [5, 5, -6, -6]


def test_other_offsets_are_refused():
    with pytest.raises(ValueError, match="offset is 'max', legal are mean, min"):
        table.table(np.ones((1, 1, 8, 8), np.float32), offset="max")
    t = table.table(np.ones((1, 1, 8, 8), np.float32))
    with pytest.raises(ValueError, match="offset is 'max'"):
        codec.encode(np.ones((1, 1, 8, 8), np.float32), t, offset="max")
