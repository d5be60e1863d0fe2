"""The skid buffer: cuts the ready chain between two units without costing throughput."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Skid", "skidded"]


class Skid(wiring.Component):
    """A two-beat buffer whose outputs, ``ready`` included, all come from registers.

    Throughput: one beat a cycle. Latency: 1 cycle. Buffering: two beats, the second of which catches what is under
    way when the output stalls. Combinational paths: none. Half a buffer has no latency, one beat, and passes ``valid``
    and ``payload``.

    Parameters
    ----------
    shape : shape-castable
        Payload of the stream.
    half : bool
        True: only ``ready`` comes from a register, and only the beat that is under way when the output stalls is kept.
    """

    def __init__(self, shape, half=False):
        self.half = bool(half)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        spare = Signal.like(self.i.p, reset_less=True)
        full = Signal()  # the spare register holds a beat
        m.d.comb += self.i.ready.eq(~full)
        with m.If(~full):
            m.d.sync += spare.eq(self.i.p)
        if self.half:
            m.d.comb += [self.o.valid.eq(full | self.i.valid), self.o.p.eq(Mux(full, spare, self.i.p))]
            m.d.sync += full.eq(self.o.valid & ~self.o.ready)
            return m
        payload = Signal.like(self.i.p, reset_less=True)
        valid = Signal()
        m.d.comb += [self.o.valid.eq(valid), self.o.p.eq(payload)]
        with m.If(~valid | self.o.ready):
            m.d.sync += [payload.eq(Mux(full, spare, self.i.p)), valid.eq(full | self.i.valid), full.eq(0)]
        with m.Elif(~full):
            m.d.sync += full.eq(self.i.valid)
        return m


def skidded(m, name, source, half=False):
    """The output of a :class:`Skid` behind a stream, which becomes the submodule ``name``."""
    m.submodules[name] = skid = Skid(source.p.shape(), half)
    wiring.connect(m, source, skid.i)
    return skid.o
