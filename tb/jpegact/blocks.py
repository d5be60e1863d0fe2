"""What the benches of block coders, nibble and rice, share: the driver of a coder, and most of their tests."""

from collections.abc import Callable
from typing import NamedTuple

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.jpegact import bits, nibble, rice, rle
from tb import reference
from tb.harness import PATTERNS, STALLS, Bench, after, beats, parameters, rng
from tb.judges import blockcodes

FAULTS = bits.Fault.HEADER | bits.Fault.LENGTH | bits.Fault.PADDING


def nibbles(random, count):
    """Blocks of all densities and widths."""
    size = 2.0 ** random.uniform(-2, 8, (count, 1)) * np.where(random.random((count, 1)) < 0.5,
                                                               0.93 ** np.arange(64), 1)
    x = np.where(random.random((count, 64)) < random.random((count, 1)), random.laplace(size=(count, 64)) * size, 0)
    x[random.random(x.shape) < 0.003] = -128
    x = np.clip(np.rint(x), -128, 127).astype(np.int8)
    x[random.random(count) < 0.1] = 0
    return x


def rices(random, count):
    """Blocks of all densities and sizes of values."""
    x = blockcodes.of_every_kind(int(random.integers(1 << 30)), 64)
    return x[random.integers(0, 64, count)]


class Kind(NamedTuple):
    """A coder: its golden model, random blocks, a table for some, latencies, and after how many beats to reset it."""

    golden: object
    blocks: Callable
    fit: Callable
    compress: int
    decompress: int
    fills: range


KINDS = {"nibble": Kind(nibble, nibbles, nibble.fit, 11, 4, range(1, 40, 3)),
         "rice": Kind(rice, rices, lambda x, straight=False: rice.fit(x, straight, 50), 18, 16, range(1, 60, 5))}


class Coder(Bench):
    """The bench with the controls of the test's coder, one of :data:`KINDS`."""

    def __init__(self, dut):
        super().__init__(dut)
        self.kind = KINDS[parameters()["coder"]]
        self.golden, self.blocks, self.fit = self.kind[:3]
        self.random = rng()

    def table(self, straight=None):
        """Any table that an encoder takes."""
        return tables(self.random, self.golden, straight)

    async def begin(self, decompress, table, blocks):
        self.dut.decompress.value, self.dut.table.value = decompress, table.word
        await self.pulse("start")

    async def compress(self, blocks, table, **patterns):
        """Compresses one tensor and compares: eight chunks a block, with zeros behind their ends."""
        await self.begin(0, table, len(blocks))
        payload, sizes = self.golden.encode(blocks, table)
        what = f"payload of {len(blocks)} blocks, table {table.word:#x}"
        run = await self.run({"i": lines(blocks)}, {"chunks": 8 * len(blocks)}, self.random, **patterns)
        counts = [beat >> 128 & 31 for beat in run["chunks"]]
        assert not any((beat & (1 << 128) - 1) >> 8 * count
                       for beat, count in zip(run["chunks"], counts, strict=True)), f"{what}: bytes behind a chunk"
        assert [beat >> 133 for beat in run["chunks"]] == [0] * (8 * len(blocks) - 1) + [1]
        got = [b"".join((beat & (1 << 8 * count) - 1).to_bytes(count, "little") for beat, count in zip(
            run["chunks"][k : k + 8], counts[k : k + 8], strict=True)) for k in range(0, len(counts), 8)]
        self.equal([block.hex() for block in got], [block.hex() for block in parts(payload, sizes)], what)
        return run

    async def decompress(self, payload, count, table, **patterns):
        """Decompresses one tensor, malformed or not, and compares values and faults; the coder gets rows, with
        anything behind a block's end, and empty ones for what is missing."""
        await self.begin(1, table, count)
        expected = self.golden.recover(payload, count, table)
        sources = {"rows": rows(self.golden, payload, count, self.random)}
        run = await self.run(sources, {"o": 8 * count}, self.random, **patterns)
        what = f"{count} blocks of {bytes(payload).hex()[:200]}, table {table.word:#x}"
        self.equal(run["o"], lines(expected.blocks), what)
        await ClockCycles(self.clk, 1)
        await FallingEdge(self.clk)
        assert self.dut.o__valid.value == 0
        faults = 0
        for fault in expected.faults:
            faults |= int(fault)
        got = int(self.dut.faults.value)
        assert got == faults & FAULTS, f"{what}: faults {got}, not {faults & FAULTS}"
        return run

    async def both(self, blocks, table, **patterns):
        await self.compress(blocks, table, **patterns)
        await self.decompress(self.golden.encode(blocks, table)[0], len(blocks), table, **patterns)

    async def malformed(self, turns, spoil):
        """Golden's values and golden's faults, of what ``spoil(turn, payload, sizes, table)`` makes of three blocks:
        a payload, how many blocks that has, and a table. Returns the faults."""
        seen = set()
        for turn in range(turns):
            x = self.blocks(self.random, 3)
            table = self.fit(x) if turn % 3 else self.table()
            payload, count, table = spoil(turn, *self.golden.encode(x, table), table)
            seen |= set(self.golden.recover(payload, count, table).faults.tolist())
            await self.decompress(payload, count, table, stall="seldom" if turn % 4 == 0 else "never")
        x = self.blocks(self.random, 3)
        await self.both(x, self.fit(x))
        return seen


def tables(random, golden, straight=None):
    """Any table that an encoder takes: of rice, no sum of a k, but the first, and of the last e above 8."""
    if golden is nibble:
        word = int.from_bytes(random.bytes(11), "little") & (1 << 81) - 1
        return nibble.Table.of(word if straight is None else word & (1 << 80) - 1 | straight << 80)
    e = sorted(random.integers(0, 8, 4).tolist())
    k = [int(random.integers(8)), *random.integers(0, 9 - max(e[3], 1), 14).tolist()]
    straight = bool(random.integers(2)) if straight is None else straight
    return rice.Table(k, int(random.integers(17)), e, straight)


def recovered(mode, payload, count, code):
    """What a decoder makes of any payload: one of the same values, uint8, and which blocks it has to report."""
    if mode == reference.BASE:
        result = rle.salvage(bytes(payload) + bytes(256 * count), count)
        return rle.encode(result.blocks)[0], result.errors
    coder = reference.CODERS[mode]
    result = coder.recover(payload, count, code)
    return coder.encode(result.blocks, code)[0], result.faults & FAULTS


def rows(golden, payload, count, random):
    """What a splitter gives: blocks in rows; nothing is missing here but at the end, where zeros stand for it."""
    payload, at, result = bytes(payload), 0, []
    for _ in range(count):
        size = 1 + (golden.STEP[payload[at]] - 1 if at < len(payload) else 0)
        block = payload[at : at + size].ljust(size, b"\0")
        at += size
        block = block[:65] + random.bytes(max(0, 65 - size))
        result += [int.from_bytes(block[1 + 8 * k :][:8], "little") | (block[0] if k == 0 else int(
            random.integers(256))) << 64 for k in range(8)]
    return result[:-1] + [result[-1] | 1 << 72]


def lines(blocks):
    """Blocks [n, 64] as beats of 8 values."""
    return beats(blocks.reshape(-1, 8), 8)


def parts(payload, sizes):
    """The bytes of each block."""
    ends = sizes.cumsum()
    return [payload[end - size : end].tobytes() for end, size in zip(ends, sizes, strict=True)]


# ---------------------------------------------------------------------------------------------- what both benches test
@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    """Short tensors, under tables of their own and under any."""
    bench = await Coder.started(dut)
    for count in (1, 2, 5):
        x = bench.blocks(bench.random, count)
        for table in (bench.table(), bench.fit(x, bool(bench.random.integers(2)))):
            await bench.both(x, table, idle=idle, stall=stall)


@cocotb.test
async def handles_blocks_of_zeros(dut):
    """Alone, and among others."""
    bench = await Coder.started(dut)
    for count in (1, 2, 3, 20):
        await bench.both(np.zeros((count, 64), np.int8), bench.table())
    x = bench.blocks(bench.random, 40)
    x[bench.random.random(40) < 0.5] = 0
    await bench.both(x, bench.fit(x))


@cocotb.test
async def compresses_and_restores_real_activations(dut):
    bench = await Coder.started(dut)
    for kind, dqt in (("conv", "optL"), ("conv", "optH"), ("ReLU", None)):
        for x in blockcodes.tensors(kind)[:2]:
            values = blockcodes.coded(x[:1], dqt)[:110]
            await bench.both(values, bench.fit(values, dqt is None))


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    """8.00, and the latencies of its kind, whatever the data."""
    bench = await Coder.started(dut)
    random, count = bench.random, 40
    low = random.integers(-8, 8, (count, 64), np.int8)
    for x in (bench.blocks(random, count), np.zeros((count, 64), np.int8),
              random.integers(-128, 128, (count, 64), np.int8), low * (np.arange(64) < 32).astype(np.int8),
              low * (np.arange(64) >= 32).astype(np.int8)):
        for table in (bench.table(), bench.fit(x)):
            run = await bench.compress(x, table)
            assert run.cycles["i"] == list(range(8 * count))
            assert run.cycles["chunks"] == list(range(bench.kind.compress, bench.kind.compress + 8 * count))
            run = await bench.decompress(bench.golden.encode(x, table)[0], count, table)
            assert run.cycles["rows"][0] == 0
            assert run.cycles["o"] == list(range(bench.kind.decompress, bench.kind.decompress + 8 * count))


@cocotb.test
async def ends_a_stream_that_is_cut_off(dut):
    """At every byte: all blocks come, missing bytes are zero."""
    bench = await Coder.started(dut)
    x = np.vstack([bench.random.integers(-8, 9, (1, 64)).astype(np.int8), bench.blocks(bench.random, 2)])
    table = bench.fit(x)
    payload, _ = bench.golden.encode(x, table)
    for length in range(len(payload) + 1):
        await bench.decompress(payload[:length], 3, table)
    await bench.decompress(bytes(payload) + b"\0", 3, table)
    await bench.both(x, table)


@cocotb.test
async def forgets_everything_at_reset(dut):
    """In the middle of a tensor; the next one is right."""
    bench = await Coder.started(dut)
    for fill in bench.kind.fills:
        x, table = bench.blocks(bench.random, 5), bench.table()
        if fill % 2:
            payload, _ = bench.golden.encode(x, table)
            await bench.begin(1, table, 5)
            sources = {"rows": rows(bench.golden, payload, 5, bench.random)}
            await bench.run(sources, {"o": None}, bench.random, until=after(fill))
        else:
            await bench.begin(0, table, 5)
            await bench.run({"i": lines(x)[:fill]}, {"chunks": None}, bench.random, stall="half")
        await bench.reset()
        await bench.both(bench.blocks(bench.random, 3), bench.table())
