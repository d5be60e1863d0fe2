"""Carry-save sums: the digits of every constant, and dot products through the tree, against plain integers."""

from itertools import pairwise

import cocotb
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import Timer

from actcodec.rtl.common import carrysave
from tb.harness import SEED, pack, parameters, regress, rng, simulate

COEFFICIENTS = [1, -1, 355, -2408, 1609, 4095, -4096, 565]
WIDTH, BITS = 11, 30
HEIGHTS = [1, 2, 1, 3, 2, 4, 3, 5, 5, 5, 7, 9, 0, 1, 3, 12, 2, 0, 0, 2, 2, 4]


class Dot(wiring.Component):
    """Sum of eight signed values times COEFFICIENTS plus a constant, modulo 2**BITS."""

    i: In(data.ArrayLayout(signed(WIDTH), 8))
    o: Out(signed(BITS))

    def __init__(self, constant):
        self.constant = constant
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        terms = [(sign, self.i[k], shift) for k, coefficient in enumerate(COEFFICIENTS)
                 for sign, _, shift in carrysave.digits(coefficient)]
        rows = carrysave.rows(terms, self.constant, BITS)
        rows = carrysave.reduce(m, rows, BITS, carrysave.levels(len(rows)))
        assert len(rows) == 2
        m.d.comb += self.o.eq(rows[0] + rows[1])
        return m


class Bits(wiring.Component):
    """Sum of as many bits of each weight as HEIGHTS says, modulo 2**len(HEIGHTS), and what is left of each."""

    i: In(sum(HEIGHTS))
    o: Out(len(HEIGHTS))

    def __init__(self, single):
        self.single = single
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        places = [sum(HEIGHTS[:k]) for k in range(len(HEIGHTS) + 1)]
        bits = [list(self.i[low:high]) for low, high in pairwise(places)]
        columns = carrysave.reduced(m, bits, self.single)
        assert len(columns) == len(bits) and all(len(column) <= 2 for column in columns)
        assert all(len(column) <= 1 for column in columns[: self.single])
        m.d.comb += self.o.eq(sum(bit << k for k, column in enumerate(columns) for bit in column))
        return m


@pytest.mark.parametrize("constant", [-77, *regress(0, 1024)])
def test_dot_products(constant):
    simulate(Dot(constant), __file__, [equals_integers], constant=constant)


@pytest.mark.parametrize("single", [6, *regress(0, len(HEIGHTS))])
def test_columns(single):
    simulate(Bits(single), __file__, [adds_bits_up])


@pytest.mark.parametrize("odd", [(1,), (1, 3)])
def test_digits_add_up_and_are_no_more_than_the_signed_digit_form_has(odd):
    for number in range(-3000, 3001):
        digits = carrysave.digits(number, odd)
        assert sum(sign * m << shift for sign, m, shift in digits) == number
        assert {m for _, m, _ in digits} <= set(odd)
        assert len(digits) <= len(carrysave.digits(number)) <= (abs(number).bit_length() + 2) // 2


def test_levels_are_those_of_wallace():
    assert [carrysave.levels(count) for count in (2, 3, 4, 6, 9, 13, 19, 28)] == list(range(8))


@cocotb.test
async def equals_integers(dut):
    random = rng()
    ends = [-(1 << (WIDTH - 1)), (1 << (WIDTH - 1)) - 1, 0, -1, 1]
    for index in range(2000):
        values = random.choice(ends, 8) if index % 4 == 0 else random.integers(ends[0], ends[1] + 1, 8)
        dut.i.value = pack(values, WIDTH)
        await Timer(1, "ns")
        expected = sum(int(a) * b for a, b in zip(values, COEFFICIENTS, strict=True)) + parameters()["constant"]
        assert int(dut.o.value.to_signed()) == expected, f"SEED={SEED} index {index}: {values}"


@cocotb.test
async def adds_bits_up(dut):
    random = rng()
    weights = [weight for weight, height in enumerate(HEIGHTS) for _ in range(height)]
    for index in range(2000):
        bits = (random.random(len(weights)) < random.choice([0.05, 0.5, 0.95, 1])).astype(int).tolist()
        dut.i.value = sum(bit << k for k, bit in enumerate(bits))
        await Timer(1, "ns")
        expected = sum(bit << weight for bit, weight in zip(bits, weights, strict=True)) % (1 << len(HEIGHTS))
        assert int(dut.o.value) == expected, f"SEED={SEED} index {index}: {bits}"
