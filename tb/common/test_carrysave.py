"""Carry-save sums: the digits of every constant, and dot products through the tree, against plain integers."""

import cocotb
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from cocotb.triggers import Timer

from rtl.common import carrysave
from tb.harness import SEED, pack, parameters, rng, simulate

COEFFICIENTS = [1, -1, 355, -2408, 1609, 4095, -4096, 565]
WIDTH, BITS = 11, 30


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


@pytest.mark.parametrize("constant", [0, 1024, -77])
def test_dot_products(constant):
    simulate(Dot(constant), __file__, constant=constant)


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
