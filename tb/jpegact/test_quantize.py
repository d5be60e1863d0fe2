"""Bench of SH: every shift at every position, in both directions, equal to golden."""

import cocotb
import numpy as np
from amaranth.hdl import Module, Mux, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import FallingEdge

from actcodec.golden.jpegact import quantize
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.vectors import vectors
from actcodec.rtl.jpegact.quantize import Round, Shift, mirror
from tb.harness import PATTERNS, STALLS, Bench, beats, pack, rng, simulate

LATENCY = 1


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


def columns(blocks):
    """Blocks in the order in which the unit sees them: column by column."""
    return blocks.transpose(0, 2, 1)


def expect(blocks, table, decompress):
    """What the unit has to make of coefficients with 6 fraction bits, or of quantized values."""
    if decompress:
        return np.clip(quantize.unshift(blocks, table), -2048, 2047)
    return quantize.shift(blocks, table)


async def begin(bench, table, decompress):
    bench.dut.decompress.value = decompress
    bench.dut.table.value = pack(table.reshape(-1), 3)
    bench.dut.start.value = 1
    await FallingEdge(bench.clk)
    bench.dut.start.value = 0


async def check(bench, random, blocks, table, decompress, idle="never", stall="never"):
    await begin(bench, table, decompress)
    expected = expect(blocks, table, decompress)
    run = await bench.run({"i": beats(columns(blocks), 17)}, {"o": 8 * len(blocks)}, random, idle, stall)
    bench.equal(run["o"], beats(columns(expected), 12), f"decompress={decompress}, {len(blocks)} blocks")
    return run, expected


def stimulus(random, decompress, count):
    """Values of every magnitude, and often the ends."""
    shape = (count, 8, 8)
    if decompress:
        values, ends = random.integers(-128, 128, shape), [-128, 127]
    else:
        values, ends = random.integers(-65536, 65536, shape) >> random.integers(0, 16, shape), [-65536, 65535]
    return np.where(random.random(shape) < 0.1, random.choice(ends, shape), values)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for decompress in (0, 1):
        for count in (1, 5):
            table = random.integers(0, 8, (8, 8))
            await check(bench, random, stimulus(random, decompress, count), table, decompress, idle, stall)


@cocotb.test
async def takes_each_shift_from_its_position(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    seen = {}
    for decompress in (0, 1):
        for turn in range(8):
            # A Latin square, turned: every position gets every shift, and no neighbour has the same.
            table = (np.arange(8)[:, None] * 3 + np.arange(8) + turn) % 8
            _, expected = await check(bench, random, stimulus(random, decompress, 12), table, decompress)
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
            await check(bench, random, stimulus(random, decompress, 8), table, decompress)


@cocotb.test
async def rounds_every_coefficient_as_golden(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    # Everything around zero, every rounding boundary and its neighbours, and both ends.
    for s in range(8):
        table = np.full((8, 8), s)
        ties = (np.arange(-132, 132)[:, None] * 64 + 32 << s) + np.arange(-33, 34)
        ends = np.concatenate([np.arange(-65536, -65400), np.arange(65400, 65536)])
        values = np.unique(np.concatenate([np.arange(-600, 600), ties.reshape(-1), ends]))
        values = values[(values >= -65536) & (values < 65536)]
        values = np.resize(random.permutation(values), (-(-len(values) // 64), 8, 8))
        await check(bench, random, values, table, 0)
        await check(bench, random, np.arange(-128, 128).reshape(4, 8, 8), table, 1)


@cocotb.test
async def moves_a_vector_every_cycle_after_one(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for decompress in (0, 1):
        table = random.integers(0, 8, (8, 8))
        run, _ = await check(bench, random, stimulus(random, decompress, 20), table, decompress)
        assert run.cycles["i"] == list(range(160))
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + 160))


@cocotb.test
async def starts_with_the_first_column(dut):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for fill in range(1, 12):
        for decompress in (0, 1):
            for again in (True, False):  # what was begun before does not matter, with a reset between or without
                table = random.integers(0, 8, (8, 8))
                await begin(bench, table, decompress)
                await bench.run({"i": beats(columns(stimulus(random, decompress, 2)), 17)[:fill]}, {"o": fill}, random)
                if again:
                    await bench.reset()
                await check(bench, random, stimulus(random, decompress, 2), random.integers(0, 8, (8, 8)), decompress)
