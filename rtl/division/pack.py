"""Codes and bases to bytes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.division.config import Coded
from actcodec.rtl.division.quantize import codes_layout

__all__ = ["Pack"]


class Pack(Coded):
    """The base, if a segment begins with the row, and the codes after it, the first lane in the lowest bits.

    Throughput: a row a cycle. Latency, buffering: none. Combinational paths: ``i`` to ``chunks`` and back.

    Source: DIVISION, section 4.1, Figure 5.

    Parameters
    ----------
    bits : tuple of int
        Of codes, 1 to 4.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
    i : stream of :func:`~actcodec.rtl.division.quantize.codes_layout`
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 1 + the most bits
        A chunk of each row, Q bytes and one for the base.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others.
    """

    def __init__(self, bits=(1, 2, 4)):
        super().__init__(bits, lambda most: {"i": In(stream.Signature(codes_layout(most))),
                                             "chunks": Out(stream.Signature(chunk_layout(1 + most)))})

    def elaborate(self, platform):
        m = Module()
        row, chunks, most = self.i.p, self.chunks.p, self.most
        packed = Signal(8 * most)
        m.d.comb += packed.eq(self.choose(lambda q: Cat(code[most - q :] for code in row.data)))
        count = self.choose(lambda q: Const(q, 3))
        m.d.comb += [
            self.chunks.valid.eq(self.i.valid),
            self.i.ready.eq(self.chunks.ready),
            chunks.data.as_value().eq(Mux(row.begins, Cat(row.base, packed), packed)),
            chunks.count.eq(count + row.begins),
            chunks.last.eq(row.last),
        ]
        return m
