"""Bench of the DCT: RTL against the golden model, bit for bit, in both directions."""

import cocotb
import numpy as np
import pytest

from actcodec.golden.jpegact import dct
from actcodec.rtl.jpegact.dct import Dct, Dct8
from tb.harness import PATTERNS, STALLS, Bench, beats, pack, parameters, regress, rng, simulate, target, unpack

LATENCY = {"cells": 20, "lut": 21}
I_WIDTH = {"both": 12, "forward": 8, "inverse": 12}
O_WIDTH = {"both": 17, "forward": 17, "inverse": 8}


@pytest.mark.parametrize("direction, target", [("both", "cells"), *regress(
    ("both", "lut"), ("forward", "cells"), ("inverse", "cells"))])
def test_dct(direction, target):
    simulate(Dct(direction), __file__, direction=direction, target=target)


@pytest.mark.parametrize("value", ["backward", None, 0])
def test_an_unknown_direction_is_refused(value):
    with pytest.raises(ValueError, match="direction"):
        Dct(value)


@pytest.mark.parametrize("parameter, value", [("width", 1), ("coefficient_width", 33), ("fraction", 11),
                                              ("direction", "up")])
def test_a_pass_refuses_what_is_out_of_range(parameter, value):
    with pytest.raises(ValueError, match=parameter):
        Dct8(**{parameter: value})


@pytest.mark.parametrize("others", [{}, {"fraction": 1}, {"fraction": 0, "width": 9, "coefficient_width": 9}], ids=str)
def test_a_pass_refuses_to_round_what_has_other_fraction_bits_or_too_few(others):
    with pytest.raises(ValueError, match="half must be False unless fraction is 0 and inputs have 10 bits or more"):
        Dct8(**others, half=True)


def directions():
    """The values of the input ``inverse`` that the component under test can serve."""
    return {"both": (0, 1), "forward": (0,), "inverse": (1,)}[parameters()["direction"]]


def stimulus(random, inverse, count):
    """Random blocks, among them the ones that reach the ends of every word."""
    if not inverse:
        blocks = random.integers(-128, 128, (count, 8, 8))
        extremes = [np.full((8, 8), -128), np.full((8, 8), 127), np.zeros((8, 8), int)]
        basis = np.cos((2 * np.arange(8) + 1)[:, None] * np.arange(8) * np.pi / 16)
        extremes += [np.where(np.outer(basis[:, a], basis[:, b]) > 0, 127, -128)
                     for a, b in random.integers(0, 8, (4, 2))]
    else:
        blocks = random.integers(-2048, 2048, (count, 8, 8)) >> random.integers(0, 12, (count, 1, 1))
        extremes = [np.full((8, 8), -2048), np.full((8, 8), 2047), np.zeros((8, 8), int)]
        extremes += [np.where(random.random((8, 8)) < 0.5, 2047, -2048) for _ in range(4)]
    for extreme in extremes[: max(0, count - 1)]:
        blocks[random.integers(count)] = extreme
    return blocks


async def check(bench, random, inverse, blocks, idle="never", stall="never"):
    """One tensor through the unit, compared beat by beat. The coefficient side is transposed: it carries columns."""
    direction = parameters()["direction"]
    bench.dut.inverse.value = inverse
    if inverse:
        sent, expected = blocks.transpose(0, 2, 1), dct.inverse(blocks)
    else:
        sent, expected = blocks, dct.forward(blocks.astype(np.int8)).transpose(0, 2, 1)
    run = await bench.run({"i": beats(sent, I_WIDTH[direction])}, {"o": 8 * len(blocks)}, random, idle, stall)
    got, width = run["o"], O_WIDTH[direction]
    if inverse:  # of a value only the low 8 bits mean anything
        got = [pack(unpack(beat, width, 8), 8) | beat >> 8 * width << 64 for beat in got]
        width = 8
    bench.equal(got, beats(expected, width), f"inverse={inverse}, {len(blocks)} blocks")
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden(dut, idle, stall):
    random = rng()
    bench = await Bench.started(dut)
    for count in (1, 2, 9):
        for inverse in directions():
            await check(bench, random, inverse, stimulus(random, inverse, count), idle, stall)


@cocotb.test
async def equals_golden_on_many_blocks(dut):
    random, latency = rng(), LATENCY[target()]
    bench = await Bench.started(dut)
    for inverse in directions():
        run = await check(bench, random, inverse, stimulus(random, inverse, 600))
        assert run.cycles["i"] == list(range(4800)), "a vector enters in every cycle"
        assert run.cycles["o"] == list(range(latency, latency + 4800)), "and one leaves in every cycle"


@cocotb.test
async def saturates_at_both_ends(dut):
    random = rng()
    bench = await Bench.started(dut)
    if 1 in directions():
        blocks = np.zeros((4, 8, 8), int)
        blocks[0, 0, 0], blocks[1, 0, 0], blocks[2, 3, 3], blocks[3, 3, 3] = 1200, -1200, 2047, -2048
        values = dct.inverse(blocks)
        assert values.min() == -128 and values.max() == 127
        await check(bench, random, 1, blocks)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Bench.started(dut)
    for fill in (1, 7, 8, 13, 40):
        for inverse in directions():
            dut.inverse.value = inverse
            junk = beats(stimulus(random, inverse, 5), I_WIDTH[parameters()["direction"]])[:fill]
            await bench.run({"i": junk}, {"o": None}, random)
            await bench.reset()
            await check(bench, random, inverse, stimulus(random, inverse, 3))
