"""Reads a descriptor of a ring."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.bursts import LIMIT
from actcodec.rtl.offload.control import register_map
from actcodec.rtl.offload.control.registers import LINE, line_layout
from actcodec.rtl.offload.memory.geometry import check_address_width

__all__ = ["DESCRIPTOR", "LINES", "Fetch"]

DESCRIPTOR = len(register_map.DESCRIPTOR)  # bytes
LINES = DESCRIPTOR // LINE


class Fetch(wiring.Component):
    """Reads the first lines of a descriptor into a memory, which has room for all of it: nothing that was asked for
    ever waits for anybody, so ``r.ready`` is always 1, and what has begun ends by itself.

    Throughput: a line a cycle. Latency: from ``start`` to the address 1 cycle, from a line to ``line`` none; from
    ``place`` to ``data`` 1. Buffering: a descriptor. Combinational paths: ``reads.r`` to ``line``.

    Source: this project's.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    lines : int
        Lines of 32 bytes to read, 1 to 16.

    Ports
    -----
    reads : :class:`~actcodec.rtl.common.axi.Read`
    index : input
        The descriptor's address over 512. Looked at with ``start``.
    start : input
        Pulse, while not ``busy``.
    busy : output
        From the cycle after ``start`` until all lines are there.
    failed : output
        An answer was not OKAY; stands until the next ``start``.
    line : output, :data:`~actcodec.rtl.offload.control.registers.line_layout`
        A line that has just come.
    place, data : input, output
        Reads the memory.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, lines=LINES):
        check_address_width(address_width)
        if lines not in range(1, LINES + 1):
            raise ValueError(f"lines must be 1 to {LINES}, not {lines!r}")
        self.address_width, self.lines = address_width, lines
        super().__init__({
            "reads": Out(axi.Read(address_width)), "index": In(address_width - 9), "start": In(1), "busy": Out(1),
            "failed": Out(1), "line": Out(line_layout), "place": In(range(LINES)), "data": Out(8 * LINE)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=8 * LINE, depth=LINES, init=[])
        write, read = memory.write_port(), memory.read_port(domain="sync")
        ar, r = self.reads.ar, self.reads.r
        place, left = Signal(range(LINES)), Signal(range(self.lines + 1))  # of the next line; lines to come
        index, half = Signal.like(self.index, reset_less=True), Signal()  # half: the second 256 bytes
        first, second = min(self.lines, LIMIT), self.lines - LIMIT
        m.d.comb += [
            r.ready.eq(1),
            self.busy.eq(left != 0),
            ar.p.address.eq(Cat(Const(0, 8), half, index)),
            ar.p.length.eq(Mux(half, second - 1, first - 1) if second > 0 else first - 1),
            self.line.valid.eq(r.valid), self.line.place.eq(place), self.line.data.eq(r.p.data),
            write.addr.eq(place), write.data.eq(r.p.data), write.en.eq(r.valid),
            read.addr.eq(self.place), read.en.eq(1), self.data.eq(read.data),
        ]
        with m.If(ar.valid & ar.ready):
            m.d.sync += ar.valid.eq(0)
            if second > 0:
                m.d.sync += [ar.valid.eq(~half), half.eq(1)]
        with m.If(r.valid):
            m.d.sync += [place.eq(place + 1), left.eq(left - 1)]
            with m.If(r.p.resp != 0):
                m.d.sync += self.failed.eq(1)
        with m.If(self.start):
            m.d.sync += [ar.valid.eq(1), half.eq(0), index.eq(self.index), place.eq(0), left.eq(self.lines),
                         self.failed.eq(0)]
        return m
