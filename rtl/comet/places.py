"""Places in the walk that wait for their sectors, and how many rounds are known to be among them."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.shift_fifo import shift_fifo
from actcodec.rtl.common.vectors import edges

__all__ = ["Places"]

DEPTH = 8  # more than a decoder and what follows on it have under way
ROUNDS = 5  # bits of a number of rounds: a place has at most one


class Places(wiring.Component):
    """Lets the places of sectors run ahead, and counts the rounds that these begin.

    A decoder has to end with the last round, but asks for its bytes long before the sectors are there. To count the
    values of all sectors beforehand would take a pass over them. Here a round is known as soon as the place of its
    first value has come, which is before any sector waits for that round.

    Throughput: a place a cycle. Latency: 1 cycle, as has ``some``. Buffering: 8 places. Combinational
    paths: none.

    Source: COMET, section 2.2 (the order of the values), which leaves open how a decoder knows the end.

    Ports
    -----
    i, o : stream of :data:`~actcodec.rtl.common.vectors.edges`
    start : input
        Pulse, when all places have left: those of the next tensor may come. Rounds that were not taken are forgotten.
    some, ended : output
        A round has begun among the places that came, and was not yet taken by ``next``; there is none, and all places
        have come.
    next : input
        Pulse: a round is taken, while there are ``some``.
    """

    i: In(stream.Signature(edges))
    o: Out(stream.Signature(edges))
    start: In(1)
    some: Out(1)
    ended: Out(1)
    next: In(1)

    def elaborate(self, platform):
        m = Module()
        coming, moves, full = Signal(), Signal(), Signal()  # the last place has not come
        head, some, _, filled = shift_fifo(m, DEPTH, Value.cast(self.i.p), moves, self.o.ready, "place")
        m.d.sync += full.eq(filled)
        m.d.comb += [
            self.i.ready.eq(~full & coming), moves.eq(self.i.valid & self.i.ready),
            self.o.valid.eq(some), Value.cast(self.o.p).eq(head),
        ]
        rest, total, begins = Signal(3), Signal(4), Signal()  # values of the last round, 0 if it is full; with these
        rounds = Signal(ROUNDS)
        m.d.comb += [
            total.eq(rest + self.i.p.count),
            begins.eq(moves & ((rest == 0) & self.i.p.count.any() | (rest != 0) & (total > 8))),
            self.some.eq(rounds != 0), self.ended.eq(~coming & (rounds == 0)),
        ]
        m.d.sync += rounds.eq(rounds + begins - self.next)
        with m.If(moves):
            m.d.sync += [rest.eq(total), coming.eq(~self.i.p.last)]
        with m.If(self.start):
            m.d.sync += [rest.eq(0), rounds.eq(0), coming.eq(1)]
        return m
