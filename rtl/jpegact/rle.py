"""RLE: the values of a block as JPEG's run lengths and Huffman codes, a symbol a cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact import huffman
from actcodec.rtl.jpegact.zigzag import ZIGZAG, diagonal

__all__ = ["WORD", "Encoder"]

WORD = 24  # bits that are stored at once: no symbol has more
MOST = 64  # symbols of a block


class Encoder(wiring.Component):
    """Codes one block after the other.

    Lines come in one by one. What is not zero is picked in zigzag order, as far as the lines that are here reach: DC,
    the values of other coefficients that are not zero, and behind them EOB, unless the last one is coefficient 63. The
    value is read elsewhere, where lines are kept. Six stages: pick; run and value's bits; category; code; code and
    bits; packing to words. A run of 16 and more waits for its ZRLs. The last word is filled with ones.

    Throughput: a symbol a cycle; a block with fewer than 64 takes one cycle more. Latency: 7 cycles from a symbol's
    pick to the word that it completes. Combinational paths: ``may`` and ``free`` to all outputs.

    Source: JPEG-ACT, section III-E (RLE); ITU-T T.81, section F.1.2.

    Ports
    -----
    start : input
        Pulse: nothing is here.
    ready, line : output, input
        The next line of a block may come, and comes. Its values may be overwritten by then.
    last : input
        With a block's last line: it is the last one of the tensor.
    mask : input
        What is not zero, in zigzag order, of the block that comes in; coefficient 0 counts as not zero. A cycle behind
        its line.
    pick : output
        One bit, that is to be cleared in ``mask``.
    column, row, value : output, output, input
        One-hot, or 0: the value that is wanted.
    word, store, line_of, word_of : output
        A word, the first bit at the low end; in which ``row`` of 6 words (3 bits) and in which word (one-hot) it is to
        be stored.
    may : input
        It is.
    ends, length, closing, free : output, output, output, input
        The block is complete with that word, and the bytes it has, and whether it was the last one; if it may.
    """

    start: In(1)
    ready: Out(1)
    line: In(1)
    last: In(1)
    mask: In(64)
    pick: Out(64)
    column: Out(8)
    row: Out(8)
    value: In(8)
    word: Out(WORD)
    store: Out(1)
    line_of: Out(3)
    word_of: Out(6)
    may: In(1)
    ends: Out(1)
    length: Out(8)
    closing: Out(1)
    free: In(1)

    def elaborate(self, platform):
        m = Module()
        self._m = m
        advance, hold = Signal(), Signal()
        self._advance = advance
        picked = self._pick(m, advance & ~hold)
        coded = self._runs(m, picked, hold)
        self._pack(m, self._code(m, *coded))
        # Nothing that comes after a block's last symbol has reached its words when it ends.
        m.d.comb += advance.eq(~((self.store & ~self.may) | (self.ends & ~self.free)))
        return m

    def _at(self, *assignments, when=1):
        with self._m.If(self._advance & when):
            self._m.d.sync += assignments

    def _stage(self, value, name):
        register = Signal(len(value), name=name, reset_less=True)
        self._at(register.eq(value))
        return register

    def _valid(self, m, value):
        """A stage of it, which a start clears."""
        register = Signal(name="valid")
        self._at(register.eq(value))
        with m.If(self.start):
            m.d.sync += register.eq(0)
        return register

    def _pick(self, m, step):
        """Which symbol is next: of what, where it is, what it is to the block."""
        arrived = Signal(8)  # a bit for each line of the block that is here
        whole, early = Signal(), Signal()  # all of them are; the next block's first one is, too
        last = Signal(reset_less=True)
        number = Signal(6)  # symbols of the block so far
        candidates = Signal(64)
        m.d.comb += candidates.eq(Cat(self.mask[p] & (whole if p == 63 else arrived[min(diagonal(p), 7)])
                                             for p in range(64)))
        groups = [candidates[8 * g :][:8] for g in range(8)]
        some = Signal(8)
        m.d.comb += some.eq(Cat(group.any() for group in groups))
        first = Signal(64)
        for g, group in enumerate(groups):
            for k in range(8):
                m.d.comb += first[8 * g + k].eq(group[k] & ~group[:k].any() & ~some[:g].any())
        end, present, finishes = Signal(), Signal(), Signal()
        m.d.comb += [
            end.eq(whole & ~some.any()),
            present.eq(some.any() | whole),
            finishes.eq(step & (end | first[63])),
            self.pick.eq(Mux(step, first, 0)),
        ]
        # Of a block with 64 symbols only coefficient 63 is left when the next line comes, whether it is picked by then
        # or not: readiness follows from registers. While it waits for its turn to be read, the last line must not come.
        valid, column, row = Signal(), Signal(8, reset_less=True), Signal(8, reset_less=True)
        reads = column[7] & row[7]
        m.d.comb += self.ready.eq((~whole | ((number == MOST - 1) & ~early)) & ~(arrived[6] & ~arrived[7] & reads))
        with m.If(finishes):
            m.d.sync += [arrived.eq(self.line | early), whole.eq(0), early.eq(0)]
        with m.Elif(self.line & whole):
            m.d.sync += [arrived.eq(0), early.eq(1)]
        with m.Elif(self.line):
            m.d.sync += [arrived.eq(Cat(Const(1, 1), arrived)), whole.eq(arrived[6]), last.eq(self.last)]
        with m.If(step & present):
            m.d.sync += number.eq(Mux(finishes, 0, number + 1))
        with m.If(self.start):
            m.d.sync += [arrived.eq(0), whole.eq(0), early.eq(0), number.eq(0), valid.eq(0)]
        with m.Elif(step):
            m.d.sync += valid.eq(present)

        place = Signal(6, reset_less=True)
        fine = Cat(Cat(first[8 * g + k] for g in range(8)).any() for k in range(8))
        coarse = Cat(first[8 * g :][:8].any() for g in range(8))
        binary = [Cat(Cat(digit[k] for k in range(8) if k >> bit & 1).any() for bit in range(3))
                  for digit in (fine, coarse)]
        flags = Signal(4, reset_less=True)
        with m.If(step):
            m.d.sync += [
                column.eq(Cat(Cat(first[p] for p in range(64) if ZIGZAG[p][1] == k).any() for k in range(8))),
                row.eq(Cat(Cat(first[p] for p in range(64) if ZIGZAG[p][0] == k).any() for k in range(8))),
                place.eq(Cat(*binary)),
                flags.eq(Cat(first[0], end, end | first[63], last)),
            ]
        m.d.comb += [self.column.eq(column), self.row.eq(row)]
        return valid, place, flags

    def _runs(self, m, picked, hold):
        """The run in front of each symbol, the bits of its value, and its sign."""
        valid, place, (dc, end, finishes, last) = picked
        before = Signal(6, reset_less=True)
        run, bits, sign = Signal(6, reset_less=True), Signal(8, reset_less=True), Signal(reset_less=True)
        there, flags = Signal(), Signal(4, reset_less=True)
        zeros = (place + ~before)[:6] & (~(dc | end)).replicate(6)
        self._at(before.eq(place), when=~hold & valid)
        self._at(run.eq(zeros), bits.eq(self.value - self.value[7]), sign.eq(self.value[7]),
                 there.eq(valid), flags.eq(Cat(dc, end, finishes, last)), when=~hold)
        self._at(run[4:].eq(run[4:] - 1), when=hold)
        m.d.comb += hold.eq(there & run[4:].any())
        with m.If(self.start):
            m.d.sync += there.eq(0)
        return there, run, bits, sign, flags, hold

    def _code(self, m, there, run, bits, sign, flags, zrl):
        """The symbol's code and its value's bits behind it."""
        dc, _, finishes, last = flags
        size = bits ^ sign.replicate(8)
        category = Signal(4)
        for k in range(8):
            with m.If(size[k]):
                m.d.comb += category.eq(k + 1)
        known = self._valid(m, there)
        dc, category = self._stage(dc, "dc"), self._stage(category & (~zrl).replicate(4), "category")
        run, value = self._stage(run[:4] | zrl.replicate(4), "run"), self._stage(bits, "bits")
        finishes, last = self._stage(finishes & ~zrl, "finishes"), self._stage(last, "last")

        code_dc, length_dc = huffman.encode_dc(m, category)
        code_ac, length_ac = huffman.encode_ac(m, run, category)
        valid = self._valid(m, known)
        code = self._stage(Mux(dc, code_dc, code_ac), "code")
        length = self._stage(Mux(dc, length_dc, length_ac), "length")
        number, value = self._stage(category, "number"), self._stage(value, "bits")
        finishes, last = self._stage(finishes, "finishes"), self._stage(last, "last")

        # From the first bit of the value on, which stands in front of `number` others.
        ordered = choose((number == k, value[:k][::-1]) for k in range(1, 9))
        behind = (ordered << length)[:WORD]
        data, total = self._stage(Cat(code, Const(0, 8)) | behind, "data"), self._stage((length + number)[:5], "total")
        return self._valid(m, valid), data, total, self._stage(finishes, "finishes"), self._stage(last, "last")

    def _pack(self, m, symbol):
        """Symbols to words of 24 bits."""
        valid, data, total, finishes, last = symbol
        rest, level = Signal(WORD, reset_less=True), Signal(range(WORD))  # bits of a word that is not full
        flush, was_last = Signal(), Signal(reset_less=True)  # the block has ended with them
        begin = Signal(range(WORD))
        placed = Signal(2 * WORD - 1)
        m.d.comb += [begin.eq(level & (~flush).replicate(5)), placed.eq(data << begin)]
        end, beyond = Signal(6), Signal(6)
        m.d.comb += [end.eq(begin + total), beyond.eq(begin + total + 64 - WORD)]
        over = ~beyond[5]  # there is no more than 24 + 23
        ones = Cat(level <= k for k in range(WORD))
        self._at(
            rest.eq(choose([(valid & over, placed[WORD:]), (valid & ~over, placed[:WORD])])
                    | (rest & ~(flush | (valid & over)).replicate(WORD))),
            level.eq(Mux(valid & over, beyond[:5], Mux(valid, end[:5], begin))),
            flush.eq(valid & finishes),
            was_last.eq(last),
        )

        store, ends = Signal(), Signal()
        tail, row, place = Signal(2, reset_less=True), Signal(3), Signal(6, init=1)
        word = Signal(WORD, reset_less=True)
        self._at(
            word.eq(rest | choose([(flush, ones), (~flush, placed[:WORD])])),
            store.eq(Mux(flush, level.any(), valid & over)),
            ends.eq(flush),
            tail.eq(Cat((level > 0) & ~(level > 8) | (level > 16), level > 8)),
            self.closing.eq(was_last),
        )
        words = choose((bit, 3 * k) for k, bit in enumerate(place))
        m.d.comb += [self.word.eq(word), self.store.eq(store), self.ends.eq(ends), self.line_of.eq(row),
                     self.word_of.eq(place), self.length.eq((row << 4) + ((row << 1) + (words + tail)))]
        self._at(place.eq(place.rotate_left(1)), row.eq(row + place[5]), when=store)
        with m.If((self._advance & ends) | self.start):
            m.d.sync += [place.eq(1), row.eq(0)]
        with m.If(self.start):
            m.d.sync += [level.eq(0), rest.eq(0), flush.eq(0), store.eq(0), ends.eq(0)]
        return m
