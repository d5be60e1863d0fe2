"""Huffman coding: rounds of eight symbols to steps of eight lanes' bits, and interleaved bytes back to rounds."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.book import LENGTHS, tables
from actcodec.rtl.comet.payloads import LANES, rounds
from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.unpacker import Unpacker

__all__ = ["NEAR", "Huffman", "steps"]

NEAR = 224  # symbols from U on whose escape has one byte; from this first byte on there are two, from 240 on six
RAW = 6

# What each lane gives in a step: ``size`` + 1 bits, 1 to 8, at the low end of ``data`` with zeros above; the first bit
# is the most significant one. ``end`` comes after the last step of a tensor, in a beat whose ``data`` are zero.
steps = data.StructLayout({"data": data.ArrayLayout(8, LANES), "size": data.ArrayLayout(3, LANES), "end": 1})


# A symbol that waits to be coded, in the flip-flops that hold bits of the stream when decompressing: the next one of
# these is at the top, and zeros follow the last one.
input_layout = data.StructLayout({"free": 7, "far": 1, "escape": 1, "outlier": 1, "high": 4, "low": 8})
# The code of a symbol, or of the bits of a step: its length, one hot; whether it gives a byte of an escape, has two of
# them or more, or an outlier's.
lookup_layout = data.StructLayout({"low": 8, "high": 4, "length": LENGTHS, "escape": 1, "far": 1, "outlier": 1})


class Huffman(wiring.Component):
    """Codes the symbols of a round in one step, and the bytes of escapes in those that follow; or decodes them::

        compress    rounds_i -> held -> looked up -> steps_o
        decompress  bytes_i -> unpacker -> held -> looked up -> rounds_o

    Lengths never fall with the symbol, so that seven comparators find a code's length, and one adder the code or the
    symbol, with no table. Both directions share these and all registers.

    Symbols from U on, and outliers, have the code of U, which is all ones. A round that has such is followed by as many
    raw steps as its longest escape has bytes: one for a symbol below U + 224, two for others, six for an outlier. A
    lane with no byte left gives one bit 0. Every pattern of bits is some code, and others know how many rounds there
    are: decoding always ends.

    Decompressing, a lane holds 8 to 22 bits and takes 1 to 8 of them in a step. The length of its code is the smallest
    one whose codes end after the next 8 bits; it moves what the lane holds, in a loop of one cycle. If it holds fewer
    than 16 bits, the stream's next byte joins them meanwhile. Of how many it holds only r is kept, the bits that it has
    given modulo 8, one hot: who asks for a byte holds 16 - r, or 8 if r = 0, and after a step of l bits asks again if
    r = 0 or r + l > 8.

    Throughput: a step a cycle. Latency: 3 cycles from a round to its first step; back, 4 from the bytes of a round's
    last step to the round, and one at the beginning for a byte of each lane. Buffering: two rounds and a step; back,
    what the unpacker has, 22 bits a lane, a step and two rounds. Combinational paths: ``steps_o.ready`` to
    ``rounds_i.ready`` and ``pops``; ``room`` and ``some`` to ``begins``, ``pushes`` and ``short``.

    Source: COMET, section 2.2 (the customised Huffman coding of SZ); F. Giesen, "Interleaved entropy coders", 2014.

    Ports
    -----
    rounds_i : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
    steps_o : stream of :data:`steps`
    words_i : input, pops : output
        Compression: the next byte of the outlier of each lane, and the lanes whose byte is taken.
    bytes_i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8
        Full beats, but the last one.
    next : input, excess, discarding : output
        As of the :class:`~actcodec.rtl.common.unpacker.Unpacker`.
    rounds_o : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
        Without ``end``; an outlier's symbol is the one that it was sent with.
    words_o, pushes : output, room : input
        Decompression: a byte of the outlier of each lane, and the lanes that have one; is there room for it.
    decompress : input
        Direction. Constant from three cycles before the first round, or ``start``, until all has left.
    book : input, :data:`~actcodec.rtl.comet.book.tables`
        Of this direction, and of a complete book, whose U is at least 1. Stands from the cycle before the first round,
        or ``start``, until all has left.
    start : input
        Pulse: a tensor's rounds are to be decoded.
    some, ended : input
        There is a round that has not begun; there is none, and none will come. Until either is true, the next round
        waits.
    begins : output
        A round begins.
    busy : output
        Not all of them have been decoded.
    short : output
        The step that is taken asks for bytes that the stream does not have.
    """

    rounds_i: In(stream.Signature(rounds))
    steps_o: Out(stream.Signature(steps))
    words_i: In(data.ArrayLayout(8, LANES))
    pops: Out(LANES)
    bytes_i: In(stream.Signature(chunk_layout(LANES)))
    next: In(1)
    excess: Out(1)
    discarding: Out(1)
    rounds_o: Out(stream.Signature(rounds))
    words_o: Out(data.ArrayLayout(8, LANES))
    pushes: Out(LANES)
    room: In(1)
    decompress: In(1)
    book: In(tables)
    start: In(1)
    some: In(1)
    ended: In(1)
    begins: Out(1)
    busy: Out(1)
    short: Out(1)

    def elaborate(self, platform):
        """The trick is a code whose lengths never fall with the symbol: then a symbol's code is the symbol plus a
        constant of its length, and its length follows from seven comparisons with limits, in both directions. What a
        lane holds is the same 22 flip-flops for both: a symbol that waits when compressing, the next bits of the stream
        when decompressing. There, a step is a loop of one cycle, from window through length to shifted window; the
        length therefore stays one-hot, and arrives as the select of the shift."""

        m = Module()
        m.submodules.unpacker = unpacker = Unpacker(1, LANES, LANES)
        # Readiness comes far, and decides about every bit of the lanes.
        m.submodules.skid = skid = Skid(rounds, half=True)
        wiring.connect(m, wiring.flipped(self.bytes_i), unpacker.i)
        wiring.connect(m, skid.o, wiring.flipped(self.rounds_o))
        m.d.comb += [unpacker.next.eq(self.next), self.excess.eq(unpacker.excess),
                     self.discarding.eq(unpacker.discarding)]
        forth = Signal()  # the direction, where it does not decide about a beat
        m.d.sync += forth.eq(~self.decompress)
        inputs, lookups = ([Signal(layout, reset_less=True, name=f"{name}_{lane}") for lane in range(LANES)]
                           for name, layout in (("held", input_layout), ("lookup", lookup_layout)))
        # The step of the round that was looked up, or is decoded, one hot: the code, then the bytes of an escape.
        step = Signal(RAW + 1, init=1)
        lookup_valid, output_valid = Signal(), Signal()
        # Of each direction by itself: otherwise a bidirectional neighbour would close a loop.
        going, coming = Signal(), Signal()
        m.d.comb += [
            going.eq((~output_valid | self.steps_o.ready) & ~self.decompress),
            coming.eq((~output_valid | skid.i.ready) & self.decompress),
            self.steps_o.valid.eq(output_valid & ~self.decompress), skid.i.valid.eq(output_valid & self.decompress),
        ]
        enters, looks, last = self._encode(m, inputs, step, lookup_valid, going)
        takes, opening, ends, lanes = self._decode(m, unpacker, inputs, forth, enters, step, coming)
        with m.If(takes | (lookup_valid & going)):
            m.d.sync += step.eq(Mux(Mux(forth, last, ends), 1, step << 1))

        # Decompressing: the step whose bits were looked up, and whether the round ended with it.
        was, closes = Signal(3, reset_less=True), Signal(reset_less=True)
        with m.If(coming):
            m.d.sync += [was.eq(step), closes.eq(ends), lookup_valid.eq(takes & ~opening)]
        with m.If(looks | coming):
            m.d.sync += [one.eq(lane) for one, lane in zip(lookups, lanes, strict=True)]
        with m.If(going | coming):
            m.d.sync += output_valid.eq(lookup_valid & (closes | forth))
        word = forth & step[3:].any()
        self._give(m, lookups, skid.i.p, forth, Cat(Mux(forth, step[:3], was), word), going, coming & lookup_valid)
        m.d.comb += self.pops.eq(Cat(one.outlier & word & lookup_valid & going for one in lookups))
        return m

    def _encode(self, m, inputs, step, lookup_valid, going):
        """Compression, round by round. Returns whether one enters, whether the one at the input is looked up, and
        whether this is the last step of the one that was looked up."""
        input_valid, enters, looks = Signal(), Signal(), Signal()
        last = Signal(reset_less=True)  # known ahead, as readiness goes far from here
        input_end, lookup_end, end = (Signal(reset_less=True, name=f"end{name}") for name in ("_input", "_lookup", ""))
        far, outlier = (Signal(reset_less=True, name=f"any_{name}") for name in ("far", "outlier"))
        m.d.comb += [
            looks.eq((~lookup_valid | (going & last)) & ~self.decompress),
            enters.eq((~input_valid & ~self.decompress) | looks),
            self.rounds_i.ready.eq(enters), self.steps_o.p.end.eq(end),
        ]
        with m.If(enters):
            m.d.sync += [input_valid.eq(self.rounds_i.valid), input_end.eq(self.rounds_i.p.end)]
        with m.If(looks):
            m.d.sync += [lookup_valid.eq(input_valid), lookup_end.eq(input_end),
                         last.eq(~Cat(bits.escape for bits in inputs).any()),
                         far.eq(Cat(bits.far for bits in inputs).any()),
                         outlier.eq(Cat(bits.outlier for bits in inputs).any())]
        with m.Elif(going):
            m.d.sync += last.eq(Mux(outlier, step[RAW - 1], Mux(far, step[1], step[0])))
        with m.If(going):
            m.d.sync += end.eq(lookup_end)
        return enters, looks, last

    def _decode(self, m, unpacker, inputs, forth, enters, step, coming):
        """Decompression, step by step. Returns whether one is taken, is the first one, and ends a round; and the
        lookup of each lane, in both directions."""
        opening = Signal()  # the first step: the first byte of each lane takes the place of one that is not there
        code, ends, may, takes = Signal(), Signal(), Signal(), Signal()
        asks, asks_next = Signal(LANES), Signal(LANES)  # lanes that want a byte, and that will
        ones, eights = Signal(LANES), Signal(LANES)  # lanes that give a bit, or a byte, in this raw step
        escapes, fars, outliers = (Signal(LANES, name=name) for name in ("escapes", "fars", "outliers"))
        bytes_next = Signal(LANES)  # lanes that give a byte in the next step of this round; it ends if there are none
        six = Signal(LANES, reset_less=True)  # lanes with an outlier
        word = step[3:].any()
        m.d.comb += [
            may.eq(self.busy & coming & (self.room | ~word) & (self.some | ~code)),
            takes.eq(may & unpacker.o.valid),
            self.begins.eq(takes & code),
            unpacker.o.ready.eq(may),
            self.short.eq(takes & unpacker.o.p.short),
            unpacker.take.eq(compaction.ones(asks[:4]) + compaction.ones(asks[4:])),
            bytes_next.eq(Mux(step[0], escapes, Mux(step[1], fars, six & (~step[RAW]).replicate(LANES)))),
            ends.eq(opening | ~bytes_next.any()),
            self.pushes.eq(eights & (word & takes).replicate(LANES)),
        ]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), opening.eq(1), eights.eq(~0)]
        with m.If(takes):
            m.d.sync += [opening.eq(0), code.eq(ends), eights.eq(Mux(opening, 0, bytes_next)),
                         ones.eq(~bytes_next & (~ends).replicate(LANES))]
            with m.If(step[1]):
                m.d.sync += six.eq(outliers)
        with m.If(code & self.ended):
            m.d.sync += [self.busy.eq(0), code.eq(0)]

        # Bytes to lanes that asked for them. Where each lane's byte is, is counted a step ahead.
        idle = self.decompress & ~self.busy
        moves, places = takes | enters | idle, compaction.zeros_by_gates(m, asks_next)
        counts = [Signal(len(place), reset_less=True, name=f"count_{k}") for k, place in enumerate(places)]
        with m.If(moves):
            m.d.sync += [asks.eq(asks_next), *(count.eq(place) for count, place in zip(counts, places, strict=True))]
        refills = compaction.reopen(m, list(unpacker.o.p.data), compaction.moves(m, counts))

        far = Signal(9, reset_less=True)  # the first symbol whose escape has more than one byte
        m.d.sync += far.eq(self.book.escape + NEAR)
        lanes = []
        for lane, bits in enumerate(inputs):
            window, eight = bits.low, eights[lane]
            m.d.comb += [
                escapes[lane].eq(window[7] & Cat(window[k] | self.book.full[6 - k] for k in range(7)).all()),
                fars[lane].eq(eight & window[5:].all()), outliers[lane].eq(eight & window[4:].all()),
                self.words_o[lane].eq(window),
            ]
            length = self._lane(m, lane, bits, self._symbol(lane, far), forth, moves, idle, code, ones[lane], eight,
                                asks[lane], asks_next[lane], refills[lane])
            lanes.append(Cat(window, bits.high, length, eight | (bits.escape & forth), fars[lane] | (bits.far & forth),
                             outliers[lane] | (bits.outlier & forth)))
        return takes, opening, ends, lanes

    def _symbol(self, lane, far):
        """What a lane holds of a symbol that is to be coded."""
        u, outlier = self.rounds_i.p.data[lane], self.rounds_i.p.outliers[lane]
        return Cat(Const(0, 7), outlier | (u >= far), outlier | u[8:].any() | (u[:8] >= self.book.escape), outlier,
                   u[8:], u[:8])

    def _lane(self, m, lane, bits, symbol, forth, moves, idle, code, one, eight, asks, asks_next, byte):
        """What a lane holds. Decompressing that is a loop: it gives its next 8 bits, and how many of them it takes, one
        hot. Returns the length of what it holds as a code, or what it takes."""
        bits, window = bits.as_value(), bits.low  # the next bit at the top, zeros after the last one
        part = Signal(8, reset_less=True, name=f"part_{lane}")  # bits that it has given modulo 8, one hot
        within = Signal(LENGTHS - 1, name=f"within_{lane}")
        m.d.comb += within.eq(Cat((window < limit) | full
                                  for limit, full in zip(self.book.limits, self.book.full, strict=True)))

        def lengths(code, one, eight):
            return Cat((within[0] & code) | one, *(within[k] & ~within[k - 1] & code for k in range(1, LENGTHS - 1)),
                       (~within[-1] & code) | eight)

        # Compressing, symbols pass by the way of a single bit.
        length = Signal(LENGTHS, name=f"length_{lane}")
        m.d.comb += length.eq(lengths(code, one | forth, eight))
        # It holds 16 - part bits if it asks, or 8 if part is 0.
        places = [part[(16 - place) % 8] & asks & ~forth for place in range(8, 16)]
        refill = Signal(15, name=f"refill_{lane}")  # below the first 8 bits of what it holds
        m.d.comb += refill.eq(Cat(Cat(places[place] & byte[bit + place - 7] for place in range(8)
                                      if 0 <= bit + place - 7 < 8).any() for bit in range(15)))
        merged = Signal(22, name=f"merged_{lane}")  # without the first bit, which goes in any case
        m.d.comb += merged.eq(Mux(forth, symbol, Cat(0, bits[:21])) | refill)
        with m.If(moves):
            m.d.sync += [
                bits.eq(choose([(one, (merged << by)[:22]) for by, one in enumerate(length)])),
                part.eq(choose([(one, part.rotate_left(by)) for by, one in enumerate(length, 1)]) | idle),
            ]
        # A code takes more than 8 - r bits if it is not within those of so many.
        m.d.comb += asks_next.eq(part[0] | eight | idle
                                 | (code & Cat(part[r] & ~within[7 - r] for r in range(1, 8)).any()))
        return lengths(code | forth, 0, eight)

    def _give(self, m, lookups, rounds_o, forth, kinds, going, coming):
        """What was found becomes bits of a step, or a symbol: a code and what is counted from it, or a byte of an
        escape. ``kinds``: whether it is the code, the first byte, the second one, or a later one of an outlier to be
        sent."""
        code, first, second, word = kinds
        book = self.book
        # Symbol less code, or code less symbol, is in the book; this is symbol less byte, or byte less symbol.
        away = Signal(8, reset_less=True)
        m.d.sync += away.eq(Mux(forth, -book.escape, book.escape))
        # The code of U is all ones: the second and the others of them, and how many more than one in binary.
        more = ~book.full
        others = Cat(Cat(more[0] & ~more[1], more[2] & ~more[3], more[4] & ~more[5], more[6]).any(),
                     (more[1] & ~more[3]) | more[5], more[3])
        for lane, one in enumerate(lookups):
            base = choose([(length, Cat(one.low[7 - k :], Const(0, 7 - k))) for k, length in enumerate(one.length)])
            less = choose(list(zip(one.length, book.delta, strict=True)))
            total = Signal(9, name=f"total_{lane}")
            m.d.comb += total.eq(Mux(forth, one.low, base) + Mux(code, less, away))
            sums = (code & ~one.escape) | (first & one.escape & ~one.far)
            gives = (first & one.escape) | (second & one.far) | (word & one.outlier)
            bits = one.length
            size = Cat(Cat(bits[1::2]).any(), Cat(bits[2:4], bits[6:]).any(), bits[4:].any())
            low, high, outlier = (Signal(width, reset_less=True, name=f"{name}_{lane}")
                                  for name, width in (("low", 8), ("high", 4), ("outlier", 1)))
            with m.If(going | (coming & (code | ((first | second) & one.escape)))):
                m.d.sync += low.eq(choose([
                    (code & one.escape, Cat(Const(1, 1), more)), (sums, total[:8]),
                    (first & one.far & forth, Cat(one.high, one.outlier, Const(7, 3))),
                    (second & (one.far | ~forth), one.low), (word & one.outlier, self.words_i[lane])]))
            with m.If(going | (coming & (code | (first & one.escape)))):
                m.d.sync += [outlier.eq(first & one.outlier), high.eq(choose([
                    (code & ~one.escape & forth, size), (code & one.escape, others), (gives & forth, Const(7, 3)),
                    (first & ~one.far & ~forth, total[8]), (first & one.far & ~forth, one.low[:4])]))]
            m.d.comb += [
                self.steps_o.p.data[lane].eq(low), self.steps_o.p.size[lane].eq(high),
                rounds_o.data[lane].eq(Cat(low, high)), rounds_o.outliers[lane].eq(outlier),
            ]
