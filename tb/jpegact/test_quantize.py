"""Bench of SH: every shift at every position, in both directions, equal to golden."""

import cocotb
import numpy as np
from amaranth.hdl import Module, Mux, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.golden.jpegact import quantize
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.vectors import vectors
from actcodec.rtl.jpegact.quantize import Round, Shift, mirror
from tb.harness import PATTERNS, STALLS, rng, simulate
from tb.jpegact import quantizers

KIND = quantizers.Kind(3, 0, 7, 0, quantize.shift, quantize.unshift)


class Quantizer(wiring.Component):
    """Both halves, with the register between and the mirrors around that they have in a CDU."""

    i: In(stream.Signature(vectors(signed(17))))
    o: Out(stream.Signature(vectors(signed(12))))
    start: In(1)
    decompress: In(1)
    table: In(data.ArrayLayout(3, 64))

    def elaborate(self, platform):
        m = Module()
        m.submodules.shift = shift = Shift()
        m.submodules.skid = skid = Skid(vectors(signed(12)))
        m.submodules.round = rounding = Round()
        wiring.connect(m, shift.o, skid.i)
        wiring.connect(m, skid.o, rounding.i)
        m.d.comb += [shift.i.valid.eq(self.i.valid), self.i.ready.eq(shift.i.ready),
                     shift.i.payload.last.eq(self.i.payload.last)]
        m.d.comb += [shift.i.payload.data[k].eq(Mux(self.decompress, mirror(self.i.payload.data[k][:8]),
                                                    self.i.payload.data[k][5:])) for k in range(8)]
        m.d.comb += [shift.start.eq(self.start), shift.decompress.eq(self.decompress), shift.table.eq(self.table),
                     rounding.o.ready.eq(self.o.ready), self.o.valid.eq(rounding.o.valid),
                     self.o.payload.last.eq(rounding.o.payload.last)]
        m.d.comb += [self.o.payload.data[k].eq(Mux(
            self.decompress, mirror(skid.o.payload.data[k]).as_signed(), rounding.o.payload.data[k])) for k in range(8)]
        return m


def test_quantize():
    simulate(Quantizer(), __file__)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    await quantizers.pauses(dut, KIND, idle, stall)


@cocotb.test
async def takes_each_shift_from_its_position(dut):
    random, bench = rng(), await quantizers.start(dut, KIND)
    seen = {}
    for decompress in (0, 1):
        for turn in range(8):
            # A Latin square, turned: every position gets every shift, and no neighbour has the same.
            table = (np.arange(8)[:, None] * 3 + np.arange(8) + turn) % 8
            _, expected = await bench.check(random, quantizers.stimulus(random, decompress, 12), table, decompress)
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
            await bench.check(random, quantizers.stimulus(random, decompress, 8), table, decompress)


@cocotb.test
async def rounds_every_coefficient_as_golden(dut):
    """Everything around zero, every rounding boundary and its neighbours, and both ends; and every product."""
    random, bench = rng(), await quantizers.start(dut, KIND)
    ends = np.concatenate([np.arange(-65536, -65400), np.arange(65400, 65536), np.arange(-600, 600)])
    for s in range(8):
        ties = (np.arange(-132, 132)[:, None] * 64 + 32 << s) + np.arange(-33, 34)
        await quantizers.boundaries(bench, random, s, ties, ends)


@cocotb.test
async def moves_a_vector_every_cycle_after_one(dut):
    await quantizers.rate(dut, KIND)


@cocotb.test
async def starts_with_the_first_column(dut):
    await quantizers.beginnings(dut, KIND)
