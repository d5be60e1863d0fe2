"""Bench of a tensor's statistics: channels of any values, equal to golden."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from actcodec.golden.offload import scan
from actcodec.rtl.offload.scan.statistics import Statistics
from tb.harness import PATTERNS, SEED, STALLS, Bench, after, rng, simulate

LATENCY = 3
SPECIAL = np.array([0x00000000, 0x80000000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000, 0x00000001, 0x807FFFFF,
                    0x00800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF], np.uint32)
KINDS = ["any", "special", "few", "normal", "near", "positive", "negative", "no number", "subnormal"]


def test_statistics():
    simulate(Statistics(), __file__)


def words(random, kind, count):
    """Values of a channel, as words."""
    anything = random.integers(0, 1 << 32, count).astype(np.uint32)
    if kind in ("special", "few"):
        return random.choice(SPECIAL if kind == "special" else random.choice(SPECIAL, 2), count)
    if kind == "normal":
        return random.standard_normal(count).astype(np.float32).view(np.uint32)
    if kind == "near":  # numbers that differ in a bit, any one
        return (anything[0] & 0xBF7FFFFF | 1 << 24) ^ (np.uint32(1) << random.integers(0, 32, count).astype(np.uint32))
    if kind in ("positive", "negative"):
        return anything & 0x7FFFFFFF | (kind == "negative") << 31
    if kind == "no number":
        return anything | 0x7F800000
    return anything & (0x807FFFFF if kind == "subnormal" else 0xFFFFFFFF)


def sectors(random, channel):
    """A channel as sectors, of which any may be partial or empty; beyond their values is anything."""
    beats, at = [], 0
    while at < len(channel) or not beats:
        count = int(random.choice([8, random.integers(0, 9)])) if random.random() < 0.2 else 8
        part = channel[at : at + count]
        at += len(part)
        data = [*part.tolist(), *random.integers(0, 1 << 32, 8 - len(part)).tolist()]
        beats.append(sum(word << 32 * k for k, word in enumerate(data)) | len(part) << 256)
    beats[-1] |= 1 << 260
    return beats


class Counts:
    """Adds up the counts of all cycles."""

    def __init__(self, dut):
        self.dut, self.zeros, self.nans = dut, 0, 0
        self.task = cocotb.start_soon(self.watch())

    async def watch(self):
        while True:
            await FallingEdge(self.dut.clk)
            self.zeros += int(self.dut.zeros.value)
            self.nans += int(self.dut.nans.value)


async def check(bench, random, channels, idle="never", stall="never"):
    dut, counts = bench.dut, Counts(bench.dut)
    await bench.pulse("clear")
    stream = [beat for channel in channels for beat in sectors(random, channel)]
    run = await bench.run({"i": stream}, {"o": len(channels)}, random, idle, stall)
    counts.task.cancel()
    bench.equal(run["o"], [int(scan.largest(channel.view(np.float32)).view(np.uint32)) if not subnormal(channel)
                           else run["o"][k] for k, channel in enumerate(channels)], f"{idle} {stall}")
    for channel, magnitude in zip(channels, run["o"], strict=True):
        if subnormal(channel):  # which is 0 to whoever divides by it
            assert magnitude < 1 << 23
    expected = scan.statistics(np.concatenate(channels).view(np.float32))
    got = int(dut.minimum.value), int(dut.maximum.value), counts.zeros, counts.nans
    wanted = int(expected.minimum.view(np.uint32)), int(expected.maximum.view(np.uint32)), *expected[2:]
    assert got == wanted, f"SEED={SEED}: expected {wanted}, got {got}"
    return run, stream


def subnormal(channel):
    """A channel without a normal number."""
    return scan.largest(channel.view(np.float32)) == 0


@cocotb.test
@cocotb.parametrize(kind=KINDS)
async def equals_golden(dut, kind):
    random = rng()
    bench = await Bench.started(dut)
    for _ in range(8):
        sizes = random.choice([1, 2, 7, 8, 9, 16, 40, 100], int(random.integers(1, 8)))
        await check(bench, random, [words(random, kind, int(size)) for size in sizes])


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def any_port_may_rest(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    channels = [words(random, random.choice(KINDS), int(random.integers(1, 40))) for _ in range(8)]
    await check(bench, random, channels, idle, stall)


@cocotb.test
async def one_value_at_every_place(dut):
    """Every place of a sector has the least, the greatest and the largest number once, beside any other place."""
    random = rng()
    bench = await Bench.started(dut)
    channels = []
    for k in range(8):
        for j in range(8):
            for top, bottom in ((0x7F7FFFFF, 0xFF7FFFFE), (0x3F800001, 0x3F7FFFFF), (0xBF7FFFFF, 0xBF800001)):
                channel = np.full(8, 0x3F800000 if top == 0x3F800001 else 0xBF800000, np.uint32)
                channel[k] = top
                if j != k:
                    channel[j] = bottom
                channels.append(channel)
    for channel in channels:
        await check(bench, random, [channel])


@cocotb.test
async def one_bit_at_every_place(dut):
    """Numbers next to zero and NaNs next to infinity, with any one bit of the fraction, at every place; eight of a
    kind; and one number among what is none."""
    random = rng()
    bench = await Bench.started(dut)
    bits = np.uint32(1) << np.arange(23, dtype=np.uint32)
    for base in (0, 0x80000000, 0x7F800000, 0xFF800000):
        await check(bench, random, [np.full(24, np.uint32(base) | bit, np.uint32) for bit in bits])
    for word in (0, 0x80000000, 0x7FC00000, 0xFF800001):
        await check(bench, random, [np.full(count, word, np.uint32) for count in range(1, 9)])
        await check(bench, random, [np.full(8, word, np.uint32)])
    for k in range(8):
        for none in (0x7F800000, 0xFFC00000):
            channel = np.full(8, none, np.uint32)
            channel[k] = 0xC0490FDB
            await check(bench, random, [channel])


@cocotb.test
async def one_sector_per_cycle(dut):
    random = rng()
    bench = await Bench.started(dut)
    await bench.pulse("clear")
    stream = [beat for size in (8, 8, 16, 64, 80, 8) for beat in sectors(random, words(random, "any", size))]
    run = await bench.run({"i": stream}, {"o": 6}, random)
    assert run.cycles["i"] == list(range(len(stream)))
    assert run.cycles["o"] == [k + LATENCY for k, beat in enumerate(stream) if beat >> 260]


@cocotb.test
async def reset_and_clear_start_anew(dut):
    random = rng()
    bench = await Bench.started(dut)
    for _ in range(20):
        channels = [words(random, "any", 30) for _ in range(3)]
        stream = [beat for channel in channels for beat in sectors(random, channel)]
        await bench.run({"i": stream}, {"o": None}, random, "half", "mostly", until=after(random.integers(1, 20)))
        await bench.reset()
        await check(bench, random, [words(random, "negative", 9)])
