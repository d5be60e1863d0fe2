"""Huffman decoding: eight interleaved sub-streams of bits to rounds of eight symbols, a step every cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.book import LENGTHS, tables
from actcodec.rtl.comet.huffman_encode import NEAR
from actcodec.rtl.comet.payloads import LANES, rounds
from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.unpacker import window_layout

__all__ = ["Decode"]

WIDE, OUTLIER = NEAR, 240  # first bytes of the escapes of two bytes, and of six
RAW = 6


class Decode(wiring.Component):
    """Gives the symbols of a round in one step, and takes the bytes of escapes in those that follow.

    A lane holds 8 to 22 bits and takes 1 to 8 of them in a step. The length of its code is the smallest one whose codes
    end behind the next 8 bits: seven comparators, whose result moves what the lane holds, in a loop of one cycle. If it
    holds fewer than 16 bits, the stream's next byte joins them meanwhile. Of how many it holds only r is kept, the
    bits that it has given modulo 8, one hot: who asks for a byte holds 16 - r, or 8 if r = 0, and after a step of l
    bits asks again if r = 0 or r + l > 8.

    Every pattern of bits is some code, an escape has at most six bytes, and others know how many rounds there are:
    decoding always ends.

    Throughput: a step a cycle. Latency: 3 cycles from the bytes of a round's last step to the round, and one at the
    beginning for a byte of each lane. Buffering: 22 bits a lane, and a round at the output. Combinational paths:
    ``bytes.valid`` and ``o.ready`` to ``bytes.ready`` and ``pushes``; ``room`` likewise; none to ``take``.

    Source: COMET, section 2.2 (the customised Huffman coding of SZ); F. Giesen, "Interleaved entropy coders", 2014.

    Ports
    -----
    bytes : stream of :func:`~actcodec.rtl.common.unpacker.window_layout` of 8
        The next bytes of the stream.
    take : output
        How many of them this step takes.
    o : stream of :data:`~actcodec.rtl.comet.payloads.rounds`
        Without ``end``; an outlier's symbol is the one that it was sent with.
    book : input, :data:`~actcodec.rtl.comet.book.tables`
        With the ends of codes for ``limits``. Constant while a tensor is under way.
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
    words, pushes : output, room : input
        A byte of the outlier of each lane, and the lanes that have one; is there room for it.
    """

    bytes: In(stream.Signature(window_layout(LANES)))
    take: Out(range(LANES + 1))
    o: Out(stream.Signature(rounds))
    book: In(tables)
    start: In(1)
    some: In(1)
    ended: In(1)
    begins: Out(1)
    busy: Out(1)
    short: Out(1)
    words: Out(data.ArrayLayout(8, LANES))
    pushes: Out(LANES)
    room: In(1)

    def elaborate(self, platform):
        m = Module()
        opening = Signal()  # the first step: the first byte of each lane takes the place of one that is not there
        step = Signal(RAW + 1, init=1)  # one hot: the code, then the bytes of an escape
        code, ends, advance, goes, may = Signal(), Signal(), Signal(), Signal(), Signal()
        asks, asks_next = Signal(LANES), Signal(LANES)  # lanes that want a byte, and that will
        ones, eights = Signal(LANES), Signal(LANES)  # lanes that give a bit, or a byte, in this raw step
        escapes, wides, outliers = (Signal(LANES, name=name) for name in ("escapes", "wides", "outliers"))
        bytes_next = Signal(LANES)  # lanes that give a byte in the next step of this round; it ends if there are none
        six = Signal(LANES, reset_less=True)  # lanes with an outlier
        word = step[3:].any()
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            may.eq(self.busy & advance & (self.room | ~word) & (self.some | ~code)),
            goes.eq(may & self.bytes.valid),
            self.begins.eq(goes & code),
            self.bytes.ready.eq(may),
            self.short.eq(goes & self.bytes.p.short),
            self.take.eq(sum(asks[k] for k in range(LANES))),
            bytes_next.eq(Mux(step[0], escapes, Mux(step[1], wides, six & (~step[6]).replicate(LANES)))),
            ends.eq(opening | ~bytes_next.any()),
            self.pushes.eq(eights & (word & goes).replicate(LANES)),
        ]
        with m.If(self.start):
            m.d.sync += [self.busy.eq(1), opening.eq(1), eights.eq(~0)]
        with m.If(goes):
            m.d.sync += [
                opening.eq(0), code.eq(ends), eights.eq(Mux(opening, 0, bytes_next)),
                ones.eq(~bytes_next & (~ends).replicate(LANES)), step.eq(Mux(ends, 1, step << 1)),
            ]
            with m.If(step[1]):
                m.d.sync += six.eq(outliers)
        with m.If(code & self.ended):
            m.d.sync += [self.busy.eq(0), code.eq(0)]

        # Bytes to lanes that asked for them. Where each lane's byte is, is counted a step ahead.
        before = compaction.zeros(m, asks_next)
        counts = [Signal(len(count), reset_less=True, name=f"count_{k}") for k, count in enumerate(before)]
        with m.If(goes | ~self.busy):
            m.d.sync += [asks.eq(asks_next), *(count.eq(value) for count, value in zip(counts, before, strict=True))]
        given = compaction.reopen(m, list(self.bytes.p.data), compaction.moves(m, counts))

        # The step behind, for what was taken to be understood.
        taken, closes, first, second, third = (Signal(reset_less=name != "taken", name=name)
                                               for name in ("taken", "closes", "first", "second", "third"))
        with m.If(advance):
            m.d.sync += [taken.eq(goes & ~opening), closes.eq(ends),
                         first.eq(step[0]), second.eq(step[1]), third.eq(step[2]),
                         self.o.valid.eq(taken & closes)]
        for lane in range(LANES):
            window, length = self._lane(m, lane, goes, code, ones[lane], eights[lane], asks[lane], asks_next[lane],
                                        given[lane])
            m.d.comb += [
                escapes[lane].eq(window[7] & Cat(window[k] | self.book.full[6 - k] for k in range(7)).all()),
                wides[lane].eq(eights[lane] & window[5:].all()),
                outliers[lane].eq(eights[lane] & window[4:].all()),
                self.words[lane].eq(window),
            ]
            self._symbol(m, lane, advance, taken, (first, second, third), window, length,
                         eights[lane])
        return m

    def _lane(self, m, lane, goes, code, one, eight, asks, asks_next, byte):
        """The loop of a lane: gives its next 8 bits, and how many of them it takes, one hot."""
        held = Signal(22, reset_less=True, name=f"held_{lane}")  # the next bit at the top, zeros behind the last one
        part = Signal(8, reset_less=True, name=f"part_{lane}")  # bits that it has given modulo 8, one hot
        window, length = Signal(8, name=f"window_{lane}"), Signal(LENGTHS, name=f"length_{lane}")
        within = Signal(LENGTHS - 1, name=f"within_{lane}")
        m.d.comb += [
            window.eq(held[14:]),
            within.eq(Cat((window < limit) | full
                          for limit, full in zip(self.book.limits, self.book.full, strict=True))),
            length.eq(Cat((within[0] & code) | one,
                          *(within[k] & ~within[k - 1] & code for k in range(1, LENGTHS - 1)),
                          (~within[-1] & code) | eight)),
        ]
        # It holds 16 - part bits if it asks, or 8 if part is 0.
        places = [part[(16 - place) % 8] & asks for place in range(8, 16)]
        come = Signal(15, name=f"come_{lane}")  # below the first 8 bits of what it holds
        m.d.comb += come.eq(Cat(Cat(places[place] & byte[bit + place - 7] for place in range(8)
                                    if 0 <= bit + place - 7 < 8).any() for bit in range(15)))
        merged = Signal(22, name=f"merged_{lane}")  # without the first bit, which goes in any case
        m.d.comb += merged.eq(Cat(0, held[:21]) | come)
        with m.If(goes | ~self.busy):
            m.d.sync += [
                held.eq(choose([(taken, (merged << by)[:22]) for by, taken in enumerate(length)])),
                part.eq(choose([(taken, part.rotate_left(by)) for by, taken in enumerate(length, 1)]) | ~self.busy),
            ]
        # A code takes more than 8 - r bits if it is not within those of so many.
        m.d.comb += asks_next.eq(part[0] | eight | ~self.busy
                                 | (code & Cat(part[r] & ~within[7 - r] for r in range(1, 8)).any()))
        return window, length

    def _symbol(self, m, lane, advance, taken, kinds, window, length, eight):
        """What a lane took as a symbol: its code, the byte of a short escape, or the two bytes of a wide one."""
        first, second, third = kinds
        seen, size = (Signal(8, reset_less=True, name=f"{name}_{lane}") for name in ("seen", "size"))
        gives = Signal(reset_less=True, name=f"gives_{lane}")
        symbol, outlier = Signal(12, reset_less=True, name=f"symbol_{lane}"), Signal(reset_less=True,
                                                                                    name=f"outlier_{lane}")
        with m.If(advance):
            m.d.sync += [seen.eq(window), size.eq(length), gives.eq(eight)]
        base = choose([(one, Cat(seen[7 - k :], Const(0, 7 - k))) for k, one in enumerate(size)])
        less = choose(list(zip(size, self.book.delta, strict=True)))
        total = Signal(9, name=f"total_{lane}")
        m.d.comb += total.eq(base + Mux(first, less, self.book.escape))
        wide, far = seen[5:].all(), seen[4:].all()
        with m.If(advance & taken):
            with m.If(first):
                m.d.sync += [symbol.eq(total[:8]), outlier.eq(0)]
            with m.Elif(second & gives):
                m.d.sync += [symbol.eq(Mux(wide, Cat(Const(0, 8), seen[:4]), total)), outlier.eq(far)]
            with m.Elif(third & gives):
                m.d.sync += symbol[:8].eq(seen)
        m.d.comb += [self.o.p.data[lane].eq(symbol), self.o.p.outliers[lane].eq(outlier)]
