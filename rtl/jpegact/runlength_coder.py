"""One coder of RLE and RLD, with what it keeps of its block."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact.block_store import ROW, WORDS, BlockStore
from actcodec.rtl.jpegact.rld import SLOTS, Decoder, Faults
from actcodec.rtl.jpegact.rle import WORD, Encoder

__all__ = ["ROWS", "Coder", "mirrored"]

ROWS = 8  # which are the 144 bytes of the longest block


def mirrored(row):
    """Bits as they are sent to bytes, whose most significant bit is sent first, and back."""
    return Cat(row.word_select(k, 8)[::-1] for k in range(len(row) // 8))


class Coder(wiring.Component):
    """Encoder and decoder of one block at a time, with the block's values and the first three rows of its bytes.

    Lines and rows of all coders come over the same ports, to the one whose ``turn`` it is, and leave from the one that
    may say ``mine``; who counts them is :class:`~actcodec.rtl.jpegact.runlength.RunLength`. The next block comes in
    while the one before leaves: what is written takes the place of what has left (``vacant``).

    Throughput, latency: those of :class:`~actcodec.rtl.jpegact.rle.Encoder` and
    :class:`~actcodec.rtl.jpegact.rld.Decoder`. Buffering: 64 values and 54 bytes. Combinational paths: from all that
    says what enters and leaves to ``room``, ``ends`` and what is shown.

    Source: JPEG-ACT, section III-E (RLE).

    Ports
    -----
    start, decompress : input
        Pulse: nothing is here; and the direction, which counts from the cycle behind.
    turn, phase, slot, enters : input
        What comes next is this coder's; it is that line or row of its block (one-hot), which of three rows it is kept
        in (one-hot), row after row; it comes.
    room : output
        There is room for it.
    line, nonzero : input
        A line, and which of its values are not zero; the line is 0 when decompressing.
    bytes, number, more : input
        A row, 0 when compressing, and how many bytes the block has from it on; of all but its first row, whether it has
        any, which is known earlier.
    last : input
        The line or row is the tensor's last one.
    done, mine, leaving, leaves, gone : input
        A complete block is here; it is its turn to leave; a line or chunk of that block (one-hot), and that it leaves;
        those that have left before it.
    ends, closing, length : output
        The block is complete; it is the tensor's last one; the bytes it has.
    word, beyond, into_word : output
        A word of the encoder; into which of the rows that coders share it has to be written (one-hot, or none), and
        into which of a row's words.
    bytes_out, line_out : output
        The row, or the line, of ``leaving``.
    faults : output, :class:`~actcodec.rtl.jpegact.rld.Faults`
        Pulses.
    """

    start: In(1)
    decompress: In(1)
    turn: In(1)
    phase: In(8)
    slot: In(SLOTS)
    room: Out(1)
    enters: In(1)
    line: In(64)
    nonzero: In(8)
    bytes: In(ROW)
    number: In(8)
    more: In(1)
    last: In(1)
    mine: In(1)
    done: In(1)
    vacant: In(7)
    leaving: In(8)
    leaves: In(1)
    ends: Out(1)
    closing: Out(1)
    length: Out(8)
    word: Out(WORD)
    beyond: Out(ROWS - SLOTS)
    into_word: Out(WORDS)
    bytes_out: Out(ROW)
    line_out: Out(64)
    faults: Out(Faults)

    def elaborate(self, platform):
        m = Module()
        m.submodules.store = store = BlockStore()
        m.submodules.encoder = encoder = Encoder()
        m.submodules.decoder = decoder = Decoder()
        decompress, opens = Signal(), self.phase[0]
        m.d.sync += decompress.eq(self.decompress)  # a copy of its own: it selects what 64 values and 54 bytes are
        length = Signal(8, reset_less=True)
        m.d.comb += self.length.eq(length)

        # ------------------------------------------------------------------------------------------------- compressing
        m.d.comb += [
            encoder.start.eq(self.start),
            encoder.line.eq(self.enters & ~decompress),
            encoder.last.eq(self.last),
            encoder.mask.eq(store.mask),
            encoder.value.eq(store.value_out),
            encoder.free.eq(~self.done),
            # A word takes the place of one that has left; in the shared rows there is only the block whose turn it is.
            encoder.may.eq((~self.done & (self.mine | (encoder.line_of < SLOTS)))
                           | choose((encoder.line_of == r, self.vacant[r]) for r in range(SLOTS))),
            self.word.eq(encoder.word),
            self.into_word.eq(encoder.word_of),
        ]
        stores = encoder.store & encoder.may
        m.d.comb += self.beyond.eq(Cat(stores & (encoder.line_of == s) for s in range(SLOTS, ROWS)))

        # ----------------------------------------------------------------------------------------------- decompressing
        # Blocks whose first row is here, but which have not begun; rows that are full, and those of that block.
        waiting, full, fresh, last = Signal(), Signal(SLOTS), Signal(SLOTS), Signal()
        receiving, needed, stores_row = Signal(), Signal(), Signal()
        occupied = full & (fresh | (~decoder.idle).replicate(SLOTS))
        m.d.comb += [
            receiving.eq(self.turn & ~opens & ~waiting),
            needed.eq(self.more & ~(decoder.idle & ~waiting)),  # in front of the block's end
            self.room.eq(Mux(decompress, Mux(opens, ~waiting & ~occupied[0], ~needed | ~(occupied & self.slot).any()),
                             encoder.ready)),
            stores_row.eq(self.enters & decompress & (opens | needed)),
            decoder.start.eq(self.start),
            decoder.waiting.eq(waiting),
            decoder.length.eq(length),
            decoder.first.eq(store.first),
            decoder.word.eq(store.word_out),
            # Behind a block's last row, anything will do.
            decoder.there.eq((decoder.slot & full & ~fresh).any() | decoder.idle | ~(receiving & self.more)),
            decoder.stall.eq((decoder.write & ~decoder.own & self.done & ~(decoder.column[:7] & self.vacant).any())
                             | (decoder.ends & (self.done | (receiving & decoder.idle)))),
            decoder.may.eq(~self.done & ~receiving),
            self.faults.eq(decoder.faults),
        ]
        passed = Signal(SLOTS)  # a cycle later, as `passes` comes late
        new = self.slot & stores_row.replicate(SLOTS)
        m.d.sync += [
            passed.eq(decoder.slot & decoder.passes.replicate(SLOTS)),
            full.eq((occupied & ~(passed & ~fresh)) | new),
            fresh.eq((fresh | (new & (opens | waiting).replicate(SLOTS))) & (~decoder.loads).replicate(SLOTS)),
            waiting.eq((waiting & ~decoder.loads) | (self.enters & decompress & opens)),
        ]
        with m.If(self.enters):
            m.d.sync += last.eq(self.last)
        with m.If(self.start):
            m.d.sync += [full.eq(0), fresh.eq(0), waiting.eq(0)]

        # ------------------------------------------------------------------------------------------------------- both
        ended = encoder.ends & encoder.free & (~encoder.store | encoder.may)
        m.d.comb += [
            self.ends.eq(Mux(decompress, decoder.early | (decoder.ends & ~decoder.stall), ended)),
            # A block's rows have all come when the next one's first one has.
            self.closing.eq(Mux(decompress, last & ~waiting & (decoder.idle | decoder.early), encoder.closing)),
            store.decompress.eq(decompress),
            store.line.eq(self.line),
            store.value.eq(decoder.value & decompress.replicate(8)),
            store.column.eq(Mux(decompress, decoder.column & (decoder.write & ~decoder.stall).replicate(8),
                                self.phase & self.enters.replicate(8))),
            store.row.eq(decoder.row | (~decompress).replicate(8)),
            store.bits.eq(self.nonzero | decompress.replicate(8)),
            store.pick.eq(encoder.pick),
            store.clear.eq(self.leaving & (self.leaves & decompress).replicate(8)),
            store.column_out.eq(Mux(decompress, self.leaving, encoder.column)),
            store.row_out.eq(encoder.row),
            store.bytes.eq(mirrored(self.bytes)),
            store.word.eq(encoder.word & (~decompress).replicate(WORD)),
            store.into.eq(Mux(decompress, new, Cat(stores & (encoder.line_of == s) for s in range(SLOTS)))),
            store.into_word.eq(encoder.word_of | decompress.replicate(WORDS)),
            store.slot.eq(Mux(decompress, decoder.slot, self.leaving[:SLOTS])),
            store.place.eq(decoder.place),
            self.bytes_out.eq(store.bytes_out),
            self.line_out.eq(store.line_out),
        ]
        with m.If(Mux(decompress, self.enters & opens, ended)):
            m.d.sync += length.eq(Mux(decompress, self.number, encoder.length))
        return m
