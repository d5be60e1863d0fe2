"""Bench of MX's decoder: every element with every scale, in all formats."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles

from actcodec.golden.mx import element, path
from actcodec.rtl.mx.decode import Decode
from actcodec.rtl.mx.element import FORMATS
from tb.harness import PATTERNS, STALLS, Bench, pack, parameters, rng, simulate


def test_decode():
    simulate(Decode(), __file__, formats=list(FORMATS))


@pytest.mark.parametrize("form", [pytest.param(form, marks=[] if form == "e4m3" else pytest.mark.regress)
                                  for form in FORMATS])
def test_decode_of_one_format(form):
    simulate(Decode((form,)), __file__, formats=[form])


def test_wrong_elements():
    with pytest.raises(ValueError, match=r"elements must be one or more of int8, e4m3, .*, in a tuple, not"):
        Decode(("e8m0",))


async def check(bench, random, scale, codes, form, idle="never", stall="never"):
    """Blocks of scales [n, 2] and codes [n, 64], both uint8."""
    formats, one = parameters()["formats"], element.FORMATS[form]
    most = max(element.FORMATS[name].width for name in formats)
    bench.dut.format.value = formats.index(form)
    await ClockCycles(bench.clk, 2)
    x = element.decode(codes.reshape(-1, 2, 32), scale[..., None], one).reshape(-1, 8).view(np.uint32)
    rows = []
    for k, row in enumerate(codes.reshape(-1, 8)):
        block, place = divmod(k, 8)
        data = path.pack(row, one.width).tobytes() + random.bytes(most - one.width)  # behind a row there is anything
        mask = random.integers(256) if place % 4 else scale[block, place // 4]
        rows.append(int.from_bytes(data, "little") | int(mask) << 8 * most)
    rows[-1] |= 1 << 8 * most + 8
    expected = [pack(row, 32) | (k == len(x) - 1) << 256 for k, row in enumerate(x)]
    run = await bench.run({"rows": rows}, {"o": len(expected)}, random, idle, stall)
    bench.equal(run["o"], expected, form)
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for form in parameters()["formats"]:
        n = int(random.integers(1, 6))
        codes = random.integers(0, 1 << element.FORMATS[form].width, (n, 64), np.uint8)
        await check(bench, random, random.integers(0, 256, (n, 2), np.uint8), codes, form, idle, stall)


@cocotb.test
async def every_element_meets_every_scale(dut):
    random = rng()
    bench = await Bench.started(dut)
    for form in parameters()["formats"]:
        width = element.FORMATS[form].width
        codes = np.pad(np.arange(1 << width), (0, max(64 - (1 << width), 0)), mode="wrap").astype(np.uint8)
        codes = np.concatenate([np.roll(codes, k).reshape(-1, 64) for k in range(256)])  # so in every lane, too
        scale = np.repeat(np.arange(256), len(codes) // 256).astype(np.uint8)
        run = await check(bench, random, np.stack([scale, scale[::-1]], axis=1), codes, form)
        await check(bench, random, np.stack([scale[::-1], scale], axis=1), codes, form)
        assert np.ptp(run.cycles["o"]) == 8 * len(codes) - 1 and run.cycles["o"][0] - run.cycles["rows"][0] == 2


@cocotb.test
async def what_is_missing_is_zero(dut):
    random = rng()
    bench = await Bench.started(dut)
    dut.empty.value = 1
    for form in parameters()["formats"]:
        dut.format.value = parameters()["formats"].index(form)
        await ClockCycles(bench.clk, 2)
        most = max(element.FORMATS[name].width for name in parameters()["formats"])
        run = await bench.run({"rows": [(1 << 8 * most + 8) - 1] * 16}, {"o": 16}, random)
        bench.equal(run["o"], [0] * 16, form)
