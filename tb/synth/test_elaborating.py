"""What is put in the place of components is not in designs that are looked at meanwhile."""

from functools import partial

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from actcodec.elaboration import netlist
from actcodec.synth.elaborating import elaborating


class Inner(wiring.Component):
    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.o.eq(~self.o)
        return m


class Outer(wiring.Component):
    o: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.inner = inner = Inner()
        m.d.comb += self.o.eq(inner.o)
        return m


def test_designs_are_as_ever_whatever_else_is_open():
    plain, looks = netlist(Outer(), "outer")[0], []

    def marked(name, component, elaborate):
        looks.append((name, netlist(component, name)[0]))
        m = Module()
        m.submodules.inside = elaborate()
        m.d.sync += Signal(name=f"marked_{name}").eq(1)
        return m

    with elaborating(Outer, partial(marked, "outer")), elaborating(Inner, partial(marked, "inner")):
        text = netlist(Outer(), "outer")[0]
    assert "marked_outer" in text and "marked_inner" in text
    assert looks == [("outer", plain), ("inner", netlist(Inner(), "inner")[0])]
    assert netlist(Outer(), "outer")[0] == plain
