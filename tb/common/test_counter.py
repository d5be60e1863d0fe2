"""Bench of the counter: sums that carry over all its digits."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.rtl.common.counter import Counter
from tb.harness import SEED, Bench, parameters, regress, rng, simulate


# With digits of 4 bits, carries pass all of them in reasonable time.
@pytest.mark.parametrize("amount_width, width, digit", [(1, 16, 4), *regress((1, 64, 16), (16, 64, 16))])
def test_counter(amount_width, width, digit):
    simulate(Counter(amount_width, width, digit), __file__, without=[] if digit == 4 else [clear_ends_what_carries],
             amount_width=amount_width, width=width, digit=digit)


@pytest.mark.parametrize("wrong, name", [
    ({"amount_width": 0}, "amount_width"), ({"amount_width": 17}, "amount_width"), ({"width": 8}, "width"),
    ({"width": 40}, "width"), ({"width": 0}, "width"), ({"digit": 0}, "digit"), ({"digit": 8.0}, "digit")])
def test_refuses_wrong_parameters(wrong, name):
    with pytest.raises(ValueError, match=f"{name} must be .*not {wrong[name]}"):
        Counter(**wrong)


@cocotb.test
async def adds_up(dut):
    bench, random = Bench(dut), rng()
    width, most = parameters()["width"], (1 << parameters()["amount_width"]) - 1
    await bench.start()
    largest = 0
    for case in range(3):
        dut.clear.value, dut.amount.value = 1, most
        await FallingEdge(dut.clk)
        dut.clear.value = 0
        # After the first time with the largest amounts: to nearly all ones in 16 bits, and beyond.
        least, beyond = [(0, 0), (0xfff0, 0xffff), (66000, 70000)][case]
        amounts = random.integers(most + 1, size=500) if case == 0 else [most] * int(random.integers(least, beyond))
        for amount in map(int, amounts) if case == 0 else [most]:
            dut.amount.value = amount
            await FallingEdge(dut.clk)
        if case:
            await ClockCycles(dut.clk, len(amounts) - 1)
            await FallingEdge(dut.clk)
        dut.amount.value = 0
        await ClockCycles(dut.clk, width // parameters()["digit"])
        await FallingEdge(dut.clk)
        total = sum(map(int, amounts))
        largest = max(largest, total)
        got = int(dut.value.value)
        assert got == total % (1 << width), f"SEED={SEED} case {case}: expected {total % (1 << width)}, got {got}"
    assert largest >> min(width, 32 if most > 1 else 16), "carries go beyond the first or second digit"


@cocotb.test
async def starts_anew_at_any_moment(dut):
    bench, random = Bench(dut), rng()
    width, digit, most = parameters()["width"], parameters()["digit"], (1 << parameters()["amount_width"]) - 1
    await bench.start()
    total = 0
    for case in range(60):
        for _ in range(int(random.integers(60))):
            amount, clear = int(random.integers(most + 1)), int(random.random() < 0.05)
            dut.amount.value, dut.clear.value = amount, clear
            total = 0 if clear else total + amount
            await FallingEdge(dut.clk)
        dut.clear.value = 0
        if case % 4 == 0:
            await bench.reset(1)
            total = 0
        dut.amount.value = 0
        await ClockCycles(dut.clk, width // digit)
        await FallingEdge(dut.clk)
        assert dut.value.value == total % (1 << width), f"SEED={SEED} case {case}"


@cocotb.test
async def clear_ends_what_carries(dut):
    bench, width, digit = Bench(dut), parameters()["width"], parameters()["digit"]
    await bench.start()
    for late in range(width // digit + 1):
        dut.amount.value = 1
        await ClockCycles(dut.clk, 1 << width - digit)
        await FallingEdge(dut.clk)
        dut.amount.value = 0
        for _ in range(late):
            await FallingEdge(dut.clk)
        dut.clear.value = 1
        await FallingEdge(dut.clk)
        dut.clear.value = 0
        await ClockCycles(dut.clk, width // digit)
        await FallingEdge(dut.clk)
        assert dut.value.value == 0, f"cleared {late} cycles after the last amount"
