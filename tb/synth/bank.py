"""A circuit of which every number is known, for the benches of the flows."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.shared_module import shared


class Bank(wiring.Component):
    """``width`` flip-flops with one enable that keep the complement of their input."""

    def __init__(self, width):
        super().__init__({"i": In(width), "enable": In(1), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        register = Signal(len(self.i), reset_less=True)
        with m.If(self.enable):
            m.d.sync += register.eq(~self.i)
        m.d.comb += self.o.eq(register)
        return m


class Pair(wiring.Component):
    """Two banks, one behind the other, that are one module."""

    i: In(8)
    enable: In(1)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.front = front = shared(platform, "bank", lambda: Bank(8))
        m.submodules.back = back = shared(platform, "bank", lambda: Bank(8))
        m.d.comb += [front.i.eq(self.i), back.i.eq(front.o), self.o.eq(back.o), front.enable.eq(self.enable),
                     back.enable.eq(~self.enable)]
        return m


class Nested(wiring.Component):
    """Two banks with a register between them; the banks are submodules ``front`` and ``back``."""

    i: In(8)
    enable: In(1)
    o: Out(8)

    def elaborate(self, platform):
        m = Module()
        m.submodules.front = front = Bank(8)
        m.submodules.back = back = Bank(8)
        between = Signal(8, reset_less=True)
        with m.If(self.enable):
            m.d.sync += between.eq(front.o ^ self.i)
        m.d.comb += [front.i.eq(self.i), back.i.eq(between & front.o), self.o.eq(back.o),
                     front.enable.eq(self.enable), back.enable.eq(~self.enable)]
        return m
