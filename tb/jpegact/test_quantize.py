"""Bench of SH: every shift at every position, in both directions, equal to golden."""

import cocotb
import numpy as np
from amaranth.hdl import signed
from amaranth.lib import wiring

from actcodec.golden.jpegact import quantize
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.quantize import Round, Shift, mirror
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


class Quantizer(Surrounded):
    """Both halves of SH, with the register between and the mirrors around that they have in a CDU."""

    def inner(self, m):
        m.submodules.shift = shift = Shift()
        m.submodules.skid = skid = Skid(vectors_layout(signed(12)))
        m.submodules.round = rounding = Round()
        wiring.connect(m, shift.o, skid.i)
        wiring.connect(m, skid.o, rounding.i)
        return shift, rounding.o, mirror, lambda k: (mirror(skid.o.p.data[k]).as_signed(), rounding.o.p.data[k])


def test_quantize():
    simulate(Quantizer("shift"), __file__, kind="shift")


@cocotb.test
async def takes_each_shift_from_its_position(dut):
    random, bench = rng(), await start(dut)
    seen = {}
    for decompress in (0, 1):
        for turn in range(8):
            # A Latin square, turned: every position gets every shift, and no neighbour has the same.
            table = (np.arange(8)[:, None] * 3 + np.arange(8) + turn) % 8
            _, expected = await bench.check(random, stimulus(random, decompress, 12), table, decompress)
            for s in range(8):
                chosen = expected[:, table == s]
                low, high, had = seen.get((decompress, s), (0, 0, 0))
                seen[decompress, s] = min(low, chosen.min()), max(high, chosen.max()), had | (table == s)
    assert all(np.all(positions) for _, _, positions in seen.values()) and len(seen) == 16
    for (decompress, s), (low, high, _) in seen.items():
        limits = ((max(-2048, -128 << s), min(2047, 127 << s)) if decompress else
                  (max(-128, -1024 >> s), min(127, 1024 >> s)))
        assert (low, high) == limits, f"decompress={decompress} s={s}: only {low} to {high} seen"
    for name in quantize.TABLES:
        for decompress in (0, 1):
            table = quantize.shifts(quantize.table(name))
            await bench.check(random, stimulus(random, decompress, 8), table, decompress)


@cocotb.test
async def rounds_every_coefficient_as_golden(dut):
    """Everything around zero, every rounding boundary and its neighbours, and both ends; and every product."""
    random, bench = rng(), await start(dut)
    ends = np.concatenate([np.arange(-65536, -65400), np.arange(65400, 65536), np.arange(-600, 600)])
    for s in range(8):
        ties = (np.arange(-132, 132)[:, None] * 64 + 32 << s) + np.arange(-33, 34)
        await boundaries(bench, random, s, ties, ends)
