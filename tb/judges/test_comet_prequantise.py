"""Prequantisation against rational arithmetic, ml_dtypes' bfloat16, and the integer divider that hardware has."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from actcodec.golden.comet import prequantise
from tb.judges import comet_oracles
from tb.judges.test_sfpr import every_exponent

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

STEPS = [2.0**-125, 129 * 2.0**-132, 0.0999, 0.71484375, 1.0, 1.9921875, 144.0, 255 * 2.0**60, 2.0**112]
LEAST = 2.0**-126  # of error bounds


def steps():
    return [prequantise.step(s / 2) for s in STEPS]


def bounds():
    """Error bounds from the least legal one to 1e308, steps and their neighbours among them."""
    random = np.random.default_rng(0)
    spread = [*np.geomspace(LEAST, 1e30, 400), *np.exp(random.uniform(np.log(LEAST), 80, 400)), 1e36, 1e308, np.inf]
    edges = np.array(steps()) / 2
    near = [*edges, *np.nextafter(edges, np.inf), *np.nextafter(edges[1:], 0)]
    return [*spread, *near]


def ties(s, q):
    """(q + 1/2) * s, both signs, and the float32 numbers next to them."""
    tie = [Fraction(2 * int(n) + 1, 2) * Fraction(s) for n in q]
    x = np.array([float(t) for t in tie], np.float32)
    assert [Fraction(float(v)) for v in x] == tie
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0))])
    return np.concatenate([x, -x])


def test_step_is_the_largest_bfloat16_within_twice_the_bound():
    for eb in bounds():
        s = prequantise.step(eb)
        prequantise.check(s)
        short = np.array(s, np.float32).astype(ml_dtypes.bfloat16)
        assert float(short) == s
        above = Fraction(float(np.nextafter(short, ml_dtypes.bfloat16(np.inf))))
        assert s <= 2 * eb
        assert s == 2.0**112 or above > 2 * Fraction(eb)


def test_a_bound_may_be_an_int_of_any_size():
    bounds = (1, 3, 2**110, 2**111, 2**112, 10**400)
    assert [prequantise.step(eb) for eb in bounds] == [2, 6, 2.0**111, *[2.0**112] * 3]


@pytest.mark.parametrize("eb", [0, 0.0, -0.0, -1.0, -(10**400), -np.inf, np.nan, 2.0**-1074,
                                float(np.nextafter(LEAST, 0))])
def test_a_bound_that_is_none_or_too_small_is_refused(eb):
    with pytest.raises(ValueError, match="error bound is"):
        prequantise.step(eb)


@pytest.mark.parametrize("s", [0.0, -1.0, np.nan, np.inf, 2.0**-126, 257 * 2.0**-8, 2.0**113, 1.001])
def test_a_step_that_is_none_is_refused(s):
    for function in (lambda: prequantise.check(s), lambda: prequantise.quantize(np.zeros(8, np.float32), s),
                     lambda: prequantise.dequantize(np.zeros(8, int), s)):
        with pytest.raises(ValueError, match="step is"):
            function()


@pytest.mark.parametrize("s", steps())
def test_integers_are_the_exact_quotients_half_away_from_zero(s):
    random = np.random.default_rng(0)
    x = np.concatenate([every_exponent(), ties(s, [0, 1, 2, 7, 126, 255, 2046, 2047, *random.integers(0, 2048, 20)]),
                        np.float32(random.uniform(-2100, 2100, 300) * s)])
    q, outliers = prequantise.quantize(x, s)
    expected = [comet_oracles.quantized(v, s) for v in x]
    assert outliers.tolist() == [v is None for v in expected]
    assert q.tolist() == [v or 0 for v in expected]


@pytest.mark.parametrize("s", steps())
def test_finite_values_are_within_half_a_step(s):
    random = np.random.default_rng(1)
    x = np.concatenate([every_exponent(), ties(s, np.arange(2048)), np.float32(random.uniform(-2047, 2047, 20000) * s),
                        np.float32(random.standard_normal(20000) * s)])
    q, outliers = prequantise.quantize(x, s)
    x, q = x[~outliers], q[~outliers]
    back = prequantise.dequantize(q, s)
    assert back.dtype == np.float32
    assert np.all(np.abs(x.astype(np.float64) - back) <= s / 2)  # exact where q is not 0, and else a copy
    worst = np.argsort(-np.abs(x.astype(np.float64) - back))[:200]
    assert all(abs(Fraction(float(a)) - Fraction(float(b))) <= Fraction(s) / 2
               for a, b in zip(x[worst], back[worst], strict=True))
    assert np.all((back == 0) | (np.sign(back) == np.sign(x)))
    assert np.all((back == 0) | (np.abs(back) >= s))


@pytest.mark.parametrize("s", steps())
def test_zeros_and_subnormals_become_positive_zero(s):
    x = every_exponent()
    x = x[np.abs(x) < 2.0**-126]
    assert x.size > 20
    q, outliers = prequantise.quantize(x, s)
    assert not outliers.any()
    assert not prequantise.dequantize(q, s).view(np.uint32).any()


@pytest.mark.parametrize("s", steps())
def test_every_integer_comes_back_exactly_and_never_subnormal(s):
    q = np.arange(-2048, 2048)
    x = prequantise.dequantize(q.astype(np.int16), s)
    assert [Fraction(float(v)) for v in x] == [int(n) * Fraction(s) for n in q]
    assert np.all((np.abs(x) >= 2.0**-126) | (q == 0))


def test_the_divider_of_hardware_gives_the_same_integers():
    """2|x|/s = mant / (S * 2^k), k = 149 - ex + E; thirteen bits of quotient, and no sticky bit."""
    x = np.concatenate([every_exponent(), *(ties(s, np.arange(0, 2048, 13)) for s in steps())])
    bits = x.view(np.uint32).astype(np.int64)
    ex, mant = bits >> 23 & 0xFF, bits & 0x7FFFFF | 1 << 23
    for s in steps():
        E = int(np.frexp(s)[1]) - 8
        k = 149 - ex + E
        n = np.where(k > 16, 0, mant >> np.clip(k, 4, 24))
        half = n // int(s / 2.0**E) + 1 >> 1
        expected = np.where(ex == 0, 0, half * np.where(bits >> 31, -1, 1))
        far = (ex == 255) | (ex > 0) & ((k < 4) | (half > 2047))
        q, outliers = prequantise.quantize(x, s)
        assert np.array_equal(outliers, far)
        assert np.array_equal(q, np.where(far, 0, expected))


@pytest.mark.parametrize("x", [np.zeros(8), np.zeros(8, np.float16), np.zeros(8, int)])
def test_anything_but_float32_is_a_type_error(x):
    with pytest.raises(TypeError, match="float32"):
        prequantise.quantize(x, 1.0)
