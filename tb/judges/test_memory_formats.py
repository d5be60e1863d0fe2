"""Formats of values in memory against ml_dtypes, NumPy's float16 and, where a NaN's bits count, IEEE 754's text."""

import ml_dtypes
import numpy as np
import pytest

from actcodec.golden.offload.memory import formats

JUDGES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
MANTISSA = {"bfloat16": 7, "float16": 10}
EVERY = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)


def around(form):
    """Every number of a format and every float32 halfway between neighbours, at every exponent and sign, and the
    float32 before and after each."""
    points = np.arange(0, 1 << 32, 1 << 22 - MANTISSA[form], np.uint64)
    bits = (points[:, None] + np.array([-1, 0, 1])).astype(np.uint64) & 0xFFFF_FFFF
    return np.unique(bits).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("form", formats.HALVES)
def test_every_word_widens_exactly_and_comes_back(form):
    x = formats.widen(EVERY, form)
    nan = np.isnan(x)
    with np.errstate(invalid="ignore"):
        expected = EVERY.view(JUDGES[form]).astype(np.float32)
    np.testing.assert_array_equal(x[~nan].view(np.uint32), expected[~nan].view(np.uint32))
    np.testing.assert_array_equal(nan, np.isnan(expected))
    back = formats.narrow(x, form)
    np.testing.assert_array_equal(back[~nan], EVERY[~nan])
    # A NaN keeps its sign and its mantissa, but for the bit that makes it quiet.
    np.testing.assert_array_equal(back[nan], EVERY[nan] | 1 << MANTISSA[form] - 1)


@pytest.mark.parametrize("form", formats.HALVES)
def test_everything_around_a_boundary_rounds_once_to_nearest_even(form):
    x = around(form)
    nan = np.isnan(x)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(JUDGES[form]).view(np.uint16)
    words = formats.narrow(x, form)
    np.testing.assert_array_equal(words[~nan], expected[~nan])
    kept = (x.view(np.uint32) >> 23 - MANTISSA[form] & (1 << MANTISSA[form]) - 1).astype(np.uint16)
    infinity = JUDGES[form](np.inf).view(np.uint16)
    sign = (x.view(np.uint32) >> 16 & 0x8000).astype(np.uint16)
    np.testing.assert_array_equal(words[nan], (sign | infinity | kept | 1 << MANTISSA[form] - 1)[nan])


def test_the_corners_of_float16():
    corners = {65504.0: 0x7BFF, 65519.99: 0x7BFF, 65520.0: 0x7C00, 2.0**-24: 1, 2.0**-25: 0, 1.5 * 2.0**-25: 1,
               3 * 2.0**-25: 2, 2.0**-14: 0x400, 2.0**-14 - 2.0**-25: 0x400, -2.0**-26: 0x8000}
    np.testing.assert_array_equal(formats.narrow(np.array([*corners], np.float32), "float16"), [*corners.values()])


def test_an_unknown_format_is_named():
    assert [formats.bytes_of(form) for form in formats.FORMATS] == [4, 2, 2, 1]
    with pytest.raises(ValueError, match="unknown format 'float64', legal are float32, bfloat16, float16, int8"):
        formats.bytes_of("float64")
