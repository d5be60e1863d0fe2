"""Static timing of all cells at once, in NumPy: what sizing tries, it tries by this; OpenSTA judges in the end.

A node is a transition of a pin, number ``2 * pin + edge``. Loads are lumped, wires have Elmore's delay, a node takes
the slowest transition that reaches it. What OpenSTA finds otherwise at an end, as it knows
effective capacitances, is in ``offset``.
"""

import numpy as np

from actcodec.synth import timing
from actcodec.synth.library import PERIOD, UNCERTAINTY

__all__ = ["Delays"]

STEEPEN = 0.85  # of a wire's Elmore delay, by which a transition from 30 to 70 % takes longer


class Delays:
    """A :class:`~actcodec.synth.netlist.Netlist` with wires, at the sizes that its cells have; :meth:`time` has
    to be called after changes of ``kinds``, before anything is read.

    By edge through a cell: ``source``, ``target`` (nodes), ``cell``, ``delay``. By node: ``arrival``, ``slew``,
    ``slack``; by pin: ``load`` of drivers, of which ``outputs`` are the cells'. ``ends``: nodes with a slack of their
    own, ``end_slack`` by these. ``own``: whether a cell may change, as it lies in no part.
    """

    def __init__(self, netlist, wires, tables, arrival=timing.ARRIVAL):
        self.netlist, self.tables = netlist, tables
        pins = len(netlist.owner)
        for kind in set(netlist.kinds):
            tables.learn(kind)
        self.owner = netlist.owner
        kinds = sorted({one for kind in set(netlist.kinds) for one in tables.family[kind]})
        self.number = {kind: k for k, kind in enumerate(kinds)}
        self.names, self.first = kinds, np.array([tables.first[kind] for kind in kinds])
        self.areas = np.array([tables.area[kind] for kind in kinds])
        self.kinds = np.array([self.number[kind] for kind in netlist.kinds])
        # Capacitance of each input of each kind: pins of a cell by their place among its inputs.
        slots = max(len(tables.capacitance[kind]) for kind in kinds)
        self.caps = np.zeros((len(kinds), slots))
        places = {}
        for kind in kinds:
            for slot, (pin, farad) in enumerate(tables.capacitance[kind].items()):
                self.caps[self.number[kind], slot] = farad
                places[kind, pin] = slot
        self.slot = np.array([places.get((netlist.kinds[cell], label), 0) if cell >= 0 else 0
                              for cell, label in zip(self.owner.tolist(), netlist.label, strict=True)])
        self.limits = np.array([next(iter(tables.limit.get(kind, {}).values()), np.inf) for kind in kinds])
        self.own = np.array([netlist.own(cell) for cell in range(len(netlist.kinds))], bool)
        self._wires(wires, pins)
        self._edges()
        self._order(pins)
        self._bounds(arrival)

    def _wires(self, wires, pins):
        self.driver, self.wire = np.full(pins, -1), np.zeros(pins)
        self.fixed = np.zeros(pins)
        for bit, net in self.netlist.nets.items():
            wire = wires[bit]
            self.fixed[net.driver] = sum(wire.capacitance)
            loads = {pin: self._capacitance(pin) for pin in net.sinks}
            for pin, late in zip(net.sinks, wire.delays(loads), strict=True):
                self.driver[pin], self.wire[pin] = net.driver, late
                if self.owner[pin] < 0:
                    self.fixed[net.driver] += timing.LOAD
        self.sinks = np.flatnonzero((self.driver >= 0) & (self.owner >= 0))  # inputs of cells
        drivers = np.unique(self.driver[self.driver >= 0])
        self.outputs = drivers[self.owner[drivers] >= 0]  # of cells, where they are read

    def _capacitance(self, pin):
        cell = self.owner[pin]
        return self.caps[self.kinds[cell], self.slot[pin]] if cell >= 0 else timing.LOAD

    def _edges(self):
        """Edges through cells, in the order in which the tables have them, so that a row is ``first`` and ``place``."""
        source, target, cell, place = [], [], [], []
        for number, kind in enumerate(self.netlist.kinds):
            for k, (pin, cause, out, edge) in enumerate(self.tables.edges[kind]):
                one, other = self.netlist.pin.get((number, pin)), self.netlist.pin.get((number, out))
                if one is not None and other is not None and out != "GCK":
                    source.append(2 * one + cause)
                    target.append(2 * other + edge)
                    cell.append(number)
                    place.append(k)
        self.source, self.target = np.array(source, np.int64), np.array(target, np.int64)
        self.cell, self.place = np.array(cell, np.int64), np.array(place, np.int64)

    def _order(self, pins):
        """Sorts edges by level and target: a cell's level is one more than those of the drivers of its inputs."""
        level, count = np.zeros(pins, np.int64), len(self.sinks)
        from_pin, to_pin = self.source // 2, self.target // 2
        while True:  # as often as the longest path has cells
            before = level.copy()
            level[self.sinks] = level[self.driver[self.sinks]]
            np.maximum.at(level, to_pin, np.where(self.driver[from_pin] >= 0, level[from_pin], 0) + 1)
            if (level == before).all():
                break
            assert level.max() <= count, "a loop"
        order = np.lexsort((self.target, level[to_pin]))
        for name in ("source", "target", "cell", "place"):
            setattr(self, name, getattr(self, name)[order])
        levels = level[self.target // 2]
        self.parts = []  # by level: (edges, where a target begins, targets, inputs of the cells)
        sinks, at = self.sinks[np.argsort(level[self.sinks], kind="stable")], np.sort(level[self.sinks])
        for one in range(1, int(level.max(initial=0)) + 1):
            low, high = np.searchsorted(levels, (one, one + 1))
            targets, starts = np.unique(self.target[low:high], return_index=True)
            inputs = sinks[slice(*np.searchsorted(at, (one - 1, one)))]
            self.parts.append((slice(low, high), starts, targets, inputs))
        self.last = sinks[np.searchsorted(at, len(self.parts)) :]

    def _bounds(self, arrival):
        """Where signals begin and end."""
        netlist, ends, rows = self.netlist, [], []
        self.begins, late = [], []
        for net in netlist.nets.values():
            if self.owner[net.driver] < 0 and netlist.label[net.driver] != "clk":
                self.begins.append(net.driver)
                late.append(arrival.get(netlist.label[net.driver], arrival["*"]))
            for pin in net.sinks:
                cell = self.owner[pin]
                if cell < 0:
                    ends.append(pin)
                    rows.append((PERIOD - UNCERTAINTY - timing.SETUP, np.zeros((2, 3))))
                elif (table := self.tables.setup[netlist.kinds[cell]].get(netlist.label[pin])) is not None:
                    ends.append(pin)
                    ahead = timing.AHEAD if netlist.kinds[cell].startswith("CLKGATE") else 0
                    rows.append((PERIOD - UNCERTAINTY - ahead, table))
        self.begins, self.late = np.array(self.begins, np.int64), np.array(late, float)
        self.ends, self.due = np.array(ends, np.int64), np.array([due for due, _ in rows], float)
        self.setup = np.array([table for _, table in rows]).reshape(-1, 2, 3)
        self.offset = np.zeros(len(self.ends))
        kind = self.tables
        self.port_row = kind.first[timing.DRIVER]
        self.port_edges = {edge: k for k, (_, _, _, edge) in enumerate(kind.edges[timing.DRIVER])}

    def row(self, kinds=None):
        """The row of each edge, for cells of these kinds (default: as they are)."""
        return self.first[(self.kinds if kinds is None else kinds)[self.cell]] + self.place

    def time(self):
        """Arrivals, transitions and slacks."""
        pins = len(self.owner)
        self.cap = np.zeros(pins)
        self.cap[self.sinks] = self.caps[self.kinds[self.owner[self.sinks]], self.slot[self.sinks]]
        self.load = self.fixed + np.bincount(self.driver[self.sinks], self.cap[self.sinks], pins)
        self.arrival, self.slew = np.full(2 * pins, -np.inf), np.zeros(2 * pins)
        rows = self.row()
        clocked = np.isin(self.source // 2, np.flatnonzero(self.driver < 0))
        self.arrival[self.source[clocked]] = 0
        for edge, place in self.port_edges.items():
            delay, slew = self.tables.look(np.full(len(self.begins), self.port_row + place),
                                           np.zeros(len(self.begins)), self.load[self.begins])
            unloaded, _ = self.tables.look(np.full(len(self.begins), self.port_row + place),
                                           np.zeros(len(self.begins)), np.zeros(len(self.begins)))
            self.arrival[2 * self.begins + edge] = self.late + delay - unloaded
            self.slew[2 * self.begins + edge] = slew
        self.delay, self.transition = np.zeros(len(rows)), np.zeros(len(rows))
        for part, starts, targets, inputs in self.parts:
            self._cross(inputs)
            slews, loads = self.slew[self.source[part]], self.load[self.target[part] // 2]
            self.delay[part], self.transition[part] = self.tables.look(rows[part], slews, loads)
            if len(starts):
                self.arrival[targets] = np.maximum.reduceat(self.arrival[self.source[part]] + self.delay[part], starts)
                self.slew[targets] = np.maximum.reduceat(self.transition[part], starts)
        self._cross(self.last)
        ports = np.flatnonzero((self.owner < 0) & (self.driver >= 0))
        self._cross(ports)
        self._back()

    def _cross(self, pins):
        """From drivers along wires to pins."""
        for edge in (0, 1):
            source = 2 * self.driver[pins] + edge
            self.arrival[2 * pins + edge] = self.arrival[source] + self.wire[pins]
            self.slew[2 * pins + edge] = np.hypot(self.slew[source], STEEPEN * self.wire[pins])

    def _back(self):
        required = np.full(2 * len(self.owner), np.inf)
        both = []
        for edge in (0, 1):
            axis, slew = self.tables.setup_axis, self.slew[2 * self.ends + edge]
            at = np.clip(np.searchsorted(axis, slew) - 1, 0, len(axis) - 2)
            low, high = (np.take_along_axis(self.setup[:, edge], (at + k)[:, None], 1)[:, 0] for k in (0, 1))
            setup = low + (high - low) * (slew - axis[at]) / (axis[at + 1] - axis[at])
            required[2 * self.ends + edge] = self.due - setup + self.offset
            both.append(required[2 * self.ends + edge] - self.arrival[2 * self.ends + edge])
        self.end_slack = np.minimum(*both)
        ports = self.ends[self.owner[self.ends] < 0]
        self._return(required, ports)
        self._return(required, self.last)
        for part, _, _, inputs in reversed(self.parts):
            np.minimum.at(required, self.source[part], required[self.target[part]] - self.delay[part])
            self._return(required, inputs)
        self.required, self.slack = required, required - self.arrival

    def _return(self, required, pins):
        for edge in (0, 1):
            np.minimum.at(required, 2 * self.driver[pins] + edge, required[2 * pins + edge] - self.wire[pins])

    def calibrate(self, slacks):
        """Makes the slacks at all ends what OpenSTA says, {end as CELL/PIN or port: ps}."""
        label, owner = self.netlist.label, self.owner
        names = [f"{self.netlist.instance(owner[pin])}/{label[pin]}" if owner[pin] >= 0 else label[pin]
                 for pin in self.ends.tolist()]
        mine = (self.end_slack - self.offset).tolist()
        self.offset = np.array([slacks[name] - slack if name in slacks and np.isfinite(slack) else 0
                                for name, slack in zip(names, mine, strict=True)])
        self.time()

    def worst(self):
        """The least slack of all ends."""
        return float(self.end_slack.min(initial=PERIOD))

    def area(self):
        """Of all cells, um2."""
        return float(self.areas[self.kinds].sum())
