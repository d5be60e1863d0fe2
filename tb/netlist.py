"""Benches on a netlist, of mapped cells or with mutants: wherever a component has the unit, it takes the place of the
RTL."""

import re
from contextlib import contextmanager
from pathlib import Path

import pytest
from amaranth.hdl import ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.lib.wiring import In

from actcodec import elaboration, units
from actcodec.synth import cells, mutants
from actcodec.synth.elaborating import elaborating
from actcodec.synth.flow import netlist
from actcodec.synth.library import liberty
from tb.mutants import job

__all__ = ["ARGUMENTS", "PLUSARGS", "concerns", "job", "replaced", "verilog"]

# Flip-flops and latches wake up with random values, as those of a chip. The rest spares time: a netlist has been
# optimised already.
ARGUMENTS = ("--x-initial", "unique", "-fno-dfg")
PLUSARGS = ("+verilator+rand+reset+2",)

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
    found = []

    def instance(component, elaborate):
        if netlist(component, name)[0] != text:
            return elaborate()
        found.append(component)
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
        yield found


class Answer(Exception):
    """Whether a component has the unit: what a test that is only asked ends with."""


_asked = []


def concerns(item):
    """Whether a test of pytest's is to be run on the netlist: whether the component that it would simulate has the
    unit, with the parameters of the netlist. A bench has other components, and tests without a simulator, too."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if set(item.fixturenames) - set(parameters):
        return True  # cannot be asked
    _asked.append(item)
    try:
        item.obj(**parameters)
    except Answer as answer:
        return answer.args[0]
    except (Exception, pytest.fail.Exception):
        return True  # shows when it is run
    finally:
        _asked.pop()
    return False


def verilog(component, name, folder):
    """The Verilog of ``component`` as ``dut``, with the netlist of the unit in it, and what this is made of. Raises
    ValueError if the component does not have the unit, and :class:`Answer` if the test was only asked."""
    mutated = mutants.drawn(folder)
    with replaced(name, folder, mutants.SUBJECTS[name].component if mutated else None) as found:
        text = elaboration.verilog(component, "dut")
    if _asked:
        raise Answer(bool(found))
    if not found:
        raise ValueError(f"{component} has no {name} with the parameters of the netlist")
    net = Path(folder, "net.v").read_text()
    return f"{text}\n{net}\n{CHOICE if mutated else cells.verilog(liberty(), net)}"
