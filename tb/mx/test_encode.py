"""Bench of MX's encoder: sectors to the chunks of blocks, in all element formats and rules, and what it counts."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.mx import element, path
from actcodec.golden.mx.scale import GROUP, RULES
from actcodec.rtl.mx.element import FORMATS
from actcodec.rtl.mx.encode import LATENCY, Encode
from tb.harness import PATTERNS, SEED, STALLS, Bench, pack, parameters, rng, simulate
from tb.mx import tensors


def test_encode():
    simulate(Encode(), __file__, formats=list(FORMATS))


@pytest.mark.parametrize("form", [pytest.param(form, marks=[] if form == "e4m3" else pytest.mark.regress)
                                  for form in FORMATS])
def test_encode_of_one_format(form):
    simulate(Encode((form,)), __file__, formats=[form])


@pytest.mark.parametrize("elements", [(), ("e8m0",), "int8", None])
def test_wrong_elements(elements):
    with pytest.raises(ValueError, match=r"elements must be one or more of int8, e4m3, .*, in a tuple, not"):
        Encode(elements)


def chunks(x, form, rule):
    """The beats of blocks of values."""
    coder = getattr(path, form.title())()
    payload, _ = coder.encode(x, {"rule": RULES.index(rule)})
    most = max(element.FORMATS[name].width for name in parameters()["formats"])
    width, beats = coder.form.width, []
    for block in payload.reshape(-1, coder.shortest):
        for row in range(8):
            data = block[0 if row == 0 else path.HEAD + width * row : path.HEAD + width * (row + 1)].tobytes()
            beats.append(int.from_bytes(data, "little") | len(data) << 8 * (2 + most))
    beats[-1] |= 1 << 8 * (2 + most) + (2 + most).bit_length()
    return beats


async def check(bench, random, x, form, rule, idle="never", stall="never"):
    """A tensor of blocks: its chunks, and its counts."""
    formats = parameters()["formats"]
    bench.dut.format.value, bench.dut.rule.value = formats.index(form), RULES.index(rule)
    await bench.pulse("clear")
    await ClockCycles(bench.clk, 2)
    sectors = x.reshape(-1, 8).view(np.uint32)
    expected = chunks(x, form, rule)
    beats = [pack(row, 32) | (k == len(sectors) - 1) << 256 for k, row in enumerate(sectors)]
    run = await bench.run({"i": beats}, {"chunks": len(expected)}, random, idle, stall)
    bench.equal(run["chunks"], expected, f"{form} {rule} {x.shape}")
    await ClockCycles(bench.clk, 3)
    await FallingEdge(bench.clk)
    counts = path.counts(x.reshape(-1, GROUP), element.FORMATS[form], rule)
    got = int(bench.dut.nans.value), int(bench.dut.saturated.value)
    assert got == counts, f"SEED={SEED} {form} {rule}: NaNs and saturated {got}, not {counts}"
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for _ in range(6):
        form, rule = random.choice(parameters()["formats"]), random.choice(RULES)
        await check(bench, random, tensors.blocks(random, int(random.integers(1, 8))), form, rule, idle, stall)


@cocotb.test
async def every_format_and_rule_meets_every_corner(dut):
    random = rng()
    bench = await Bench.started(dut)
    for form in parameters()["formats"]:
        for rule in RULES:
            await check(bench, random, tensors.corners(element.FORMATS[form]), form, rule)
            await check(bench, random, tensors.blocks(random, 150), form, rule)


@cocotb.test
async def every_bit_below_a_tie_counts(dut):
    """In every lane."""
    random = rng()
    bench = await Bench.started(dut)
    for form in parameters()["formats"]:
        ties = 127 << 23 | 1 << 22 - element.FORMATS[form].mantissa
        beyond = ties | 1 << np.arange(22 - element.FORMATS[form].mantissa)
        x = np.repeat(beyond.astype(np.uint32).view(np.float32), GROUP * 2).reshape(-1, GROUP * 2)
        await check(bench, random, x, form, random.choice(RULES))


@cocotb.test
async def what_is_largest_counts_beside_infinities(dut):
    """In every lane, where the rest of its sector has no magnitude."""
    random = rng()
    bench = await Bench.started(dut)
    for form in parameters()["formats"]:
        x = random.normal(0, 0.01, (16, 64)).astype(np.float32)
        groups = x.reshape(-1, 4, 8)
        for k, group in enumerate(groups):
            row = group[random.integers(4)]
            row[:] = random.choice([np.inf, -np.inf], 8)
            row[k % 8] = random.uniform(1, 16)
        await check(bench, random, x, form, random.choice(RULES))


@cocotb.test
async def a_sector_moves_in_every_cycle(dut):
    """8.00 cycles a block; the first chunk is there when nine sectors have come in after its own."""
    random = rng()
    bench = await Bench.started(dut)
    x = tensors.blocks(random, 12)
    run = await check(bench, random, x, parameters()["formats"][0], "rceil")
    assert np.ptp(run.cycles["i"]) == 95 and np.ptp(run.cycles["chunks"]) == 95
    assert run.cycles["chunks"][0] - run.cycles["i"][0] == LATENCY


@cocotb.test
async def counters_are_those_of_all_bits(dut):
    """In every lane, with any number of lanes at once, and beyond the lower half of a counter."""
    random = rng()
    bench = await Bench.started(dut)
    form = parameters()["formats"][-1]
    for lane in range(8):
        x = np.ones((40, 64), np.float32)
        x.reshape(-1, 8)[::3, lane] = np.nan
        x.reshape(-1, 8)[1::3, lane] = -np.inf
        await check(bench, random, x, form, "floor")
    for value in np.nan, np.inf:
        x = np.where(random.random((40, 64)) < 0.5, value, 1).astype(np.float32)
        await check(bench, random, x, form, "floor")
    await check(bench, random, np.full((1100, 64), np.nan, np.float32), form, "even")
    await check(bench, random, np.full((1100, 64), np.inf, np.float32), form, "even")


@cocotb.test
async def a_reset_forgets_what_is_inside(dut):
    random = rng()
    bench = await Bench.started(dut)
    for rows in (1, 3, 4, 7, 8, LATENCY):
        x = tensors.blocks(random, 2)
        await bench.run({"i": [pack(row, 32) for row in x.reshape(-1, 8).view(np.uint32)[:rows]]}, {}, random)
        await bench.reset()
        await check(bench, random, tensors.blocks(random, 2), parameters()["formats"][0], "rceil")
