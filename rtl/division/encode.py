"""Compression: rows of SFPR's int8 to bytes."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.division.average import Average, rows
from actcodec.rtl.division.config import Coded, refused
from actcodec.rtl.division.dither import Dither
from actcodec.rtl.division.pack import Pack
from actcodec.rtl.division.quantize import Quantize
from actcodec.rtl.division.segments import Place, Segments
from actcodec.rtl.jpegact.align import Align

__all__ = ["Encode"]


class Encode(Coded):
    """DIVISION's compression behind SFPR: the base of every segment, and codes for what lies above it::

        i -+-> align --------> quantize -> pack -> chunks
           +-> average -> bases -^  dither -^

    The alignment buffer gives the first row of a tile only after its last one came. So it is the buffer that a mean has
    to wait for; in the flat order it works as for one tile a row.

    Throughput: a row a cycle, 8.00 cycles a block; 12.00 where rows of the view are of one sector. Latency, first row
    in to first chunk: 12, 19 or 33 cycles for layout 0, 1 or 2; the first row comes in four cycles after ``start``.
    Buffering: four blocks in the alignment buffer, two rows, eight bases. Combinational paths: none if the buffer is
    inside; else ``sectors.ready`` to ``i.ready``, and ``chunks.ready`` to ``tiles.ready``.

    Source: DIVISION, section 4.1, Figure 5.

    Parameters
    ----------
    bits : tuple of int
        Bits of a code, one or more of 1 to 4; the mode of a tensor chooses.
    minimum : bool
        There is hardware for ``config.minimum``.
    align : bool
        The alignment buffer is inside. If not, there are ``sectors`` and ``tiles``, for a CDU's.
    segments : bool
        So is what counts the rows. If not, there are ``ready``, ``place`` and ``next``, for one that a CDU has for both
        directions, and ``refused`` is that one's matter.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
        Stands until the tensor is through.
    ready, place, next
        Those of :class:`~actcodec.rtl.division.segments.Segments`, whose rows are those of ``i``.
    start : input
        Pulse that starts a tensor; only when the one before is through.
    i : stream of :data:`~actcodec.rtl.division.average.rows`
        Eight rows a block, in the order of sectors; padding and void rows are 0. ``last`` is ignored.
    sectors, tiles : streams of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        To the alignment buffer, and back, which starts with the tensor, in layout 0 if not ``config.tiled``.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 1 + the most bits
        Eight a block.
    refused : output
        There can be no such tensor (:func:`~actcodec.rtl.division.config.refused`): none has started. Until the next
        start.
    clipped : output
        The table does not fit the tensor: codes were clipped. Complete a cycle after the last chunk came up. Until the
        next start.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others.
    """

    def __init__(self, bits=(1, 2, 4), minimum=True, align=True, segments=True):
        self.minimum, self.align, self.segments = bool(minimum), bool(align), bool(segments)
        lanes = stream.Signature(vectors_layout(signed(8)))
        super().__init__(bits, lambda most: {
            "start": In(1), "i": In(stream.Signature(rows)),
            **({} if align else {"sectors": Out(lanes), "tiles": In(lanes)}),
            **({} if segments else {"ready": In(1), "place": In(Place), "next": Out(1)}),
            "chunks": Out(stream.Signature(chunk_layout(1 + most))), **({"refused": Out(1)} if segments else {}),
            "clipped": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.average = average = Average(self.minimum)
        m.submodules.dither = dither = Dither(self.bits)
        m.submodules.quantize = quantize = Quantize(self.bits)
        m.submodules.pack = pack = Pack(self.bits)
        start, layout = Signal(), Signal(2)
        m.d.comb += [layout.eq(Mux(config.tiled, config.layout, 0)), self.clipped.eq(quantize.clipped)]
        if self.segments:
            m.submodules.segments = segments = Segments()
            m.d.comb += [start.eq(self.start & ~refused(config, self.bits)), segments.config.eq(config),
                         segments.start.eq(start), segments.layout.eq(layout), segments.next.eq(average.next),
                         average.ready.eq(segments.ready), average.place.eq(segments.place)]
            with m.If(self.start):
                m.d.sync += self.refused.eq(~start)
        else:
            m.d.comb += [start.eq(self.start), self.next.eq(average.next), average.ready.eq(self.ready),
                         average.place.eq(self.place)]
        for unit in (average, dither, quantize, pack):
            m.d.comb += unit.config.eq(config)
        for unit in (dither, quantize):
            m.d.comb += unit.start.eq(start)
        wiring.connect(m, wiring.flipped(self.i), average.i)
        wiring.connect(m, average.bases, quantize.bases)
        wiring.connect(m, dither.noise, quantize.noise)
        wiring.connect(m, quantize.o, pack.i)
        wiring.connect(m, pack.chunks, wiring.flipped(self.chunks))
        if self.align:
            m.submodules.align = align = Align()
            m.d.comb += [align.start.eq(start), align.layout.eq(layout), align.blocks.eq(config.blocks)]
            wiring.connect(m, average.o, align.i)
            wiring.connect(m, align.o, quantize.i)
        else:
            wiring.connect(m, average.o, wiring.flipped(self.sectors))
            wiring.connect(m, wiring.flipped(self.tiles), quantize.i)
        return m
