"""The rigid pipeline: the one way in which a unit of several stages moves its beats."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pipeline", "Register"]


class Pipeline:
    """Registers between an input and an output stream that all move together.

    Every stage advances in each cycle in which the last stage is empty or its beat is taken; a stage that holds no
    beat travels along as a bubble. One enable for the whole unit costs a clock gate and not a multiplexer per
    flip-flop, and needs no ready chain from stage to stage.

    Throughput: one beat a cycle. Latency: one cycle a stage. Buffering: one beat a stage. Combinational path: from
    ``o.ready`` to ``i.ready``; none from ``i`` to ``o`` once there is a stage.

    Payload registers are not reset, since ``valid`` tells whether they mean anything.

    Parameters
    ----------
    m : Module
        The module that gets the registers.
    i, o : stream interfaces
        ``i.ready`` is driven at once, ``o.valid`` by :meth:`finish`.

    Attributes: ``advance``, all stages move; ``valid``, the latest stage holds a beat.
    """

    def __init__(self, m, i, o):
        self._m, self._o = m, o
        self.valid = i.valid
        self.advance = Signal()
        m.d.comb += [self.advance.eq(~o.valid | o.ready), i.ready.eq(self.advance)]

    def stage(self, *values):
        """Registers ``values`` and the valid bit; returns the registered values, one for one."""
        m = self._m
        valid = Signal(name="valid")
        registers = [Signal(Value.cast(value).shape(), reset_less=True, name="stage") for value in values]
        with m.If(self.advance):
            m.d.sync += valid.eq(self.valid)
            m.d.sync += [register.eq(value) for register, value in zip(registers, values, strict=True)]
        self.valid = valid
        return registers

    def finish(self):
        """Drives ``o.valid`` from the last stage; the caller drives ``o.p`` from what it returned."""
        self._m.d.comb += self._o.valid.eq(self.valid)


class Register(wiring.Component):
    """A pipeline of one stage, which changes nothing: it parts what makes a beat from what takes it.

    Throughput: one beat a cycle, or in two. Latency: one cycle. Buffering: one beat. Combinational path: from
    ``o.ready`` to ``i.ready``; none where beats are two cycles apart.

    Parameters
    ----------
    shape : shape-castable
        Payload of the stream.
    slow : bool
        True: ``i.ready`` comes from a register, too, so that beats are at least two cycles apart.
    """

    def __init__(self, shape, slow=False):
        self.slow = bool(slow)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        if self.slow:
            payload, valid = Signal.like(self.i.p, reset_less=True), Signal()
            m.d.comb += [self.i.ready.eq(~valid), self.o.valid.eq(valid), self.o.p.eq(payload)]
            with m.If(~valid):
                m.d.sync += [payload.eq(self.i.p), valid.eq(self.i.valid)]
            with m.Elif(self.o.ready):
                m.d.sync += valid.eq(0)
            return m
        pipe = Pipeline(m, self.i, self.o)
        (payload,) = pipe.stage(self.i.p)
        pipe.finish()
        m.d.comb += Value.cast(self.o.p).eq(payload)
        return m
