"""Writes what became of a descriptor's tensor into the descriptor."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.offload.control.register_map import REPORT_BYTES as SIZE
from actcodec.rtl.offload.memory.geometry import check_address_width
from actcodec.rtl.offload.queue.fetch import DESCRIPTOR

__all__ = ["WORDS", "Report"]

WORDS = 8 * SIZE  # bits


class Report(wiring.Component):
    """Writes the last 64 bytes of a descriptor, in a burst of two beats.

    There is no copy of them: they stand where they come from until both beats have left, which memory alone decides.
    All of a burst's data are there with its address, and ``b.ready`` is always 1, so what has begun ends by itself.

    Throughput: a report in two cycles and memory's latency. Latency: from ``start`` to address and first beat 1 cycle.
    Buffering: none. Combinational paths: ``w.ready`` to ``leaves``, ``words`` to ``w.payload``, ``b`` to ``answered``
    and ``failed``.

    Source: this project's.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    writes : :class:`~actcodec.rtl.common.axi.Write`
    index : input
        The descriptor's address over 512. Looked at with ``start``.
    words : input
        512 bits; from the cycle after ``start`` they stand until ``leaves``.
    start : input
        Pulse, while not ``busy``.
    leaves : output
        Pulse: the last beat is taken in this cycle.
    busy : output
        From the cycle after ``start`` to ``answered``.
    answered, failed : output
        Pulse: memory's answer is here; and it was not OKAY.

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40):
        check_address_width(address_width)
        self.address_width = address_width
        super().__init__({
            "writes": Out(axi.Write(address_width)), "index": In(address_width - 9), "words": In(WORDS), "start": In(1),
            "leaves": Out(1), "busy": Out(1), "answered": Out(1), "failed": Out(1)})

    def elaborate(self, platform):
        m = Module()
        aw, w, b = self.writes.aw, self.writes.w, self.writes.b
        index, second = Signal.like(self.index, reset_less=True), Signal()
        m.d.comb += [
            aw.p.address.eq(Cat(Const(DESCRIPTOR - SIZE, 9), index)), aw.p.length.eq(SIZE // axi.BEAT - 1),
            w.p.data.eq(Mux(second, self.words[WORDS // 2 :], self.words[: WORDS // 2])),
            w.p.strobe.eq(-1), w.p.last.eq(second),
            self.leaves.eq(w.valid & w.ready & second),
            b.ready.eq(1), self.answered.eq(b.valid), self.failed.eq(b.valid & (b.p.resp != 0)),
        ]
        with m.If(aw.ready):
            m.d.sync += aw.valid.eq(0)
        with m.If(w.valid & w.ready):
            m.d.sync += [second.eq(~second), w.valid.eq(~second)]
        with m.If(self.answered):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [aw.valid.eq(1), w.valid.eq(1), self.busy.eq(1), index.eq(self.index)]
        return m
