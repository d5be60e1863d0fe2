"""Codes and bases to bytes."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk
from actcodec.rtl.division.config import Config, check_bits, which
from actcodec.rtl.division.quantize import codes

__all__ = ["Pack"]


class Pack(wiring.Component):
    """The base, if a segment begins with the row, and the codes behind it, the first lane in the lowest bits.

    Throughput: a row a cycle. Latency, buffering: none. Combinational paths: ``i`` to ``chunks`` and back.

    Source: DIVISION, section 4.1, Figure 5.

    Parameters
    ----------
    bits : tuple of int
        Of codes, 1 to 4.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
    i : stream of :func:`~actcodec.rtl.division.quantize.codes`
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk` of 1 + the most bits
        A chunk of each row, Q bytes and one for the base.

    Raises
    ------
    ValueError
        If ``bits`` is empty or has others.
    """

    def __init__(self, bits=(1, 2, 4)):
        check_bits(bits)
        self.bits = tuple(bits)
        super().__init__({"config": In(Config), "i": In(stream.Signature(codes(max(bits)))),
                          "chunks": Out(stream.Signature(chunk(1 + max(bits))))})

    def elaborate(self, platform):
        m = Module()
        row, chunks, most = self.i.p, self.chunks.p, max(self.bits)
        modes = which(self.config, self.bits)
        packed = Signal(8 * most)
        m.d.comb += packed.eq(choose((mode, Cat(code[most - q :] for code in row.data)) for q, mode in modes.items()))
        count = choose((mode, Const(q, 3)) for q, mode in modes.items())
        m.d.comb += [
            self.chunks.valid.eq(self.i.valid),
            self.i.ready.eq(self.chunks.ready),
            chunks.data.as_value().eq(Mux(row.begins, Cat(row.base, packed), packed)),
            chunks.count.eq(count + row.begins),
            chunks.last.eq(row.last),
        ]
        return m
