"""Bench of rice: bytes, values and faults are golden's, at 8.00 cycles a block both ways."""

import cocotb
import numpy as np

from actcodec.golden.jpegact import rice
from actcodec.rtl.jpegact.rice import Rice
from tb.harness import PATTERNS, STALLS, rng, simulate
from tb.jpegact.blocks import Coder, lines, rows, tables
from tb.judges import blockcodes


def test_rice():
    simulate(Rice(), __file__)


def blocks(random, count):
    """Blocks of all densities and sizes of values."""
    x = blockcodes.of_every_kind(int(random.integers(1 << 30)), 64)
    return x[random.integers(0, 64, count)]


async def start(dut):
    bench = Coder(dut, rice)
    await bench.start()
    return bench


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await start(dut)
    for count in (1, 2, 5):
        x = blocks(random, count)
        for table in (tables(random, rice), rice.fit(x, bool(random.integers(2)), 50)):
            await bench.both(x, table, random, idle=idle, stall=stall)


@cocotb.test
async def handles_every_table(dut):
    """Every k, every e, every number of flags, signed and straight; classes of all kinds beside each other."""
    random = rng()
    bench = await start(dut)
    for flags in range(17):
        for straight in (False, True):
            table = tables(random, rice, straight)
            table = rice.Table(table.k, flags, table.e, straight)
            k = np.array(table.k)[np.add.outer(np.arange(8), np.arange(8)).reshape(64)]
            u = random.integers(0, 1 + (random.integers(1, 6, (6, 1)) << k)).clip(0, 255)
            u[random.random(u.shape) < 0.3] = 0
            x = (u if straight else u >> 1 ^ -(u & 1)).astype(np.uint8).view(np.int8)
            await bench.both(x, table, random)


@cocotb.test
async def handles_every_length_and_every_e(dut):
    random = rng()
    bench = await start(dut)
    lengths, which = set(), set()
    for turn in range(24):
        x = np.vstack([blocks(random, 12), random.integers(-2, 3, (4, 64)).astype(np.int8)])
        table = rice.fit(x, False, 50) if turn % 2 else tables(random, rice, False)
        payload, sizes = rice.encode(x, table)
        first = payload[np.cumsum(sizes) - sizes]
        lengths |= set((first & 63).tolist())
        which |= set((first >> 6).tolist())
        await bench.both(x, table, random)
    assert len(lengths) > 40 and {0, 63} <= lengths and which == {0, 1, 2, 3}, (sorted(lengths), which)


@cocotb.test
async def handles_blocks_of_zeros(dut):
    random = rng()
    bench = await start(dut)
    for count in (1, 2, 3, 20):
        await bench.both(np.zeros((count, 64), np.int8), tables(random, rice), random)


@cocotb.test
async def compresses_and_restores_real_activations(dut):
    random = rng()
    bench = await start(dut)
    for kind, dqt in (("conv", "optL"), ("conv", "optH"), ("ReLU", None)):
        for x in blockcodes.tensors(kind)[:2]:
            values = blockcodes.coded(x[:1], dqt)[:100]
            await bench.both(values, rice.fit(values, dqt is None, 100), random)


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    random = rng()
    bench = await start(dut)
    count = 40
    for x in (blocks(random, count), np.zeros((count, 64), np.int8), random.integers(-128, 128, (count, 64), np.int8),
              np.where(np.arange(64) < 32, 0, random.integers(-8, 8, (count, 64))).astype(np.int8),
              np.where(np.arange(64) < 32, random.integers(-8, 8, (count, 64)), 0).astype(np.int8)):
        for table in (tables(random, rice), rice.fit(x, False, 40)):
            run = await bench.compress(x, table, random)
            assert run.cycles["i"] == list(range(8 * count))
            assert run.cycles["chunks"] == list(range(18, 18 + 8 * count))
            run = await bench.decompress(rice.encode(x, table)[0], count, table, random)
            assert run.cycles["rows"][0] == 0
            assert run.cycles["o"] == list(range(16, 16 + 8 * count))


@cocotb.test
async def ends_a_stream_that_is_cut_off(dut):
    """Cut at every byte: all blocks come, missing bytes are zero."""
    random = rng()
    bench = await start(dut)
    x = np.vstack([random.integers(-8, 9, (1, 64)).astype(np.int8), blocks(random, 2)])
    table = rice.fit(x, False, 50)
    payload, _ = rice.encode(x, table)
    for length in range(len(payload) + 1):
        await bench.decompress(payload[:length], 3, table, random)
    await bench.decompress(bytes(payload) + b"\0", 3, table, random)
    await bench.both(x, table, random)


@cocotb.test
async def reports_malformed_blocks_and_stays_in_step(dut):
    """Flips of single bits, first bytes of any value, and plain garbage: golden's values and golden's faults."""
    random = rng()
    bench = await start(dut)
    seen = set()
    for turn in range(120):
        x = blocks(random, 3)
        table = rice.fit(x, False, 50) if turn % 3 else tables(random, rice)
        payload, sizes = rice.encode(x, table)
        place = int(sizes[0])
        if turn % 4 == 0:
            bit = int(random.integers(8 * sizes[1]))
            payload[place + bit // 8] ^= 1 << bit % 8
        elif turn % 4 == 1:
            payload[place] = random.integers(256)
        elif turn % 4 == 2:
            payload[place + sizes[1] - 1] ^= 128 >> int(random.integers(3))
        else:
            payload = random.integers(0, 256, 200, np.uint8)
        seen |= set(rice.recover(payload, 3, table).faults.tolist())
        await bench.decompress(payload, 3, table, random, stall="seldom" if turn % 5 == 0 else "never")
    assert {0, 1, 2, 4} <= seen, seen
    await bench.both(blocks(random, 3), table, random)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await start(dut)
    for fill in range(1, 60, 5):
        x, table = blocks(random, 5), tables(random, rice)
        if fill % 2:
            payload, _ = rice.encode(x, table)
            await bench.begin(1, table, 5)
            sources = {"rows": rows(rice, payload, 5, random)}
            await bench.run(sources, {"o": None}, random, until=iter([False] * fill + [True]).__next__)
        else:
            await bench.begin(0, table, 5)
            sink = "chunks"
            await bench.run({"i": lines(x)[:fill]}, {sink: None}, random, stall="half")
        await bench.reset()
        await bench.both(blocks(random, 3), tables(random, rice), random)
