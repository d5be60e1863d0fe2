"""A clock's tree, roughly: what its buffers, wires and skew come to. Nothing of it is in the netlist."""

from dataclasses import dataclass

import numpy as np

from actcodec.synth.layout.lef import UM
from actcodec.synth.layout.trees import Node, divide
from actcodec.synth.layout.wires import layers
from actcodec.synth.library import PERIOD

__all__ = ["Tree", "plan"]

BUFFER, DRIVES = "BUF_X4", 55  # fF that one drives, of the 242 it may, for edges of some 25 ps
LAYER = "metal5"  # of its wires
VOLT = 1.1


@dataclass(frozen=True)
class Tree:
    """``buffers`` with their ``area`` in um2; ``levels`` in front of a flip-flop, clock gates aside; ``length`` of
    wires in mm; ``load`` of all, in pF, and the ``power`` in mW of moving it if nothing is gated; ``skew`` in ps: the
    spread of delays that buffers have on each level because of their loads, and wires within a group, added up."""

    buffers: int
    area: float
    levels: int
    length: float
    load: float
    power: float
    skew: float


def plan(netlist, placement, tables):
    """The :class:`Tree` for all clock nets of a placed netlist. Flip-flops that lie together get a buffer, those of one
    clock gate by themselves; buffers are grouped the same way, up to one that the gate or the clock's port drives."""
    points = placement.points(netlist)
    ohm, farad = layers()[LAYER]
    rows, pin = tables.first[BUFFER] + np.arange(2), tables.capacitance[BUFFER]["A"]
    count = most = total = load = 0
    spreads = {}

    for pins in netlist.clocks.values():
        kinds = [netlist.kinds[netlist.owner[one]] for one in pins]
        nodes = [Node(tuple(points[one].tolist()), tables.capacitance[kind]["CK"], int(one))
                 for one, kind in zip(pins, kinds, strict=True)]
        for level in range(9):
            groups = divide(nodes, DRIVES, farad / UM)
            loads = [sum(node.farad for node in group) + length * farad / UM for group, length in groups]
            total += sum(length for _, length in groups)
            load += sum(loads)
            delay, _ = tables.look(np.repeat(rows, len(loads)), np.full(2 * len(loads), 25.0), np.tile(loads, 2))
            wire = [ohm * length / UM * one / 2 for (_, length), one in zip(groups, loads, strict=True)]
            least, latest = spreads.get(level, (np.inf, 0))
            spreads[level] = min(least, delay.min()), max(latest, delay.max() + max(wire))
            if len(groups) == 1:
                break
            count, most = count + len(groups), max(most, level + 1)
            middles = [np.median([node.place for node in group], 0).astype(int).tolist() for group, _ in groups]
            nodes = [Node(tuple(middle), pin) for middle in middles]
    skew = sum(latest - least for level, (least, latest) in spreads.items() if level < most)
    return Tree(count, round(count * tables.area[BUFFER], 1), most, round(total / UM / 1000, 2), round(load / 1000, 2),
                round(load * 1e-15 * VOLT**2 / (PERIOD * 1e-12) * 1e3, 2), round(float(skew), 1))
