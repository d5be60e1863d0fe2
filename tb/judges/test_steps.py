"""DIV with steps in quarters against exact fractions, for every coefficient, step and dead zone, and against SH."""

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from actcodec.golden.jpegact import dct, nibble, quantize, rice, sfpr, steps
from actcodec.golden.offload import blocks
from tb.judges import blockcodes

COEFFICIENTS = np.arange(-(2**16), 2**16, dtype=np.int32)  # 17 bits
QUARTERS = range(2, 256)
ZONES = pytest.mark.parametrize("z", range(4))


def halves(q, z):
    """What every number of halves, -2048 to 2047, becomes: each quotient starts at an exact fraction."""
    m, s = (int(part) for part in steps.reciprocal(q))
    parts = []
    for sign, low, high in ((-1, -2048, 0), (1, 0, 2048)):
        offset = Fraction(1, 2) - sign * Fraction(z, 16)
        starts = [ceil((n - offset) * Fraction(2**s, m)) for n in range(-127, 128)]
        inside = np.clip([low, *starts, high], low, high)
        parts.append(np.repeat(np.arange(-128, 128), np.diff(inside)))
    return np.concatenate(parts)


def ideal(quotients, z):
    """The quantizer that is meant, of quotients as they are."""
    return np.clip(np.sign(quotients) * np.floor(np.abs(quotients) + 0.5 - z / 16), -128, 127)


def test_reciprocals_are_the_nearest_of_8_bits():
    for q in QUARTERS:
        m, s = (int(part) for part in steps.reciprocal(q))
        assert 128 <= m <= 254 and 7 <= s <= 14
        assert abs(Fraction(m, 2**s) - Fraction(2, q)) <= Fraction(1, 2 ** (s + 1))
        if q & q - 1 == 0:
            assert Fraction(m, 2**s) == Fraction(2, q)


@ZONES
def test_every_quotient_of_every_step_is_that_of_the_fractions(z):
    assert steps.quantize(COEFFICIENTS, 8, z).dtype == np.int8
    for q in QUARTERS:
        assert np.array_equal(steps.quantize(COEFFICIENTS, q, z), np.repeat(halves(q, z), 32)), q


@ZONES
def test_quotients_are_off_by_a_bounded_amount(z):
    """C loses less than half a unit; a reciprocal is off by at most 1/256 of itself."""
    c = COEFFICIENTS[::8]
    for q in QUARTERS:
        result, exact = steps.quantize(c, q, z), c / (16 * q)
        off = 2 / q + (np.abs(exact) + 1) / 256
        assert np.all(ideal(exact - off, z) <= result) and np.all(result <= ideal(exact + off, z)), q


@pytest.mark.parametrize("s", range(6))
def test_steps_of_powers_of_two_are_exact(s):
    """And without a dead zone SH's; with one, its exact fractions, where they are whole numbers of halves."""
    assert np.array_equal(steps.quantize(COEFFICIENTS, 4 << s, 0), quantize.shift(COEFFICIENTS, s))
    positive = COEFFICIENTS[COEFFICIENTS > 0]
    for z in range(1, 4):
        if s >= 3:
            assert np.array_equal(steps.quantize(positive, 4 << s, z), ideal(positive / (64 << s), z))


def test_a_dead_zone_takes_magnitudes_down_and_never_up():
    for q in QUARTERS:
        zones = np.abs([steps.quantize(COEFFICIENTS, q, z).astype(int) for z in range(4)])
        assert np.all(np.diff(zones, axis=0) <= 0) and np.all(zones[0] - zones[3] <= 1)
        assert q < 32 or np.all(np.diff(zones.sum(axis=1)) < 0)  # a step of 0.5 leaves nothing to round


def test_each_coefficient_has_its_own_step():
    c = np.random.default_rng(0).integers(-65536, 65536, (5, 8, 8))
    table = np.arange(2, 256, 4).astype(np.uint8).reshape(8, 8)
    q, back = steps.quantize(c, table, 1), steps.dequantize(c % 256 - 128, table)
    for i, j in np.ndindex(8, 8):
        assert np.array_equal(q[:, i, j], steps.quantize(c[:, i, j], table[i, j], 1))
        assert np.array_equal(back[:, i, j], steps.dequantize(c[:, i, j] % 256 - 128, table[i, j]))


def test_dequantize_multiplies_and_rounds_once():
    q = np.arange(-128, 128).astype(np.int8)
    for quarters in QUARTERS:
        expected = [Fraction(v * quarters, 4) + Fraction(1, 2) for v in range(-128, 128)]
        assert steps.dequantize(q, np.uint8(quarters)).tolist() == [e.numerator // e.denominator for e in expected]


def plain_error(x, q, table):
    """Relative error of a tensor in the domain of SFPR's int8, from the coefficients alone."""
    c = x / 2.0**dct.FRACTION_BITS
    return np.sqrt(np.square(c - q * (table / 4)).sum() / np.square(c).sum())


@ZONES
@pytest.mark.parametrize("quarters", [31, 90])
def test_eight_bits_of_a_reciprocal_cost_little(quarters, z):
    """Of real tensors: error and bytes are those of the quantizer that is meant, to about one percent."""
    table, sizes, errors = np.full((8, 8), quarters), [], []
    for x in blockcodes.tensors("conv"):
        view, k = blocks.view(x.shape), sfpr.scales(x).k
        y = blocks.split(sfpr.quantize(x.reshape(view.rows, view.width), k[view.channel, None]), view, True)
        c = dct.forward(y)
        both = [steps.quantize(c, table, z), ideal(c / (16 * table), z).astype(np.int8)]
        values = [np.ascontiguousarray(q.swapaxes(1, 2)).reshape(-1, 64) for q in both]
        sizes.append([[coder.measure(v, coder.fit(v)).sum() for v in values] for coder in (nibble, rice)])
        errors.append([plain_error(c, q, table) for q in both])
    (ours, exact), packed = np.mean(errors, axis=0), np.sum(sizes, axis=0)
    assert ours == pytest.approx(exact, rel=0.012)
    assert packed[:, 0] == pytest.approx(packed[:, 1], rel=0.01)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64])
def test_steps_depend_on_values_not_on_their_type(dtype):
    table = np.arange(1, 65).reshape(8, 8).astype(dtype)
    result = steps.steps(table)
    assert result.dtype == np.uint8 and result.ravel().tolist() == [*range(4, 256, 4), 255]
    assert steps.steps(table.ravel()).tolist() == result.tolist()
    assert steps.word(result) == sum(int(v) << 8 * k for k, v in enumerate(result.ravel()))


def test_steps_are_taken_to_the_nearest_quarter():
    values = [0.5, 0.6, 0.63, 7.75, 7.87, 7.88, 63.75, 64, 1e9]
    assert steps.steps(np.resize(values, 64)).ravel()[:9].tolist() == [2, 2, 3, 31, 31, 32, 255, 255, 255]
    for one in (7.75, np.float32(7.8), np.array([7.7]), 7.75 * np.ones(64)):
        assert steps.steps(one).tolist() == np.full((8, 8), 31).tolist()


@pytest.mark.parametrize("bad", [
    np.ones(63), np.zeros((8, 8)), np.full(64, 0.49), np.full(64, -8), np.full(64, np.nan), np.inf, ["8"] * 64, "8",
])  # fmt: skip
def test_other_tables_are_refused(bad):
    with pytest.raises(ValueError, match="DQT"):
        steps.steps(bad)


@pytest.mark.parametrize("bad", [-1, 4, 0.5, None, "1", True, 1.0])
def test_other_dead_zones_are_refused(bad):
    with pytest.raises(ValueError, match="dead_zone is"):
        steps.check(bad)
