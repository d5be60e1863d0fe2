"""Bench of RLE and RLD: bytes, values and faults are golden's, whatever the number of coders."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.jpegact import rle
from actcodec.golden.jpegact.zigzag import ZIGZAG
from actcodec.rtl.jpegact.runlength import BYTES, RunLength
from tb.harness import PATTERNS, STALLS, Bench, after, beats, parameters, regress, rng, simulate

FEW = ("never", "half", "bursts")


@pytest.mark.parametrize("coders", [4, *regress(1, 2, 8)])
def test_runlength(coders):
    simulate(RunLength(coders), __file__, coders=coders)


def test_only_legal_numbers_of_coders_are_taken():
    for coders in (0, 9, "4", True, 2.0):
        with pytest.raises(ValueError, match=r"coders must be an integer from 1 to 8"):
            RunLength(coders)


def blocks(random, count):
    """Blocks of all densities, with values of all sizes."""
    magnitude = random.integers(0, 2 ** random.integers(1, 8, (count, 64)))
    values = np.where(random.random((count, 64)) < 0.5, magnitude, ~magnitude)
    return np.where(random.random((count, 64)) < random.random((count, 1)) ** 2, values, 0).astype(np.int8)


def corners():
    """Every run, and every category in both signs with its smallest and largest value; the largest and the smallest
    block; coefficient 63 set or not."""
    values = [v for s in range(7) for n in (2**s, 2 ** (s + 1) - 1) for v in (n, -n)] + [-128]
    q = np.zeros((63 * len(values), 64), np.int8)
    run = np.arange(len(q)) % 63
    q[np.arange(len(q)), ZIGZAG[1 + run]] = np.repeat(values, 63)
    q[::2, 63] = np.resize([0, 1, 0, -128, 0], len(q[::2]))
    q[:, 0] = np.resize([-128, 127, -128, 0, 1, 1, -1, 64, 2], len(q))
    return np.concatenate([q, np.full((9, 64), -128, np.int8), np.zeros((20, 64), np.int8)])


def lines(q):
    """Blocks in the order of the ports: column by column."""
    return beats(q.reshape(-1, 8, 8).transpose(0, 2, 1).reshape(-1, 8), 8)


class Coders(Bench):
    """The bench with the controls of the unit."""

    async def begin(self, decompress):
        self.dut.decompress.value, self.dut.start.value = decompress, 1
        await FallingEdge(self.clk)
        self.dut.start.value = 0

    async def compress(self, q, random, **patterns):
        """Compresses one tensor and compares: eight chunks a block, with zeros behind their ends."""
        await self.begin(0)
        payload, sizes = rle.encode(q)
        run = await self.run({"i": lines(q)}, {"chunks": 8 * len(q)}, random, limit=5000 + 120 * 8 * len(q), **patterns)
        size = 8 * (1 + BYTES)
        counts = [beat >> size & 31 for beat in run["chunks"]]
        data = [beat & (1 << size) - 1 for beat in run["chunks"]]
        assert not any(one >> 8 * count for one, count in zip(data, counts, strict=True)), "bytes behind a chunk"
        assert [beat >> size + 5 for beat in run["chunks"]] == [0] * (8 * len(q) - 1) + [1]
        pieces = [one.to_bytes(1 + BYTES, "little")[:count] for one, count in zip(data, counts, strict=True)]
        got = [b"".join(pieces[k : k + 8]).hex() for k in range(0, len(pieces), 8)]
        ends = sizes.cumsum()
        self.equal(got, [payload[end - size : end].tobytes().hex() for end, size in zip(ends, sizes, strict=True)],
                   f"{len(q)} blocks")
        return run

    async def decompress(self, payload, count, random, **patterns):
        """Decompresses one tensor, malformed or not, and compares values and faults."""
        await self.begin(1)
        payload = bytes(payload)
        expected = rle.salvage(payload + bytes(256 * count), count)
        sources = {"rows": rows(payload, count, random)}
        run = await self.run(sources, {"o": 8 * count}, random, limit=5000 + 120 * 8 * count, **patterns)
        what = f"{count} blocks of {payload.hex()[:200]}"
        self.equal(run["o"], lines(expected.blocks), what)
        await ClockCycles(self.clk, 1)
        await FallingEdge(self.clk)
        assert self.dut.o__valid.value == 0
        assert int(self.dut.faults.value) == faults(expected), what
        return run

    async def both(self, q, random, **patterns):
        await self.compress(q, random, **patterns)
        await self.decompress(rle.encode(q)[0], len(q), random, **patterns)


def faults(salvaged):
    return sum(1 << reason - 1 for reason in range(1, 4) if reason in salvaged.errors)


def rows(payload, count, random):
    """What a splitter gives: blocks in rows, with anything behind their ends; zeros for what is missing."""
    at, result = 0, []
    for _ in range(count):
        size = payload[at] if at < len(payload) else 0
        block = payload[at + 1 : at + 1 + size].ljust(size, b"\0")
        at += 1 + size
        block += random.bytes(max(0, 8 * BYTES - size))
        result += [int.from_bytes(block[BYTES * k :][:BYTES], "little")
                   | (size if k == 0 else int(random.integers(256))) << 8 * BYTES for k in range(8)]
    return result[:-1] + [result[-1] | 1 << 8 * BYTES + 8]


async def start(dut):
    bench = Coders(dut)
    await bench.start()
    return bench


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await start(dut)
    for count in (1, 2, 11):
        await bench.both(blocks(random, count), random, idle=idle, stall=stall)


@cocotb.test
async def handles_every_run_and_category(dut):
    random = rng()
    bench = await start(dut)
    await bench.both(corners(), random)
    await bench.both(random.permutation(corners()), random, stall="half")


@cocotb.test
async def handles_blocks_of_every_density(dut):
    random = rng()
    bench = await start(dut)
    for density in (0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1):
        q = np.where(random.random((40, 64)) < density, random.integers(-128, 128, (40, 64)), 0).astype(np.int8)
        await bench.both(q, random)
    await bench.both(blocks(random, 300), random)


@cocotb.test
async def takes_a_symbol_a_cycle(dut):
    """Blocks of 64 symbols, of 40 and EOB, of DC and EOB: eight coders keep up with lines whatever there is."""
    random = rng()
    bench = await start(dut)
    coders, count = parameters()["coders"], 27
    for coded, symbols, period, forward, back in ((64, 64, 64, 73, 67), (40, 41, 42, 50, 44), (0, 2, 9, 17, 10)):
        q = np.zeros((count, 64), np.int8)
        q[:, ZIGZAG[:coded]] = np.where(random.random((count, coded)) < 0.5, 1, -1)
        begins = [max(period, 8 * coders) * (b // coders) + 8 * (b % coders) for b in range(count)]

        def cycles(latency, begins=begins):
            return [begin + latency + line for begin in begins for line in range(8)]

        run = await bench.compress(q, random)
        assert run.cycles["i"] == cycles(0), f"{symbols} symbols"
        assert run.cycles["chunks"] == cycles(forward), f"{symbols} symbols"
        run = await bench.decompress(rle.encode(q)[0], count, random)
        assert run.cycles["o"] == cycles(back), f"{symbols} symbols"


@cocotb.test
async def ends_a_stream_that_is_cut_off(dut):
    """Cut at every byte: all blocks come, missing bytes are zero."""
    random = rng()
    bench = await start(dut)
    q = blocks(random, 4)
    q[0], q[3] = random.integers(-8, 9, 64), random.integers(-128, 128, 64)
    payload, _ = rle.encode(q)
    for length in range(len(payload) + 1):
        await bench.decompress(payload[:length], 4, random)
    await bench.decompress(bytes(payload) + b"\0", 4, random)
    dut.empty.value = 1
    await bench.decompress(b"", 9, random, idle="half")
    dut.empty.value = 0
    await bench.both(q, random)


@cocotb.test
async def reports_malformed_blocks_and_stays_in_step(dut):
    """Flips of single bits, lengths of any value, codes that are in no table, and plain garbage."""
    random = rng()
    bench = await start(dut)
    seen = {}
    for turn in range(120):
        q = blocks(random, 12)
        payload, sizes = rle.encode(q)
        place = int(sizes[: turn % 11].sum())
        kind = turn % 4
        if kind == 0:
            bit = int(random.integers(8 * sizes[turn % 11]))
            payload[place + bit // 8] ^= 1 << bit % 8
        elif kind == 1:
            payload[place] = random.integers(256)
        elif kind == 2:
            at = int(random.integers(1, sizes[turn % 11]))
            payload[place + at :][:2] = 255
        else:
            payload = random.integers(0, 256, 3000, np.uint8)
        for fault in rle.salvage(payload, 12).errors.tolist():
            seen[fault] = seen.get(fault, 0) + 1
        await bench.decompress(payload, 12, random, idle=FEW[turn % 3], stall=FEW[turn // 3 % 3])
    assert set(seen) == {0, 1, 2, 3}, seen
    await bench.both(blocks(random, 9), random)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await start(dut)
    for fill in range(1, 120, 7):
        q = blocks(random, 12)
        if fill % 2:
            await bench.begin(1)
            sources = {"rows": rows(bytes(rle.encode(q)[0]), 12, random)}
            await bench.run(sources, {"o": None}, random, until=after(fill))
        else:
            await bench.begin(0)
            await bench.run({"i": lines(q)}, {"chunks": None}, random, stall="half",
                            until=after(fill))
        await bench.reset()
        await bench.both(blocks(random, 9), random)
