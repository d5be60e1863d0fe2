"""Buffers by place: what ABC, which knows no places, has made a chain or a tree of is planted anew where it is late.

All readers of a signal, through whatever buffers, are divided into groups that lie together. Each gets a buffer in its
middle, these are read the same way, and the readers that have the least time stay at the driver itself. Of several
sizes of groups, and numbers of such readers, the one is taken that leaves the worst reader the most time.
"""

from dataclasses import dataclass, field

import numpy as np

from actcodec.synth import timing
from actcodec.synth.layout.wires import MIX, wire
from actcodec.synth.relaxation import FOLLOW, FULL

__all__ = ["plant"]

MANY = 4  # readers that are worth a thought
GROUPS = (12, 20, 32, 50)  # fF that a buffer drives
GAIN = 3  # ps that a new tree has to be better
BUFFERS = {"BUF_X1": 12, "BUF_X2": 24, "BUF_X4": 48, "BUF_X8": 96}  # and the fF up to which it is taken
DEPTH = 3


@dataclass
class Node:
    """What reads a signal at a ``place``: a pin, or a buffer of a ``kind`` with readers of its own."""

    place: tuple
    farad: float
    pin: int = -1
    kind: str = ""
    readers: list = field(default_factory=list)

    def buffers(self):
        """All buffers from here on."""
        return [self] * bool(self.kind) + [one for reader in self.readers for one in reader.buffers()]


def divide(nodes, limit, per_step):
    """Groups of nodes that lie together, each of at most ``limit`` fF with its wires; ``per_step``: fF of a wire's
    step."""
    xs, ys = zip(*(node.place for node in nodes), strict=True)
    wide, high = max(xs) - min(xs), max(ys) - min(ys)
    # A tree over points at random in a rectangle is about so long.
    length = max(wide + high, 0.75 * (len(nodes) * max(wide, 1) * max(high, 1)) ** 0.5)
    if len(nodes) == 1 or sum(node.farad for node in nodes) + length * per_step <= limit:
        return [(nodes, length)]
    ordered = sorted(nodes, key=lambda node: node.place[wide < high])
    half = len(nodes) // 2
    return divide(ordered[:half], limit, per_step) + divide(ordered[half:], limit, per_step)


class _Planter:
    """The trees of a netlist with timed delays."""

    def __init__(self, delays, points, mix):
        self.delays, self.points, self.mix = delays, points, mix
        self.netlist, self.tables = delays.netlist, delays.tables
        probe = wire((0, 1), [(0, 0), (1000, 1000)], mix)
        self.per_step = sum(probe.capacitance) / probe.length

    def fixed(self, bit):
        """Ports that a net drives: these have to stay at it."""
        return [pin for pin in self.netlist.nets[bit].sinks if self.delays.owner[pin] < 0]

    def inner(self, cell):
        """Whether a cell is a buffer in the middle of a tree."""
        behind = self.netlist.pins[cell].get("Z") if self.netlist.kinds[cell].startswith("BUF_") else None
        return behind is not None and (behind not in self.netlist.nets or not self.fixed(behind))

    def readers(self, bit):
        """(pins that read a net through whatever buffers, these buffers' cells)."""
        sinks, buffers = [], []
        for pin in self.netlist.nets[bit].sinks:
            cell = int(self.delays.owner[pin])
            if cell >= 0 and self.inner(cell):
                buffers.append(cell)
                behind = self.netlist.pins[cell]["Z"]
                if behind in self.netlist.nets:
                    pins, more = self.readers(behind)
                    sinks, buffers = sinks + pins, buffers + more
            else:
                sinks.append(pin)
        return sinks, buffers

    def slack(self, pins):
        """The least of pins."""
        return min(float(np.min(self.delays.required[[2 * pin, 2 * pin + 1]]
                                - self.delays.arrival[[2 * pin, 2 * pin + 1]])) for pin in pins)

    def grow(self, nodes, limit):
        """The buffers in front of nodes."""
        result = []
        for group, length in divide(nodes, limit, self.per_step):
            load = sum(node.farad for node in group) + length * self.per_step
            kind = next((kind for kind, most in BUFFERS.items() if load <= most), max(BUFFERS, key=BUFFERS.get))
            xs, ys = (sorted(values) for values in zip(*(node.place for node in group), strict=True))
            result.append(Node((xs[len(xs) // 2], ys[len(ys) // 2]), self.tables.capacitance[kind]["A"], kind=kind,
                               readers=group))
        return result

    def plans(self, pins, fixed):
        """Trees for pins, each as what the driver itself is to drive: the ``fixed`` pins for sure."""
        nodes = {pin: Node(tuple(self.points[pin]), self.delays.cap[pin] or timing.LOAD, pin) for pin in pins}
        ranked = sorted((pin for pin in pins if pin not in fixed), key=lambda pin: self.slack([pin]))
        yield list(nodes.values())
        for direct in sorted({0, 1, 2, 4, len(ranked) // 4, len(ranked) // 2}):
            if direct >= len(ranked) - 1:
                continue
            for limit in GROUPS:
                first = [nodes[pin] for pin in [*fixed, *ranked[:direct]]]
                rest = [nodes[pin] for pin in ranked[direct:]]
                for _ in range(DEPTH):
                    count, rest = len(rest), self.grow(rest, limit)
                    yield first + rest
                    if len(rest) < 3 or len(rest) >= count:
                        break

    def assess(self, place, readers, drive):
        """The least slack of what is read from a place, or None if a cell would drive more than it may; ``drive``: by
        the load, (arrival, transition) by edge, or None."""
        net = wire(tuple(range(1 + len(readers))), [place, *(node.place for node in readers)], self.mix)
        load = sum(net.capacitance) + sum(node.farad for node in readers)
        driven = drive(load)
        if driven is None:
            return None
        arrival, slew = driven
        least = np.inf
        for node, late in zip(readers, net.delays({k: node.farad for k, node in enumerate(readers, 1)}), strict=True):
            here, steep = arrival + late, np.hypot(slew, 0.85 * late)
            if node.kind:
                rows = self.tables.first[node.kind] + np.arange(2)

                def behind(load, kind=node.kind, rows=rows, here=here, steep=steep):
                    if load > FULL * self.tables.limit[kind]["Z"]:
                        return None
                    delay, slew = self.tables.look(rows, steep, np.full(2, load))
                    return here + delay, slew

                later = self.assess(node.place, node.readers, behind)
                if later is None:
                    return None
                least = min(least, later)
            else:
                both = slice(2 * node.pin, 2 * node.pin + 2)
                worse = FOLLOW * (steep - self.delays.slew[both])
                least = min(least, float(np.min(self.delays.required[both] - here - worse)))
        return least

    def driver(self, pin):
        """What a net's driver does by its load."""
        delays, cell = self.delays, int(self.delays.owner[pin])
        edges = np.flatnonzero(delays.target // 2 == pin)
        rows, edge = delays.row()[edges], delays.target[edges] % 2

        def drive(load):
            if cell >= 0 and load > FULL * delays.limits[delays.kinds[cell]]:
                return None
            if cell < 0:
                row = delays.port_row + np.arange(2)
                delay, slew = self.tables.look(row, np.zeros(2), np.full(2, load))
                was, _ = self.tables.look(row, np.zeros(2), np.full(2, delays.load[pin]))
                return delays.arrival[[2 * pin, 2 * pin + 1]] + delay - was, slew
            delay, slew = self.tables.look(rows, delays.slew[delays.source[edges]], np.full(len(edges), load))
            arrival, slowest = np.full(2, -np.inf), np.zeros(2)
            np.maximum.at(arrival, edge, delays.arrival[delays.source[edges]] + delay)
            np.maximum.at(slowest, edge, slew)
            return arrival, slowest

        return drive

    def best(self, bit):
        """(what the driver of a net is to drive, buffers that go) if that gains something, or None."""
        net = self.netlist.nets[bit]
        pins, buffers = self.readers(bit)
        if len(pins) < MANY or self.slack(pins) >= 0:
            return None
        drive, place, before = self.driver(net.driver), tuple(self.points[net.driver]), self.slack(pins)
        choice = None
        for readers in self.plans(pins, self.fixed(bit)):
            slack = self.assess(place, readers, drive)
            if slack is None:
                continue
            area = sum(self.tables.area[one.kind] for node in readers for one in node.buffers())
            rank = min(slack, 0) - 0.1 * area
            if slack > before + GAIN and (choice is None or rank > choice[0]):
                choice = rank, readers
        return choice and (choice[1], buffers)


def plant(delays, placement, mix=MIX):
    """Plants the trees of late signals anew, in the netlist of timed delays; returns the
    :class:`~actcodec.synth.layout.placement.Placement` with places for new buffers, not legal yet, and how many trees
    are new."""
    netlist = delays.netlist
    for cell, kind in enumerate(delays.kinds):
        netlist.change(cell, delays.names[kind])
    planter = _Planter(delays, placement.points(netlist).tolist(), mix)
    spare, places, count = [], [], 0

    def connect(bit, readers):
        for node in readers:
            if node.kind:
                _, behind = netlist.buffer(node.kind, bit)
                places.append(node.place)
                connect(behind, node.readers)
            elif delays.owner[node.pin] >= 0:
                netlist.connect(int(delays.owner[node.pin]), netlist.label[node.pin], bit)

    for bit, net in list(netlist.nets.items()):
        cell = int(delays.owner[net.driver])
        tree = None if cell >= 0 and planter.inner(cell) else planter.best(bit)
        if tree:
            readers, buffers = tree
            connect(bit, readers)
            spare += buffers
            count += 1
    left = np.array(netlist.remove(spare), np.int64)
    netlist.number()
    old = left[left < len(placement.x)]
    added = np.array(places, np.int64).reshape(-1, 2)
    none = np.zeros(len(added), bool)
    return placement.moved(np.concatenate([placement.x[old], added[:, 0]]),
                           np.concatenate([placement.y[old], added[:, 1]]),
                           np.concatenate([placement.flip[old], none]),
                           np.concatenate([placement.turn[old], none])), count
