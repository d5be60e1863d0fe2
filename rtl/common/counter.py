"""Counters that are wide and fast: their carries take their time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Counter"]

DIGIT = 16  # bits that are added up in a cycle


class Counter(wiring.Component):
    """Adds up ``amount`` in every cycle.

    A carry goes from one digit of 16 bits to the next in a cycle, so that no adder is longer than that.

    Throughput: an amount a cycle. Latency: ``value`` is right once ``amount`` has been zero for ``width / 16`` cycles;
    until then, a carry may be missing. Combinational paths: none.

    Parameters
    ----------
    amount_width : int
        Bits of an amount, 1 to 16.
    width : int
        Bits of the sum, a multiple of 16; it wraps around.

    Ports
    -----
    amount : input
    clear : input
        Sets the value to zero; what is added in the same cycle is lost.
    value : output

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, amount_width=1, width=64):
        if amount_width not in range(1, DIGIT + 1):
            raise ValueError(f"amount_width must be 1 to {DIGIT}, not {amount_width!r}")
        if not isinstance(width, int) or width < DIGIT or width % DIGIT:
            raise ValueError(f"width must be a positive multiple of {DIGIT}, not {width!r}")
        super().__init__({"amount": In(amount_width), "clear": In(1), "value": Out(width)})

    def elaborate(self, platform):
        m = Module()
        carry = self.amount
        for low in range(0, len(self.value), DIGIT):
            digit = self.value[low : low + DIGIT]
            total = Signal(DIGIT + 1, name=f"total_{low}")
            over = Signal(name=f"over_{low}")
            m.d.comb += total.eq(digit + carry)
            m.d.sync += [digit.eq(total), over.eq(total[DIGIT])]
            with m.If(self.clear):
                m.d.sync += [digit.eq(0), over.eq(0)]
            carry = over
        return m
