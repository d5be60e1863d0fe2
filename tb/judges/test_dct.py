"""The fixed-point DCT against SciPy's, and IEEE Std 1180-1990 with the standard's own generator and procedure."""

import numpy as np
import pytest
from scipy import fft

from actcodec.golden.jpegact import dct


def exact(blocks):
    return fft.dctn(blocks.astype(np.float64), axes=(-2, -1), norm="ortho")


def exact_inverse(coefficients):
    pixels = fft.idctn(coefficients.astype(np.float64), axes=(-2, -1), norm="ortho")
    return np.clip(np.rint(pixels), -128, 127)


def ieee1180(count, low, high):
    """The standard's random integers from -low to high: x <- 1103515245 x + 12345 modulo 2^32, starting from 1.

    After i steps x = a^i + c (1 + a + ... + a^(i-1)), all modulo 2^32, which uint32 does by itself.
    """
    power = np.multiply.accumulate(np.full(count, 1103515245, np.uint32))
    series = np.cumsum(np.append(np.uint32(1), power[:-1]), dtype=np.uint32)
    state = power + np.uint32(12345) * series
    return (((state & 0x7FFFFFFE) / 0x7FFFFFFF) * (low + high + 1)).astype(np.int64) - low


def test_the_generator_is_the_standards():
    state, numbers = 1, []
    for _ in range(1000):
        state = (state * 1103515245 + 12345) % 2**32
        numbers.append(int((state & 0x7FFFFFFE) / 0x7FFFFFFF * 256) - 128)
    assert ieee1180(1000, 128, 127).tolist() == numbers


def test_forward_is_within_its_bounds_over_random_blocks():
    blocks = np.random.default_rng(0).integers(-128, 128, (20000, 8, 8)).astype(np.int8)
    error = np.abs(dct.forward(blocks) / 2**dct.FRACTION_BITS - exact(blocks))
    assert error.max() <= 0.5
    assert error.mean() <= 0.06


def test_forward_is_within_its_bounds_where_coefficients_are_largest():
    basis = fft.idctn(np.eye(64).reshape(64, 8, 8), axes=(-2, -1), norm="ortho")
    blocks = np.concatenate([np.where(basis > 0, 127, -128), np.where(basis > 0, -128, 127)]).astype(np.int8)
    coefficients = dct.forward(blocks)
    assert np.abs(coefficients / 2**dct.FRACTION_BITS - exact(blocks)).max() <= 0.5
    assert coefficients.min() >= -(2**16) and coefficients.max() < 2**16  # 17 bits, signed


@pytest.mark.parametrize("low, high", [(128, 127), (5, 5), (150, 150)])
@pytest.mark.parametrize("sign", [1, -1])
def test_inverse_meets_ieee_1180(low, high, sign):
    blocks = sign * ieee1180(10000 * 64, low, high).reshape(-1, 8, 8)
    coefficients = np.clip(np.rint(exact(blocks)), -2048, 2047).astype(int)
    error = dct.inverse(coefficients) - exact_inverse(coefficients)
    assert np.abs(error).max() <= 1
    assert (error**2).mean(axis=0).max() <= 0.06
    assert (error**2).mean() <= 0.02
    assert np.abs(error.mean(axis=0)).max() <= 0.015
    assert np.abs(error.mean()) <= 0.0015


def test_zero_in_gives_zero_out():
    zero = np.zeros((1, 8, 8), np.int8)
    assert not dct.forward(zero).any()
    assert not dct.inverse(zero).any()


@pytest.mark.parametrize("largest", [1024, 2048])
def test_inverse_is_within_one_for_any_coefficients(largest):
    """No block has coefficients above 1024; a corrupt stream may, where pixels nearly all saturate."""
    coefficients = np.random.default_rng(0).integers(-largest, largest, (50000, 8, 8))
    assert np.abs(dct.inverse(coefficients) - exact_inverse(coefficients)).max() <= 1


def test_inverse_saturates_coefficients_first():
    coefficients = np.random.default_rng(0).integers(-16384, 16257, (1000, 8, 8))
    assert np.array_equal(dct.inverse(coefficients), dct.inverse(np.clip(coefficients, -2048, 2047)))


@pytest.mark.parametrize("vertical, horizontal", list(np.ndindex(8, 8)))
def test_a_single_coefficient_at_its_limits_gives_its_basis_image(vertical, horizontal):
    coefficients = np.zeros((2, 8, 8), int)
    coefficients[:, vertical, horizontal] = -2048, 2047
    assert np.abs(dct.inverse(coefficients) - exact_inverse(coefficients)).max() <= 1


def test_leading_dimensions_are_free():
    blocks = np.random.default_rng(0).integers(-128, 128, (2, 3, 8, 8)).astype(np.int8)
    coefficients = dct.forward(blocks)
    assert coefficients.dtype == np.int32
    assert np.array_equal(coefficients[1, 2], dct.forward(blocks[1, 2]))
    assert dct.inverse(coefficients >> dct.FRACTION_BITS).dtype == np.int8
