"""Bench of DIV in quarters: every step and dead zone, in both directions, equal to golden; and its arithmetic for all
coefficients."""

import cocotb
import numpy as np
from amaranth.hdl import Cat, Const

from actcodec.golden.jpegact import steps
from actcodec.rtl.jpegact.steps import Steps
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
    """DIV in quarters."""

    def inner(self, m):
        m.submodules.steps = unit = Steps()
        return unit, unit.o, lambda q: Cat(Const(0, 4), q), lambda k: (unit.o.p.data[k], unit.o.p.data[k] >> 4)


def test_steps():
    simulate(Divider("steps"), __file__, kind="steps")


def test_the_table_of_reciprocals_is_goldens():
    for q in range(steps.LEAST, steps.MOST + 1):
        m, s = steps.reciprocal(q)
        far = q.bit_length() - 1
        d = q << 7 - far
        if d == 128:  # the unit has no other: 1, and a shift that is shorter by one
            assert (Steps.reciprocal(d) % 128, far - 1 + 7) == (m - 128, s)
        else:
            assert (Steps.reciprocal(d), far + 7) == (m, s)


@cocotb.test
async def takes_each_step_from_its_position(dut):
    random, bench = rng(), await start(dut)
    seen = {0: set(), 1: set()}
    for zone in range(4):
        # Small steps, with which coefficients reach every result.
        table = random.integers(8, 33, (8, 8))
        aimed = 16 * table * random.permutation(np.arange(-128, 128)).reshape(4, 8, 8)
        _, expected = await bench.check(random, aimed, table, 0, zone)
        seen[0] |= set(expected.reshape(-1).tolist())
    for decompress in (0, 1):
        for turn in range(20):
            # All positions differ, and each has a step of every size in some turn.
            table = 2 + (np.arange(64).reshape(8, 8) * 37 + 13 * turn) % 254
            _, expected = await bench.check(random, stimulus(random, decompress, 6), table, decompress)
            seen[decompress] |= set(expected.reshape(-1).tolist())
    assert seen[0] == set(range(-128, 128)) and {-2048, 2047} <= seen[1]
    for name in steps.TABLES:
        for decompress in (0, 1):
            table = steps.steps(steps.table(name)).astype(int)
            await bench.check(random, stimulus(random, decompress, 8), table, decompress)


@cocotb.test
async def rounds_every_quotient_as_golden(dut):
    """Every step and every dead zone: around each rounding boundary, and both ends; and every product."""
    random, bench = rng(), await start(dut)
    ends = np.concatenate([np.arange(-65536, -65400, 16), np.arange(65400, 65536, 16), np.arange(-96, 97, 32)])
    for quarters in range(steps.LEAST, steps.MOST + 1):
        for zone in range(4):
            if (quarters + zone) % 2 and quarters not in (32, 128, 129, 255):  # the others take turns
                continue
            middles = np.arange(-129, 130)[:, None] * 16 * quarters
            away = np.array([-1, 1]) * (8 + zone) * quarters  # from the middle of an interval to its ends
            ties = (middles[..., None] + away[:, None] + np.arange(-32, 33, 32)).reshape(-1, 6)
            await boundaries(bench, random, quarters, ties, ends, zone)
