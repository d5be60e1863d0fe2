"""The table against exact fractions, and its scales against ml_dtypes' bfloat16."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from actcodec.golden.division import codec, table
from tb.judges.division import oracle

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

BITS = pytest.mark.parametrize("bits", [1, 2, 3, 4])
WAYS = pytest.mark.parametrize(("bits", "way"), [
    *((bits, {}) for bits in (1, 2, 3, 4)), (1, {"lfc": False}), (4, {"lfc": False}), (2, {"offset": "min"}),
    (3, {"offset": "min"})], ids=str)  # fmt: skip


def tensors():
    """Small ones of every kind of view: ordinary values, a large mean, a ramp, constants, extremes."""
    random = np.random.default_rng(3)
    for shape in [(1, 3, 8, 8), (1, 2, 8, 13), (1, 3, 16, 8), (3, 50), (2, 2, 5, 5), (2, 3, 2, 3), (2, 2)]:
        x = random.standard_normal(shape).astype(np.float32)
        yield x
        yield x + np.float32(20)
        yield np.abs(x) * np.float32(3e38 / np.abs(x).max())
        yield x * np.float32(2.0**-120)
        yield np.arange(x.size, dtype=np.float32).reshape(shape) - 7
        yield np.full(shape, 2.5, np.float32)
        yield np.where(random.random(shape) < 0.02, x, np.float32(0))
        yield oracle.awkward(shape)


@WAYS
def test_table_of_any_view_is_that_of_exact_fractions(bits, way):
    for number, view in enumerate(oracle.VIEWS):
        x = oracle.awkward(oracle.edges(view), number)
        t = table.table(x, bits, **way, view=view)
        expected = oracle.table_of(x, bits, **way, shape=view)
        assert list(zip(t.k.tolist(), t.delta.tolist(), strict=True)) == expected, view


@WAYS
def test_table_is_that_of_exact_fractions(bits, way):
    for x in tensors():
        t = table.table(x, bits, **way)
        assert t.k.dtype == np.float32 and t.delta.dtype == np.int8
        assert list(zip(t.k.tolist(), t.delta.tolist(), strict=True)) == oracle.table_of(x, bits, **way), x.shape


def test_values_are_rounded_to_the_nearest_even_of_16_bits_before_the_first_k():
    """Halves beside 2^14, whose plane has the scale 1. With this seed two planes tell rounding down, and half up."""
    x = (np.random.default_rng(22).integers(-(2**15), 2**15, (200, 1, 9)) / 2).astype(np.float32)
    x[:, 0, 0] = 2**14
    assert list(zip(*map(np.ndarray.tolist, table.table(x, 1)), strict=True)) == oracle.table_of(x, 1)


def test_bfloat16_down_is_the_largest_one_not_above():
    """Against ml_dtypes, at all boundaries of a few exponents and random numbers; neighbours by the bits."""
    codes = np.concatenate([np.arange(e << 7, (e << 7) + 128) for e in (1, 100, 127, 128, 200, 252)]).astype(np.uint16)
    exact = codes.view(ml_dtypes.bfloat16).astype(np.float64)
    random = 2.0 ** np.random.default_rng(0).uniform(-125, 126, 4000)
    x = np.concatenate([exact, np.nextafter(exact, np.inf), np.nextafter(exact, 0)[1:], random])
    k = table.bfloat16_down(x)
    assert np.array_equal(k.astype(ml_dtypes.bfloat16).astype(np.float32), k)
    above = (k.astype(ml_dtypes.bfloat16).view(np.uint16) + np.uint16(1)).view(ml_dtypes.bfloat16)
    for one, down, up in zip(x.tolist(), k.tolist(), above.astype(float).tolist(), strict=True):
        assert Fraction(down) <= Fraction(one) < Fraction(up)
    assert table.bfloat16_down(np.array([2.0**126, 1e38, np.inf])).tolist() == [2.0**126] * 3


@WAYS
def test_table_of_activations_is_that_of_exact_fractions(bits, way):
    for name, x in oracle.sample().items():
        x = x[:1, 3 : 3 + 1024 // x[0, 0].size].copy()
        t = table.table(x, bits, **way)
        assert np.array_equal(t.k.astype(ml_dtypes.bfloat16).astype(np.float32), t.k)
        assert list(zip(t.k.tolist(), t.delta.tolist(), strict=True)) == oracle.table_of(x, bits, **way), name


@BITS
def test_no_value_clips_with_any_seed(bits):
    for x in tensors():
        t = table.table(x, bits)
        finite = np.where(np.isfinite(x), x, np.float32(0))
        for seed in range(2):
            e = codec.encode(finite, t, bits, seed)
            assert (e.clipped, e.saturated) == (0, 0)
            # nothing saturates on the way back: the largest y' is base + code * 2^F without its limit
            assert np.all(np.isfinite(codec.decode(e.payload, t.k, x.shape, bits)))


def test_subnormal_and_non_finite_values_make_no_scale():
    x = np.zeros((1, 4, 8, 8), np.float32)
    x[0, 0, 0, :4] = np.nan, np.inf, -np.inf, -3
    x[0, 1, 0, :2] = np.nan, np.inf
    x.view(np.uint32)[0, 2, 0, :2] = 0x7FFFFF, 0x80000001
    x.view(np.uint32)[0, 3, 0, 0] = 0x7F800001  # a signalling NaN
    t = table.table(x)
    only = np.zeros((1, 1, 8, 8), np.float32)
    only[0, 0, 0, 3] = -3
    assert t.k.tolist() == [table.table(only).k[0], 0, 0, 0] and t.k[0] > 0
    assert t.delta.tolist() == [table.table(only).delta[0], 0, 0, 0]


def test_auto_takes_what_has_the_smaller_steps():
    for name, x in oracle.sample().items():
        with_lfc, without = table.table(x), table.table(x, lfc=False)
        cost, plain = ((1 / np.square(t.k[t.k > 0].astype(float))).sum() for t in (with_lfc, without))
        t, lfc = table.auto(x)
        assert lfc == (cost <= plain), name
        assert all(map(np.array_equal, t, with_lfc if lfc else without))
    assert {table.auto(x)[1] for x in oracle.sample().values()} == {True, False}


def test_auto_takes_no_lfc_where_flat_planes_have_fewer_than_8_sectors():
    random = np.random.default_rng(0)
    smooth = random.standard_normal((4, 1)).astype(np.float32) + np.arange(130, dtype=np.float32) * 9
    assert table.auto(smooth)[1]
    assert table.auto(smooth[:, :64])[1]  # both have the same steps
    assert not table.auto(smooth[:, :56])[1]
    assert not table.auto(random.standard_normal((2, 3, 7, 7)).astype(np.float32))[1]


@pytest.mark.parametrize("x", [np.zeros((8, 8)), np.zeros((8, 8), np.float16), [[1.0]], None])
def test_anything_but_a_float32_array_is_a_type_error(x):
    with pytest.raises(TypeError, match="float32"):
        table.table(x)
    with pytest.raises(TypeError, match="float32"):
        table.auto(x)


@pytest.mark.parametrize("bits", [0, 5, 8, True, 2.0, None])
def test_other_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits is"):
        table.table(np.zeros((8, 8), np.float32), bits)
