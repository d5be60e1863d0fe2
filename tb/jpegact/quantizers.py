"""What the benches of both quantizers, SH and DIV, share: stimulus, checks, and the tests that are the same for both.

What is tested has the ports of SH with its surroundings: coefficients with 6 fraction bits or quantized values in, and
quantized values or coefficients without a fraction out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from tb.harness import Bench, beats, pack, rng

LATENCY = 1


@dataclass(frozen=True)
class Kind:
    """A quantizer: bits of a table's entry, the entries' range, cycles that it wants between a tensor's start and its
    first block, and its golden functions of blocks and table."""

    width: int
    low: int
    high: int
    lead: int
    quantize: Callable
    dequantize: Callable

    def table(self, random):
        return random.integers(self.low, self.high + 1, (8, 8))

    def expect(self, blocks, table, decompress):
        return np.clip(self.dequantize(blocks, table), -2048, 2047) if decompress else self.quantize(blocks, table)


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

    def __init__(self, dut, kind):
        super().__init__(dut)
        self.kind = kind

    async def begin(self, table, decompress):
        self.dut.decompress.value = decompress
        self.dut.table.value = pack(table.reshape(-1), self.kind.width)
        self.dut.start.value = 1
        await FallingEdge(self.clk)
        self.dut.start.value = 0
        if self.kind.lead:
            await ClockCycles(self.clk, self.kind.lead)

    async def check(self, random, blocks, table, decompress, **patterns):
        """Sends blocks and compares; returns the run and what was expected."""
        await self.begin(table, decompress)
        expected = self.kind.expect(blocks, table, decompress)
        run = await self.run({"i": beats(columns(blocks), 17)}, {"o": 8 * len(blocks)}, random, **patterns)
        self.equal(run["o"], beats(columns(expected), 12),
                   f"decompress={decompress}, {len(blocks)} blocks, table {table.reshape(-1).tolist()}")
        return run, expected


async def start(dut, kind):
    bench = Quantizers(dut, kind)
    await bench.start()
    return bench


async def pauses(dut, kind, idle, stall):
    """Equals golden whatever the ports do."""
    random, bench = rng(), await start(dut, kind)
    for decompress in (0, 1):
        for count in (1, 5):
            await bench.check(random, stimulus(random, decompress, count), kind.table(random), decompress, idle=idle,
                              stall=stall)


async def boundaries(bench, random, entry, ties, ends):
    """One entry at all places: coefficients at rounding boundaries and at both ends; and every product."""
    table = np.full((8, 8), entry)
    values = np.unique(np.concatenate([ties.reshape(-1), ends]))
    values = values[(values >= -65536) & (values < 65536)]
    values = np.resize(random.permutation(values), (-(-len(values) // 64), 8, 8))
    await bench.check(random, values, table, 0)
    await bench.check(random, np.arange(-128, 128).reshape(4, 8, 8), table, 1)


async def rate(dut, kind):
    """A vector every cycle, after one."""
    random, bench = rng(), await start(dut, kind)
    for decompress in (0, 1):
        run, _ = await bench.check(random, stimulus(random, decompress, 20), kind.table(random), decompress)
        assert run.cycles["i"] == list(range(160))
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + 160))


async def beginnings(dut, kind):
    """A tensor starts with its first column; what was begun before does not matter, with a reset between or without."""
    random, bench = rng(), await start(dut, kind)
    for fill in range(1, 12):
        for decompress in (0, 1):
            for again in (True, False):
                await bench.begin(kind.table(random), decompress)
                given = beats(columns(stimulus(random, decompress, 2)), 17)
                await bench.run({"i": given[:fill]}, {"o": fill}, random)
                if again:
                    await bench.reset()
                await bench.check(random, stimulus(random, decompress, 2), kind.table(random), decompress)
