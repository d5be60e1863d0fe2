"""Decompression: bytes to rows of int8 for SFPR."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.unpacker import window_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.division.config import Coded, check_bits, refused
from actcodec.rtl.division.quantize import RANGE, codes_layout
from actcodec.rtl.division.segments import Place, Segments
from actcodec.rtl.division.unpack import Unpack
from actcodec.rtl.jpegact.align import Align

__all__ = ["Decode", "Dequantize"]


class Dequantize(wiring.Component):
    """y' = base + code * 2^F, at most 127, in each lane.

    Throughput: a row a cycle. Latency: one cycle. Buffering: a row. Combinational path: ``o.ready`` to ``i.ready``.

    Source: DIVISION, section 4.2, equation 10, Figure 5.

    Parameters
    ----------
    bits : int
        The most that a code has, 1 to 4.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.division.quantize.codes_layout`
    void : input
        The row is void: it becomes 0, whatever its codes and base.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
    """

    def __init__(self, bits=4):
        check_bits((bits,))
        self.bits = bits
        super().__init__({"i": In(stream.Signature(codes_layout(bits))), "void": In(1),
                          "o": Out(stream.Signature(vectors_layout(signed(8))))})

    def elaborate(self, platform):
        m = Module()
        pipe, i = Pipeline(m, self.i, self.o), self.i.p
        base = Signal(signed(8), reset_less=True)
        with m.If(pipe.advance & self.i.valid):
            m.d.sync += base.eq(Mux(i.begins, i.base, base) & (~self.void).replicate(8))
        *values, last = pipe.stage(*i.data, i.last)
        pipe.finish()
        for code, y in zip(values, self.o.p.data, strict=True):
            total = Signal(signed(9), name="total")
            m.d.comb += [
                total.eq(base + Cat(Const(0, RANGE - self.bits), code)),
                y.eq(Cat(total[:7] | (total[7] & ~total[8]).replicate(7), total[8])),
            ]
        m.d.comb += self.o.p.last.eq(last)
        return m


class Decode(Coded):
    """DIVISION's decompression in front of SFPR::

        bytes -> unpack -> dequantize -> align -> o

    Throughput: a row a cycle, 8.00 cycles a block. Latency, bytes of the first row to that row: one cycle without the
    alignment buffer; with it 3, 11 or 27 for layout 0, 1 or 2. The first row is taken four cycles after ``start``.
    Buffering: a row, and those of the alignment buffer. Combinational paths: without it, ``o.ready`` to
    ``bytes.ready``.

    Source: DIVISION, section 4.2, Figure 5.

    Parameters
    ----------
    bits : tuple of int
        Of codes, one or more of 1 to 4.
    align : bool
        The alignment buffer is inside, and ``o`` is in the order of sectors. If not, in that of blocks, for a CDU's.
    segments : bool
        So is what counts the rows. If not, there are ``ready``, ``place`` and ``next``, for one that a CDU has for both
        directions, which starts with the tensor, in layout 0; and neither ``start`` nor ``refused`` nor ``short``.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
        Stands until the tensor is through.
    ready, place, next
        Those of :class:`~actcodec.rtl.division.segments.Segments`, whose rows are those of ``bytes``.
    start : input
        Pulse that starts a tensor; only when the one before is through.
    bytes : stream of :func:`~actcodec.rtl.common.unpacker.window_layout` of 1 + the most bits
    take : output
        Bytes that a transfer at ``bytes`` consumes.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        Eight rows a block. Lanes beyond the end of a row of the view mean nothing; void rows are 0.
    refused : output
        There can be no such tensor (:func:`~actcodec.rtl.division.config.refused`): none has started. Until the next
        start.
    short : output
        The stream ended early: zeros stand for what was missing. Until the next start.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others; if the alignment buffer is inside and what counts the rows is not.
    """

    def __init__(self, bits=(1, 2, 4), align=True, segments=True):
        self.align, self.segments = bool(align), bool(segments)
        if align and not segments:
            raise ValueError("align must be False where segments is, not True")
        own = {"start": In(1), "refused": Out(1), "short": Out(1)}
        super().__init__(bits, lambda most: {
            "bytes": In(stream.Signature(window_layout(1 + most))), "take": Out(range(2 + most)),
            "o": Out(stream.Signature(vectors_layout(signed(8)))),
            **(own if segments else {"ready": In(1), "place": In(Place), "next": Out(1)}),
        })

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.unpack = unpack = Unpack(self.bits)
        m.submodules.dequantize = dequantize = Dequantize(self.most)
        start, accepted = Signal(), Signal()
        m.d.comb += accepted.eq(self.bytes.valid & self.bytes.ready)
        if self.segments:
            m.submodules.segments = segments = Segments()
            m.d.comb += [start.eq(self.start & ~refused(config, self.bits)), segments.config.eq(config),
                         segments.start.eq(start), segments.next.eq(accepted)]
            with m.If(self.start):
                m.d.sync += [self.refused.eq(~start), self.short.eq(0)]
            with m.Elif(accepted & self.bytes.p.short):
                m.d.sync += self.short.eq(1)
        else:
            segments = self
            m.d.comb += self.next.eq(accepted)
        m.d.comb += [
            unpack.config.eq(config), unpack.place.eq(segments.place), dequantize.void.eq(segments.place.void),
            unpack.bytes.p.eq(self.bytes.p), self.take.eq(unpack.take),
            unpack.bytes.valid.eq(self.bytes.valid & segments.ready),
            self.bytes.ready.eq(unpack.bytes.ready & segments.ready),
        ]
        wiring.connect(m, unpack.o, dequantize.i)
        if self.align:
            m.submodules.align = align = Align()
            m.d.comb += [align.start.eq(start), align.layout.eq(Mux(config.tiled, config.layout, 0)),
                         align.blocks.eq(config.blocks), align.decompress.eq(1)]
            wiring.connect(m, dequantize.o, align.i)
            wiring.connect(m, align.o, wiring.flipped(self.o))
        else:
            wiring.connect(m, dequantize.o, wiring.flipped(self.o))
        return m
