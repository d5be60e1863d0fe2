"""SH against its formula in exact arithmetic, and the tables against libjpeg's."""

import io
from fractions import Fraction
from math import floor

import numpy as np
import PIL.Image
import pytest

from actcodec.golden.jpegact import dct, div, quantize, steps


@pytest.mark.parametrize("s", range(8))
def test_shift_rounds_once_half_up_and_saturates(s):
    limit = 130 << s + dct.FRACTION_BITS
    half = [(n << s + dct.FRACTION_BITS) // 2 + d for n in range(-260, 261) for d in (-1, 0, 1)]
    c = np.array([-(2**16), -limit, limit, 2**16 - 1, *half, *np.random.default_rng(s).integers(-limit, limit, 2000)])
    expected = [floor(Fraction(int(v), 2 ** (dct.FRACTION_BITS + s)) + Fraction(1, 2)) for v in c]
    q = quantize.shift(c, s)
    assert q.dtype == np.int8
    assert q.tolist() == [max(-128, min(127, v)) for v in expected]


def test_each_coefficient_has_its_own_shift():
    c = np.random.default_rng(0).integers(-65536, 65536, (5, 8, 8))
    s = np.arange(64).reshape(8, 8) % 8
    q = quantize.shift(c, s)
    for i, j in np.ndindex(8, 8):
        assert np.array_equal(q[:, i, j], quantize.shift(c[:, i, j], s[i, j]))


@pytest.mark.parametrize("s", range(8))
def test_unshift_multiplies(s):
    q = np.arange(-128, 128).astype(np.int8)
    assert quantize.unshift(q, s).tolist() == [v * 2**s for v in range(-128, 128)]


@pytest.mark.parametrize("quality", [80, 60])
def test_jpeg_tables_are_libjpegs(quality):
    file = io.BytesIO()
    PIL.Image.new("L", (8, 8)).save(file, "JPEG", quality=quality)
    # Pillow gives the values row by row, whatever their order in the file
    assert quantize.table(f"jpeg{quality}").ravel().tolist() == list(PIL.Image.open(file).quantization[0])


def test_shifts_are_the_nearest_powers_of_two_in_the_log_domain():
    dqt = np.resize(np.arange(1, 256), (4, 8, 8))
    for table in dqt:
        distance = np.abs(np.log2(table)[..., None] - np.arange(8))
        assert np.array_equal(quantize.shifts(table), distance.argmin(axis=-1))


def test_optimised_tables_are_powers_of_two():
    for name in ("optL", "optH"):
        assert np.array_equal(2 ** quantize.shifts(quantize.table(name)), quantize.table(name))
        assert quantize.table(name)[0, 0] == 8  # JPEG-ACT, section IV: the mean is fixed to 8


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float16, np.float32, np.float64])
def test_shifts_depend_on_values_not_on_their_type(dtype):
    for table in np.resize(np.arange(1, 256), (4, 8, 8)):
        assert np.array_equal(quantize.shifts(table.astype(dtype)), quantize.shifts(table))


def test_a_value_just_off_halfway_goes_to_its_own_side():
    values = np.float16([11.3125, 11.320, 90.5, 90.5625])  # sqrt(2) * 8 is 11.3137, sqrt(2) * 64 is 90.5097
    assert quantize.shifts(np.resize(values, 64))[0, :4].tolist() == [3, 4, 6, 7]


@pytest.mark.parametrize("value", [128, 255, 256, 1e6, 1e308, 2**63])
def test_large_values_shift_by_7(value):
    assert np.all(quantize.shifts(np.full(64, value)) == 7)


@pytest.mark.parametrize("bad", [
    np.ones(63), np.zeros((8, 8)), np.full(64, 0.999), np.full(64, -8), np.full(64, np.nan), np.full(64, np.inf),
    ["8"] * 64,
])  # fmt: skip
def test_other_tables_are_refused(bad):
    with pytest.raises(ValueError, match="DQT"):
        quantize.shifts(bad)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="unknown DQT 'optX', legal are optL, optH, jpeg80, jpeg60"):
        quantize.table("optX")


@pytest.mark.parametrize("model", [quantize, div, steps])
def test_a_table_is_its_callers_own(model):
    table = model.table("optH")
    table[:] = 1
    assert model.table("optH").max() == quantize.TABLES["optH"].max() == 32


@pytest.mark.parametrize("table_of, size", [(quantize.of_word, 192), (div.Table.of, 512), (steps.of_word, 512)])
def test_words_of_another_size_are_refused(table_of, size):
    table_of((1 << size) - 1)
    for word in (1 << size, -1, 1.0):
        with pytest.raises(ValueError, match=f"legal are integers of {size} bits"):
            table_of(word)
