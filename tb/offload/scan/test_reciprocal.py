"""Bench of reciprocals: every k, equal to golden."""

import cocotb
import numpy as np
import pytest

from actcodec.golden.offload import scan
from actcodec.rtl.common.target import TARGETS
from actcodec.rtl.offload.scan.reciprocal import Reciprocal
from tb.common.resets import reset_empties
from tb.harness import PATTERNS, STALLS, Bench, rng, simulate

LATENCY = 1


@pytest.mark.parametrize("target", TARGETS)
def test_reciprocal(target):
    simulate(Reciprocal(), __file__, target=target)


async def check(bench, random, words, plain=0, idle="never", stall="never"):
    bench.dut.plain.value = plain
    run = await bench.run({"i": words.tolist()}, {"o": len(words)}, random, idle, stall)
    expected = words if plain else scan.reciprocal(words).view(np.uint32)
    bench.equal(run["o"], expected.tolist(), f"plain={plain} {idle} {stall}")
    return run


@cocotb.test
async def every_k(dut):
    """Every significand at exponents on all sides of what has no r, and every exponent; below them is anything."""
    random = rng()
    bench = await Bench.started(dut)
    halves = [sign << 15 | exponent << 7 | fraction for sign in (0, 1) for exponent in range(256)
              for fraction in (range(128) if exponent in (0, 1, 127, 252, 253, 254, 255) and not sign else (0, 1, 127))]
    words = (np.array(halves, np.uint32) << 16) | random.integers(0, 1 << 16, len(halves)).astype(np.uint32)
    run = await check(bench, random, words)
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(words)))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def any_port_may_rest(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for plain in (0, 1):
        await check(bench, random, random.integers(0, 1 << 32, 40).astype(np.uint32), plain, idle, stall)


@cocotb.test
async def is_empty_after_a_reset(dut):
    await reset_empties(dut)
