"""Bench of the histogram: golden's counts, whatever follows what, and saturation."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.golden.comet import book
from actcodec.rtl.comet.histogram import BINS, Histogram
from tb.harness import Bench, pack, parameters, regress, rng, simulate


@pytest.mark.parametrize("width", [6, *regress(24)])
def test_histogram(width):
    simulate(Histogram(width), __file__, without=[] if width == 24 else [saturates], width=width,
             inside={saturates: [f"bin_{k}" for k in range(BINS)]})


@pytest.mark.parametrize("width", [0, 33, True, 24.0])
def test_refuses_wrong_parameters(width):
    with pytest.raises(ValueError, match="width must be"):
        Histogram(width)


def top():
    return (1 << parameters()["width"]) - 1


def expected(u):
    """Golden's counts, which the bits of a count may cut."""
    return np.minimum(book.histogram(u, sampled=True), top()).tolist()


async def prepared(dut):
    bench = Bench(dut)
    await bench.start()
    await FallingEdge(dut.clk)  # in which reset still clears the bins
    return bench


async def clear(dut):
    dut.clear.value = 1
    await FallingEdge(dut.clk)
    dut.clear.value = 0


async def count(dut, rounds, random, gaps):
    for row in rounds:
        while random.random() < gaps:
            await FallingEdge(dut.clk)
        dut.symbols.value, dut.valid.value = pack(map(int, row), 12), 1
        await FallingEdge(dut.clk)
        dut.valid.value = 0


async def counts(dut):
    await ClockCycles(dut.clk, 4)
    await FallingEdge(dut.clk)
    result = []
    for k in range(BINS):
        dut.bin.value = k
        await ClockCycles(dut.clk, 2)
        await FallingEdge(dut.clk)
        result.append(int(dut.value.value))
    return result


@cocotb.test
@cocotb.parametrize(gaps=[0, 0.5, 0.9])
async def counts_what_golden_counts(dut, gaps):
    random = rng()
    bench = await prepared(dut)
    for kind in range(4):
        u = [random.integers(0, 4096, 2000), np.minimum(random.geometric(0.3, 2000), 4095),
             random.integers(0, 2, 2000) * 4095, np.exp2(random.random(2000) * 12).astype(int) % 4096][kind]
        await count(dut, u.reshape(-1, 8), random, gaps)
        bench.equal(await counts(dut), expected(u), f"counts, kind {kind}")
        await clear(dut)
        assert not any(await counts(dut))


@cocotb.test
async def gives_each_symbol_its_bin(dut):
    random = rng()
    bench = await prepared(dut)
    u = np.repeat(random.permutation(4096), 8)
    await count(dut, u.reshape(-1, 8), random, 0)
    bench.equal(await counts(dut), expected(u), "counts")
    await bench.reset()
    assert not any(await counts(dut))


@cocotb.test
async def counts_nothing_that_passes_with_clear_or_has_just_before(dut):
    random = rng()
    await prepared(dut)
    for gap in range(5):
        await count(dut, random.integers(0, 4096, (4, 8)), random, 0)
        for _ in range(gap):
            await FallingEdge(dut.clk)
        dut.symbols.value, dut.valid.value = pack(random.integers(0, 4096, 8).tolist(), 12), 1
        await clear(dut)
        dut.valid.value = 0
        assert not any(await counts(dut))


@cocotb.test
async def counts_every_bin_to_its_top(dut):
    """One bin at a time, and on, where a count is short enough."""
    random = rng()
    bench = await prepared(dut)
    for times in [20, *([64] if top() < 64 else [])]:
        u = np.repeat([k if k < 16 else 2 + k % 2 << (k - 16) // 2 + 3 for k in random.permutation(BINS)], 8 * times)
        await count(dut, u.reshape(-1, 8), random, 0)
        result = await counts(dut)
        bench.equal(result, expected(u), f"counts of {times} each")
        assert len(set(result)) == 1
        await clear(dut)


@cocotb.test
async def saturates(dut):
    random = rng()
    await prepared(dut)
    dut.bin_3.value, dut.bin_4.value = top() - 2, top() - 2
    await count(dut, np.full((5, 8), 3), random, 0)
    await count(dut, np.full((2, 8), 4), random, 0)
    result = await counts(dut)
    assert result[3:5] == [top()] * 2
    await count(dut, np.full((1, 8), 4), random, 0)
    assert (await counts(dut))[3:5] == [top()] * 2
