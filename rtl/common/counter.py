"""Counters that are wide and fast: their carries take their time."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Counter"]


class Counter(wiring.Component):
    """Adds up ``amount`` in every cycle.

    A carry goes from one digit to the next in a cycle, so that no adder is longer than a digit.

    Throughput: an amount a cycle. Latency: ``value`` is right once ``amount`` has been zero for ``width / digit``
    cycles; until then, a carry may be missing. Combinational paths: none.

    Parameters
    ----------
    amount_width : int
        Bits of an amount, 1 to ``digit``.
    width : int
        Bits of the sum, a multiple of ``digit``; it wraps around.
    digit : int
        Bits that are added up in a cycle.

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

    def __init__(self, amount_width=1, width=64, digit=16):
        if not isinstance(digit, int) or digit < 1:
            raise ValueError(f"digit must be a positive integer, not {digit!r}")
        if type(amount_width) is not int or not 1 <= amount_width <= digit:
            raise ValueError(f"amount_width must be 1 to {digit}, not {amount_width!r}")
        if not isinstance(width, int) or width < digit or width % digit:
            raise ValueError(f"width must be a positive multiple of {digit}, not {width!r}")
        self._digit = digit
        super().__init__({"amount": In(amount_width), "clear": In(1), "value": Out(width)})

    def elaborate(self, platform):
        m = Module()
        carry = self.amount
        for low in range(0, len(self.value), self._digit):
            digit = self.value[low : low + self._digit]
            total = Signal(self._digit + 1, name=f"total_{low}")
            over = Signal(name=f"over_{low}")
            m.d.comb += total.eq(digit + carry)
            m.d.sync += [digit.eq(total), over.eq(total[self._digit])]
            with m.If(self.clear):
                m.d.sync += [digit.eq(0), over.eq(0)]
            carry = over
        return m
