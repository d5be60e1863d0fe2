"""ZVD: the zeros of a block put back. Its bench is that of zvc.py."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.zvc_encode import check_word
from actcodec.rtl.offload.control.config import rows_layout

__all__ = ["Decoder"]


class Decoder(wiring.Component):
    """ZVD: puts the zeros back between the words of rows.

    Throughput: one row a cycle. Latency: one cycle. Buffering: one row. Combinational path: ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-F.

    Parameters
    ----------
    word : int
        Bytes of a word, 1 or 4.
    halves : bool
        There is ``half``; only for words of 4 bytes.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout` of 8 ``word``
    empty : input
        With a row: it is all zeros, whatever its mask.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8 ``word``
    half : input
        Words have 2 bytes, each of which becomes the low half of one of 4, whose upper half is zero. Constant while a
        tensor is under way.

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4, or not 4 with ``halves``.
    """

    def __init__(self, word=1, halves=False):
        check_word(word, halves)
        self.word, self.halves = word, bool(halves)
        super().__init__({"i": In(stream.Signature(rows_layout(8 * word))), "empty": In(1),
                          "o": Out(stream.Signature(vectors_layout(signed(8 * word)))),
                          **({"half": In(1)} if halves else {})})

    def elaborate(self, platform):
        m = Module()
        words = Signal(8 * 8 * self.word, reset_less=True)
        nonzero, one = (Signal(8, reset_less=True, name=name) for name in ("nonzero", "one"))
        # The shifter's first step is decided in the cycle before, the other two in the cycle in which they are done:
        # rows arrive late, after the splitter's logic.
        step, counts = compaction.move(m, compaction.zeros(m, self.i.p.mask), 0)
        later = [Signal.like(count, reset_less=True, name=f"later_{k}") for k, count in enumerate(counts)]
        last = Signal(reset_less=True)
        mask, row = self.i.p.mask, self.i.p.data.as_value()
        if self.halves:
            row = Mux(self.half, Cat(Cat(row.word_select(k, 16), Const(0, 16)) for k in range(8)), row)
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                words.eq(row),
                nonzero.eq(Mux(self.empty, 0, mask)),
                last.eq(self.i.p.last),
                one.eq(step),
                Cat(later).eq(Cat(counts)),
            ]
        opened = compaction.reopen(m, [words.word_select(k, 8 * self.word) for k in range(8)],
                                   [one, *compaction.moves(m, later, 1)])
        m.d.comb += [self.o.p.data[k].eq(Mux(nonzero[k], opened[k], 0)) for k in range(8)]
        m.d.comb += self.o.p.last.eq(last)
        return m
