"""ZVC: the words of a block that are not zero, after a mask. Its bench is that of zvc.py."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.offload.wire.block_format import MASK

__all__ = ["Encoder", "check_word"]


def check_word(word, halves=False):
    legal = (4,) if halves else (1, 4)
    if type(word) is not int or word not in legal:
        raise ValueError(f"word must be {' or '.join(map(str, legal))} bytes, not {word!r}")


class Encoder(wiring.Component):
    """ZVC: turns the rows of blocks into chunks of bytes.

    The first chunk of a block has its mask in front of the non-zero words of row 0; seven more follow, one for each
    row, empty for a row of zeros.

    Throughput: one row a cycle. Latency: 2 cycles. Buffering: two rows. Combinational path: ``chunks.ready`` to
    ``i.ready``.

    Source: JPEG-ACT, section III-F; sections II-B4 and Figure 4 for the format.

    Parameters
    ----------
    word : int
        Bytes of a word, 1 or 4.
    halves : bool
        There is ``half``; only for words of 4 bytes.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8 ``word``
        Eight rows a block.
    mask : input
        Bit k set if word k of the block is not zero; read with the first row of a block.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8 + 8 ``word``
    half : input
        Words have 2 bytes, each in the low half of one of 4, whose upper half is zero. Constant while a tensor is under
        way.

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4, or not 4 with ``halves``.
    """

    def __init__(self, word=1, halves=False):
        check_word(word, halves)
        self.word, self.halves = word, bool(halves)
        super().__init__(
            {
                "i": In(stream.Signature(vectors_layout(signed(8 * word)))),
                "mask": In(64),
                "chunks": Out(stream.Signature(chunk_layout(MASK + 8 * word))),
                **({"half": In(1)} if halves else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.chunks)

        row = Signal(3)
        with m.If(self.i.valid & pipe.advance):
            m.d.sync += row.eq(row + 1)
        words = [self.i.p.data[k].as_unsigned() for k in range(8)]
        nonzero = Signal(8)
        m.d.comb += nonzero.eq(Cat(word.any() for word in words))
        staged = pipe.stage(*words, *compaction.zeros(m, nonzero), sum(nonzero), self.mask, row == 0,
                            self.i.p.last)
        words, zeros, (count, mask, first, last) = staged[:8], staged[8:16], staged[16:]

        words = compaction.close(m, words, compaction.moves(m, zeros))
        values, count = Cat(words), count << (self.word.bit_length() - 1)
        if self.halves:
            low = Cat(word[:16] for word in words)
            values, count = Mux(self.half, low, values), Mux(self.half, count >> 1, count)
        values, count, last = pipe.stage(
            Mux(first, Cat(mask, values), values), count + Mux(first, MASK, 0), last)
        m.d.comb += [
            self.chunks.p.data.as_value().eq(values),
            self.chunks.p.count.eq(count),
            self.chunks.p.last.eq(last),
        ]
        pipe.finish()
        return m
