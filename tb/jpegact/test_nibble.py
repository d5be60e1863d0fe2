"""Bench of nibble: bytes, values and faults are golden's, at 8.00 cycles a block both ways."""

import cocotb
import numpy as np

from actcodec.golden.jpegact import nibble
from actcodec.rtl.jpegact.nibble import Nibble
from tb.harness import PATTERNS, STALLS, rng, simulate
from tb.jpegact.blocks import Coder, lines, rows, tables
from tb.judges import blockcodes


def test_nibble():
    simulate(Nibble(), __file__)


def blocks(random, count):
    """Blocks of all densities and widths."""
    size = 2.0 ** random.uniform(-2, 8, (count, 1)) * np.where(random.random((count, 1)) < 0.5,
                                                               0.93 ** np.arange(64), 1)
    x = np.where(random.random((count, 64)) < random.random((count, 1)), random.laplace(size=(count, 64)) * size, 0)
    x[random.random(x.shape) < 0.003] = -128
    x = np.clip(np.rint(x), -128, 127).astype(np.int8)
    x[random.random(count) < 0.1] = 0
    return x


async def start(dut):
    bench = Coder(dut, nibble)
    await bench.start()
    return bench


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def goes_both_ways_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await start(dut)
    for count in (1, 2, 5):
        x = blocks(random, count)
        for table in (tables(random, nibble), nibble.fit(x, bool(random.integers(2)))):
            await bench.both(x, table, random, idle=idle, stall=stall)


@cocotb.test
async def handles_every_width_of_every_entry(dut):
    """Each group has each bit length in turn, under each of the 32 entries, beside others of any length."""
    random = rng()
    bench = await start(dut)
    for entry in range(32):
        need = (np.arange(9)[:, None] + np.arange(16) * random.integers(1, 9)) % 9
        u = (1 << need) - 1 - np.where(need > 1, random.integers(0, 2, need.shape), 0)
        lane = random.integers(0, 4, need.shape)
        value = np.where(u & 1, -(u + 1 >> 1), u >> 1).astype(np.int8)
        x = np.where(np.arange(4) == lane[..., None], value[..., None], 0).reshape(9, 64).astype(np.int8)
        word = sum((entry if g % 3 else int(random.integers(32))) << 5 * g for g in range(16))
        await bench.both(x, nibble.Table.of(word), random)


@cocotb.test
async def handles_every_length(dut):
    """Sums of widths from 0 to 128: lengths of 4 to 63, raw beyond, each place of the odd nibble."""
    random = rng()
    bench = await start(dut)
    seen = set()
    for odd in (0, 1):
        for base in range(8):
            need = np.array([random.permutation([(total + g) // 16 for g in range(16)]) for total in range(
                16 * base + odd, 16 * base + 17, 2)])
            x = np.zeros((len(need), 64), np.int8)
            x[:, ::4] = -(1 << np.maximum(need, 1) - 1) * (need > 0)
            table = nibble.Table([base] * 16, [int(random.integers(2))] * 16)
            seen |= set(nibble.encode(x, table)[1])
            await bench.both(x, table, random)
            table = nibble.Table([max(base - 1, 0)] * 16, [3] * 16, True)
            x = np.where(x < 0, 1 << np.maximum(np.repeat(need, 4, axis=1), 1) - 1, 0).astype(np.uint8).view(np.int8)
            seen |= set(nibble.encode(x, table)[1])
            await bench.both(x, table, random)
    assert seen >= {1, *range(6, 65)} - {6} and 65 in seen, sorted(seen)


@cocotb.test
async def handles_every_value_at_every_place(dut):
    random = rng()
    bench = await start(dut)
    for straight in (False, True):
        x = np.stack([random.permutation(256) for _ in range(64)], axis=1).astype(np.uint8).view(np.int8)
        sparse = np.where(np.arange(64) == np.arange(256)[:, None] % 64, x, 0)
        for one in (x, sparse):
            await bench.both(one, nibble.Table([4] * 16, [1] * 16, straight), random)


@cocotb.test
async def handles_blocks_of_zeros(dut):
    random = rng()
    bench = await start(dut)
    for count in (1, 2, 3, 20):
        await bench.both(np.zeros((count, 64), np.int8), tables(random, nibble), random)
    x = blocks(random, 40)
    x[random.random(40) < 0.5] = 0
    await bench.both(x, nibble.fit(x), random)


@cocotb.test
async def compresses_and_restores_real_activations(dut):
    random = rng()
    bench = await start(dut)
    for kind, dqt in (("conv", "optL"), ("conv", "optH"), ("ReLU", None)):
        for x in blockcodes.tensors(kind)[:2]:
            values = blockcodes.coded(x[:1], dqt)[:120]
            await bench.both(values, nibble.fit(values, dqt is None), random)


@cocotb.test
async def takes_eight_cycles_a_block(dut):
    random = rng()
    bench = await start(dut)
    count = 40
    for x in (blocks(random, count), np.zeros((count, 64), np.int8), random.integers(-128, 128, (count, 64), np.int8),
              np.where(np.arange(64) < 32, 0, random.integers(-8, 8, (count, 64))).astype(np.int8),
              np.where(np.arange(64) < 32, random.integers(-8, 8, (count, 64)), 0).astype(np.int8)):
        for table in (tables(random, nibble), nibble.fit(x)):
            run = await bench.compress(x, table, random)
            assert run.cycles["i"] == list(range(8 * count))
            assert run.cycles["chunks"] == list(range(11, 11 + 8 * count))
            run = await bench.decompress(nibble.encode(x, table)[0], count, table, random)
            assert run.cycles["rows"][0] == 0
            assert run.cycles["o"] == list(range(4, 4 + 8 * count))


@cocotb.test
async def ends_a_stream_that_is_cut_off(dut):
    """Cut at every byte: all blocks come, missing bytes are zero."""
    random = rng()
    bench = await start(dut)
    x = blocks(random, 3)
    x[0] = random.integers(-8, 9, 64)
    table = nibble.fit(x)
    payload, _ = nibble.encode(x, table)
    for length in range(len(payload) + 1):
        await bench.decompress(payload[:length], 3, table, random)
    await bench.decompress(bytes(payload) + b"\0", 3, table, random)
    await bench.both(x, table, random)


@cocotb.test
async def reports_malformed_blocks_and_stays_in_step(dut):
    """Flips of single bits, codes and lengths of any value, and plain garbage: golden's values and golden's faults."""
    random = rng()
    bench = await start(dut)
    seen = {}
    for turn in range(150):
        x = blocks(random, 3)
        table = nibble.fit(x) if turn % 3 else tables(random, nibble)
        payload, sizes = nibble.encode(x, table)
        kind = turn % 5
        place = int(sizes[:1].sum()) if kind < 3 else 0
        if kind == 0:  # a bit of the second block's head, or of it all
            bit = int(random.integers(8 * min(5, sizes[1]) if turn % 2 else 8 * sizes[1]))
            payload[place + bit // 8] ^= 1 << bit % 8
        elif kind == 1:  # any length
            payload[place] = random.integers(256)
        elif kind == 2:  # the odd nibble, or a bit near it
            payload[place + sizes[1] - 1] ^= 16 << int(random.integers(4))
        elif kind == 3:
            payload = random.integers(0, 66, 200, np.uint8)
        else:  # codes and length without regard to each other; what is read of it lies at the end
            length = int(random.integers(1, 80))
            codes = int(random.choice([0, 0xFFFF_FFFF, 0xFF00_0000, 0xFFF0_0000, int(random.integers(1 << 32))]))
            payload = np.frombuffer(bytes([length]) + codes.to_bytes(4, "little") + random.bytes(300), np.uint8)
            table = nibble.Table([0] * 16, [2] * 16) if turn % 2 else nibble.Table([6] * 16, [2] * 16)
        count = 1 if kind == 4 else 3
        for fault in nibble.recover(payload, count, table).faults:
            seen[int(fault)] = seen.get(int(fault), 0) + 1
        await bench.decompress(payload, count, table, random, stall="seldom" if turn % 4 == 0 else "never")
    assert {0, 2, 3, 4} <= set(seen) and any(fault & 4 for fault in seen), seen
    x = blocks(random, 3)
    await bench.both(x, nibble.fit(x), random)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await start(dut)
    for fill in range(1, 40, 3):
        x, table = blocks(random, 5), tables(random, nibble)
        if fill % 2:
            payload, _ = nibble.encode(x, table)
            await bench.begin(1, table, 5)
            sources = {"rows": rows(nibble, payload, 5, random)}
            await bench.run(sources, {"o": None}, random, until=iter([False] * fill + [True]).__next__)
        else:
            await bench.begin(0, table, 5)
            sink = "chunks"
            await bench.run({"i": lines(x)[:fill]}, {sink: None}, random, stall="half")
        await bench.reset()
        await bench.both(blocks(random, 3), tables(random, nibble), random)
