"""Bench of the random numbers: golden's, for every seed, group and stride of groups, rows without a gap."""

import cocotb
import numpy as np
import pytest
from amaranth.lib import data
from cocotb.triggers import FallingEdge

from actcodec.golden.division import dither
from actcodec.rtl.division.config import Config
from actcodec.rtl.division.dither import Dither
from tb.division.tensors import SIZES
from tb.harness import STALLS, Bench, pack, parameters, regress, rng, simulate

LAYOUT = data.Layout.cast(Config)
FIRST = 10  # cycles from the one behind start to the first row


@pytest.mark.parametrize("bits", [SIZES, *regress(((3,),))])
def test_dither(bits):
    simulate(Dither(bits), __file__, bits=bits)


@pytest.mark.parametrize("bits", [(), (0,), (5,), (2, 8), 2, ("2",), (True,), None])
def test_other_bits_are_refused(bits):
    with pytest.raises(ValueError, match="bits must be one or more of 1, 2, 3 and 4"):
        Dither(bits)


def expected(bits, seed, group, step, rows, nearest=False):
    """Payloads of the first rows of every ``step``-th group from ``group`` on."""
    if nearest:
        return [pack([1 << 5 - bits] * 8, 5)] * rows
    groups = (group + step * np.arange(-(-rows // 32), dtype=np.uint64)).astype(np.uint32)
    numbers = dither.thresholds(dither.phases(groups, seed), bits).reshape(-1, 8)
    return [pack(row, 5) for row in numbers[:rows]]


class Thrower(Bench):
    async def numbers(self, random, rows, stall="never", nearest=False, **numbers):
        bits = int(random.choice(parameters()["bits"]))
        numbers = {"seed": int(random.integers(1 << 32)), "group": int(random.integers(1 << 32)),
                   "step": int(random.integers(1, 9))} | numbers
        self.dut.config.value = LAYOUT.const({"bits": bits - 1, "nearest": int(nearest)} | numbers).as_bits()
        self.dut.start.value = 1
        await FallingEdge(self.clk)
        self.dut.start.value = 0
        run = await self.run({}, {"noise": rows}, random, stall=stall)
        self.equal(run["noise"], expected(bits, rows=rows, nearest=nearest, **numbers), f"Q={bits} {numbers} {stall}")
        return run


@cocotb.test
@cocotb.parametrize(stall=STALLS)
async def gives_the_numbers_of_golden_however_they_are_taken(dut, stall):
    random = rng()
    bench = Thrower(dut)
    await bench.start()
    for rows in (1, 31, 32, 33, 64, 200):
        await bench.numbers(random, rows, stall)
        await bench.numbers(random, rows, stall, nearest=True)


@cocotb.test
async def gives_a_row_a_cycle(dut):
    random = rng()
    bench = Thrower(dut)
    await bench.start()
    for _ in range(10):
        run = await bench.numbers(random, 32 * 7 + 5)
        first = run.cycles["noise"][0]
        assert first == FIRST - 1
        assert run.cycles["noise"] == list(range(first, first + len(run["noise"])))


@cocotb.test
async def knows_seeds_and_groups_of_every_bit(dut):
    random = rng()
    bench = Thrower(dut)
    await bench.start()
    for bit in range(32):
        await bench.numbers(random, 70, seed=1 << bit, group=(1 << 32) - 1 >> bit, step=8)
        await bench.numbers(random, 70, seed=(1 << 32) - 1 >> bit, group=1 << bit, step=1)
    await bench.numbers(random, 70, seed=0, group=0)
    await bench.numbers(random, 70, seed=(1 << 32) - 1, group=(1 << 32) - 1)


@cocotb.test
async def starts_anew_whatever_it_was_doing(dut):
    random = rng()
    bench = Thrower(dut)
    await bench.start()
    for rest in range(50):
        await bench.numbers(random, 1 + rest)
        for _ in range(rest % 14):
            await FallingEdge(bench.clk)
    for rest in range(14):
        dut.start.value = 1
        await FallingEdge(bench.clk)
        dut.start.value = 0
        for _ in range(rest):
            await FallingEdge(bench.clk)
        await bench.numbers(random, 40)
