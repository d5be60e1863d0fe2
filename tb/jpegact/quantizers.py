"""What the benches of all quantizers, SH, DIV and DIV in quarters, share: what stands around them, stimulus, checks,
and the tests that are the same for all.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cocotb
import numpy as np
from amaranth.hdl import Module, Mux, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.jpegact import div, quantize, steps
from actcodec.rtl.common.vectors import vectors_layout
from tb.harness import PATTERNS, STALLS, Bench, beats, pack, parameters, rng

LATENCY = 1


@dataclass(frozen=True)
class Kind:
    """A quantizer: bits of a table's entry, the entries' range, cycles that it wants between a tensor's start and its
    first block, its golden functions of blocks and table, and how many dead zones it has, which its function takes if
    there are several."""

    width: int
    low: int
    high: int
    lead: int
    quantize: Callable
    dequantize: Callable
    zones: int = 1

    def table(self, random):
        return random.integers(self.low, self.high + 1, (8, 8))

    def expect(self, blocks, table, decompress, zone):
        if decompress:
            return np.clip(self.dequantize(blocks, table), -2048, 2047)
        return self.quantize(blocks, table, *([zone] if self.zones > 1 else []))


KINDS = {"shift": Kind(3, 0, 7, 0, quantize.shift, quantize.unshift),
         "div": Kind(8, 1, 255, 2, div.quantize, div.dequantize),
         "steps": Kind(8, steps.LEAST, steps.MOST, 2, steps.quantize, steps.dequantize, len(steps.DEAD_ZONES))}


class Surrounded(wiring.Component):
    """A quantizer with coefficients with 6 fraction bits or quantized values in, and quantized values or coefficients
    without a fraction out. ``inner(m)`` adds the unit, and returns it, the stream that it ends in, what it wants for a
    quantized value of 8 bits, and its pairs of coefficient and quantized value by the lane."""

    def __init__(self, kind):
        self.zones = KINDS[kind].zones
        super().__init__({
            "i": In(stream.Signature(vectors_layout(signed(17)))),
            "o": Out(stream.Signature(vectors_layout(signed(12)))),
            "start": In(1), "decompress": In(1), "table": In(data.ArrayLayout(KINDS[kind].width, 64)),
            **({"dead_zone": In(2)} if self.zones > 1 else {})})

    def elaborate(self, platform):
        m = Module()
        unit, o, given, results = self.inner(m)
        m.d.comb += [unit.i.valid.eq(self.i.valid), self.i.ready.eq(unit.i.ready), unit.i.p.last.eq(self.i.p.last),
                     self.o.valid.eq(o.valid), o.ready.eq(self.o.ready), self.o.p.last.eq(o.p.last),
                     unit.start.eq(self.start), unit.decompress.eq(self.decompress), unit.table.eq(self.table)]
        if self.zones > 1:
            m.d.comb += unit.dead_zone.eq(self.dead_zone)
        for k in range(8):
            value = self.i.p.data[k]
            m.d.comb += [unit.i.p.data[k].eq(Mux(self.decompress, given(value[:8]), value[5:])),
                         self.o.p.data[k].eq(Mux(self.decompress, *results(k)))]
        return m


def columns(blocks):
    """Blocks in the order in which the unit sees them: column by column."""
    return blocks.transpose(0, 2, 1)


def stimulus(random, decompress, count):
    """Values of every magnitude, and often the ends."""
    shape = (count, 8, 8)
    if decompress:
        values, ends = random.integers(-128, 128, shape), [-128, 127]
    else:
        values, ends = random.integers(-65536, 65536, shape) >> random.integers(0, 16, shape), [-65536, 65535]
    return np.where(random.random(shape) < 0.1, random.choice(ends, shape), values)


class Quantizers(Bench):
    """The bench with the controls of a quantizer."""

    def __init__(self, dut):
        super().__init__(dut)
        self.kind = KINDS[parameters()["kind"]]

    async def begin(self, table, decompress, zone=0):
        self.dut.decompress.value = decompress
        if self.kind.zones > 1:
            self.dut.dead_zone.value = zone
        self.dut.table.value = pack(table.reshape(-1), self.kind.width)
        self.dut.start.value = 1
        await FallingEdge(self.clk)
        self.dut.start.value = 0
        if self.kind.lead:
            await ClockCycles(self.clk, self.kind.lead)

    async def check(self, random, blocks, table, decompress, zone=None, **patterns):
        """Sends blocks and compares; returns the run and what was expected. Any ``zone`` if there is none."""
        zone = int(random.integers(self.kind.zones)) if zone is None else zone
        await self.begin(table, decompress, zone)
        expected = self.kind.expect(blocks, table, decompress, zone)
        run = await self.run({"i": beats(columns(blocks), 17)}, {"o": 8 * len(blocks)}, random, **patterns)
        self.equal(run["o"], beats(columns(expected), 12),
                   f"decompress={decompress}, zone {zone}, {len(blocks)} blocks, table {table.reshape(-1).tolist()}")
        return run, expected


async def start(dut):
    bench = Quantizers(dut)
    await bench.start()
    return bench


async def boundaries(bench, random, entry, ties, ends, zone=0):
    """One entry at all places: coefficients at rounding boundaries and at both ends; and every product."""
    table = np.full((8, 8), entry)
    values = np.unique(np.concatenate([ties.reshape(-1), ends]))
    values = values[(values >= -65536) & (values < 65536)]
    values = np.resize(random.permutation(values), (-(-len(values) // 64), 8, 8))
    await bench.check(random, values, table, 0, zone)
    await bench.check(random, np.arange(-128, 128).reshape(4, 8, 8), table, 1)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    """Whatever the ports do."""
    random, bench = rng(), await start(dut)
    for decompress in (0, 1):
        for count in (1, 5):
            await bench.check(random, stimulus(random, decompress, count), bench.kind.table(random), decompress,
                              idle=idle, stall=stall)


@cocotb.test
async def moves_a_vector_every_cycle_after_one(dut):
    random, bench = rng(), await start(dut)
    for decompress in (0, 1):
        run, _ = await bench.check(random, stimulus(random, decompress, 20), bench.kind.table(random), decompress)
        assert run.cycles["i"] == list(range(160))
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + 160))


@cocotb.test
async def starts_with_the_first_column(dut):
    """What was begun before does not matter, with a reset between or without."""
    random, bench = rng(), await start(dut)
    for fill in range(1, 12):
        for decompress in (0, 1):
            for again in (True, False):
                await bench.begin(bench.kind.table(random), decompress)
                given = beats(columns(stimulus(random, decompress, 2)), 17)
                await bench.run({"i": given[:fill]}, {"o": fill}, random)
                if again:
                    await bench.reset()
                await bench.check(random, stimulus(random, decompress, 2), bench.kind.table(random), decompress)
