"""DIV against exact fractions, for every coefficient and divisor, and against SH."""

import zlib
from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from actcodec.golden.jpegact import dct, div, quantize

COEFFICIENTS = np.arange(-(2**16), 2**16, dtype=np.int32)  # 17 bits


def quotients(d):
    """round(C / d), half up, limited to int8, of all coefficients: each quotient starts at q - 1/2, an exact fraction.
    """
    starts = [ceil((q - Fraction(1, 2)) * d * 2**dct.FRACTION_BITS) for q in range(-127, 128)]
    inside = np.clip([-(2**16), *starts, 2**16], -(2**16), 2**16)
    return np.repeat(np.arange(-128, 128), np.diff(inside))


def inexact():
    """Divisors for which `div` gives a quotient that is not the exact one."""
    return [d for d in range(1, 256) if not np.array_equal(div.quantize(COEFFICIENTS, d), quotients(d))]


def test_fractions_are_rounded_half_up():
    """The judge itself, on a few numbers that are easy to check."""
    c = COEFFICIENTS.tolist().index
    assert [quotients(3)[c(96 * n)] for n in (-3, -1, 0, 1, 3)] == [-1, 0, 0, 1, 2]  # C / D is n / 2
    assert [quotients(3)[c(96 * n - 1)] for n in (-3, -1, 0, 1, 3)] == [-2, -1, 0, 0, 1]
    assert [quotients(1)[c(n)] for n in (-(2**16), 127 * 64 + 32, 2**16 - 1)] == [-128, 127, 127]


def test_every_quotient_of_every_divisor_is_exact():
    assert div.quantize(COEFFICIENTS, 1).dtype == np.int8
    assert inexact() == []


def test_reciprocals_need_19_bits(monkeypatch):
    assert div.reciprocal(np.arange(1, 256)).tolist() == [ceil(Fraction(2**19, d)) for d in range(1, 256)]
    monkeypatch.setattr(div, "RECIPROCAL_BITS", 18)
    assert len(inexact()) == 86


@pytest.mark.parametrize("s", range(8))
def test_powers_of_two_divide_as_sh_shifts(s):
    assert np.array_equal(div.quantize(COEFFICIENTS, 2**s), quantize.shift(COEFFICIENTS, s))


def test_each_coefficient_has_its_own_divisor():
    c = np.random.default_rng(0).integers(-65536, 65536, (5, 8, 8))
    d = div.divisors(np.arange(1, 256, 4))
    q, back = div.quantize(c, d), div.dequantize(c % 256 - 128, d)
    for i, j in np.ndindex(8, 8):
        assert np.array_equal(q[:, i, j], div.quantize(c[:, i, j], d[i, j]))
        assert np.array_equal(back[:, i, j], div.dequantize(c[:, i, j] % 256 - 128, d[i, j]))


def test_dequantize_multiplies():
    q = np.arange(-128, 128).astype(np.int8)
    for d in range(1, 256):
        assert div.dequantize(q, np.uint8(d)).tolist() == [v * d for v in range(-128, 128)]


def test_the_tables_for_sh_are_those_for_div_shifted():
    """optH is. optL has 8 in place of 4, too, where the optimum is 5."""
    optl, opth = div.table("optL-div"), div.table("optH-div")
    assert np.array_equal(2 ** quantize.shifts(opth), quantize.table("optH"))
    assert np.array_equal(2 ** quantize.shifts(optl), np.where(optl == 5, 4, quantize.table("optL")))
    for name in quantize.TABLES:
        assert np.array_equal(div.table(name), quantize.table(name))


@pytest.mark.parametrize("name, checksum", [
    ("optL-div", 0xB41234AB), ("optH-div", 0x57589707), ("optL", 0x316F237C), ("optH", 0x697E2D21),
])  # fmt: skip
def test_optimised_tables_are_the_authors(name, checksum):
    """By the CRC-32 of the bytes of optL, optH, optsL, optsH in common/helpers/jpeg.py of github.com/rdevans0/jpeg_act.
    """
    table = div.table(name)
    assert zlib.crc32(table.astype(np.uint8).tobytes()) == checksum
    assert table[0, 0] == 8  # JPEG-ACT, section IV: the mean is fixed to 8


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.float64])
def test_divisors_depend_on_values_not_on_their_type(dtype):
    for table in np.resize(np.arange(1, 256), (4, 64)):
        d = div.divisors(table.astype(dtype))
        assert d.dtype == np.uint8 and d.tolist() == table.reshape(8, 8).tolist()


@pytest.mark.parametrize("bad", [
    np.ones(63), np.zeros((8, 8)), np.full(64, 256), np.full(64, -8), np.full(64, 7.5), np.full(64, np.nan),
    np.full(64, np.inf), ["8"] * 64,
])  # fmt: skip
def test_other_tables_are_refused(bad):
    with pytest.raises(ValueError, match="DQT"):
        div.divisors(bad)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="unknown DQT 'optX', legal are optL, optH, "):
        div.table("optX")
