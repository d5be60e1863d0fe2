"""The whole codec: sectors of float32 on one side, a byte stream on the other."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.book import Book
from actcodec.rtl.comet.dock import Dock
from actcodec.rtl.comet.histogram import BINS, WIDTH, Histogram
from actcodec.rtl.comet.huffman import Huffman
from actcodec.rtl.comet.interleave import Interleave
from actcodec.rtl.comet.lorenzo import Lorenzo
from actcodec.rtl.comet.outliers import Outliers
from actcodec.rtl.comet.payloads import LANES, Config, Error
from actcodec.rtl.comet.places import Places
from actcodec.rtl.comet.prequantise import Prequantise
from actcodec.rtl.comet.reconstruct import Reconstruct
from actcodec.rtl.comet.rounds import Rounds
from actcodec.rtl.common.packer import Packer, chunk_layout
from actcodec.rtl.common.vectors import edges, sectors

__all__ = ["Comet", "legal"]

LEAST, MOST = 2, 239  # biased exponents of 2^-125 and 2^112, the ends of the steps


def legal(config):
    """Whether a configuration is legal, apart from its book."""
    significand, exponent = config.step[:7], config.step[7:]
    step = (exponent >= LEAST) & ((exponent < MOST) | ((exponent == MOST) & ~significand.any()))
    return step & ~(config.vertical & ~config.tiled)


class Comet(wiring.Component):
    """Compresses or decompresses one tensor (or one CDU's share of it) at a time::

        compress    sectors_i -> dock -> prequantise -> Lorenzo -> rounds -> Huffman -> interleave -> packer -> bytes_o
        decompress  sectors_o <- dock <- reconstruct <- Lorenzo <- rounds <- Huffman <- bytes_i

    The bits of outliers go around Lorenzo. While compressing, a histogram of the symbols is taken.

    A transfer at ``config`` starts a tensor; the unit takes the next one when ``busy`` has fallen. With each sector, in
    both directions, goes its place in the walk, in ``edges``.

    Throughput: a sector a cycle in both directions, less one cycle for each raw step of escapes. A sector with outliers
    takes four cycles, when decompressing five; rounds of outliers that follow one another wait for the way through. No
    stream has more than 8 bytes a cycle. Latency: 12 cycles from ``config`` to the first sector, and 21 or more from
    there to the first beat, by what its bytes wait for; 21 or more from ``config`` to the first sector when
    decompressing. Buffering: as of its units. Combinational paths: none.

    Source: COMET, section 3.4, Figure 3, phase 4.

    Ports
    -----
    config : stream of :class:`~actcodec.rtl.comet.payloads.Config`
        What it carries stands from the transfer until ``busy`` falls.
    edges : stream of :data:`~actcodec.rtl.common.vectors.edges`
        One for each sector; some are taken before their sectors. Decompressing, they tell how many values there are.
    sectors_i : stream of 8 float32 words
        Zeros beyond the sector's count.
    sectors_o : stream of :data:`~actcodec.rtl.common.vectors.sectors`
    bytes_i, bytes_o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8
        Full beats, but the last one.
    busy : output
        A tensor is under way.
    error : output, :class:`~actcodec.rtl.comet.payloads.Error`
    bin : input, count : output
        A bin of the histogram of the last tensor that was compressed, and two cycles later its count.
    """

    config: In(stream.Signature(Config))
    edges: In(stream.Signature(edges))
    sectors_i: In(stream.Signature(data.ArrayLayout(32, LANES)))
    sectors_o: Out(stream.Signature(sectors))
    bytes_i: In(stream.Signature(chunk_layout(LANES)))
    bytes_o: Out(stream.Signature(chunk_layout(LANES)))
    busy: Out(1)
    error: Out(Error)
    bin: In(range(BINS))
    count: Out(WIDTH)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dock = dock = Dock()
        m.submodules.prequantise = prequantise = Prequantise()
        m.submodules.lorenzo = lorenzo = Lorenzo()
        m.submodules.outliers = outliers = Outliers()
        m.submodules.rounds = rounds = Rounds()
        m.submodules.histogram = histogram = Histogram()
        m.submodules.huffman = huffman = Huffman()
        m.submodules.interleave = interleave = Interleave()
        m.submodules.packer = packer = Packer(1, LANES, LANES)
        m.submodules.reconstruct = reconstruct = Reconstruct()
        m.submodules.book = book = Book()
        m.submodules.places = places = Places()

        config, decompress = self.config.p, Signal(reset_less=True)
        m.d.sync += decompress.eq(config.decompress)
        start, closing = Signal(), Signal()
        self._streams(m, dock, prequantise, lorenzo, rounds, huffman, interleave, packer, reconstruct, outliers,
                      places, decompress)
        self._control(m, book, start, closing, huffman)
        m.d.comb += [
            dock.step.eq(config.step), prequantise.step.eq(config.step), reconstruct.step.eq(config.step),
            dock.decompress.eq(decompress), lorenzo.decompress.eq(decompress), lorenzo.horizontal.eq(config.horizontal),
            lorenzo.vertical.eq(config.vertical), lorenzo.signed.eq(config.signed),
            rounds.decompress.eq(decompress),
            book.counts.eq(config.counts), book.decompress.eq(decompress),
            huffman.book.eq(book.tables), huffman.decompress.eq(decompress),
            huffman.start.eq(start & decompress), places.start.eq(start),
            huffman.some.eq(places.some), huffman.ended.eq(places.ended), places.next.eq(huffman.begins),
            huffman.next.eq(closing),
            outliers.decompress.eq(decompress), outliers.clear.eq(start),
            histogram.clear.eq(start & ~decompress),
            histogram.valid.eq(rounds.rounds_o.valid & rounds.rounds_o.ready & ~rounds.rounds_o.p.end),
            histogram.symbols.eq(Value.cast(rounds.rounds_o.p.data)),
            histogram.bin.eq(self.bin), self.count.eq(histogram.value),
        ]
        return m

    def _streams(self, m, dock, prequantise, lorenzo, rounds, huffman, interleave, packer, reconstruct, outliers,
                 places, decompress):
        for source, sink in (
                (dock.forth, prequantise.i), (prequantise.o, lorenzo.differences_i),
                (lorenzo.differences_o, rounds.sectors_i),
                (rounds.rounds_o, huffman.rounds_i), (huffman.steps_o, interleave.i), (interleave.o, packer.i),
                (packer.o, wiring.flipped(self.bytes_o)),
                (wiring.flipped(self.edges), places.i), (wiring.flipped(self.bytes_i), huffman.bytes_i),
                (huffman.rounds_o, rounds.rounds_i),
                (rounds.sectors_o, lorenzo.sums_i), (lorenzo.sums_o, reconstruct.i),
                (reconstruct.o, dock.back), (dock.sectors_o, wiring.flipped(self.sectors_o)),
                (dock.bytes_o, outliers.sector_i)):
            wiring.connect(m, source, sink)
        m.d.comb += [
            # A place in the walk goes with each sector.
            dock.sectors_i.valid.eq(self.sectors_i.valid & places.o.valid & ~decompress),
            dock.sectors_i.p.data.eq(self.sectors_i.p),
            dock.sectors_i.p.edges.eq(places.o.p),
            self.sectors_i.ready.eq(dock.sectors_i.ready & places.o.valid),
            rounds.walk.valid.eq(places.o.valid & decompress),
            rounds.walk.p.eq(places.o.p),
            places.o.ready.eq(rounds.walk.ready | (dock.sectors_i.ready & self.sectors_i.valid)),
            # Outliers.
            outliers.moves.eq(dock.moves), outliers.count.eq(dock.count), outliers.mask.eq(dock.mask),
            huffman.words_i.eq(outliers.bytes_o), outliers.pops.eq(huffman.pops),
            outliers.bytes_i.eq(huffman.words_o), outliers.pushes.eq(huffman.pushes), huffman.room.eq(outliers.room),
            outliers.take.eq(dock.take), dock.bytes_i.eq(outliers.sector_o),
        ]

    def _control(self, m, book, start, closing, huffman):
        wrong = book.bad | ~legal(self.config.p)
        with m.If(huffman.short):
            m.d.sync += self.error.short.eq(1)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.config.ready.eq(1)
                with m.If(self.config.valid):
                    m.d.sync += self.error.eq(0)
                    m.next = "book"
            with m.State("book"):
                m.d.comb += [self.busy.eq(1), book.start.eq(1)]
                m.next = "check"
            with m.State("check"):
                m.d.comb += self.busy.eq(1)
                with m.If(book.done):
                    m.next = "run"
                    with m.If(wrong):
                        m.d.sync += self.error.config.eq(1)
                        m.next = "idle"
                    with m.Else():
                        m.d.comb += start.eq(1)
            with m.State("run"):
                m.d.comb += self.busy.eq(1)
                with m.If(self.bytes_o.valid & self.bytes_o.ready & self.bytes_o.p.last):
                    m.next = "idle"
                with m.If(self.sectors_o.valid & self.sectors_o.ready & self.sectors_o.p.last):
                    m.next = "close"
            with m.State("close"):
                # A stream that is too long goes on being taken, and thrown away, until its `last`.
                m.d.comb += [self.busy.eq(1), closing.eq(1)]
                m.d.sync += self.error.excess.eq(huffman.excess & ~self.error.short)
                m.next = "drain"
            with m.State("drain"):
                m.d.comb += self.busy.eq(1)
                with m.If(~huffman.discarding):
                    m.next = "idle"
