"""The scan against exact rational arithmetic, ml_dtypes' bfloat16, and plain loops over Python's floats."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload import scan
from tb.judges.test_sfpr import every_exponent, expected_scale, floats, to_float32

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def divides_exactly(exponent):
    """Whether k of every significand at an exponent of m is what integers say; all 2^23 at once."""
    significand = np.arange(1 << 23, 1 << 24, dtype=np.int64)
    # 144 / m is 9 * 2^(154 - exponent) / significand. To 24 bits, to nearest even: the first bit is there with a shift
    # of 43, or else of 44.
    shift = np.where(significand <= 9 << 20, 43, 44)
    quotient, rest = np.divmod(np.int64(9) << shift, significand)
    assert ((quotient >> 23) == 1).all()
    quotient += (2 * rest > significand) | ((2 * rest == significand) & (quotient & 1 == 1))
    # The same to 8 bits.
    high, low = quotient >> 16, quotient & 0xFFFF
    high += (low > 0x8000) | ((low == 0x8000) & (high & 1 == 1))
    expected = np.ldexp(high.astype(np.float64), (154 - exponent) + 16 - shift)
    m = (np.uint32(exponent << 23) | significand.astype(np.uint32) & 0x7FFFFF).view(np.float32)
    np.testing.assert_array_equal(scan.scale(m), np.minimum(expected, 2.0**126))


@pytest.mark.parametrize("exponent", [1, 6, 7, 8, 9, 127, 254])
def test_k_of_every_significand(exponent):
    divides_exactly(exponent)


def test_k_of_every_exponent_is_exact():
    m = np.unique(np.abs(every_exponent()))
    m = m[np.isfinite(m) & ((m == 0) | (m >= 2.0**-126))]
    assert scan.scale(m).tolist() == [expected_scale(one)[0] for one in m]
    assert scan.scale(np.float32(1.125 * 2.0**-119)) == 2.0**126


def test_k_is_rounded_twice():
    """Some quotients are so close to a tie of bfloat16 that float32 makes one of them, and they round to even."""
    significand = np.arange(1 << 23, 1 << 24, dtype=np.int64)
    m = floats(0, 127, np.arange(1 << 23, dtype=np.uint32))
    twice = (144 / m).astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(scan.scale(m), twice)
    shift = np.where(significand <= 9 << 20, 27, 28)
    quotient, rest = np.divmod(np.int64(9) << shift, significand)
    once = np.ldexp((quotient + (2 * rest > significand)).astype(np.float64), 27 - shift)  # there is no tie
    assert (2 * rest != significand).all()
    assert np.count_nonzero(once != twice) == 59


def test_r_of_every_k():
    words = np.arange(1 << 16, dtype=np.uint32) << 16
    for word, r in zip((words | 0xABC).tolist(), scan.reciprocal(words | 0xABC).tolist(), strict=True):
        exponent, significand = word >> 23 & 255, 128 + (word >> 16 & 127)
        exact = to_float32(1 / (significand * Fraction(2) ** (exponent - 134))) if exponent else 0
        assert r == (exact if exact >= Fraction(2) ** -126 else 0), hex(word)


def values():
    random = np.random.default_rng(0)
    for case in range(200):
        x = random.integers(0, 1 << 32, int(random.integers(0, 40)), np.uint64).astype(np.uint32).view(np.float32)
        some = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45, 3.4e38, 2.0**-126], np.float32)
        x[random.random(x.size) < [0.1, 0.6, 1][case % 3]] = random.choice(some)
        yield np.where(random.random(x.size) < 0.3, random.choice(some, x.size), x)


def test_statistics_are_those_of_a_plain_loop():
    for x in values():
        numbers = [float(v) for v in x]
        finite = sorted((v, np.copysign(1, v)) for v in numbers if v - v == 0)
        result = scan.statistics(x)
        zeros, nans = sum(v == 0 for v in numbers), sum(v != v for v in numbers)
        assert (result.zeros, result.nans) == (zeros, nans)
        least, most = (finite[0][0], finite[-1][0]) if finite else (np.inf, -np.inf)
        assert np.float32(least).tobytes() == result.minimum.tobytes(), x
        assert np.float32(most).tobytes() == result.maximum.tobytes(), x
        m = max((abs(v) for v in numbers if 2.0**-126 <= abs(v) < np.inf), default=0)
        assert scan.largest(x) == m


def test_the_table_of_a_tensor_is_that_of_its_channels():
    random = np.random.default_rng(1)
    x = random.integers(0, 1 << 32, (3, 5, 9, 11), np.uint64).astype(np.uint32).view(np.float32)
    x[:, 1], x[:, 2] = 0, 1e-40
    with np.errstate(invalid="ignore"):
        scales = sfpr.scales(x)
    channels = np.array([scan.largest(x[:, c]) for c in range(5)])
    np.testing.assert_array_equal(scan.scale(channels), scales.k)
    np.testing.assert_array_equal(scan.reciprocal(scales.k.view(np.uint32)), scales.r)


def test_the_rounding_of_the_divider():
    """With D twice the remainder of 8 bits less the divisor M: up from -M / 2^16 on if odd, beyond M / 2^16 if even."""
    significand = np.arange(1 << 23, 1 << 24, dtype=np.int64)
    quotient, rest = np.divmod(np.int64(9) << np.where(significand <= 9 << 20, 27, 28), significand)
    difference, byte = 2 * rest - significand, significand >> 16
    quotient += np.where(quotient & 1 == 1, difference >= -byte, difference > byte)
    k = scan.scale(floats(0, 127, np.arange(1 << 23, dtype=np.uint32)))
    np.testing.assert_array_equal(np.ldexp(quotient.astype(np.float64), np.where(significand <= 9 << 20, 0, -1)), k)


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_places_cover_every_value_of_the_lane_s_channels(lanes):
    random = np.random.default_rng(lanes)
    for _ in range(40):
        n, c, h, w = map(int, random.integers(1, 12, 4))
        stride, base = 4 * (w + int(random.integers(0, 3))), 4 * int(random.integers(0, 20))
        for lane in range(lanes):
            got, own = scan.places(base, n * c * h, w, stride, h, c, lane, lanes), range(lane, c, lanes)
            assert list(zip(got.address.tolist(), got.words.tolist(), strict=True)) == [
                (base + ((i * c + channel) * h + y) * stride + 4 * x, min(w - x, 8))
                for channel in own for i in range(n) for y in range(h) for x in range(0, w, 8)]
            size = n * h * -(-w // 8)
            assert np.flatnonzero(got.ends).tolist() == [k * size - 1 for k in range(1, 1 + len(own))]
