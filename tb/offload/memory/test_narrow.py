"""Bench of rounding to the formats of memory: every boundary and what lies around it, equal to golden."""

import cocotb
import numpy as np
import pytest

from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.memory.formats import Format
from actcodec.rtl.offload.memory.narrow import Narrow
from tb.common.resets import reset_empties
from tb.harness import PATTERNS, STALLS, Bench, pack, regress, rng, simulate, unpack
from tb.offload.memory.passing import codes_pass, float32_passes

MANTISSA = {"bfloat16": 7, "float16": 10}
LATENCY = 1


def test_narrow():
    simulate(Narrow(), __file__, without=[passes_codes])


@pytest.mark.regress
@pytest.mark.parametrize("beside", [["bfloat16", "float16"], *regress([], ["bfloat16"])], ids=len)
def test_narrow_with_codes(beside):
    simulate(Narrow((*beside, "int8")), __file__,
             [passes_codes, passes_float32, *[equals_golden] * (len(beside) > 1)])


@pytest.mark.parametrize("wrong", [(), Format.FLOAT16, ("float32",), ("float16", 2), "float16"])
def test_other_formats_are_refused(wrong):
    with pytest.raises(ValueError, match=r"formats must be one or more of bfloat16, float16, int8, in a tuple, not"):
        Narrow(wrong)


def around(random, form):
    """Numbers of a format, float32 halfway between neighbours, and the float32 before and after each: around all
    exponents, with a few mantissas each, the least and the greatest among them; all of float16's subnormal numbers."""
    step, exponents = 1 << 22 - MANTISSA[form], np.arange(512, dtype=np.uint64) << 23
    most = 2 << MANTISSA[form]
    few = [0, 1, 2, 3, *random.integers(0, most, 8), most - 2, most - 1]
    points = (exponents[:, None] + step * np.array(few, np.uint64)).ravel()
    subnormal = (np.arange(2049) * 2.0**-25).astype(np.float32).view(np.uint32)
    points = np.concatenate([points, subnormal, subnormal | np.uint32(1 << 31)]).astype(np.int64)
    bits = np.unique((points[:, None] + [-1, 0, 1]) & 0xFFFF_FFFF).astype(np.uint32)
    halfway = random.integers(113, 143, (64, 1)) << 23 | random.integers(most, size=(64, 1)) << 22 - MANTISSA[form]
    beyond = halfway | 1 << np.arange(22 - MANTISSA[form])  # by a single bit, in any lane
    ties = subnormal[1::2][np.append(np.arange(32), random.integers(1024, size=32))].astype(np.int64)[:, None]
    beyond = np.append(beyond, ties | 1 << np.arange(22))
    special = np.repeat(0xFF << 23 | np.append(0, 1 << np.arange(23)), 64)  # infinities, and NaNs by a single bit
    return random.permutation(np.concatenate([bits, beyond, special]).astype(np.uint32)).view(np.float32)


def random_values(random, count):
    """Bit patterns of any kind, and numbers around float16's range."""
    patterns = random.integers(0, 1 << 32, count).astype(np.uint32).view(np.float32)
    numbers = np.ldexp(random.normal(0, 1, count), random.integers(-30, 20, count)).astype(np.float32)
    return np.where(random.random(count) < 0.3, patterns, numbers)


async def check(bench, random, x, form, plain, idle="never", stall="never"):
    bench.dut.format.value, bench.dut.plain.value = Format[form.upper()].value, plain
    x = x[: x.size // 8 * 8]
    bits = x.view(np.uint32)
    expected = bits.astype(np.uint16) if plain else formats.narrow(x, form)
    stream = [pack(sector, 32) for sector in bits.reshape(-1, 8)]
    run = await bench.run({"i": stream}, {"o": len(stream)}, random, idle, stall)
    got = np.ravel([unpack(sector, 16, 16)[:8] for sector in run["o"]])
    wrong = np.flatnonzero(got != expected)
    bench.equal(got, expected, f"{form} plain={plain}" + (f", of {bits[wrong[0]]:#x}" if wrong.size else ""))
    return run


@cocotb.test
@cocotb.parametrize(form=list(formats.HALVES))
async def rounds_around_every_boundary(dut, form):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    x = around(random, form)
    run = await check(bench, random, x, form, 0)
    assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(run["o"])))
    # Every kind of result: zeros, subnormal and normal numbers that were rounded up and down, infinity, NaN.
    words = formats.narrow(x, form)
    back, magnitude = formats.widen(words, form), words & 0x7FFF
    smallest = 1 << MANTISSA[form]
    kinds = {(kind, way) for kind, is_kind in (("zero", magnitude == 0), ("small", (magnitude > 0) & (
        magnitude < smallest)), ("normal", (magnitude >= smallest) & np.isfinite(back)), ("infinite", np.isinf(back)))
        for way, goes in (("up", abs(back) > abs(x)), ("down", abs(back) < abs(x)), ("same", back == x))
        if (is_kind & goes).any()}
    wanted = {(kind, way) for kind in ("zero", "small", "normal", "infinite") for way in ("up", "down", "same")}
    assert kinds == wanted - {("zero", "up"), ("infinite", "down")} and np.isnan(back).any()


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for form in formats.HALVES:
        for plain in (0, 1):
            await check(bench, random, random_values(random, 800), form, plain, idle, stall)


@cocotb.test
@cocotb.parametrize(plain=[0, 1])
async def passes_codes(dut, plain):
    def sectors(random, codes):
        words = codes | random.integers(0, 1 << 24, codes.size).astype(np.uint32) << 8
        return [pack(sector, 32) for sector in words.reshape(-1, 8)]

    await codes_pass(dut, plain, LATENCY, sectors, 8)


@cocotb.test
@cocotb.parametrize(plain=[0, 1])
async def passes_float32(dut, plain):
    await float32_passes(dut, plain)


@cocotb.test
async def is_empty_after_a_reset(dut):
    await reset_empties(dut)
