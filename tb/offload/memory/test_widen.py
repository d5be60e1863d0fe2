"""Bench of widening: every word of every format in every lane, equal to golden."""

import cocotb
import numpy as np
import pytest

from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.memory.formats import Format
from actcodec.rtl.offload.memory.widen import Widen
from tb.common.resets import reset_empties
from tb.harness import PATTERNS, STALLS, Bench, pack, regress, rng, simulate, unpack
from tb.offload.memory.passing import codes_pass, float32_passes

EVERY = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16)
LATENCY = 1


def test_widen():
    simulate(Widen(), __file__, without=[passes_codes])


@pytest.mark.regress
@pytest.mark.parametrize("beside", [["bfloat16", "float16"], *regress([], ["float16"])], ids=len)
def test_widen_with_codes(beside):
    simulate(Widen((*beside, "int8"), counts=not beside), __file__,
             [passes_codes, passes_float32, *[equals_golden] * (len(beside) > 1)], counts=not beside)


@pytest.mark.parametrize("wrong", [(), Format.FLOAT16, ("float32",), ("float16", 2), "float16"])
def test_other_formats_are_refused(wrong):
    with pytest.raises(ValueError, match=r"formats must be one or more of bfloat16, float16, int8, in a tuple, not"):
        Widen(wrong)


def sectors(random, words):
    """Sectors of eight 16-bit words each, with anything above them."""
    above = random.integers(0, 1 << 16, (len(words) // 8, 8)).astype(np.uint16)
    return [pack(sector, 16) for sector in np.hstack([words.reshape(-1, 8), above])]


async def check(bench, random, words, form, plain, idle="never", stall="never"):
    bench.dut.format.value, bench.dut.plain.value = Format[form.upper()].value, plain
    expected = words.astype(np.uint32) if plain else formats.widen(words, form).view(np.uint32)
    run = await bench.run({"i": sectors(random, words)}, {"o": len(words) // 8}, random, idle, stall)
    bench.equal(np.ravel([unpack(sector, 32, 8) for sector in run["o"]]), expected, f"{form} plain={plain}")
    return run


@cocotb.test
@cocotb.parametrize(form=list(formats.HALVES))
async def widens_every_word_in_every_lane(dut, form):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for lane in range(8):
        run = await check(bench, random, np.roll(EVERY, lane), form, 0)
        assert run.cycles["o"] == list(range(LATENCY, LATENCY + len(run["o"])))


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    for form in formats.HALVES:
        for plain in (0, 1):
            await check(bench, random, random.permutation(EVERY)[:800], form, plain, idle, stall)


@cocotb.test
@cocotb.parametrize(plain=[0, 1])
async def passes_codes(dut, plain):
    def sectors(random, codes):
        above = random.integers(0, 256, (codes.size // 8, 24)).astype(np.uint8)
        return [pack(sector, 8) for sector in np.hstack([codes.reshape(-1, 8), above])]

    await codes_pass(dut, plain, LATENCY, sectors, 32)


@cocotb.test
@cocotb.parametrize(plain=[0, 1])
async def passes_float32(dut, plain):
    await float32_passes(dut, plain)


@cocotb.test
async def is_empty_after_a_reset(dut):
    await reset_empties(dut)
