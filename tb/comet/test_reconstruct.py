"""Bench of reconstruction: golden's multiples of the step."""

import math

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from actcodec.golden.comet import prequantise
from actcodec.rtl.comet.reconstruct import Reconstruct
from tb.comet import walks
from tb.comet.test_prequantise import bfloat16, steps
from tb.harness import PATTERNS, SEED, STALLS, Bench, after, rng, simulate

LATENCY = 2


def test_reconstruct():
    simulate(Reconstruct(), __file__)


class Multiplier(Bench):
    async def check(self, q, counts, outliers, s, random, **patterns):
        """Sectors of integers [n, 8], of which ``counts`` are the tensor's."""
        self.dut.step.value = bfloat16(s)
        await ClockCycles(self.clk, 2)
        last = np.arange(len(q)) == len(q) - 1
        edges = [int(n) | int(random.integers(16)) << 4 | int(end) << 8 for n, end in zip(counts, last, strict=True)]
        used = np.arange(8) < counts[:, None]
        run = await self.run({"i": walks.place(walks.lanes(q, 12, outliers), edges, 104)}, {"o": len(q)}, random,
                             **patterns)
        got, flags = walks.unpack(run["o"], 32)
        assert np.array_equal(flags, outliers & used), f"outliers, SEED={SEED}"
        self.equal(np.where(flags, 0, got).tolist(),
                   np.where(flags, 0, prequantise.dequantize(q, s).view(np.uint32) * used).tolist(),
                   f"sectors at step {s}")
        self.equal([payload >> 264 for payload in run["o"]],
                   [int(n) | int(end) << 4 for n, end in zip(counts, last, strict=True)], "counts")
        return run


def some(random, n, share):
    """Integers, counts and outliers of n sectors."""
    counts = np.where(random.random(n) < 0.3, random.integers(0, 9, n), 8)
    return random.integers(-2048, 2048, (n, 8)), counts, random.random((n, 8)) < share


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
        await bench.check(q, full, none, s, random)
    for significand in range(128, 256):
        n = random.integers(-2048, 2048, (20, 8))
        await bench.check(n, full[:20], none[:20], math.ldexp(significand, -5), random)


@cocotb.test
async def takes_a_cycle_a_sector(dut):
    random = rng()
    bench = await Multiplier.started(dut)
    run = await bench.check(*some(random, 64, 0.1), 0.5, random)
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + 64))


@cocotb.test
async def starts_anew_after_reset(dut):
    random = rng()
    bench = await Multiplier.started(dut)
    for cycles in range(1, 24):
        q, _, outliers = some(random, 30, 0.1)
        await bench.run({"i": walks.place(walks.lanes(q, 12, outliers), [8] * 30, 104)}, {"o": None}, random,
                        until=after(cycles))
        await bench.reset()
        await bench.check(*some(random, 6, 0.1), 0.5, random)
