"""RLD: JPEG's run lengths and Huffman codes back to the values of a block, a symbol a cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact import huffman
from actcodec.rtl.jpegact.rle import MOST, WORD
from actcodec.rtl.jpegact.zigzag import ZIGZAG

__all__ = ["SLOTS", "Decoder", "Faults"]

SLOTS = 3  # rows of a block's bytes that are kept


class Faults(data.Struct):
    """Why blocks of a stream are malformed."""

    code: 1  # a code that is in no table
    run: 1  # a run that goes beyond coefficient 63
    cut: 1  # an end before the block is complete


class Decoder(wiring.Component):
    """Decodes one block after the other.

    The next 24 bits, the head, are a symbol, code and value, and what follows. They are shifted by as many as the
    symbol takes, and filled up from the words behind them, which stay where they are: how many bits of a word are in
    the head is known from the cycle before, so that words are turned while the symbol is looked up. Run and category go
    to the next stage, which adds up places, finds faults, and sees the end, a cycle after the symbol: what is shifted
    meanwhile does not count. DC's symbol is decoded while the block's first words come in.

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
        The next word is requested from slot (one-hot) and place (one-hot, 6 words per slot); it is there, or there is
        none; the slot's last one has been read.
    write, column, row, value : output
        A value, and its place, one-hot.
    early, ends, may : output, output, input
        The block is complete but for coefficient 63, which follows at once; or, unless that could be told (``may``), it
        is complete.
    own : output
        What is written belongs to the block that ``early`` declared complete.
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
        """A Huffman decoder is a loop: the code's length moves the window that the next code is read from. Two things
        keep it to one cycle. The size of a symbol is looked up as two one-hot digits (``size``), which select the
        shifts of ``shown`` directly, without an adder. And the words after the head are not shifted along: ``rest``
        and ``ahead`` stay, and are rotated by ``low`` and ``high``, the number of bits of ``rest`` already in the head,
        while the symbol is being looked up. Places, faults and the end of a block are found a cycle later, in the next
        pipeline stage, and cancel (``stops``) the one symbol that was decoded too many."""

        m = Module()
        advance = Signal()
        m.d.comb += advance.eq(~self.stall)

        # ------------------------------------------------------------------------------------------------- the window
        idle = Signal(init=1)
        step, stops, finishes = Signal(), Signal(), Signal()
        head, rest = Signal(WORD, reset_less=True), Signal(WORD, reset_less=True)
        ahead, known = Signal(WORD, reset_less=True), Signal()  # the next word
        low, high = Signal(3), Signal(3, init=1)  # bits of `rest` that are in the head: a digit, and one of 8, one-hot
        number = Signal(6)
        size = Signal(12)  # two digits, one-hot
        m.d.comb += [
            self.idle.eq(idle),
            self.loads.eq(idle & self.waiting & advance),
            step.eq(Mux(idle, self.waiting, known) & advance),
        ]
        used = Cat(high[j // 8 + 1 :].any() | (high[j // 8] & (low > j % 8)) for j in range(WORD))
        first, second = self.first[:WORD], self.first[WORD:]
        mixed, turned = Signal(WORD), Signal(WORD)
        m.d.comb += [
            mixed.eq(Mux(idle, second, (ahead & used) | (rest & ~used))),
            turned.eq(choose((high[k], mixed.rotate_right(8 * k)) for k in range(3))),
        ]
        for bit in range(3):
            before, turned = turned, Signal(WORD, name=f"turned_{1 << bit}")
            m.d.comb += turned.eq(Mux(low[bit], before.rotate_right(1 << bit), before))
        shown, near, shifted = Signal(8 + 2 * WORD), Signal(8 + WORD + 7), Signal(8 + WORD)
        m.d.comb += [
            shown.eq(Cat(Const(0, 8), Mux(idle, first, head), turned)),
            near.eq(choose((size[8 + k], shown[8 * k :]) for k in range(4))),
            shifted.eq(choose((size[k], near[k:]) for k in range(8))),
        ]
        # What comes last is whether the lower digit carries.
        lower, upper, over = Signal(4), Signal(3), Signal()
        sums = [choose((size[8 + k], Cat(high.rotate_left((k + carry) % 3), high[max(0, 3 - k - carry) :].any()))
                       for k in range(4)) for carry in range(2)]
        m.d.comb += [
            lower.eq(choose((size[k], (low + k)[:4]) for k in range(8))),
            Cat(upper, over).eq(Mux(lower[3], sums[1], sums[0])),
        ]
        value = Signal(8, reset_less=True)
        with m.If(step):
            m.d.sync += [value.eq(shifted[:8]), head.eq(shifted[8:]), low.eq(lower), high.eq(upper),
                         number.eq(number + 1)]
        with m.If(step & (idle | over)):
            m.d.sync += rest.eq(Mux(idle, second, ahead))
        fills, takes, read = Signal(), Signal(), Signal()  # `over` comes late
        slot, place = Signal(SLOTS, init=1), Signal(6, init=1 << 2)
        m.d.comb += [self.slot.eq(slot), self.place.eq(place)]
        m.d.comb += [
            fills.eq(self.there & (~idle | self.waiting) & advance),
            takes.eq((~known & advance) | (step & over)),
            read.eq((fills & ~known) | (fills & step & over)),
            self.passes.eq(read & place[5]),
        ]
        # By gates, not by an enable: `over` comes too late for a clock gate.
        late = ~known | (step & over)
        with m.If(fills):
            m.d.sync += ahead.eq((self.word & late.replicate(WORD)) | (ahead & ~late.replicate(WORD)))
        with m.If(read):
            m.d.sync += place.eq(place.rotate_left(1))
            with m.If(place[5]):
                m.d.sync += slot.eq(slot.rotate_left(1))
        with m.If(takes):
            m.d.sync += known.eq(read)

        # -------------------------------------------------------------------------------------------------- the symbol
        category_dc, size_dc, bad_dc = huffman.decode_dc(m, first)
        run_ac, category_ac, size_ac, end_ac, bad_ac = huffman.decode_ac(m, head)
        m.d.comb += size.eq(Mux(idle, size_dc, size_ac))
        valid, final = Signal(), Signal(reset_less=True)
        run, category, bit_count = (Signal(width, reset_less=True, name=name)
                                    for width, name in ((4, "run"), (4, "category"), (5, "bit_count")))
        end, bad = Signal(reset_less=True), Signal(reset_less=True)
        m.d.comb += finishes.eq(step & (number == MOST - 1))
        with m.If(step):
            m.d.sync += [
                run.eq(run_ac & (~idle).replicate(4)), category.eq(Mux(idle, category_dc, category_ac)),
                bit_count.eq(Cat(*(Cat(size[k] for k in range(8) if k >> bit & 1).any() for bit in range(3)),
                                 *(Cat(size[8 + k] for k in range(4) if k >> bit & 1).any() for bit in range(2)))),
                end.eq(end_ac & ~idle), bad.eq(Mux(idle, bad_dc, bad_ac)), final.eq(finishes),
            ]
        with m.If(advance):
            m.d.sync += valid.eq(step & ~stops)

        # -------------------------------------------------------------------------------------------- places and ends
        where, left = Signal(6, reset_less=True), Signal(11, reset_less=True)  # what comes next; bits
        at, sum_ = Signal(6), Signal(5)
        zrl = run.all() & ~category.any()
        cut, beyond, ended, complete, good = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            sum_.eq(where[:4] + run),
            at.eq(Cat(sum_[:4], where[4:] + sum_[4])),
            cut.eq(~left[5:].any() & (left[:5] < bit_count)),
            ended.eq(where[4:].all() & (where[:4] ^ run).all()),  # coefficient 63
            beyond.eq(where[4:].all() & (sum_[4] | (zrl & ~where[:4].any()))),
            good.eq(~cut & ~bad & ~beyond),
            complete.eq(end | cut | bad | beyond | ended),
            stops.eq(valid & complete & ~final),
            self.faults.cut.eq(valid & advance & cut),
            self.faults.code.eq(valid & advance & ~cut & bad),
            self.faults.run.eq(valid & advance & ~cut & ~bad & beyond),
        ]
        with m.If(self.loads):
            m.d.sync += [where.eq(0), left.eq(Cat(Const(0, 3), self.length))]
        with m.Elif(valid & advance):
            m.d.sync += [where.eq(at + 1), left.eq(left - bit_count)]
        with m.If(self.start | (advance & (finishes | stops))):
            m.d.sync += [idle.eq(1), known.eq(0), slot.eq(1), place.eq(1 << 2), low.eq(0), high.eq(1),
                         number.eq(0)]
        with m.Elif(self.loads):
            m.d.sync += idle.eq(0)
        with m.If(self.start):
            m.d.sync += valid.eq(0)

        mask = Cat(category > k for k in range(8))
        negative = ~choose((category == k, value[8 - k]) for k in range(1, 9)) & category.any()
        own = Signal(8)  # the value's own bits, the last one first
        m.d.comb += own.eq(value[::-1] & mask)
        ready = Signal()
        writes, result = Signal(reset_less=True), Signal(8, reset_less=True)
        last, was_early = Signal(reset_less=True), Signal(reset_less=True)
        with m.If(advance):
            m.d.sync += [
                ready.eq(valid), last.eq(complete), was_early.eq(complete & self.may),
                writes.eq(good & ~zrl & ~end),
                result.eq((own | ~(mask | (~negative).replicate(8))) + negative),
            ]
        # Decoded in front of the register, since a column that has not left yet stalls everything.
        for axis, digit in enumerate((self.row, self.column)):
            register = Signal(8, reset_less=True, name=("row", "column")[axis])
            with m.If(advance):
                m.d.sync += register.eq(Cat(_among(at, [p for p in range(64) if ZIGZAG[p][axis] == k])
                                            for k in range(8)))
            m.d.comb += digit.eq(register)
        with m.If(self.start):
            m.d.sync += ready.eq(0)
        m.d.comb += [self.write.eq(ready & writes), self.early.eq(valid & complete & self.may & advance),
                     self.ends.eq(ready & last & ~was_early), self.own.eq(was_early), self.value.eq(result)]
        return m


def _among(number, places):
    """Whether a number of 6 bits is one of ``places``, by eights: fewer gates than one for each place."""
    return Cat((number[3:] == eight) & Cat(number[:3] == p % 8 for p in places if p // 8 == eight).any()
               for eight in range(8)).any()
