"""Benches on a netlist, of mapped cells or with mutants: wherever a component has the unit, it takes the place of the
RTL."""

import os
import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib.wiring import In

from actcodec import elaboration, units
from actcodec.elaboration import netlist
from actcodec.synth import cells, mutants
from actcodec.synth.elaborating import elaborating
from actcodec.synth.library import liberty
from tb.harness.selection import ask
from tb.mutants import job

__all__ = ["ARGUMENTS", "PLUSARGS", "concerns", "job", "place", "replaced", "suits", "verilog"]

# Flip-flops and latches wake up with random values, as those of a chip. The rest spares time: a netlist has been
# optimised already.
ARGUMENTS = ("--x-initial", "unique", "-fno-dfg")
PLUSARGS = ("+verilator+rand+reset+2",)

# Of the tests that are parametrised by pauses of inputs and outputs, mapped cells have these: they are slow.
PAUSES = {("never", "never"), ("half", "half"), ("bursts", "shy")}

# Which mutant a netlist is to be, it reads from a file: one simulator does for all.
CHOICE = """
module mutant(output [15:0] number);
  reg [15:0] numbers [0:0];
  initial $readmemh("mutant", numbers);
  assign number = numbers[0];
endmodule
"""


@contextmanager
def replaced(name, folder, unit=None):
    """While this is open, components of the class ``unit`` (default: that of the unit ``name``) elaborate to an
    instance of the netlist that ``folder`` has, if they are the same hardware as the RTLIL that it was made from, and
    otherwise as ever. Gives the list of those that were replaced."""
    unit, text = unit or units.UNITS[name].type, Path(folder, "unit.il").read_text()
    top = text[text.index(f"\nmodule \\{name}\n"):]
    ports = set(re.findall(r"^  wire.* (?:input|output) \d+ .*\\(\w+)$", top, re.MULTILINE))
    components = []

    def instance(component, elaborate):
        if netlist(component, name)[0] != text:
            return elaborate()
        components.append(component)
        signals = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        signals |= {("i_" if member.flow is In else "o_") + "__".join(map(str, path)): value
                    for path, member, value in component.signature.flatten(component)}
        signals = {port: value for port, value in signals.items() if port[2:] in ports}
        m = Module()
        if mutants.drawn(folder):
            number = Signal(16)
            m.submodules.choice = Instance("mutant", o_number=number)
            signals["i_mutant"] = number
        m.submodules.netlist = Instance(name, **signals)
        return m

    with elaborating(unit, instance):
        yield components


def place():
    """The unit whose netlist is to be run, and the netlist's folder."""
    return (os.environ.get("GATES") or os.environ["MUTANTS"]).split(":", 1)


def suits(test):
    """Whether mapped cells have a cocotb test."""
    return "idle" not in test.kwargs or (test.kwargs["idle"], test.kwargs.get("stall")) in PAUSES


def _with(component, name, folder):
    """The Verilog of ``component`` as ``dut``, and whether the netlist is in it."""
    with replaced(name, folder, mutants.SUBJECTS[name].component if mutants.drawn(folder) else None) as components:
        return elaboration.verilog(component, "dut"), bool(components)


def concerns(item):
    """Whether a test of pytest's is to be run on the netlist: whether the component that it would simulate has the
    unit, with the parameters of the netlist. A bench has other components, and tests without a simulator, too."""
    try:
        selection = ask(item)
        return selection is not None and _with(selection[0], *place())[1]
    except (Exception, pytest.fail.Exception):
        return True  # shows when it is run


def verilog(component, name, folder):
    """The Verilog of ``component`` as ``dut``, with the netlist of the unit in it, and what this is made of. Raises
    ValueError if the component does not have the unit."""
    text, present = _with(component, name, folder)
    if not present:
        raise ValueError(f"{component} has no {name} with the parameters of the netlist")
    net = Path(folder, "net.v").read_text()
    return f"{text}\n{net}\n{CHOICE if mutants.drawn(folder) else cells.verilog(liberty(), net)}"
