"""Bench of the divider of scales: every significand of k, at its first and last magnitude, equal to golden."""

from functools import cache

import cocotb
import numpy as np

from actcodec.golden.offload import scan
from actcodec.rtl.offload.scan.scale import CYCLES, Scale
from tb.harness import PATTERNS, STALLS, Bench, after, rng, simulate

LATENCY = 12


def test_scale():
    simulate(Scale(), __file__)


def expected(words):
    m = np.where(words < 1 << 23, 0, words).astype(np.uint32).view(np.float32)
    return (scan.scale(m).view(np.uint32) >> 16).tolist()


@cache
def boundaries():
    """The significands next to those at which k changes, on both sides; some of them are only there because k is
    rounded twice."""
    fraction = np.arange(1 << 23, dtype=np.uint32)
    k = scan.scale((fraction | 127 << 23).view(np.float32))
    steps = np.flatnonzero(k[1:] != k[:-1])
    # 144 / m is above 72, up to 144; neighbours are 1 apart from 128 on, and a half below.
    assert len(set(k.tolist())) == 1 + 16 + 112
    near = np.clip(steps[:, None] + np.arange(-1, 4), 0, (1 << 23) - 1).ravel()
    # 9 / 8, and what is more by one bit, any one: from there on the quotient is below 1.
    return np.unique(np.concatenate([near, 1 << 20 | 1 << np.arange(21)])).astype(np.uint32)


async def check(bench, random, words, idle="never", stall="never"):
    run = await bench.run({"i": words.tolist()}, {"o": len(words)}, random, idle, stall)
    bench.equal(run["o"], expected(words), f"{idle} {stall}")
    return run


@cocotb.test
@cocotb.parametrize(exponent=[8, 127])
async def every_significand(dut, exponent):
    random = rng()
    bench = await Bench.started(dut)
    await check(bench, random, boundaries() | np.uint32(exponent << 23))


@cocotb.test
async def every_exponent(dut):
    random = rng()
    bench = await Bench.started(dut)
    exponents = np.arange(255, dtype=np.uint32) << 23
    for fraction in (0, 0x100000, 0x100001, 0x7FFFFF):
        run = await check(bench, random, exponents | np.uint32(fraction))
    assert run.cycles["i"] == list(range(0, 255 * CYCLES, CYCLES))
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + 255 * CYCLES, CYCLES))


@cocotb.test
async def any_magnitude(dut):
    random = rng()
    bench = await Bench.started(dut)
    await check(bench, random, random.integers(0, 255 << 23, 300).astype(np.uint32))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def any_port_may_rest(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    await check(bench, random, random.integers(0, 255 << 23, 10).astype(np.uint32), idle, stall)


@cocotb.test
async def reset_ends_a_division(dut):
    random = rng()
    bench = await Bench.started(dut)
    for cycles in range(2 * CYCLES):
        await bench.run({"i": [0x3F800000] * 3}, {"o": None}, random, until=after(cycles))
        await bench.reset()
        await check(bench, random, random.integers(0, 255 << 23, 2).astype(np.uint32))
