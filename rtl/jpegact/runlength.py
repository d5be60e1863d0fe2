"""RLE and RLD: several coders of a symbol a cycle, that take blocks in turn."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.bits import Parts
from actcodec.rtl.jpegact.block_store import ROW, WORDS
from actcodec.rtl.jpegact.rld import SLOTS, Faults
from actcodec.rtl.jpegact.rle import WORD
from actcodec.rtl.jpegact.runlength_coder import ROWS, Coder, mirrored
from actcodec.rtl.offload.control.config import rows_layout

__all__ = ["BYTES", "RunLength", "check_coders"]

BYTES = ROW // 8  # of a row
MOST = 8  # coders


def check_coders(coders):
    """Raises ValueError unless ``coders`` is an int from 1 to 8."""
    if type(coders) is not int or not 1 <= coders <= MOST:
        raise ValueError(f"coders must be an integer from 1 to {MOST}, not {coders!r}")


class RunLength(wiring.Component):
    """Compresses blocks of 64 values into 2 to 145 bytes each, by baseline JPEG's run lengths and Huffman codes, and
    back. ``golden/jpegact/rle.py`` has the format (framing "block", no prediction of DC).

    Block b is that of coder b modulo ``coders``. Lines go straight to the coder whose turn it is, which begins to code
    as they come, and leave it straight; so do rows and chunks::

        compress    i -> values -> picks -> runs -> codes -> words -> 3 rows of 18 bytes -> chunks
        decompress  rows -> 3 rows of 18 bytes -> window -> symbols -> values -> o

    A block of more than 54 bytes, 6.75 bits a value, has its other five rows in a register that all coders share: it is
    completed when its turn to leave has come. Decompressing, such a block's rows wait until the first ones are read.

    Throughput: a symbol a cycle and coder (ZRL and EOB are symbols), and a cycle more for a block with fewer than 64;
    no block takes less than 8 cycles. Eight coders keep up with a line a cycle whatever the values, if no block has
    more than 54 bytes. Latency: from a block's first line to its first chunk 9 cycles more than it has symbols, as
    long as none has to wait for its line; from its first row to its first line 3 more, and 10 at least. Buffering: one
    or two blocks a coder, and a beat at the output. Combinational paths: ``chunks.ready`` and ``o.ready`` to nothing;
    ``rows.p`` and ``empty`` to ``rows.ready``.

    Source: JPEG-ACT, section III-E; ITU-T T.81, sections F.1.2 and F.2.2.

    Parameters
    ----------
    coders : int
        Coders, 1 to 8, of one symbol per cycle each.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        Blocks to compress, eight lines each: columns of a tile, vertical frequency ascending.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 19
        Compressed: eight chunks a block, the first with its length in front, and nothing where it has ended.
    rows, empty : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout` of 18
        To decompress: the first row of a block with its first byte in place of a mask and 18 that follow,
        seven more with 18 bytes each, and anything where the block has ended; ``empty``: the row is zeros, and so is
        the first byte.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        Decompressed blocks, 64 values whatever the stream is: of a malformed block those in front of its fault, and
        zeros.
    faults : output, :class:`~actcodec.rtl.jpegact.rld.Faults`
        What was wrong with a block of this tensor. Until ``start``; complete when the last line was offered.
    decompress : input
        Constant from ``start`` on.
    start : input
        Pulse, a cycle or more before the first line or row of a tensor; only while none is under way.

    Raises
    ------
    ValueError
        If ``coders`` is not 1 to 8.
    """

    def __init__(self, coders=4):
        check_coders(coders)
        self.coders = coders
        values = stream.Signature(vectors_layout(signed(8)))
        super().__init__(
            {
                "i": In(values),
                "chunks": Out(stream.Signature(chunk_layout(1 + BYTES))),
                "o": Out(values),
                "faults": Out(Faults),
                "decompress": In(1),
                "rows": In(stream.Signature(rows_layout(BYTES))),
                "empty": In(1),
                "start": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n, decompress, row = self.coders, Signal(), self.rows.p
        m.d.sync += decompress.eq(self.decompress)

        # What comes in: the line or row (one-hot) of which coder (one-hot).
        phase, turn, slot = Signal(8, init=1), Signal(n, init=1), Signal(SLOTS, init=1)
        coming, entering = Signal(), Signal()
        opens, closes = phase[0], phase[7]
        room = Signal(n)  # of each coder, for what comes next
        m.d.comb += [
            self.i.ready.eq(~decompress & (turn & room).any()),
            self.rows.ready.eq(decompress & (turn & room).any()),
            coming.eq(Mux(decompress, self.rows.valid, self.i.valid)),
            entering.eq(coming & (turn & room).any()),
        ]
        with m.If(entering):
            m.d.sync += [phase.eq(phase.rotate_left(1)), turn.eq(Mux(closes, turn.rotate_left(1), turn)),
                         slot.eq(Mux(closes, 1, slot.rotate_left(1)))]
        # What goes out, likewise; the rows of that block that have left, whose places are vacant.
        leaving, turn_out, leaves, free = Signal(8, init=1), Signal(n, init=1), Signal(), Signal()
        vacant = Signal(7)
        done = Signal(n)  # the coder has a block that is to leave
        valid, final = Signal(), Signal(n, reset_less=True)
        m.d.comb += [
            free.eq(~valid | Mux(decompress, self.o.ready, self.chunks.ready)),
            leaves.eq(free & (turn_out & done).any()),
        ]
        with m.If(free):
            m.d.sync += valid.eq(leaves)
        with m.If(leaves):
            m.d.sync += [leaving.eq(leaving.rotate_left(1)), vacant.eq(Mux(leaving[7], 0, vacant << 1 | 1)),
                         turn_out.eq(Mux(leaving[7], turn_out.rotate_left(1), turn_out))]

        # Bytes of a block from this row on: those that come in, or those that go out.
        coders = [Coder() for _ in range(n)]
        left, sent, number, least = Signal(8, reset_less=True), Signal(8), Signal(8), Signal(9)
        more = Signal(reset_less=True)  # some are left
        m.d.comb += [
            sent.eq(Mux(leaving[0], choose((turn_out[k], coder.length) for k, coder in enumerate(coders)), left)),
            number.eq(Mux(decompress, Mux(opens, Mux(self.empty, 0, row.mask), left), sent)),
            least.eq(number - BYTES),
        ]
        with m.If(Mux(decompress, entering, leaves)):
            m.d.sync += [left.eq(Mux(least[8], 0, least[:8])), more.eq(number > BYTES)]

        nonzero = Cat(lane.any() | (opens if v == 0 else 0) for v, lane in enumerate(self.i.p.data))
        row_bytes, line = Signal(ROW), Signal(64)
        m.d.comb += [row_bytes.eq(Mux(decompress & ~self.empty, row.data.as_value(), 0)),
                     line.eq(Mux(decompress, 0, self.i.p.data.as_value()))]
        for k, coder in enumerate(coders):
            m.submodules[f"coder_{k}"] = coder
            mine = turn_out[k]
            m.d.comb += [
                room[k].eq(coder.room),
                coder.enters.eq(coming & turn[k] & coder.room),  # which is `entering`, but by its own room alone
                coder.phase.eq(phase),
                coder.slot.eq(slot),
                coder.turn.eq(turn[k]),
                coder.line.eq(line),
                coder.nonzero.eq(nonzero),
                coder.last.eq(Mux(decompress, row.last, self.i.p.last)),
                coder.bytes.eq(row_bytes),
                coder.number.eq(number),
                coder.more.eq(more),
                coder.done.eq(done[k]),
                coder.mine.eq(mine),
                coder.vacant.eq(vacant & mine.replicate(7)),
                coder.leaving.eq(leaving),
                coder.leaves.eq(free & mine & done[k]),
                coder.start.eq(self.start),
                coder.decompress.eq(self.decompress),
            ]
            with m.If(coder.ends):
                m.d.sync += [done[k].eq(1), final[k].eq(coder.closing)]
            with m.Elif(leaves & leaving[7] & mine):
                m.d.sync += done[k].eq(0)

        # The other rows of a long block.
        others = [Signal(ROW, reset_less=True, name=f"other_{s}") for s in range(SLOTS, ROWS)]
        word, into, into_word = Signal(WORD), Signal(ROWS - SLOTS), Signal(WORDS)
        m.d.comb += [target.eq(choose((turn_out[k], value) for k, value in enumerate(values))) for target, values in (
            (word, [coder.word for coder in coders]), (into, [coder.beyond for coder in coders]),
            (into_word, [coder.into_word for coder in coders]))]
        for s, other in enumerate(others):
            for k in range(WORDS):
                with m.If(into[s] & into_word[k]):
                    m.d.sync += other.word_select(k, WORD).eq(word)

        out, count, last = Signal(8 * (1 + BYTES), reset_less=True), Signal(5, reset_less=True), Signal(reset_less=True)
        shown = Signal(ROW)
        m.d.comb += shown.eq(choose([*((turn_out[k] & leaving[:SLOTS].any(), mirrored(coder.bytes_out))
                                       for k, coder in enumerate(coders)),
                                     *((leaving[SLOTS + s], mirrored(other)) for s, other in enumerate(others))]))
        within = Parts(m, leaves).above(sent, BYTES)
        content = shown & Cat(bit.replicate(8) for bit in within)
        values = choose((turn_out[k], coder.line_out) for k, coder in enumerate(coders))
        with m.If(leaves):
            m.d.sync += [
                out.eq(Mux(decompress, values, Mux(leaving[0], Cat(sent, content), content))),
                count.eq(Mux(within[-1], BYTES, sent[:5]) + leaving[0]),
                last.eq(leaving[7] & (turn_out & final).any()),
            ]
        m.d.comb += [
            self.chunks.valid.eq(valid & ~decompress), self.o.valid.eq(valid & decompress),
            self.chunks.p.data.as_value().eq(out), self.chunks.p.count.eq(count),
            self.chunks.p.last.eq(last), self.o.p.last.eq(last),
            Cat(lane.as_unsigned() for lane in self.o.p.data).eq(out),
        ]
        m.d.sync += self.faults.as_value().eq(choose([(~self.start, self.faults.as_value() | _any(
            coder.faults.as_value() for coder in coders))]))
        with m.If(self.start):
            m.d.sync += [phase.eq(1), turn.eq(1), leaving.eq(1), vacant.eq(0), turn_out.eq(1), done.eq(0), valid.eq(0)]
        return m


def _any(values):
    first, *others = values
    for other in others:
        first = first | other
    return first
