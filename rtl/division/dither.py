"""Stochastic rounding: what is added to each value before it is cut to a code."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from actcodec.rtl.division.config import Coded

__all__ = ["Dither", "noise"]

BITS = 5  # of a random number
LANE = (0, 0, 16, 16, 24, 24, 8, 8)  # thresholds of four lanes lie in the four quarters of a step
ROUNDS = 8

noise = data.ArrayLayout(BITS, 8)  # for the lanes of a row: 0 to 2^(6 - Q) - 1


def _xorshift(m, s):
    """Marsaglia's generator of 32 bits, one step."""
    for shift in (13, -17, 5):
        step = Signal(32, name="xorshift")
        m.d.comb += step.eq(s ^ (s << shift)[:32] if shift > 0 else s ^ (s >> -shift))
        s = step
    return s


class Dither(Coded):
    """Two random numbers for each row of a group, one for the even lanes and one for the odd ones; to round to nearest,
    half a step for all.

    A hash of the seed and of the group's number starts a generator that steps once a row. While a group is under way,
    the hash of the next one is made, a round a cycle.

    Throughput: a row a cycle. Latency: the first row is there 11 cycles after ``start``. Buffering: the hash of a
    group. Combinational paths: none.

    Source: DIVISION, section 4.1, footnotes 8 and 9.

    Parameters
    ----------
    bits : tuple of int
        Of codes, 1 to 4.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
    start : input
        Pulse that starts a tensor, wherever the one before has stopped.
    noise : stream of :data:`noise`
        One of each row, void rows included, without an end.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others.
    """

    def __init__(self, bits=(1, 2, 4)):
        super().__init__(bits, lambda most: {"start": In(1), "noise": Out(stream.Signature(noise))})

    def elaborate(self, platform):
        m = Module()
        config = self.config

        # ------------------------------------------------------------------------- the hash of the next group's number
        group, count = Signal(32, reset_less=True), Signal(range(ROUNDS), reset_less=True)
        a, b = Signal(16, reset_less=True), Signal(16, reset_less=True)
        loads, works, mixed = Signal(), Signal(), Signal()
        accepted, row, primed = Signal(), Signal(5, reset_less=True), Signal()
        passes = Signal()  # the hash goes to the generator
        total, next_a = Signal(16), Signal(16)
        m.d.comb += [
            total.eq(a.rotate_right(7) + b),
            next_a.eq(total ^ Mux(count[0], config.seed[16:], config.seed[:16])),
            accepted.eq(self.noise.valid & self.noise.ready),
            passes.eq(mixed & (~primed | (accepted & (row == 31)))),
        ]
        m.d.sync += loads.eq(self.start | passes)
        with m.If(self.start):
            m.d.sync += group.eq(config.group)
        with m.Elif(loads):
            m.d.sync += group.eq(group + config.step)
        with m.If(loads):
            m.d.sync += [Cat(b, a).eq(group), count.eq(0), works.eq(1)]
        with m.Elif(works):
            m.d.sync += [a.eq(next_a), b.eq(b.rotate_left(2) ^ next_a), count.eq(count + 1),
                         works.eq(count != ROUNDS - 1)]
        m.d.sync += mixed.eq(~self.start & ~loads & (mixed | (works & (count == ROUNDS - 1))))

        # ------------------------------------------------------------------------------------ the generator of a group
        s = Signal(32, reset_less=True)
        with m.If(accepted | passes):
            m.d.sync += s.eq(_xorshift(m, Mux(passes, Cat(Const(1, 1), b[1:], a), s)))
        with m.If(self.start):
            m.d.sync += [primed.eq(0), row.eq(0)]
        with m.Else():
            m.d.sync += [primed.eq(primed | passes), row.eq(row + accepted)]
        m.d.comb += self.noise.valid.eq(primed)

        for lane, flips in enumerate(LANE):
            number = Mux(config.nearest, Const(16, BITS), s[BITS * (lane % 2) :][:BITS] ^ flips)
            m.d.comb += self.noise.p[lane].eq(self.choose(lambda q, number=number: number >> q - 1))
        return m
