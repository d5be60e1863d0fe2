"""Bench of DIV: every divisor at every position, in both directions, equal to golden; and its arithmetic for all
coefficients."""

import cocotb
import numpy as np
from amaranth.hdl import Cat, Const

from actcodec.golden.jpegact import div
from actcodec.rtl.jpegact.div import CUT, FRACTION, ROUNDING, ROWS, Div, reciprocal
from tb.harness import rng, simulate
from tb.jpegact.quantizers import (  # noqa: F401 - tests that all quantizers have
    Surrounded,
    boundaries,
    equals_golden,
    moves_a_vector_every_cycle_after_one,
    start,
    starts_with_the_first_column,
    stimulus,
)


class Divider(Surrounded):
    """DIV."""

    def inner(self, m):
        m.submodules.div = unit = Div()
        return unit, unit.o, lambda q: Cat(Const(0, 4), q), lambda k: (unit.o.p.data[k], unit.o.p.data[k] >> 4)


def test_div():
    simulate(Divider("div"), __file__, kind="div")


def product(x, number, below):
    """What the multiplier makes of x (12 bits) and a number: the sum of six rows without their lower columns. Rows of
    negative digits are inverted, and those named in ``below`` get the one that then is missing."""
    total = 0
    for row in range(ROWS):
        low, middle, high = (x >> 2 * row + bit & 1 if 2 * row + bit >= 0 else 0 for bit in (-1, 0, 1))
        digit, negative = low + middle - 2 * high, high & (1 - (low & middle))
        shown = digit * number - negative
        cut = CUT - 2 * row
        total = total + (shown >> cut if cut > 0 else shown << -cut) + (negative << max(0, -cut)) * (row in below)
    return total


def test_every_quotient_is_exact():
    """Of every C, of which 12 bits count, and every D."""
    x = np.arange(-2048, 2048)
    for d in range(1, 256):
        far = d.bit_length() - 1
        number = reciprocal(d << 7 - far)
        assert 2**FRACTION <= number < 2 ** (FRACTION + 1)
        got = product(x, number, range(2, ROWS)) + ROUNDING + (16 << far) >> far + 5
        assert np.array_equal(np.clip(got, -128, 127), div.quantize(x << 5, d)), d
        q = np.arange(-128, 128)
        assert np.array_equal(product(16 * q, d << FRACTION - 7, range(2, ROWS)), q * d), d


@cocotb.test
async def takes_each_divisor_from_its_position(dut):
    random, bench = rng(), await start(dut)
    seen = {0: set(), 1: set()}
    # Small divisors, with which coefficients reach every result.
    table = random.integers(1, 9, (8, 8))
    aimed = 64 * table * random.permutation(np.arange(-128, 128)).reshape(4, 8, 8)
    _, expected = await bench.check(random, aimed, table, 0)
    seen[0] |= set(expected.reshape(-1).tolist())
    for decompress in (0, 1):
        for turn in range(20):
            # All positions differ, and each has a divisor of every size in some turn.
            table = 1 + (np.arange(64).reshape(8, 8) * 37 + 13 * turn) % 255
            _, expected = await bench.check(random, stimulus(random, decompress, 6), table, decompress)
            seen[decompress] |= set(expected.reshape(-1).tolist())
    assert seen[0] == set(range(-128, 128)) and {-2048, 2047} <= seen[1]
    for name in div.TABLES:
        for decompress in (0, 1):
            table = div.divisors(div.table(name)).astype(int)
            await bench.check(random, stimulus(random, decompress, 8), table, decompress)


@cocotb.test
async def rounds_every_quotient_as_golden(dut):
    """Every divisor: around each rounding boundary, and both ends; and every product."""
    random, bench = rng(), await start(dut)
    ends = np.concatenate([np.arange(-65536, -65500, 5), np.arange(65500, 65536, 5)])
    for d in range(1, 256):
        ties = (2 * np.arange(-129, 130)[:, None] + 1) * 32 * d + np.arange(-33, 34, 11)
        await boundaries(bench, random, d, ties, ends)
