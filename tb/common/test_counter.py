"""Bench of the counter: sums that carry over all its digits."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from rtl.common.counter import Counter
from tb.harness import SEED, Bench, parameters, rng, simulate


@pytest.mark.parametrize("amount_width, width", [(1, 16), (1, 64), (16, 64)])
def test_counter(amount_width, width):
    simulate(Counter(amount_width, width), __file__, amount_width=amount_width, width=width)


@pytest.mark.parametrize("wrong, name", [
    ({"amount_width": 0}, "amount_width"), ({"amount_width": 17}, "amount_width"), ({"width": 8}, "width"),
    ({"width": 40}, "width"), ({"width": 0}, "width")])
def test_refuses_wrong_parameters(wrong, name):
    with pytest.raises(ValueError, match=f"{name} must be .*not {wrong[name]}"):
        Counter(**wrong)


@cocotb.test
async def adds_up(dut):
    bench, random = Bench(dut), rng()
    width, most = parameters()["width"], (1 << parameters()["amount_width"]) - 1
    await bench.start()
    largest = 0
    for case in range(4):
        dut.clear.value, dut.amount.value = 1, most
        await FallingEdge(dut.clk)
        dut.clear.value = 0
        # All but the first time the sum is taken beyond a digit, with the largest amounts.
        amounts = random.integers(most + 1, size=500) if case == 0 else [most] * int(random.integers(66000, 70000))
        for amount in map(int, amounts) if case == 0 else [most]:
            dut.amount.value = amount
            await FallingEdge(dut.clk)
        if case:
            await ClockCycles(dut.clk, len(amounts) - 1)
            await FallingEdge(dut.clk)
        dut.amount.value = 0
        await ClockCycles(dut.clk, width // 16 + 1)
        await FallingEdge(dut.clk)
        total = sum(map(int, amounts))
        largest = max(largest, total)
        got = int(dut.value.value)
        assert got == total % (1 << width), f"SEED={SEED} case {case}: expected {total % (1 << width)}, got {got}"
    assert largest >> min(width, 32 if most > 1 else 16), "carries go beyond the first or second digit"
