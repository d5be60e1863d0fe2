"""Rounds: sectors of one to eight symbols joined to rounds of eight, and rounds cut into such sectors."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import BITS, LANES, rounds, symbols
from actcodec.rtl.common.vectors import edges

__all__ = ["Gather", "Scatter", "turned"]


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


def _keep(m, payload, lanes):
    """Registers of a payload take what :func:`_lanes` would give."""
    m.d.sync += [word.eq(lane[:BITS]) for word, lane in zip(payload.data, lanes, strict=True)]
    m.d.sync += payload.outliers.eq(Cat(lane[BITS] for lane in lanes))


def _below(number):
    """Which lanes are below a number of up to three bits."""
    return Cat(number > k for k in range(LANES))


class Gather(wiring.Component):
    """Joins the symbols of sectors, padding left out, to rounds of eight.

    Throughput: one sector a cycle. A tensor's end takes one or two cycles more: the last round, filled up with zeros
    that are no outliers, and the beat behind it. Latency: one cycle from the sector that completes a round. Buffering:
    a round at the output and seven symbols. Combinational path: ``o.ready`` to ``i.ready``.

    Source: COMET, section 2.2 (the order of the values); the lanes are those of :mod:`actcodec.rtl.comet.interleave`.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.symbols`
        Lanes beyond the sector's count mean nothing.
    o : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
    """

    i: In(stream.Signature(symbols))
    o: Out(stream.Signature(rounds))

    def elaborate(self, platform):
        m = Module()
        rest = [Signal(BITS + 1, reset_less=True, name=f"rest_{k}") for k in range(LANES - 1)]
        level = Signal(3)  # symbols in it
        closing, free, taken, flushes = Signal(), Signal(), Signal(), Signal()
        total = Signal(5)
        o, valid = Signal(rounds, reset_less=True), Signal()
        m.d.comb += [
            free.eq(~valid | self.o.ready), self.i.ready.eq(free & ~closing), taken.eq(self.i.valid & ~closing),
            total.eq(level + self.i.p.edges.count), flushes.eq(closing & level.any()),
            self.o.valid.eq(valid), self.o.p.eq(o),
        ]
        come = turned(m, _lanes(self.i.p), level)
        old = _below(level)
        merged = [Mux(old[k], rest[k] if k < LANES - 1 else 0, come[k] & (~closing).replicate(BITS + 1))
                  for k in range(LANES)]
        with m.If(free):
            _keep(m, o, merged)
            m.d.sync += [valid.eq((taken & total[3]) | closing), o.end.eq(closing & ~flushes)]
            with m.If(taken):
                m.d.sync += [level.eq(total[:3]), closing.eq(self.i.p.edges.last)]
                m.d.sync += [kept.eq(Mux(total[3] | ~old[k], come[k], kept)) for k, kept in enumerate(rest)]
            with m.Elif(closing):
                m.d.sync += [level.eq(0), closing.eq(flushes)]
        return m


class Scatter(wiring.Component):
    """Cuts rounds of eight symbols into sectors, as their walk says.

    Throughput: one sector a cycle. Latency: one cycle from a round, two from its place in the walk. Buffering: a sector
    at the output, seven symbols, and a place. Combinational paths: ``o.ready`` to ``i.ready`` and ``walk.ready``,
    ``i.valid`` to ``walk.ready``.

    Source: as :class:`Gather`.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
        ``end`` is ignored. Nothing of the last round is left for the next tensor.
    walk : stream of :data:`~actcodec.rtl.common.vectors.edges`
    o : stream of :data:`~actcodec.rtl.comet.payloads.symbols`
        Anything in the lanes beyond the sector's count.
    """

    i: In(stream.Signature(rounds))
    walk: In(stream.Signature(edges))
    o: Out(stream.Signature(symbols))

    def elaborate(self, platform):
        m = Module()
        rest = [Signal(BITS + 1, reset_less=True, name=f"rest_{k}") for k in range(1, LANES)]
        free, moves, total = Signal(), Signal(), Signal(5)
        o, valid = Signal(symbols, reset_less=True), Signal()
        i, walk = _lanes(self.i.p), Signal(edges, reset_less=True)
        # The sector that comes next, known a cycle ahead: where in the rest its first symbol is, 0 if there is none;
        # whether it goes beyond what is at hand; the same place for the sector behind it.
        known, place, needed, then = Signal(), Signal(3, reset_less=True), Signal(reset_less=True), Signal(3)
        m.d.comb += [
            total.eq(then + self.walk.p.count),
            free.eq(~valid | self.o.ready),
            moves.eq(free & known & (self.i.valid | ~needed)),
            self.walk.ready.eq(~known | moves), self.i.ready.eq(free & known & needed),
            self.o.valid.eq(valid), self.o.p.eq(o),
        ]
        with m.If(self.walk.ready):
            m.d.sync += known.eq(self.walk.valid)
            with m.If(self.walk.valid):
                m.d.sync += [walk.eq(self.walk.p), place.eq(then), then.eq(Mux(self.walk.p.last, 0, total)),
                             needed.eq(Mux(then.any(), total > LANES, total.any()))]
        old = ~_below(place) & place.any().replicate(LANES)
        lanes = turned(m, [Mux(old[k], rest[k - 1], i[k]) if k else i[k] for k in range(LANES)], -place)
        with m.If(free):
            m.d.sync += valid.eq(moves)
            _keep(m, o, lanes)
            m.d.sync += o.edges.eq(walk)
        with m.If(moves & needed):
            m.d.sync += [kept.eq(lane) for kept, lane in zip(rest, i[1:], strict=True)]
        return m
