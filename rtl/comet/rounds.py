"""Rounds: sectors of one to eight symbols joined to rounds of eight, and rounds cut into such sectors."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import BITS, LANES, rounds, symbols
from actcodec.rtl.common.vectors import edges

__all__ = ["Rounds", "turned"]


def turned(m, lanes, by):
    """The list of eight lanes turned upwards by the number ``by``: lane k is lane k + by then."""
    for bit in range(3):
        stage = [Signal(len(Value.cast(lane)), name=f"turned_{1 << bit}") for lane in lanes]
        m.d.comb += [one.eq(Mux(by[bit], lanes[(k - (1 << bit)) % LANES], lanes[k])) for k, one in enumerate(stage)]
        lanes = stage
    return lanes


def _lanes(payload):
    """Symbol and outlier flag of each lane, as one number."""
    return [Cat(word, outlier) for word, outlier in zip(payload.data, payload.outliers, strict=True)]


class Rounds(wiring.Component):
    """Joins the symbols of sectors, padding left out, to rounds of eight; or cuts rounds into sectors, as their walk
    says::

        compress    sectors_i -> turned -> joined with the rest -> rounds_o
        decompress  rounds_i, walk -> joined with the rest -> turned -> sectors_o

    Both have the same shifter, rest and output. Where lanes are turned upwards by n, the rest is in the lanes below n
    when compressing, and in those from 8 - n on when decompressing.

    Throughput: one sector a cycle. When compressing, a tensor's end takes one or two cycles more: the last round,
    filled up with zeros that are no outliers, and the beat after it. Latency: one cycle from the sector that completes
    a round; back, one from a round, two from its place in the walk. Buffering: a beat at the output, and seven symbols;
    back, a place. Combinational paths: ``rounds_o.ready`` to ``sectors_i.ready``; ``sectors_o.ready`` to
    ``rounds_i.ready`` and ``walk.ready``; ``rounds_i.valid`` to ``walk.ready``.

    Source: COMET, section 2.2 (the order of the values); the lanes are those of :mod:`actcodec.rtl.comet.interleave`.

    Ports
    -----
    sectors_i : stream of :data:`~actcodec.rtl.comet.payloads.symbols`
    rounds_o : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
        Compression. Lanes beyond the sector's count mean nothing.
    rounds_i : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
    walk : stream of :data:`~actcodec.rtl.common.vectors.edges`
    sectors_o : stream of :data:`~actcodec.rtl.comet.payloads.symbols`
        Decompression. ``end`` is ignored. Nothing of the last round is left for the next tensor. Anything in the lanes
        beyond the sector's count.
    decompress : input
        Direction. Constant from two cycles before the first beat comes until the last one has left.
    """

    sectors_i: In(stream.Signature(symbols))
    rounds_o: Out(stream.Signature(rounds))
    rounds_i: In(stream.Signature(rounds))
    walk: In(stream.Signature(edges))
    sectors_o: Out(stream.Signature(symbols))
    decompress: In(1)

    def elaborate(self, platform):
        m = Module()
        back, turn = Signal(), Signal(3)
        rest = [Signal(BITS + 1, reset_less=True, name=f"rest_{k}") for k in range(LANES)]
        data, valid = Signal(LANES * (BITS + 1), reset_less=True), Signal()
        # Of each direction by itself: otherwise a bidirectional neighbour would close a loop.
        joining, cutting = Signal(), Signal()
        m.d.comb += [
            joining.eq((~valid | self.rounds_o.ready) & ~self.decompress),
            cutting.eq((~valid | self.sectors_o.ready) & self.decompress),
            self.rounds_o.valid.eq(valid & ~self.decompress), self.sectors_o.valid.eq(valid & self.decompress),
        ]
        m.d.sync += back.eq(self.decompress)

        below = Cat(turn > k for k in range(LANES))
        sectors, whole = _lanes(self.sectors_i.p), _lanes(self.rounds_i.p)
        lanes = turned(m, [Mux(back, Mux(below[LANES - 1 - k], rest[k], whole[k]), sectors[k]) for k in range(LANES)],
                       turn)
        joins, closing = self._joins(m, turn, below, joining, valid)
        cuts = self._cuts(m, turn, cutting, valid)
        with m.If(joining | cutting):
            m.d.sync += data.eq(Cat(Mux(below[k] & ~back, rest[k], lanes[k] & (~closing).replicate(BITS + 1))
                                    for k in range(LANES)))
        for k, register in enumerate(rest):
            with m.If(cuts | joins[k]):
                m.d.sync += register.eq(Mux(back, whole[k], lanes[k]))
        for payload in (self.rounds_o.p, self.sectors_o.p):
            m.d.comb += [Cat(word, outlier).eq(data[(BITS + 1) * k : (BITS + 1) * (k + 1)])
                         for k, (word, outlier) in enumerate(zip(payload.data, payload.outliers, strict=True))]
        with m.If(back & ~self.decompress):
            m.d.sync += turn.eq(0)
        return m

    def _joins(self, m, turn, below, free, valid):
        """Compression. Returns the lanes of the rest that take what comes, and whether a tensor ends."""
        i = self.sectors_i
        closing, accepted, flushes, total = Signal(), Signal(), Signal(), Signal(4)
        end = Signal(reset_less=True)
        m.d.comb += [
            i.ready.eq(free & ~closing), accepted.eq(i.valid & ~closing),
            total.eq(turn + i.p.edges.count), flushes.eq(closing & turn.any()), self.rounds_o.p.end.eq(end),
        ]
        with m.If(free):
            m.d.sync += [valid.eq((accepted & total[3]) | closing), end.eq(closing & ~flushes)]
            with m.If(accepted):
                m.d.sync += [turn.eq(total), closing.eq(i.p.edges.last)]
            with m.Elif(closing):
                m.d.sync += [turn.eq(0), closing.eq(flushes)]
        return (total[3].replicate(LANES) | ~below) & (accepted & free).replicate(LANES), closing

    def _cuts(self, m, turn, free, valid):
        """Decompression. Returns whether the rest takes a round."""
        walk, moves, total = self.walk, Signal(), Signal(5)
        # The sector that comes next, known a cycle ahead: its place; whether it goes beyond what is at hand; where in
        # the rest the first symbol of the sector after it is, 0 if there is none.
        known, place, needed, then = Signal(), Signal(edges, reset_less=True), Signal(reset_less=True), Signal(3)
        left = Signal(edges, reset_less=True)
        m.d.comb += [
            moves.eq(free & known & (self.rounds_i.valid | ~needed)), total.eq(then + walk.p.count),
            walk.ready.eq(self.decompress & (~known | moves)), self.rounds_i.ready.eq(free & known & needed),
            self.sectors_o.p.edges.eq(left),
        ]
        with m.If(walk.ready):
            m.d.sync += known.eq(walk.valid)
            with m.If(walk.valid):
                m.d.sync += [place.eq(walk.p), turn.eq(-then), then.eq(Mux(walk.p.last, 0, total)),
                             needed.eq(Mux(then.any(), total > LANES, total.any()))]
        with m.If(free):
            m.d.sync += [valid.eq(moves), left.eq(place)]
        return moves & needed
