"""Reads a descriptor of a ring."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.bursts import LIMIT
from actcodec.rtl.common.target import target
from actcodec.rtl.offload.control import register_map
from actcodec.rtl.offload.control.registers import LINE, line_layout
from actcodec.rtl.offload.memory.geometry import check_address_width

__all__ = ["DESCRIPTOR", "LINES", "Fetch", "check_lines"]

DESCRIPTOR = len(register_map.DESCRIPTOR)  # bytes
LINES = DESCRIPTOR // LINE
FEW = 6  # lines that take less area as flip-flops than as a macro, which has 32 words at least


def check_lines(lines):
    """Raises ValueError unless ``lines`` are places of lines in a descriptor, in ascending order."""
    if not (isinstance(lines, tuple) and lines and all(type(line) is int for line in lines)
            and list(lines) == [line for line in range(LINES) if line in lines]):
        raise ValueError(f"lines must be a tuple of ascending numbers, 0 to {LINES - 1}, not {lines!r}")


class Fetch(wiring.Component):
    """Reads a descriptor up to its last line that counts, and keeps the lines that do in a memory with room for all of
    them: nothing that was asked for ever waits for anybody, so ``r.ready`` is always 1, and what has begun ends by
    itself.

    Throughput: a line a cycle. Latency: from ``start`` to the address 1 cycle, from a line to ``line`` none; from
    ``index`` of a line to ``data`` 1. Buffering: ``lines``. Combinational paths: ``reads.r`` to ``line``.

    Source: this project's.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    lines : tuple of int
        Which lines of 32 bytes of a descriptor count, 0 to 15, ascending.

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
        A line that has just come, with its place in the descriptor; also one that does not count.
    chosen, data : input, output
        Reads the memory: which of ``lines``, counted from 0, and what it has.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, lines=tuple(range(LINES))):
        check_address_width(address_width)
        check_lines(lines)
        self.address_width, self.lines = address_width, lines
        super().__init__({
            "reads": Out(axi.Read(address_width)), "index": In(address_width - 9), "start": In(1), "busy": Out(1),
            "failed": Out(1), "line": Out(line_layout), "chosen": In(range(LINES)), "data": Out(8 * LINE)})

    def elaborate(self, platform):
        m = Module()
        small = len(self.lines) <= FEW and target(platform) == "cells"  # memories of LUTs have 16 words at least
        m.submodules.memory = memory = Memory(shape=8 * LINE, depth=len(self.lines) if small else LINES, init=[])
        write, read = memory.write_port(), memory.read_port(domain="sync")
        ar, r = self.reads.ar, self.reads.r
        count = self.lines[-1] + 1  # of the lines to read
        place = Signal(range(LINES))  # of the next line
        left = Signal(range(count + 1))  # lines to come
        free = Signal(range(LINES))  # where the next one that counts is kept
        counts = Signal()
        index, half = Signal.like(self.index, reset_less=True), Signal()  # half: the second 256 bytes
        first, second = min(count, LIMIT), count - LIMIT
        m.d.comb += [
            r.ready.eq(1),
            self.busy.eq(left != 0),
            ar.p.address.eq(Cat(Const(0, 8), half, index)),
            ar.p.length.eq(Mux(half, second - 1, first - 1) if second > 0 else first - 1),
            self.line.valid.eq(r.valid), self.line.place.eq(place), self.line.data.eq(r.p.data),
            counts.eq(Cat(place == line for line in self.lines).any() if count > len(self.lines) else 1),
            write.addr.eq(free), write.data.eq(r.p.data), write.en.eq(r.valid & counts),
            read.addr.eq(self.chosen), read.en.eq(1), self.data.eq(read.data),
        ]
        with m.If(ar.valid & ar.ready):
            m.d.sync += ar.valid.eq(0)
            if second > 0:
                m.d.sync += [ar.valid.eq(~half), half.eq(1)]
        with m.If(r.valid):
            m.d.sync += [place.eq(place + 1), left.eq(left - 1), free.eq(free + counts)]
            with m.If(r.p.resp != 0):
                m.d.sync += self.failed.eq(1)
        with m.If(self.start):
            m.d.sync += [ar.valid.eq(1), half.eq(0), index.eq(self.index), place.eq(0), left.eq(count),
                         free.eq(0), self.failed.eq(0)]
        return m
