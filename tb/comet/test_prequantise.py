"""Bench of prequantisation: golden's integers for every bit pattern that matters."""

import math

import cocotb
import numpy as np

from actcodec.golden.comet import prequantise
from actcodec.rtl.comet.prequantise import Prequantise
from tb.comet import walks
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate

LATENCY = 7


def test_prequantise():
    simulate(Prequantise(), __file__)


def bfloat16(s):
    return int(np.float32(s).view(np.uint32)) >> 16


def steps(random):
    """Steps: the ends, all significands at some exponent, and any."""
    ends = [2.0**-125, 2.0**112, 255 * 2.0**-132, 1.0, 129 / 128]
    return ends + [math.ldexp(int(random.integers(128, 256)), int(random.integers(-132, 105))) for _ in range(4)]


def values(random, s, count):
    """float32 words of all kinds: near ties and the ends, of all magnitudes, and those that are no numbers."""
    n = random.integers(0, 2 * 2047 + 8, count)
    with np.errstate(over="ignore"):
        near = (n * (s / 2)).astype(np.float32).view(np.uint32).astype(np.int64) + random.integers(-1, 2, count)
    some = np.abs(random.normal(size=count) * s * 3).astype(np.float32).view(np.uint32)
    ends = np.array([0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF])
    any_ = random.integers(0, 1 << 31, count)
    chosen = np.choose(random.choice(5, count, p=[0.5, 0.3, 0.1, 0.05, 0.05]),
                       [np.abs(near), some, random.choice(ends[:4], count), random.choice(ends, count), any_])
    return ((chosen & 0x7FFFFFFF) | random.integers(0, 2, count) << 31).astype(np.uint32)


class Quantiser(Bench):
    async def begin(self, s):
        await self.start()
        self.dut.step.value = bfloat16(s)
        await self.reset(3)
        return self

    async def check(self, words, s, random, **patterns):
        """Quantises words [n, 8] and compares."""
        edges = random.integers(0, 1 << 9, len(words))
        q, outliers = prequantise.quantize(words.view(np.float32), s)
        words = np.where(outliers, random.integers(0, 1 << 32, words.shape, dtype=np.uint32), words)
        sent = walks.place(walks.lanes(words, 32, outliers), map(int, edges), 264)
        expected = walks.place(walks.lanes(q, 12, outliers), map(int, edges), 104)
        run = await self.run({"i": sent}, {"o": len(sent)}, random, **patterns)
        self.equal(run["o"], expected, f"integers at step {s}")
        return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_integers_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    s = steps(random)[-1]
    bench = await Quantiser(dut).begin(s)
    words = values(random, s, 8 * 30).reshape(-1, 8)
    await bench.check(words, s, random, idle=idle, stall=stall)


@cocotb.test
async def gives_goldens_integers_at_all_steps(dut):
    random = rng()
    for s in steps(random):
        bench = await Quantiser(dut).begin(s)
        words = values(random, s, 8 * 300)
        q, outliers = prequantise.quantize(words.view(np.float32), s)
        assert {0, 1, -1} <= set(q.tolist()) and outliers.any()
        await bench.check(words.reshape(-1, 8), s, random)


@cocotb.test
async def rounds_every_tie_as_the_formula_says(dut):
    """All q at the smallest significand, one at 255, and one in between: the tie, and its neighbours."""
    random = rng()
    for significand in (128, 255, int(random.integers(129, 255))):
        s = float(significand) * 2.0**-10
        ties = ((np.arange(2048) + 0.5) * s).astype(np.float32)
        words = np.concatenate([ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf))])
        words = np.concatenate([words, -words]).view(np.uint32).reshape(-1, 8)
        bench = await Quantiser(dut).begin(s)
        await bench.check(words, s, random)


@cocotb.test
async def takes_a_cycle_a_sector(dut):
    random = rng()
    bench = await Quantiser(dut).begin(0.5)
    words = (random.normal(size=(64, 8)) * 10).astype(np.float32).view(np.uint32)
    words[::2, 3] = 0x7FC00000
    run = await bench.check(words, 0.5, random)
    assert run.cycles["i"] == list(range(64))
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + 64))
