"""Bench of reconstruction: golden's multiples of the step, and outliers bit for bit."""

import math

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from actcodec.golden.comet import prequantise
from actcodec.rtl.comet.reconstruct import Reconstruct
from tb.comet import world
from tb.comet.test_prequantise import bfloat16, steps
from tb.harness import PATTERNS, STALLS, rng, simulate

LATENCY = 3


def test_reconstruct():
    simulate(Reconstruct(), __file__)


class Multiplier(world.Queues):
    shown = "bytes"

    def popped(self):
        return int(self.dut.mask.value) if self.dut.take.value == 1 else 0

    async def check(self, q, counts, outliers, words, s, random, **patterns):
        """Sectors of integers [n, 8], of which ``counts`` are the tensor's."""
        self.dut.step.value = bfloat16(s)
        await ClockCycles(self.clk, 2)
        last = np.arange(len(q)) == len(q) - 1
        edges = [int(n) | int(random.integers(16)) << 4 | int(end) << 8 for n, end in zip(counts, last, strict=True)]
        used = np.arange(8) < counts[:, None]
        for lane, queue in enumerate(self.queues):
            queue[:] = words[(outliers & used)[:, lane], lane].view(np.uint8).tolist()
        x = np.where(outliers, words, prequantise.dequantize(q, s).view(np.uint32)) * used
        expected = [payload & (1 << 256) - 1 | int(n) << 256 | int(end) << 260
                    for payload, n, end in zip(world.lanes(x, 32), counts, last, strict=True)]
        run = await self.run({"i": world.placed(world.lanes(q, 12, outliers), edges, 104)}, {"o": len(q)}, random,
                             **patterns)
        self.equal(run["o"], expected, f"sectors at step {s}")
        assert not any(self.queues)
        return run


def some(random, n, share):
    """Integers, counts, outliers and words of n sectors."""
    counts = np.where(random.random(n) < 0.3, random.integers(0, 9, n), 8)
    return (random.integers(-2048, 2048, (n, 8)), counts, random.random((n, 8)) < share,
            random.integers(0, 1 << 32, (n, 8), dtype=np.uint32))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_words_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Multiplier.started(dut)
    for share in (0, 0.05, 1):
        await bench.check(*some(random, 30, share), steps(random)[-1], random, idle=idle, stall=stall)


@cocotb.test
async def multiplies_all_integers(dut):
    """By the ends of the steps, and by all significands a part of them."""
    random = rng()
    bench = await Multiplier.started(dut)
    q = np.arange(-2048, 2048).reshape(-1, 8)
    full, none = np.full(512, 8), np.zeros((512, 8), bool)
    for s in [*steps(random), 255 * 2.0**-8]:
        await bench.check(q, full, none, np.zeros((512, 8), np.uint32), s, random)
    for significand in range(128, 256):
        n = random.integers(-2048, 2048, (20, 8))
        await bench.check(n, full[:20], none[:20], np.zeros((20, 8), np.uint32), math.ldexp(significand, -5), random)


@cocotb.test
async def takes_a_cycle_a_sector_and_five_with_outliers(dut):
    random = rng()
    bench = await Multiplier.started(dut)
    run = await bench.check(*some(random, 64, 0), 0.5, random)
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + 64))
    q, _, outliers, words = some(random, 64, 0)
    outliers[::2, 5] = True
    run = await bench.check(q, np.full(64, 8), outliers, words, 0.5, random)
    assert run.cycles["o"][0] == LATENCY + 4
    assert set(np.diff(run.cycles["o"])) == {1, 5}
