"""ZVD: the zeros of a block put back, with and without a search for its mask. Its bench is that of zvc.py."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction
from actcodec.rtl.common.unpacker import window_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.zvc_encode import check_word
from actcodec.rtl.offload.block_format import MASK
from actcodec.rtl.offload.config import rows_layout

__all__ = ["Decoder", "Opener"]


class Opener(wiring.Component):
    """Puts the zeros back between the words of rows.

    Throughput: one row a cycle. Latency: one cycle. Buffering: one row. Combinational path: ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-F.

    Parameters
    ----------
    word : int
        Bytes of a word, 1 or 4.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.offload.config.rows_layout` of 8 ``word``
    empty : input
        With a row: it is all zeros, whatever its mask.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8 ``word``

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4.
    """

    def __init__(self, word=1):
        check_word(word)
        self.word = word
        super().__init__({"i": In(stream.Signature(rows_layout(8 * word))), "empty": In(1),
                          "o": Out(stream.Signature(vectors_layout(signed(8 * word))))})

    def elaborate(self, platform):
        m = Module()
        words = Signal(8 * 8 * self.word, reset_less=True)
        nonzero, one, two, four = (Signal(8, reset_less=True, name=name) for name in ("nonzero", "one", "two", "four"))
        last = Signal(reset_less=True)
        mask = self.i.p.mask
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                words.eq(self.i.p.data.as_value()),
                nonzero.eq(Mux(self.empty, 0, mask)),
                last.eq(self.i.p.last),
                Cat(one, two, four).eq(Cat(compaction.moves(m, compaction.zeros(m, mask)))),
            ]
        opened = compaction.reopen(m, [words.word_select(k, 8 * self.word) for k in range(8)], [one, two, four])
        m.d.comb += [self.o.p.data[k].eq(Mux(nonzero[k], opened[k], 0)) for k in range(8)]
        m.d.comb += self.o.p.last.eq(last)
        return m


class Decoder(wiring.Component):
    """ZVD: takes blocks from an :class:`~actcodec.rtl.common.unpacker.Unpacker` and gives their rows back.

    It takes the mask of the first block on its own; then the words of a row in every cycle, and together with those of
    row 7 the mask of the next block, which lies behind them.

    Throughput: one row a cycle, hence 8 cycles a block (and one more for a tensor). Latency: one cycle from the bytes
    to their row. Buffering: one row. Combinational paths: ``o.ready`` to ``bytes.ready``; none to ``take``, and the
    row at ``o`` is a shifter away from registers.

    Source: JPEG-ACT, section III-F; section II-B4 and Figure 4 for the format.

    Parameters
    ----------
    word : int
        Bytes of a word, 1 or 4.

    Ports
    -----
    bytes : stream of :func:`~actcodec.rtl.common.unpacker.window_layout` of 8 + 8 ``word``
    take : output
        Bytes that a transfer at ``bytes`` consumes. Between tensors, when there is none, it may be anything.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8 ``word``
        Eight rows a block, ``last`` on the last row of the last block.
    blocks : input
        How many blocks the stream has; read at ``start``.
    start : input
        Pulse that starts a tensor; only while none is under way.
    error : output
        The stream was short: missing bytes count as zeros, and all blocks come nevertheless. Until ``start``.

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4.
    """

    def __init__(self, word=1):
        check_word(word)
        self.word = word
        super().__init__(
            {
                "bytes": In(stream.Signature(window_layout(MASK + 8 * word))),
                "take": Out(range(MASK + 8 * word + 1)),
                "o": Out(stream.Signature(vectors_layout(signed(8 * word)))),
                "blocks": In(32),
                "start": In(1),
                "error": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        log = self.word.bit_length() - 1

        # The state is about what is taken next.
        active = Signal()
        first = Signal()  # the mask of the first block, else a row
        row = Signal(3)
        mask = Signal(64, reset_less=True)  # of that row and, above, of those behind it
        remaining = Signal(32)  # blocks whose mask has not been taken
        final = Signal()  # there is none; lags, as it is needed in row 7 only

        # Words of the row. In row 0 they are counted in the cycle after the mask has come, in others a cycle ahead: in
        # row 7 the count also says where the next mask is.
        ahead = Signal(range(9))
        next_mask = Signal()  # the transfer has the mask of the next block in it
        m.d.comb += [
            next_mask.eq(first | ((row == 7) & ~final)),
            self.take.eq(Mux((row == 0) & ~first, sum(mask[:8]) << log, (ahead << log) + Mux(next_mask, MASK, 0))),
        ]

        m.submodules.opener = opener = Opener(self.word)
        wiring.connect(m, opener.o, wiring.flipped(self.o))
        content = self.bytes.p.data.as_value()
        taken = Signal()
        m.d.comb += [
            self.bytes.ready.eq(active & opener.i.ready),
            taken.eq(self.bytes.valid & self.bytes.ready),
            opener.i.valid.eq(self.bytes.valid & active & ~first),
            opener.i.p.data.as_value().eq(content),
            opener.i.p.mask.eq(mask[:8]),
            opener.i.p.last.eq((row == 7) & final),
        ]

        m.d.sync += final.eq(remaining == 0)
        with m.If(taken):
            m.d.sync += [first.eq(0), mask.eq(mask[8:]), ahead.eq(sum(mask[8:16])),
                         self.error.eq(self.error | self.bytes.p.short)]
            with m.If(~first):
                m.d.sync += row.eq(row + 1)
            with m.If(next_mask):
                m.d.sync += [mask.eq(content.bit_select(ahead << (log + 3), 8 * MASK)), remaining.eq(remaining - 1)]
            with m.If(~first & (row == 7)):
                m.d.sync += active.eq(~final)
        with m.If(self.start):
            m.d.sync += [active.eq(self.blocks != 0), first.eq(1), row.eq(0), ahead.eq(0), remaining.eq(self.blocks),
                         self.error.eq(0)]
        return m
