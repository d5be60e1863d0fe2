"""RLD: JPEG's run lengths and Huffman codes back to the values of a block, a symbol a cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact import huffman
from actcodec.rtl.jpegact.rle import MOST, WORD
from actcodec.rtl.jpegact.zigzag import ZIGZAG

__all__ = ["SLOTS", "Decoder", "Faults"]

WINDOW = 3 * WORD - 1  # bits that are here at most, of which the first word is always complete
SLOTS = 3  # rows of a block's bytes that are kept


class Faults(data.Struct):
    """Why blocks of a stream are malformed."""

    code: 1  # a code that is in no table
    run: 1  # a run that goes beyond coefficient 63
    cut: 1  # an end before the block is complete


class Decoder(wiring.Component):
    """Decodes one block after the other.

    The window's first 24 bits are a symbol, code and value. It is shifted by as many as they take; a word is put behind
    what is left when that is less than 48. Run and category go to the next stage, which adds up places, finds faults,
    and sees the end, a cycle after the symbol: what is shifted meanwhile does not count. DC's symbol is decoded while
    the block's first words come in.

    Throughput: a symbol a cycle; a block with fewer than 64 takes one cycle more. Latency: 3 cycles from ``waiting`` to
    the first write. Combinational paths: ``stall`` to all outputs.

    Source: JPEG-ACT, section III-E (RLE); ITU-T T.81, section F.2.2.

    Ports
    -----
    start : input
        Pulse: nothing is here.
    waiting, first, length, loads : input, input, input, output
        A block is there, with its first two words and how many bytes it has; it is begun.
    idle : output
        No block is under way.
    slot, place, word, there, passes : output, output, input, input, output
        The next word is wanted from slot (one-hot) and place (one-hot, 6 words a slot); it is there, or there is none;
        the slot's last one has been taken.
    write, column, row, value : output
        A value, and its place, one-hot.
    early, ends, may : output, output, input
        The block is complete but for coefficient 63, which follows at once; or, unless that could be told (``may``), it
        is complete.
    own : output
        What is written belongs to the block that was said to be complete.
    stall : input
        Writing and the end have to wait.
    faults : output, :class:`Faults`
        Pulses.
    """

    start: In(1)
    waiting: In(1)
    first: In(2 * WORD)
    length: In(8)
    loads: Out(1)
    idle: Out(1)
    slot: Out(SLOTS)
    place: Out(6)
    word: In(WORD)
    there: In(1)
    passes: Out(1)
    write: Out(1)
    column: Out(8)
    row: Out(8)
    value: Out(8)
    early: Out(1)
    ends: Out(1)
    may: In(1)
    own: Out(1)
    stall: In(1)
    faults: Out(Faults)

    def elaborate(self, platform):
        m = Module()
        advance = Signal()
        m.d.comb += advance.eq(~self.stall)

        # ------------------------------------------------------------------------------------------------- the window
        idle = Signal(init=1)
        step, stops, finishes = Signal(), Signal(), Signal()
        bits = Signal(WINDOW - 2, reset_less=True)
        whole, level = Signal(reset_less=True), Signal(range(WORD), reset_less=True)  # two words and `level`, or one
        number = Signal(6)
        ahead, known = Signal(WORD, reset_less=True), Signal()  # the next word
        size = Signal(5)
        m.d.comb += [
            self.idle.eq(idle),
            self.loads.eq(idle & self.waiting & advance),
            step.eq(Mux(idle, self.waiting, whole | known) & advance),
        ]
        placed = Signal(2 * WORD - 1)
        m.d.comb += placed.eq((ahead & (~whole).replicate(WORD)) << level)
        source = Mux(idle, self.first, Cat(bits[:WORD], bits[WORD:] | placed))
        shown = Signal(8 + WINDOW)
        m.d.comb += shown.eq(Cat(Const(0, 8), source))
        near, shifted = Signal(8 + WINDOW + 5), Signal(8 + WINDOW - 2)
        m.d.comb += [near.eq(choose((size[3:] == k, shown[8 * k :]) for k in range(4))),
                     shifted.eq(choose((size[:3] == k, near[k:]) for k in range(8)))]
        less, more = Signal(6), Signal(6)
        m.d.comb += [less.eq(level - size), more.eq(level + WORD - size)]
        value = Signal(8, reset_less=True)
        with m.If(step):
            m.d.sync += [
                value.eq(shifted[:8]), bits.eq(shifted[8:]), whole.eq(~less[5]),
                level.eq(Mux(less[5], more[:5], less[:5])), number.eq(number + 1),
            ]
        takes = (~known | (step & (idle | ~whole))) & advance
        slot, place = Signal(SLOTS, init=1), Signal(6, init=1 << 2)
        m.d.comb += [self.slot.eq(slot), self.place.eq(place)]
        read = Signal()
        m.d.comb += [read.eq(takes & self.there & (~idle | self.waiting)), self.passes.eq(read & place[5])]
        with m.If(read):
            m.d.sync += [ahead.eq(self.word), place.eq(place.rotate_left(1))]
            with m.If(place[5]):
                m.d.sync += slot.eq(slot.rotate_left(1))
        with m.If(takes):
            m.d.sync += known.eq(read)

        # -------------------------------------------------------------------------------------------------- the symbol
        category_dc, size_dc, bad_dc = huffman.decode_dc(m, self.first)
        run_ac, category_ac, size_ac, end_ac, bad_ac = huffman.decode_ac(m, bits)
        m.d.comb += size.eq(Mux(idle, size_dc, size_ac))
        valid, final = Signal(), Signal(reset_less=True)
        run, category, taken = (Signal(width, reset_less=True, name=name)
                                for width, name in ((4, "run"), (4, "category"), (5, "taken")))
        end, bad = Signal(reset_less=True), Signal(reset_less=True)
        m.d.comb += finishes.eq(step & (number == MOST - 1))
        with m.If(step):
            m.d.sync += [
                run.eq(run_ac & (~idle).replicate(4)), category.eq(Mux(idle, category_dc, category_ac)),
                taken.eq(size), end.eq(end_ac & ~idle), bad.eq(Mux(idle, bad_dc, bad_ac)), final.eq(finishes),
            ]
        with m.If(advance):
            m.d.sync += valid.eq(step & ~stops)

        # -------------------------------------------------------------------------------------------- places and ends
        where, left = Signal(6, reset_less=True), Signal(11, reset_less=True)  # what comes next; bits
        at, rest = Signal(7), Signal(12)
        zrl = run.all() & ~category.any()
        cut, beyond, complete, good = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            at.eq(where + run),
            rest.eq(left - taken),
            cut.eq(rest[11]),
            beyond.eq(at[6] | (zrl & at[:6].all())),
            good.eq(~cut & ~bad & ~beyond),
            complete.eq(end | ~good | at[:6].all()),
            stops.eq(valid & complete & ~final),
            self.faults.cut.eq(valid & advance & cut),
            self.faults.code.eq(valid & advance & ~cut & bad),
            self.faults.run.eq(valid & advance & ~cut & ~bad & beyond),
        ]
        with m.If(self.loads):
            m.d.sync += [where.eq(0), left.eq(Cat(Const(0, 3), self.length))]
        with m.Elif(valid & advance):
            m.d.sync += [where.eq(at + 1), left.eq(rest)]
        with m.If(self.start | (advance & (finishes | stops))):
            m.d.sync += [idle.eq(1), known.eq(0), slot.eq(1), place.eq(1 << 2), level.eq(0), number.eq(0)]
        with m.Elif(self.loads):
            m.d.sync += idle.eq(0)
        with m.If(self.start):
            m.d.sync += valid.eq(0)

        mask = Cat(category > k for k in range(8))
        negative = ~choose((category == k, value[8 - k]) for k in range(1, 9)) & category.any()
        own = Signal(8)  # the value's own bits, the last one first
        m.d.comb += own.eq(value[::-1] & mask)
        ready, target = Signal(), Signal(6, reset_less=True)
        writes, result = Signal(reset_less=True), Signal(8, reset_less=True)
        last, told = Signal(reset_less=True), Signal(reset_less=True)
        with m.If(advance):
            m.d.sync += [
                ready.eq(valid), target.eq(at), last.eq(complete), told.eq(complete & self.may),
                writes.eq(good & ~zrl & ~end),
                result.eq((own | ~(mask | (~negative).replicate(8))) + negative),
            ]
        with m.If(self.start):
            m.d.sync += ready.eq(0)
        m.d.comb += [self.write.eq(ready & writes), self.early.eq(valid & complete & self.may & advance),
                     self.ends.eq(ready & last & ~told), self.own.eq(told), self.value.eq(result)]
        one_hot = Signal(64)
        m.d.comb += one_hot.eq(1 << target)
        for axis, digit in enumerate((self.row, self.column)):
            m.d.comb += digit.eq(Cat(Cat(one_hot[p] for p in range(64) if ZIGZAG[p][axis] == k).any()
                                     for k in range(8)))
        return m
