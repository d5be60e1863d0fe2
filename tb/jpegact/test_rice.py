"""Bench of rice: bytes, values and faults are golden's, at 8.00 cycles a block both ways."""

import cocotb
import numpy as np

from actcodec.golden.jpegact import rice
from actcodec.rtl.jpegact.rice import Rice
from tb.harness import simulate
from tb.jpegact.blocks import (  # noqa: F401 - tests that both coders have
    Coder,
    compresses_and_restores_real_activations,
    ends_a_stream_that_is_cut_off,
    forgets_everything_at_reset,
    goes_both_ways_whatever_the_ports_do,
    handles_blocks_of_zeros,
    takes_eight_cycles_a_block,
)


def test_rice():
    simulate(Rice(), __file__, coder="rice")


@cocotb.test
async def handles_every_table(dut):
    """Every k, every e, every number of flags, signed and straight; classes of all kinds beside each other."""
    bench = await Coder.started(dut)
    random = bench.random
    for flags in range(17):
        for straight in (False, True):
            table = bench.table(straight)
            table = rice.Table(table.k, flags, table.e, straight)
            k = np.array(table.k)[np.add.outer(np.arange(8), np.arange(8)).reshape(64)]
            u = random.integers(0, 1 + (random.integers(1, 6, (6, 1)) << k)).clip(0, 255)
            u[random.random(u.shape) < 0.3] = 0
            x = (u if straight else u >> 1 ^ -(u & 1)).astype(np.uint8).view(np.int8)
            await bench.both(x, table)


@cocotb.test
async def handles_every_length_and_every_e(dut):
    bench = await Coder.started(dut)
    random = bench.random
    lengths, which = set(), set()
    for turn in range(16):
        x = np.vstack([*(bench.blocks(random, 64) for _ in range(6)), random.integers(-2, 3, (50, 64)).astype(np.int8)])
        table = bench.fit(x) if turn % 2 else bench.table(False)
        payload, sizes = rice.encode(x, table)
        first, where = np.unique(payload[np.cumsum(sizes) - sizes], return_index=True)
        some = random.permutation(len(where))[:24]  # of those that begin differently
        lengths |= set((first[some] & 63).tolist())
        which |= set((first[some] >> 6).tolist())
        await bench.both(x[where[some]], table)
    assert len(lengths) > 40 and {0, 63} <= lengths and which == {0, 1, 2, 3}, (sorted(lengths), which)


@cocotb.test
async def keeps_the_last_word_of_a_block_while_a_long_one_comes(dut):
    """Blocks of three words, of which the last line alone reaches the third one, each with a raw block behind it."""
    bench = await Coder.started(dut)
    random = bench.random
    few = np.zeros((600, 64), np.int8)
    for row in few:
        row[48:] = (random.random(16) < 0.6) * random.integers(-128, 128, 16)
    table = rice.Table((6,) * 15, 16, (1, 2, 2, 2), True)
    _, sizes = rice.encode(few, table)
    few = few[(sizes > 17) & (sizes <= 25)][:20]
    assert len(few) == 20
    raw = random.integers(-128, 128, few.shape).astype(np.int8)
    await bench.both(np.stack([few, raw], axis=1).reshape(-1, 64), table)


@cocotb.test
async def reports_malformed_blocks_and_stays_in_step(dut):
    """Flips of single bits, first bytes of any value, and plain garbage: golden's values and golden's faults."""
    bench = await Coder.started(dut)
    random = bench.random

    def spoil(turn, payload, sizes, table):
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
        return payload, 3, table

    seen = await bench.malformed(120, spoil)
    assert {0, 1, 2, 4} <= seen, seen
