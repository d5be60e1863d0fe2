"""Bench of nibble: bytes, values and faults are golden's, at 8.00 cycles a block both ways."""

import cocotb
import numpy as np

from actcodec.golden.jpegact import nibble
from actcodec.rtl.jpegact.nibble import Nibble
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


def test_nibble():
    simulate(Nibble(), __file__, coder="nibble")


@cocotb.test
async def handles_every_width_of_every_entry(dut):
    """Each group has each bit length in turn, under each of the 32 entries, beside others of any length."""
    bench = await Coder.started(dut)
    random = bench.random
    for entry in range(32):
        need = (np.arange(9)[:, None] + np.arange(16) * random.integers(1, 9)) % 9
        u = (1 << need) - 1 - np.where(need > 1, random.integers(0, 2, need.shape), 0)
        lane = random.integers(0, 4, need.shape)
        value = np.where(u & 1, -(u + 1 >> 1), u >> 1).astype(np.int8)
        x = np.where(np.arange(4) == lane[..., None], value[..., None], 0).reshape(9, 64).astype(np.int8)
        word = sum((entry if g % 3 else int(random.integers(32))) << 5 * g for g in range(16))
        await bench.both(x, nibble.Table.of(word))


@cocotb.test
async def handles_every_length(dut):
    """Sums of widths from 0 to 128: lengths of 4 to 63, raw beyond, each place of the odd nibble."""
    bench = await Coder.started(dut)
    random = bench.random
    seen = set()
    for odd in (0, 1):
        for base in range(8):
            need = np.array([random.permutation([(total + g) // 16 for g in range(16)]) for total in range(
                16 * base + odd, 16 * base + 17, 2)])
            x = np.zeros((len(need), 64), np.int8)
            x[:, ::4] = -(1 << np.maximum(need, 1) - 1) * (need > 0)
            table = nibble.Table([base] * 16, [int(random.integers(2))] * 16)
            seen |= set(nibble.encode(x, table)[1])
            await bench.both(x, table)
            table = nibble.Table([max(base - 1, 0)] * 16, [3] * 16, True)
            x = np.where(x < 0, 1 << np.maximum(np.repeat(need, 4, axis=1), 1) - 1, 0).astype(np.uint8).view(np.int8)
            seen |= set(nibble.encode(x, table)[1])
            await bench.both(x, table)
    assert seen >= {1, *range(6, 65)} - {6} and 65 in seen, sorted(seen)


@cocotb.test
async def handles_every_value_at_every_place(dut):
    bench = await Coder.started(dut)
    random = bench.random
    for straight in (False, True):
        x = np.stack([random.permutation(256) for _ in range(64)], axis=1).astype(np.uint8).view(np.int8)
        sparse = np.where(np.arange(64) == np.arange(256)[:, None] % 64, x, 0)
        for one in (x, sparse):
            await bench.both(one, nibble.Table([4] * 16, [1] * 16, straight))


@cocotb.test
async def reports_malformed_blocks_and_stays_in_step(dut):
    """Flips of single bits, codes and lengths of any value, and plain garbage: golden's values and golden's faults."""
    bench = await Coder.started(dut)
    random = bench.random

    def spoil(turn, payload, sizes, table):
        kind, place = turn % 5, int(sizes[0])
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
        return payload, 1 if kind == 4 else 3, table

    seen = await bench.malformed(150, spoil)
    assert {0, 2, 3, 4} <= seen and any(fault & 4 for fault in seen), seen
