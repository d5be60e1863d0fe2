"""ZVC and ZVD around one block buffer: zero value compression of blocks of 64 words, and decompression."""

from amaranth.hdl import Module, Mux, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.transpose import Transpose
from actcodec.rtl.jpegact.zvc_decode import Decoder
from actcodec.rtl.jpegact.zvc_encode import Encoder, check_word
from actcodec.rtl.offload.control.config import rows_layout
from actcodec.rtl.offload.wire.block_format import MASK

__all__ = ["Zvc"]


class Zvc(wiring.Component):
    """ZVC and ZVD around one block buffer.

    Compressing, the buffer collects a block so that its mask can leave before its words, and transposes it on the way:
    the DCT gives columns. Decompressing, it turns rows into the columns that the inverse DCT wants; words of 4 bytes,
    which never need that, pass it by.

    Throughput: one row a cycle in both directions, 8 cycles a block. Latency: compressing 10 cycles from the first row
    in to its chunk; decompressing, from the first row at ``rows``, 9 cycles to the first one out (1 for words of 4
    bytes). Buffering: a block and two rows. Combinational paths: ``chunks.ready`` to ``i.ready``, ``o.ready`` to
    ``rows.ready``.

    Source: JPEG-ACT, section III-F; sections II-B4 and Figure 4 for the format.

    Parameters
    ----------
    word : int
        Bytes of a word: 1, or 4 for cDMA+.
    halves : bool
        There is ``half``; only for words of 4 bytes.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8 ``word``
        Blocks to compress: their columns, or rows if ``straight``.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8 + 8 ``word``
        Compressed: eight chunks a block, empty for a row of zeros, the first with the mask in front.
    rows, empty
        To decompress: ``i`` and ``empty`` of :class:`~actcodec.rtl.jpegact.zvc_decode.Decoder`.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8 ``word``
        Decompressed blocks: their columns, or rows if ``straight``.
    decompress, straight : input
        Constant while a tensor is under way. With words of 4 bytes, ``straight`` has no effect: always rows.
    half : input
        Words have 2 bytes, at ``i`` and ``o`` each in the low half of one of 4, whose upper half is zero; at ``chunks``
        and ``rows`` one follows the other. Constant while a tensor is under way.

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4, or not 4 with ``halves``.
    """

    def __init__(self, word=1, halves=False):
        check_word(word, halves)
        self.word, self.halves = word, bool(halves)
        values = stream.Signature(vectors_layout(signed(8 * word)))
        super().__init__(
            {
                "i": In(values),
                "chunks": Out(stream.Signature(chunk_layout(MASK + 8 * word))),
                "o": Out(values),
                "decompress": In(1),
                "straight": In(1),
                "rows": In(stream.Signature(rows_layout(8 * word))),
                "empty": In(1),
                **({"half": In(1)} if halves else {}),
            }
        )

    def elaborate(self, platform):
        m = Module()
        transposes = self.word == 1
        m.submodules.buffer = buffer = Transpose(8 * self.word, transposes=transposes)
        m.submodules.encoder = encoder = Encoder(self.word, self.halves)
        m.submodules.decoder = decoder = Decoder(self.word, self.halves)
        wiring.connect(m, wiring.flipped(self.rows), decoder.i)
        m.d.comb += decoder.empty.eq(self.empty)
        wiring.connect(m, encoder.chunks, wiring.flipped(self.chunks))
        m.d.comb += [
            buffer.straight.eq(self.straight),
            encoder.mask.eq(buffer.nonzero),
            encoder.i.p.eq(buffer.o.p),
        ]
        if self.halves:
            m.d.comb += [encoder.half.eq(self.half), decoder.half.eq(self.half)]
        if not transposes:
            wiring.connect(m, wiring.flipped(self.i), buffer.i)
            wiring.connect(m, decoder.o, wiring.flipped(self.o))
            m.d.comb += [encoder.i.valid.eq(buffer.o.valid), buffer.o.ready.eq(encoder.i.ready)]
            return m
        m.d.comb += [
            buffer.i.p.eq(Mux(self.decompress, decoder.o.p, self.i.p)),
            buffer.i.valid.eq(Mux(self.decompress, decoder.o.valid, self.i.valid)),
            self.i.ready.eq(buffer.i.ready & ~self.decompress),
            decoder.o.ready.eq(buffer.i.ready & self.decompress),
            self.o.p.eq(buffer.o.p),
            self.o.valid.eq(buffer.o.valid & self.decompress),
            encoder.i.valid.eq(buffer.o.valid & ~self.decompress),
            buffer.o.ready.eq(Mux(self.decompress, self.o.ready, encoder.i.ready)),
        ]
        return m
