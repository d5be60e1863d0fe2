"""The skid buffer: cuts the ready chain between two units without costing throughput."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Skid"]


class Skid(wiring.Component):
    """A two-beat buffer whose outputs, ``ready`` included, all come from registers.

    Throughput: one beat a cycle. Latency: 1 cycle. Buffering: two beats, the second of which catches what is under
    way when the output stalls. Combinational paths: none.

    Parameters
    ----------
    shape : shape-castable
        Payload of the stream.
    """

    def __init__(self, shape):
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        spare = Signal.like(self.i.payload, reset_less=True)
        full = Signal()  # the spare register holds a beat
        payload = Signal.like(self.i.payload, reset_less=True)
        valid = Signal()
        m.d.comb += [self.i.ready.eq(~full), self.o.valid.eq(valid), self.o.payload.eq(payload)]
        with m.If(~valid | self.o.ready):
            m.d.sync += [payload.eq(Mux(full, spare, self.i.payload)), valid.eq(full | self.i.valid), full.eq(0)]
        with m.Elif(~full):
            m.d.sync += full.eq(self.i.valid)
        with m.If(~full):
            m.d.sync += spare.eq(self.i.payload)
        return m
