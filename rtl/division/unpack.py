"""Bytes to codes and bases."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.unpacker import window_layout
from actcodec.rtl.division.config import Coded
from actcodec.rtl.division.quantize import codes_layout
from actcodec.rtl.division.segments import Place

__all__ = ["Unpack"]


class Unpack(Coded):
    """Takes a row's bytes apart: the base, if a segment begins with it, and its codes.

    Throughput: a row a cycle. Latency, buffering: none. Combinational paths: ``bytes`` to ``o`` and back; ``place`` to
    ``take`` and ``o``.

    Source: DIVISION, section 4.2, Figure 5.

    Parameters
    ----------
    bits : tuple of int
        Of codes, 1 to 4.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
    place : input, :class:`~actcodec.rtl.division.segments.Place`
        That of the row.
    bytes : stream of :func:`~actcodec.rtl.common.unpacker.window_layout` of 1 + the most bits
    take : output
        Bytes of the row.
    o : stream of :func:`~actcodec.rtl.division.quantize.codes_layout`
        The base means something where a segment ``begins``; void rows have codes of 0.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others.
    """

    def __init__(self, bits=(1, 2, 4)):
        super().__init__(bits, lambda most: {
            "place": In(Place), "bytes": In(stream.Signature(window_layout(1 + most))), "take": Out(range(2 + most)),
            "o": Out(stream.Signature(codes_layout(most)))})

    def elaborate(self, platform):
        m = Module()
        o, place, most = self.o.p, self.place, self.most
        content = self.bytes.p.data.as_value()
        packed = Signal(8 * most)
        m.d.comb += [
            packed.eq(Mux(place.begins, content[8:], content[: 8 * most]) & (~place.void).replicate(8 * most)),
            *(o.data[k].eq(self.choose(lambda q, k=k: Cat(Const(0, most - q), packed[q * k :][:q]))) for k in range(8)),
            o.base.eq(content[:8]), o.begins.eq(place.begins), o.last.eq(place.last),
            self.take.eq(self.choose(lambda q: Const(q, 3)) + place.begins),
            self.o.valid.eq(self.bytes.valid), self.bytes.ready.eq(self.o.ready),
        ]
        return m
