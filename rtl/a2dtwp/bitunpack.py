"""Bitunpack: values from their packed most significant bits."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.a2dtwp.pieces import SECTOR, Phases, check_widths, values_layout
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Bitunpack", "Error"]


class Error(data.Struct):
    """Why a tensor is not what it should be; stands until the next one starts."""

    short: 1  # the encoded array ended early; zeros stand for what was missing
    excess: 1  # the encoded array went on; the rest was dropped


class Bitunpack(wiring.Component):
    """Takes packed values apart and fills up their low bits with zeros: the reverse of
    :class:`~actcodec.rtl.a2dtwp.bitpack.Bitpack`.

    A transfer at ``length`` starts a tensor. The unit gives as many values as it was told. If the array ends before,
    what is missing is zero, and ``error.short`` is set; if bytes follow the sector that has the last value, they
    are dropped up to the stream's ``last``, and ``error.excess`` is set. What lies in that sector after the last value
    is not looked at, since an array in memory is filled up to a whole sector.

    A sector of the array waits at the port while it is read; only 24 bits need a register for the half of one.

    Throughput: one sector of values a cycle; a tensor takes two more to start and to end. Latency: one cycle from a
    packed sector to the values that it completes; two from ``length``. Buffering: a sector of values, and 16 bytes if
    there are 24 bits. Combinational paths: ``o.ready`` to ``i.ready``; ``i`` to nothing.

    Source: A2DTWP, section III, Bitunpack; Gist, section III-A, for three values of 10 bits in a word.

    Parameters
    ----------
    widths : tuple of int
        As for :class:`~actcodec.rtl.a2dtwp.bitpack.Bitpack`.

    Ports
    -----
    length : stream of 32 bits
        Values of the tensor that starts; taken when the one before has left. None at all give one sector of none.
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32 bytes
        The packed array; of no bytes, one empty chunk.
    o : stream of :func:`~actcodec.rtl.a2dtwp.pieces.values_layout` of the largest width
    width : input
        Index of the width in ``widths``, constant from ``length`` to the last sector. Beyond them it means the last.
    error : output, :class:`Error`

    Raises
    ------
    ValueError
        If ``widths`` are not legal.
    """

    def __init__(self, widths=(8, 16, 24, 32)):
        self.widths = check_widths(widths)
        super().__init__({
            "length": In(stream.Signature(32)),
            "i": In(stream.Signature(chunk_layout(32))),
            "o": Out(stream.Signature(values_layout(max(self.widths)))),
            "width": In(range(max(len(self.widths), 2))),
            "error": Out(Error),
        })

    def elaborate(self, platform):
        m = Module()
        i, length = self.i.p, self.length.p
        pieces = Phases(m, self.widths, self.width)

        left = Signal(32, reset_less=True)  # values, those of the next piece among them
        count = Signal(4, reset_less=True)  # of the next piece
        final = Signal(reset_less=True)  # it is the last one
        end = Signal(6)
        m.d.comb += end.eq(pieces.select(lambda piece: piece.end(count)))

        # A piece that goes beyond its sector finds the upper part of that in a register, and the next one at the port,
        # if it needs it at all.
        back = max(piece.beyond for _, piece in pieces)
        here, before = Signal(SECTOR), Signal(back, reset_less=True)
        bytes_before = Signal(6, reset_less=True)  # of that sector
        running = Signal()
        ended = Signal()  # the array is over
        split, needs, missing, accepted, passed = Signal(), Signal(), Signal(), Signal(), Signal()
        o = stream.Signature(values_layout(max(self.widths))).create(path=["values"])
        m.d.comb += [
            split.eq(pieces.any(lambda piece: piece.beyond)),
            needs.eq(Mux(split, end > SECTOR // 8, count.any())),
            missing.eq((needs & (ended | (Mux(split, end[:5], end) > i.count)))
                       | (split & (Mux(needs, SECTOR // 8, end) > bytes_before))),
            o.valid.eq(running & (self.i.valid | ended | ~needs)),
            o.p.count.eq(count),
            o.p.last.eq(final),
            accepted.eq(o.valid & o.ready),
            passed.eq(running & o.ready & needs & ~ended & (final | pieces.any(lambda piece: piece.leaves))),
        ]

        m.d.comb += here.eq(Mux(ended, 0, i.data.as_value()))

        def lane(k):
            def bits(piece):
                first = piece.bit(k)
                near = Cat(before, here) if piece.beyond else here
                first -= (SECTOR - back) if piece.beyond else 0
                value = near[first : first + piece.width]
                return Cat(Const(0, len(o.p.data[k]) - piece.width), value)
            return Mux(count > k, pieces.select(bits), 0)

        m.d.comb += [o.p.data[k].eq(lane(k)) for k in range(8)]
        with m.If(accepted):
            m.d.sync += [
                left.eq(left - 8),
                final.eq(left <= 16),
                count.eq(Mux(left <= 16, left[:4] - 8, 8)),
                pieces.advance(restart=final),
                before.eq(here[SECTOR - back :]),
                bytes_before.eq(Mux(ended, 0, i.count)),
            ]
            with m.If(missing):
                m.d.sync += self.error.short.eq(1)
        with m.If(passed & self.i.valid & i.last):
            m.d.sync += ended.eq(1)

        pipe = Pipeline(m, o, self.o)
        *registers, stage_count, stage_last = pipe.stage(*o.p.data, count, final)
        pipe.finish()
        m.d.comb += [target.eq(word) for target, word in zip(self.o.p.data, registers, strict=True)]
        m.d.comb += [self.o.p.count.eq(stage_count), self.o.p.last.eq(stage_last)]

        m.d.comb += self.i.ready.eq(passed)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.length.ready.eq(~self.o.valid)
                m.d.sync += [left.eq(length), final.eq(length <= 8), count.eq(Mux(length <= 8, length[:4], 8)),
                             ended.eq(0)]
                with m.If(self.length.valid & self.length.ready):
                    m.d.sync += self.error.eq(0)
                    m.next = "run"
            with m.State("run"):
                m.d.comb += running.eq(1)
                with m.If(accepted & final):
                    m.next = "drain"
                    with m.If(ended | (passed & self.i.valid & i.last)):
                        m.next = "idle"
            with m.State("drain"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    with m.If(i.count.any()):
                        m.d.sync += self.error.excess.eq(1)
                    with m.If(i.last):
                        m.next = "idle"
        return m
