"""Benches on a mapped netlist: wherever a component has the unit, its netlist takes the place of the RTL."""

import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib.wiring import In

from rtl import units
from synth import cells
from synth.flow import netlist
from synth.library import liberty

__all__ = ["ARGUMENTS", "PLUSARGS", "replaced", "verilog"]

# Flip-flops and latches wake up with random values, as those of a chip. The rest spares time: a netlist has been
# optimised already.
ARGUMENTS = ("--x-initial", "unique", "-fno-dfg")
PLUSARGS = ("+verilator+rand+reset+2",)


@contextmanager
def replaced(name, folder):
    """While this is open, components of the class of the unit ``name`` elaborate to an instance of the netlist that
    ``folder`` has, if they are the same hardware as the RTLIL that it was made from, and otherwise as ever. Gives the
    list of those that were replaced."""
    unit, text = units.UNITS[name].component, Path(folder, "unit.il").read_text()
    top = text[text.index(f"\nmodule \\{name}\n"):]
    ports = set(re.findall(r"^  wire.* (?:input|output) \d+ .*\\(\w+)$", top, re.MULTILINE))
    found, elaborate, busy = [], unit.elaborate, []

    def instance(self, platform):
        if busy:
            return elaborate(self, platform)
        busy.append(self)
        same = netlist(self, name)[0] == text
        busy.pop()
        if not same:
            return elaborate(self, platform)
        found.append(self)
        signals = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        signals |= {("i_" if member.flow is In else "o_") + "__".join(map(str, path)): value
                    for path, member, value in self.signature.flatten(self)}
        m = Module()
        m.submodules.netlist = Instance(name, **{port: value for port, value in signals.items() if port[2:] in ports})
        return m

    unit.elaborate = instance
    try:
        yield found
    finally:
        unit.elaborate = elaborate


def verilog(component, name, folder):
    """The Verilog of ``component`` as ``dut``, with the netlist of the unit in it, and the cells that this is made of.
    Leaves the test at hand if the component does not have the unit."""
    with replaced(name, folder) as found:
        text = units.verilog(component, "dut")
    if not found:
        pytest.skip(f"has no {name} with the parameters of the netlist")
    net = Path(folder, "net.v").read_text()
    return f"{text}\n{net}\n{cells.verilog(liberty(), net)}"
