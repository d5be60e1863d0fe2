"""A flat mapped netlist with numbers for cells, pins and nets, which can be changed, and its Verilog for OpenSTA."""

from dataclasses import dataclass, field

import numpy as np

from actcodec.synth import memories
from actcodec.synth.library import SynthesisError

__all__ = ["Net", "Netlist", "own", "reached"]


def own(name):
    """Whether a cell is the module's own, by its name: those of its parts have names with a dot."""
    return "." not in name


def _ends(cell):
    """Whether paths end at a cell's inputs, and others begin at its outputs."""
    return cell["type"].startswith(("DFF", "CLKGATE")) or memories.bits(cell["type"]) > 0


def reached(module):
    """A module of Yosys's JSON without the cells of its parts that no path to or from its own cells and ports passes,
    and that load none: what else is inside of a part does not depend on what is outside."""
    cells, driver, readers = module["cells"], {}, {}
    for name, cell in cells.items():
        for pin, bits in cell["connections"].items():
            for bit in bits:
                if cell["port_directions"][pin] == "output":
                    driver[bit] = name
                elif pin != "CK":
                    readers.setdefault(bit, []).append(name)
    chosen = {name for name in cells if own(name)}

    def bits(names, way):
        return {bit for name in names for pin, bits in cells[name]["connections"].items() for bit in bits
                if cells[name]["port_directions"][pin] == way and pin != "CK"}

    def walk(front, way, beyond):
        reach = set()
        while front:
            new = {name for bit in front for name in beyond(bit)} - reach - chosen
            reach |= new
            front = bits((name for name in new if not _ends(cells[name])), way)
        return reach

    ports = {way: {bit for port in module["ports"].values() if port["direction"] == way for bit in port["bits"]}
             for way in ("input", "output")}
    behind = walk(bits(chosen, "output") | ports["input"], "output", lambda bit: readers.get(bit, ()))
    before = walk(bits(chosen, "input") | ports["output"], "input", lambda bit: [driver[bit]] if bit in driver else ())
    chosen |= behind | before
    chosen |= {name for bit in bits(chosen, "output") for name in readers.get(bit, ())}
    chosen |= {driver[bit] for name in chosen for bit in cells[name]["connections"].get("CK", ()) if bit in driver}
    return {**module, "cells": {name: cell for name, cell in cells.items() if name in chosen}}


@dataclass
class Net:
    """``driver`` and ``sinks``: pins by number."""

    driver: int = -1
    sinks: list = field(default_factory=list)


class Netlist:
    """A module of Yosys's JSON, which changes along.

    ``kinds`` [cell]; ``names`` [cell] in the JSON; ``pins`` [cell]: {pin: net}. Pins are numbered by cell, the ports'
    bits behind them: ``owner`` [pin] is the cell, or -1; ``label`` [pin] the name in the cell, or of the port's bit;
    ``pin`` {(cell, name): number}. ``nets`` {net: :class:`Net`} has those that somebody drives and somebody reads;
    clocks, which are ideal, are in ``clocks`` {net: its flip-flops' and gates' pins}.
    """

    def __init__(self, module):
        self.module, cells = module, module["cells"]
        self.names = list(cells)
        self.kinds = [cells[name]["type"] for name in self.names]
        self.pins = [{pin: bits[0] for pin, bits in cells[name]["connections"].items() if bits} for name in self.names]
        self.outputs = [{pin for pin, way in cells[name]["port_directions"].items() if way == "output"}
                        for name in self.names]
        self.ports = [(f"{name}[{index}]" if len(port["bits"]) > 1 else name, port["direction"] == "input", bit)
                      for name, port in module["ports"].items() for index, bit in enumerate(port["bits"])]
        self.fresh = 1 + max((bit for net in module["netnames"].values() for bit in net["bits"] if type(bit) is int),
                             default=1)
        self.number()

    def number(self):
        """Numbers pins and finds nets, anew after changes.

        Raises
        ------
        SynthesisError
            If a net has two drivers.
        """
        self.label, self.pin, nets, owner = [], {}, {}, []

        def add(cell, name, bit, drives):
            self.pin[cell, name] = pin = len(owner)
            owner.append(cell)
            self.label.append(name)
            net = nets.setdefault(bit, Net())
            if not drives:
                net.sinks.append(pin)
            elif net.driver >= 0:
                raise SynthesisError(f"{self.label[net.driver]} and {name} drive the same net")
            else:
                net.driver = pin

        for cell, pins in enumerate(self.pins):
            for name, bit in pins.items():
                add(cell, name, bit, name in self.outputs[cell])
        for name, drives, bit in self.ports:
            add(-1, name, bit, drives)
        self.owner = np.array(owner, np.int64)
        self.clocks = {bit: [pin for pin in net.sinks if self.label[pin] == "CK"] for bit, net in nets.items()
                       if any(self.label[pin] == "CK" and owner[pin] >= 0 for pin in net.sinks)}
        self.nets = {bit: net for bit, net in nets.items()
                     if type(bit) is int and net.driver >= 0 and net.sinks and bit not in self.clocks}

    def own(self, cell):
        """Whether a cell is the module's own."""
        return own(self.names[cell])

    def instance(self, cell):
        """The name of a cell in :meth:`verilog`."""
        return f"{'c' if self.own(cell) else 'p'}{cell}"

    def change(self, cell, kind):
        """Gives a cell another kind with the same pins."""
        self.kinds[cell] = self.module["cells"][self.names[cell]]["type"] = kind

    def connect(self, cell, pin, bit):
        """Puts an input on another net."""
        self.pins[cell][pin] = bit
        self.module["cells"][self.names[cell]]["connections"][pin] = [bit]

    def swap(self, cell, moves):
        """Puts the net of each pin of ``moves`` at another one, {pin: that}."""
        for pin, bit in {to: self.pins[cell][pin] for pin, to in moves.items()}.items():
            self.connect(cell, pin, bit)

    def buffer(self, kind, bit):
        """Adds a buffer that reads a net; returns (cell, the net that it drives)."""
        behind, name = self.fresh, f"$placed${self.fresh}"
        self.fresh += 1
        self.module["cells"][name] = {"hide_name": 1, "type": kind, "parameters": {}, "attributes": {},
                                      "port_directions": {"A": "input", "Z": "output"},
                                      "connections": {"A": [bit], "Z": [behind]}}
        self.module["netnames"][f"{name}$Z"] = {"hide_name": 1, "bits": [behind], "attributes": {}}
        self.names.append(name)
        self.kinds.append(kind)
        self.pins.append({"A": bit, "Z": behind})
        self.outputs.append({"Z"})
        return len(self.names) - 1, behind

    def remove(self, cells):
        """Removes cells without readers. Returns the former number of each that remains."""
        unread = set(cells)
        left = [cell for cell in range(len(self.names)) if cell not in unread]
        for cell in unread:
            del self.module["cells"][self.names[cell]]
        for what in ("names", "kinds", "pins", "outputs"):
            values = getattr(self, what)
            setattr(self, what, [values[cell] for cell in left])
        return left

    def wires(self):
        """{net: its name in :meth:`verilog`}: that of a port's bit, if it has one."""
        names = {}
        for name, _, bit in sorted(self.ports, key=lambda port: port[1]):  # an input's name is the last to count
            names[bit] = name
        return {bit: names.get(bit, f"n{bit}") for pins in self.pins for bit in pins.values()} | names

    def twins(self):
        """Output bits that have the net of another port: {the port's bit with the net: how many more}."""
        names, counts = self.wires(), {}
        for name, drives, bit in self.ports:
            if not drives and names[bit] != name:
                counts[names[bit]] = counts.get(names[bit], 0) + 1
        return counts

    def verilog(self, top):
        """The netlist with short names, cells by number, for OpenSTA. It reads no assignments to bits of ports, so each
        net has one name, and of ports with the same net one is driven."""
        names, lines = self.wires(), [f"module {top} ({', '.join(self.module['ports'])});"]
        for name, port in self.module["ports"].items():
            width = f"[{len(port['bits']) - 1}:0] " if len(port["bits"]) > 1 else ""
            lines.append(f"  {port['direction']} {width}{name};")
        ports = {name for name, _, _ in self.ports}
        lines += [f"  wire {name};" for name in sorted(set(names.values()) - ports)]
        for cell, (kind, pins) in enumerate(zip(self.kinds, self.pins, strict=True)):
            bound = ", ".join(f".{pin}({names[bit]})" for pin, bit in pins.items())
            lines.append(f"  {kind} {self.instance(cell)} ({bound});")
        return "\n".join([*lines, "endmodule", ""])
