"""What a coder of run lengths keeps: the values of a block, and the beginning of its bytes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact.rld import SLOTS
from actcodec.rtl.jpegact.rle import WORD
from actcodec.rtl.jpegact.zigzag import ZIGZAG

__all__ = ["ROW", "WORDS", "BlockStore"]

WORDS = 6  # of a row
ROW = WORDS * WORD  # bits


class BlockStore(wiring.Component):
    """64 values with a bit for each, and three rows of 18 bytes.

    Values come in as lines, or one by one, and go out in the same ways. Their bits say what is not zero: compressing,
    what is still to be coded; decompressing, what has been written, so that the rest is zero. Rows are written whole,
    or word by word, and read whole and word by word at the same time, from the same row.

    Combinational paths: from what selects to what is read.

    Ports
    -----
    decompress : input
    line, value : input
        What is written: a line, or, decompressing, a value; the other one is 0.
    column, row, bits : input
        Where, one-hot or all, and what becomes of the bits there, by rows.
    pick, clear : input
        Bits that are cleared, in zigzag order, and columns of them.
    mask : output
        The bits in zigzag order.
    column_out, row_out, line_out, value_out : input, input, output, output
        A line; one of its values.
    bytes, word : input
        What is written: a row, decompressing, or a word; the other one is 0.
    into, into_word : input
        Rows, and which words of it: all of them, decompressing.
    slot, place : input
        One-hot: a row, and a word of it.
    bytes_out, word_out, first : output
        These, and the first two words of the first row.
    """

    decompress: In(1)
    line: In(64)
    value: In(8)
    column: In(8)
    row: In(8)
    bits: In(8)
    pick: In(64)
    clear: In(8)
    mask: Out(64)
    column_out: In(8)
    row_out: In(8)
    line_out: Out(64)
    value_out: Out(8)
    bytes: In(ROW)
    word: In(WORD)
    into: In(SLOTS)
    into_word: In(WORDS)
    slot: In(SLOTS)
    place: In(WORDS)
    bytes_out: Out(ROW)
    word_out: Out(WORD)
    first: Out(2 * WORD)

    def elaborate(self, platform):
        m = Module()
        lanes = [Signal(8, name=f"lane_{v}") for v in range(8)]
        m.d.comb += [lane.eq(self.value | self.line.word_select(v, 8)) for v, lane in enumerate(lanes)]
        shown = [[] for _ in range(8)]
        for place, (v, j) in enumerate(ZIGZAG):
            cell, bit = Signal(8, reset_less=True, name=f"cell_{v}_{j}"), Signal(name=f"bit_{v}_{j}")
            writes = self.column[j] & self.row[v]
            with m.If(writes):
                m.d.sync += cell.eq(lanes[v])
            # A bit is 0 when it is written, or becomes 1: an OR, not a multiplexer.
            m.d.sync += bit.eq((writes & self.bits[v]) | (bit & ~self.pick[place] & ~self.clear[j]))
            m.d.comb += self.mask[place].eq(bit)
            reads = Signal(name=f"reads_{v}_{j}")
            m.d.comb += reads.eq(self.column_out[j] & (bit | ~self.decompress))
            shown[v].append((reads, cell))
        m.d.comb += [
            self.line_out.eq(Cat(choose(cells) for cells in shown)),
            self.value_out.eq(choose((self.row_out[v], self.line_out.word_select(v, 8)) for v in range(8))),
        ]

        write_data = Signal(ROW)
        m.d.comb += write_data.eq(self.bytes | self.word.replicate(WORDS))
        slots = []
        for s in range(SLOTS):
            slots.append(Signal(ROW, reset_less=True, name=f"slot_{s}"))
            for k in range(WORDS):
                with m.If(self.into[s] & self.into_word[k]):
                    m.d.sync += slots[s].word_select(k, WORD).eq(write_data.word_select(k, WORD))
        m.d.comb += [
            self.bytes_out.eq(choose(zip(self.slot, slots, strict=True))),
            self.word_out.eq(choose((self.place[k], self.bytes_out.word_select(k, WORD)) for k in range(WORDS))),
            self.first.eq(slots[0]),
        ]
        return m
