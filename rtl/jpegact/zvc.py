"""ZVC and ZVD: zero value compression of blocks of 64 words, and the way back."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction as gaps
from actcodec.rtl.common.packer import chunk
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.unpacker import window
from actcodec.rtl.common.vectors import vectors
from actcodec.rtl.jpegact.transpose import Transpose
from actcodec.rtl.offload.block_format import MASK
from actcodec.rtl.offload.config import rows

__all__ = ["Decoder", "Encoder", "Opener", "Zvc"]

def _check_word(word):
    if word not in (1, 4):
        raise ValueError(f"word must be 1 or 4 bytes, not {word!r}")


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

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8 ``word``
        Eight rows a block.
    mask : input
        Bit k set if word k of the block is not zero; read with the first row of a block.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk` of 8 + 8 ``word``

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4.
    """

    def __init__(self, word=1):
        _check_word(word)
        self.word = word
        super().__init__(
            {
                "i": In(stream.Signature(vectors(signed(8 * word)))),
                "mask": In(64),
                "chunks": Out(stream.Signature(chunk(MASK + 8 * word))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.chunks)

        row = Signal(3)
        with m.If(self.i.valid & pipe.advance):
            m.d.sync += row.eq(row + 1)
        words = [self.i.payload.data[k].as_unsigned() for k in range(8)]
        nonzero = Signal(8)
        m.d.comb += nonzero.eq(Cat(word.any() for word in words))
        staged = pipe.stage(*words, *gaps.zeros(m, nonzero), sum(nonzero), self.mask, row == 0, self.i.payload.last)
        words, zeros, (count, mask, first, last) = staged[:8], staged[8:16], staged[16:]

        values = Cat(gaps.close(m, words, gaps.moves(m, zeros)))
        values, count, last = pipe.stage(
            Mux(first, Cat(mask, values), values), (count << (self.word.bit_length() - 1)) + Mux(first, MASK, 0), last)
        m.d.comb += [
            self.chunks.payload.data.as_value().eq(values),
            self.chunks.payload.count.eq(count),
            self.chunks.payload.last.eq(last),
        ]
        pipe.finish()
        return m


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
    i : stream of :func:`~actcodec.rtl.offload.config.rows` of 8 ``word``
    empty : input
        With a row: it is all zeros, whatever its mask.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8 ``word``

    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4.
    """

    def __init__(self, word=1):
        _check_word(word)
        self.word = word
        super().__init__({"i": In(stream.Signature(rows(8 * word))), "empty": In(1),
                          "o": Out(stream.Signature(vectors(signed(8 * word))))})

    def elaborate(self, platform):
        m = Module()
        words = Signal(8 * 8 * self.word, reset_less=True)
        nonzero, one, two, four = (Signal(8, reset_less=True, name=name) for name in ("nonzero", "one", "two", "four"))
        last = Signal(reset_less=True)
        mask = self.i.payload.mask
        m.d.comb += self.i.ready.eq(~self.o.valid | self.o.ready)
        with m.If(self.i.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                words.eq(self.i.payload.data.as_value()),
                nonzero.eq(Mux(self.empty, 0, mask)),
                last.eq(self.i.payload.last),
                Cat(one, two, four).eq(Cat(gaps.moves(m, gaps.zeros(m, mask)))),
            ]
        opened = gaps.reopen(m, [words.word_select(k, 8 * self.word) for k in range(8)], [one, two, four])
        m.d.comb += [self.o.payload.data[k].eq(Mux(nonzero[k], opened[k], 0)) for k in range(8)]
        m.d.comb += self.o.payload.last.eq(last)
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
    bytes : stream of :func:`~actcodec.rtl.common.unpacker.window` of 8 + 8 ``word``
    take : output
        Bytes that a transfer at ``bytes`` consumes. Between tensors, when there is none, it may be anything.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8 ``word``
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
        _check_word(word)
        self.word = word
        super().__init__(
            {
                "bytes": In(stream.Signature(window(MASK + 8 * word))),
                "take": Out(range(MASK + 8 * word + 1)),
                "o": Out(stream.Signature(vectors(signed(8 * word)))),
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
        shown = self.bytes.payload.data.as_value()
        taken = Signal()
        m.d.comb += [
            self.bytes.ready.eq(active & opener.i.ready),
            taken.eq(self.bytes.valid & self.bytes.ready),
            opener.i.valid.eq(self.bytes.valid & active & ~first),
            opener.i.payload.data.as_value().eq(shown),
            opener.i.payload.mask.eq(mask[:8]),
            opener.i.payload.last.eq((row == 7) & final),
        ]

        m.d.sync += final.eq(remaining == 0)
        with m.If(taken):
            m.d.sync += [first.eq(0), mask.eq(mask[8:]), ahead.eq(sum(mask[8:16])),
                         self.error.eq(self.error | self.bytes.payload.short)]
            with m.If(~first):
                m.d.sync += row.eq(row + 1)
            with m.If(next_mask):
                m.d.sync += [mask.eq(shown.bit_select(ahead << (log + 3), 8 * MASK)), remaining.eq(remaining - 1)]
            with m.If(~first & (row == 7)):
                m.d.sync += active.eq(~final)
        with m.If(self.start):
            m.d.sync += [active.eq(self.blocks != 0), first.eq(1), row.eq(0), ahead.eq(0), remaining.eq(self.blocks),
                         self.error.eq(0)]
        return m


class Zvc(wiring.Component):
    """ZVC and ZVD around one block buffer.

    Compressing, the buffer collects a block so that its mask can leave before its words, and transposes it on the way:
    the DCT gives columns. Decompressing, it turns rows into the columns that the inverse DCT wants; words of 4 bytes,
    which never need that, pass it by.

    Throughput: one row a cycle in both directions, 8 cycles a block; decompression takes one more a tensor. Latency:
    compressing 10 cycles from the first row in to its chunk; decompressing, from the first transfer at ``bytes``, 10
    cycles to the first row (2 for words of 4 bytes). Buffering: a block and two rows. Combinational paths:
    ``chunks.ready`` to ``i.ready``, ``o.ready`` to ``bytes.ready``.

    Source: JPEG-ACT, section III-F; sections II-B4 and Figure 4 for the format.

    Parameters
    ----------
    word : int
        Bytes of a word: 1, or 4 for cDMA+.
    packed : bool
        False: compressed blocks come row by row, and nothing has to look for their masks.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8 ``word``
        Blocks to compress: their columns, or rows if ``straight``.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk` of 8 + 8 ``word``
        Compressed: eight chunks a block, empty for a row of zeros, the first with the mask in front.
    bytes, take, blocks, start, error
        To decompress, if ``packed``: see :class:`Decoder`.
    rows, empty : stream of :func:`~actcodec.rtl.offload.config.rows` of 8 ``word``
        To decompress, otherwise: see :class:`Opener`.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8 ``word``
        Decompressed blocks: their columns, or rows if ``straight``.
    decompress, straight : input
        Constant while a tensor is under way. With words of 4 bytes, ``straight`` has no effect: always rows.
    Raises
    ------
    ValueError
        If ``word`` is not 1 or 4.
    """

    def __init__(self, word=1, packed=True):
        _check_word(word)
        self.word, self.packed = word, bool(packed)
        values = stream.Signature(vectors(signed(8 * word)))
        super().__init__(
            {
                "i": In(values),
                "chunks": Out(stream.Signature(chunk(MASK + 8 * word))),
                "o": Out(values),
                "decompress": In(1),
                "straight": In(1),
            }
            | ({
                "bytes": In(stream.Signature(window(MASK + 8 * word))),
                "take": Out(range(MASK + 8 * word + 1)),
                "blocks": In(32),
                "start": In(1),
                "error": Out(1),
            } if packed else {"rows": In(stream.Signature(rows(8 * word))), "empty": In(1)})
        )

    def elaborate(self, platform):
        m = Module()
        transposes = self.word == 1
        m.submodules.buffer = buffer = Transpose(8 * self.word, transposes=transposes)
        m.submodules.encoder = encoder = Encoder(self.word)
        m.submodules.decoder = decoder = Decoder(self.word) if self.packed else Opener(self.word)
        if self.packed:
            wiring.connect(m, wiring.flipped(self.bytes), decoder.bytes)
            m.d.comb += [self.take.eq(decoder.take), decoder.blocks.eq(self.blocks), decoder.start.eq(self.start),
                         self.error.eq(decoder.error)]
        else:
            wiring.connect(m, wiring.flipped(self.rows), decoder.i)
            m.d.comb += decoder.empty.eq(self.empty)
        wiring.connect(m, encoder.chunks, wiring.flipped(self.chunks))
        m.d.comb += [
            buffer.straight.eq(self.straight),
            encoder.mask.eq(buffer.nonzero),
            encoder.i.payload.eq(buffer.o.payload),
        ]
        if not transposes:
            wiring.connect(m, wiring.flipped(self.i), buffer.i)
            wiring.connect(m, decoder.o, wiring.flipped(self.o))
            m.d.comb += [encoder.i.valid.eq(buffer.o.valid), buffer.o.ready.eq(encoder.i.ready)]
            return m
        m.d.comb += [
            buffer.i.payload.eq(Mux(self.decompress, decoder.o.payload, self.i.payload)),
            buffer.i.valid.eq(Mux(self.decompress, decoder.o.valid, self.i.valid)),
            self.i.ready.eq(buffer.i.ready & ~self.decompress),
            decoder.o.ready.eq(buffer.i.ready & self.decompress),
            self.o.payload.eq(buffer.o.payload),
            self.o.valid.eq(buffer.o.valid & self.decompress),
            encoder.i.valid.eq(buffer.o.valid & ~self.decompress),
            buffer.o.ready.eq(Mux(self.decompress, self.o.ready, encoder.i.ready)),
        ]
        return m
