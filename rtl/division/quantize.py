"""HFC and quantization: what of each value lies above its base, as a code."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.division.average import base
from actcodec.rtl.division.config import Coded
from actcodec.rtl.division.dither import noise

__all__ = ["Quantize", "codes_layout"]

RANGE = 6  # bits of what is quantized


def codes_layout(bits):
    """Codes of a row, those of fewer than ``bits`` bits in the upper ones; the base of their segment and whether it
    begins here; ``last``."""
    return data.StructLayout({"data": data.ArrayLayout(bits, 8), "base": 8, "begins": 1, "last": 1})


class Quantize(Coded):
    """t = y - base + R in each lane, and the upper bits of that, clipped to 0 to 63.

    Throughput: a row a cycle. Latency: two cycles from a row, one from its base. Buffering: two rows. Combinational
    paths: ``o.ready`` to ``ready`` of the inputs, from ``valid`` of ``i`` and of ``noise`` to ``ready`` of the other,
    and from that of ``bases`` to both.

    Source: DIVISION, section 4.1, equations 8 and 9, Figure 5.

    Parameters
    ----------
    bits : tuple of int
        Of codes, 1 to 4.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
    start : input
        Pulse that starts a tensor.
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        Rows of blocks.
    bases : stream of :data:`~actcodec.rtl.division.average.base`
        Of their segments.
    noise : stream of :data:`~actcodec.rtl.division.dither.noise`
    o : stream of :func:`codes_layout`
        0 where there is no value.
    clipped : output
        A value of this tensor had t < 0 or t > 63.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others.
    """

    def __init__(self, bits=(1, 2, 4)):
        super().__init__(bits, lambda most: {
            "start": In(1), "i": In(stream.Signature(vectors_layout(signed(8)))), "bases": In(stream.Signature(base)),
            "noise": In(stream.Signature(noise)), "o": Out(stream.Signature(codes_layout(most))), "clipped": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        config, segment = self.config, self.bases.p

        # y + R. This row also makes up for the cycle by which a base comes later than the row that waits for it.
        values = [Signal(signed(9), reset_less=True, name=f"value_{k}") for k in range(8)]
        valid, last, moves, free, index = Signal(), Signal(reset_less=True), Signal(), Signal(), Signal(3)
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            moves.eq(valid & self.bases.valid & free),
            self.i.ready.eq((~valid | moves) & self.noise.valid),
            self.noise.ready.eq((~valid | moves) & self.i.valid),
        ]
        with m.If(~valid | moves):
            m.d.sync += valid.eq(self.i.valid & self.noise.valid)
            m.d.sync += [value.eq(y + self.noise.p[k])
                         for k, (value, y) in enumerate(zip(values, self.i.p.data, strict=True))]
            m.d.sync += last.eq(self.i.p.last)

        ends = Signal()
        m.d.comb += [ends.eq(index == segment.index), self.bases.ready.eq(valid & free & ends)]
        with m.If(moves):
            m.d.sync += index.eq(Mux(ends, 0, index + 1))
        narrow = segment.narrow & (config.tiled | ends)
        codes, beyond = [], []
        for k, value in enumerate(values):
            exists = ~segment.void & (~(narrow & (config.tail <= k)) if k else Const(1, 1))
            t, above, below = Signal(signed(10), name=f"t_{k}"), Signal(name=f"above_{k}"), Signal(name=f"below_{k}")
            m.d.comb += [t.eq(value - segment.base), below.eq(t[9] & exists),
                         above.eq(~t[9] & t[RANGE:9].any() & exists)]
            top = t[RANGE - self.most : RANGE]
            codes.append((top | above.replicate(len(top))) & (exists & ~below).replicate(len(top)))
            beyond.append(above | below)
        o, clips = Signal.like(self.o.p, reset_less=True), Signal(reset_less=True)
        m.d.comb += self.o.p.eq(o)
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(valid & self.bases.valid), Cat(o.data).eq(Cat(codes)), o.base.eq(segment.base),
                o.begins.eq((index == 0) & ~segment.void), o.last.eq(last), clips.eq(Cat(beyond).any()),
            ]
        with m.If(self.start):
            m.d.sync += self.clipped.eq(0)
        with m.Elif(self.o.valid & clips):
            m.d.sync += self.clipped.eq(1)
        return m
