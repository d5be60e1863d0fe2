"""How many of a tensor's blocks each CDU gets. Its bench is that of the plan."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.adders import halves

__all__ = ["BLOCKS", "Shares", "last"]

BLOCKS = 32  # bits of the number of blocks


def last(rest, cdus):
    """The CDU that has a tensor's last group, by the ``rest`` of its groups over that of the CDUs."""
    return Mux(rest == 0, cdus - 1, rest - 1)


class Shares(wiring.Component):
    """Deals groups of four blocks out to the CDUs in turn: the quotient for each, and of the rest one for some.

    Latency: 3 cycles from when the inputs stand. Combinational paths: none.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.

    Ports
    -----
    blocks : input
        All of them.
    quotient, rest : input
        Of the tensor's groups without the last one, if that has less than four blocks, by ``cdus``.
    shares : ``cdus`` outputs of 32 bits
    """

    def __init__(self, cdus):
        self.cdus = cdus
        super().__init__({"blocks": In(BLOCKS), "quotient": In(BLOCKS - 2), "rest": In(range(2 * cdus)),
                          "shares": Out(BLOCKS).array(cdus)})

    def elaborate(self, platform):
        m = Module()
        blocks, quotient, rest = self.blocks, self.quotient, self.rest
        partial, even = Signal(), Signal()  # the last group has less than four blocks; no rest
        # What one or some get in place of the quotient: one less if nothing is left, or else one more. Its carry, in
        # front of every share's multiplexer, gets two cycles.
        m.d.sync += even.eq(rest == 0)
        m.d.comb += partial.eq(blocks[:2] != 0)
        other = halves(m, quotient, Cat(1, even.replicate(BLOCKS - 3)))
        for c, share in enumerate(self.shares):
            final = last(rest, self.cdus) == c  # the last group is this CDU's
            short = final & partial
            m.d.sync += share.eq(Cat(blocks[:2] & final.replicate(2),
                                     Mux(Mux(even, short, (rest > c) & ~short), other, quotient)))
        return m
