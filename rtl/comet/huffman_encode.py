"""Huffman encoding: rounds of eight symbols to steps in which each of eight lanes gives one to eight bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.book import LENGTHS, tables
from actcodec.rtl.comet.payloads import LANES, rounds
from actcodec.rtl.common.onehot_shift import choose

__all__ = ["NEAR", "Encode", "steps"]

NEAR = 224  # symbols from U on whose escape has one byte
RAW = 6  # bytes of the longest escape

# What each lane gives in a step: ``size`` + 1 bits, 1 to 8, at the low end of ``data`` with zeros above; the first bit
# is the most significant one. ``end`` comes behind the last step of a tensor, in a beat whose ``data`` are zero.
steps = data.StructLayout({"data": data.ArrayLayout(8, LANES), "size": data.ArrayLayout(3, LANES), "end": 1})


class Encode(wiring.Component):
    """Gives the code of each symbol in one step, and the bytes of escapes in those that follow.

    Lengths never fall with the symbol, so that seven comparators find a code's length and one subtracter the code,
    with no table. Symbols from U on, and outliers, have the code of U, which is all ones. A round that has such is
    followed by as many raw steps as its longest escape has bytes: one for a symbol below U + 224, two for others, six
    for an outlier. A lane with no byte left gives one bit 0. The bytes of outliers come by ``words``.

    Throughput: a step a cycle. Latency: 2 cycles. Buffering: two steps. Combinational path: ``o.ready`` to ``i.ready``
    and ``pops``.

    Source: COMET, section 2.2 (the customised Huffman coding of SZ).

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
    o : stream of :data:`steps`
    book : input, :data:`~actcodec.rtl.comet.book.tables`
        With numbers of symbols for ``limits``. Stands from the cycle before the first round to the last step.
    words : input, pops : output
        The next byte of the outlier of each lane, and the lanes whose byte is taken.
    """

    i: In(stream.Signature(rounds))
    o: Out(stream.Signature(steps))
    book: In(tables)
    words: In(data.ArrayLayout(8, LANES))
    pops: Out(LANES)

    def elaborate(self, platform):
        m = Module()
        book, i, o = self.book, self.i.p, Signal(steps, reset_less=True)
        far = Signal(9, reset_less=True)  # the first symbol whose escape has more than one byte
        m.d.sync += far.eq(book.escape + NEAR)

        # A round: its symbols, with the lengths of their codes one hot.
        valid, end = Signal(), Signal(reset_less=True)
        free, leaves, last = Signal(), Signal(), Signal()
        step = Signal(RAW + 1, init=1)  # one hot: the code, then the bytes of an escape
        any_escape, any_far, any_outlier = (Signal(reset_less=True, name=f"any_{name}")
                                            for name in ("escape", "far", "outlier"))
        escapes, fars = Signal(LANES), Signal(LANES)  # of the round that comes
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            # Which step is the last one of the round.
            last.eq(Mux(any_outlier, step[6], Mux(any_far, step[2], Mux(any_escape, step[1], step[0])))),
            leaves.eq(free & last),
            self.i.ready.eq(~valid | leaves),
            self.o.p.eq(o),
        ]
        with m.If(self.i.ready):
            m.d.sync += [valid.eq(self.i.valid), end.eq(i.end), any_escape.eq(escapes.any()), any_far.eq(fars.any()),
                         any_outlier.eq(i.outliers.any())]
        with m.If(valid & free):
            m.d.sync += step.eq(Mux(last, 1, step << 1))
        with m.If(free):
            m.d.sync += [self.o.valid.eq(valid), o.end.eq(end)]
        for lane in range(LANES):
            self._lane(m, lane, o, far, valid, free, step, escapes, fars)
        return m

    def _lane(self, m, lane, o, far, valid, free, step, escapes, fars):
        book = self.book
        u, outlier = self.i.p.data[lane], self.i.p.outliers[lane]
        escape, beyond = escapes[lane], fars[lane]
        within = [Signal(name=f"within_{lane}_{bits}") for bits in range(1, LENGTHS)]
        m.d.comb += [
            escape.eq(outlier | u[8:].any() | (u[:8] >= book.escape)),
            beyond.eq(outlier | (u >= far)),
            *(short.eq(Mux(escape, full, u[:8] < limit))
              for short, limit, full in zip(within, book.limits, book.full, strict=True)),
        ]
        kept = Signal(12, reset_less=True, name=f"symbol_{lane}")
        escaped, two, six = (Signal(reset_less=True, name=f"{name}_{lane}") for name in ("escaped", "two", "six"))
        length = Signal(LENGTHS, reset_less=True, name=f"length_{lane}")  # one hot
        with m.If(self.i.ready):
            m.d.sync += [kept.eq(u), escaped.eq(escape), two.eq(beyond), six.eq(outlier),
                         length.eq(Cat(within, 1) & ~Cat(0, within))]

        code, raw = step[0], step[1]
        # Symbol minus delta is the code; minus U, the byte of a short escape.
        less = choose([(one, delta) for one, delta in zip(length, book.delta, strict=True)])
        difference, ones = Signal(8, name=f"difference_{lane}"), Signal(8, name=f"ones_{lane}")
        m.d.comb += [difference.eq(kept[:8] - Mux(code, less, book.escape)),
                     ones.eq(Cat(length[place:].any() for place in range(8)))]
        word = step[3:].any()
        gives = Signal(name=f"gives_{lane}")  # a byte of an escape
        m.d.comb += [gives.eq((raw & escaped) | (step[2] & two) | (word & six)),
                     self.pops[lane].eq(word & six & valid & free)]
        size = Cat(Cat(length[1::2]).any(), Cat(length[2:4], length[6:]).any(), length[4:].any())
        with m.If(free):
            m.d.sync += [
                o.data[lane].eq(choose([
                    (code & escaped, ones), ((code & ~escaped) | (raw & escaped & ~two), difference),
                    (raw & two, Cat(kept[8:], six, Const(7, 3))), (step[2] & two, kept[:8]),
                    (word & six, self.words[lane])])),
                o.size[lane].eq(Mux(code, size, gives.replicate(3))),
            ]
