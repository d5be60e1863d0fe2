"""A mapped netlist, cycle by cycle on recorded input: how often each net toggles, and how long it is high.

No simulator is built: cells are looked up in tables, level by level, with NumPy. What the netlist answers is compared
with the record, so that every count comes from a netlist that did what the RTL did. Gates have no delay: a net moves at
most once a cycle, and glitches are not seen.
"""

import re
from dataclasses import dataclass

import numpy as np

from actcodec.synth import memories
from actcodec.synth.library import SynthesisError

__all__ = ["Activity", "Netlist"]

PINS = 6  # the most inputs of a cell


def _valid(name):
    """The port that tells whether what is at an output means anything: of a stream, or of an AXI channel."""
    channel = re.fullmatch(r"([ms]_axi\w*_(?:ar|aw|w|r|b|t))(?!valid|ready)\w+", name)
    return f"{channel[1]}valid" if channel else re.sub("__payload$", "__valid", name)


@dataclass(frozen=True)
class Activity:
    """Counts over ``cycles``, arrays by net: transitions, cycles in which it is high; ``clocked``: cycles in which a
    clock gate's output pulses; ``states`` [flop, D, Q]: the cycles in which a flip-flop is clocked in that state."""

    cycles: int
    toggles: np.ndarray
    high: np.ndarray
    clocked: np.ndarray
    states: np.ndarray


class _Memory:
    """A macro of :mod:`~actcodec.synth.memories` whose pins are on ``nets``."""

    def __init__(self, kind, nets):
        ports = {port: np.array([nets.get(pin, -1) for pin in pins]) for port, pins in memories.pins(kind).items()}
        (self.we,), (self.re,) = ports["WE"], ports["RE"]
        self.wa, self.ra, self.wd = ports["WA"], ports["RA"], ports["WD"]
        self.used, self.rd = ports["RD"] >= 0, ports["RD"][ports["RD"] >= 0]
        self.words = np.zeros((1 << len(self.wa), len(self.wd)), np.uint8)
        self.output = np.zeros(len(self.wd), np.uint8)

    def drive(self, values):
        """Puts the output on its nets."""
        values[self.rd] = self.output[self.used]

    def clock(self, values):
        """The edge behind a cycle."""
        write, read = (int(values[nets] @ (1 << np.arange(len(nets)))) for nets in (self.wa, self.ra))
        if values[self.re]:
            self.output = self.words[read].copy()
        if values[self.we]:
            self.words[write] = values[self.wd]


class Netlist:
    """A flat module of Yosys's JSON, of the cells (:func:`actcodec.synth.cells.cells`) of a library. Nets 0 and 1 are
    constant.

    ``flops`` and ``gates`` are the cells of these kinds in the order of :class:`Activity`.
    """

    def __init__(self, name, module, cells):
        self.name, self.ports = name, module["ports"]
        self._index = {"0": 0, "1": 1, "x": 0}
        self.cells = {key: (cells[cell["type"]],
                            {pin: self.net(bits[0]) for pin, bits in cell["connections"].items() if bits})
                      for key, cell in module["cells"].items()}
        for port in self.ports.values():
            for bit in port["bits"]:
                self.net(bit)
        self.size = 2 + len(set(self._index) - {"0", "1", "x"})
        self.flops = [key for key, (cell, _) in self.cells.items() if cell.kind == "flop"]
        self.gates = [key for key, (cell, _) in self.cells.items() if cell.kind == "gate"]
        self.macros = [_Memory(cell.name, nets) for cell, nets in self.cells.values() if cell.kind == "memory"]
        self.clock = self.net(self.ports["clk"]["bits"][0]) if "clk" in self.ports else None
        self._pins()
        self._levelise()

    def net(self, bit):
        """The index of a bit of the JSON."""
        return self._index.setdefault(bit, len(self._index) - 1 if bit not in ("0", "1", "x") else 0)

    def _pins(self):
        def nets(keys, pin, missing=0):
            return np.array([self.cells[key][1].get(pin, missing) for key in keys], np.int64)

        self.d, self.q = nets(self.flops, "D"), nets(self.flops, "Q", -1)
        self.qn = nets(self.flops, "QN", -1)
        self.enable, gated = nets(self.gates, "E"), nets(self.gates, "GCK")
        parent = {net: k for k, net in enumerate(gated)}
        if any(self.cells[key][1]["CK"] != self.clock for key in self.gates):
            raise SynthesisError(f"{self.name}: a clock gate behind another one")
        # Which gate clocks a flip-flop; the last one stands for the clock itself.
        self.domain = np.array([parent.get(net, len(parent) if net == self.clock else -1)
                                for net in nets(self.flops, "CK")], np.int64)
        if np.any(self.domain < 0):
            raise SynthesisError(f"{self.name}: a flip-flop has another clock than clk")
        self.gck = gated

    def _levelise(self):
        """Groups logic by its distance from flip-flops and ports, each level as (output, inputs, tables)."""
        logic = [(cell, nets) for cell, nets in self.cells.values() if cell.kind == "logic"]
        driver = {}
        for k, (cell, nets) in enumerate(logic):
            driver |= {nets[pin]: k for pin in cell.outputs if pin in nets}
        depth, stack = [-1] * len(logic), list(range(len(logic)))
        while stack:
            k = stack[-1]
            cell, nets = logic[k]
            sources = [driver[nets[pin]] for pin in cell.inputs if nets[pin] in driver]
            waiting = [source for source in sources if depth[source] < 0]
            if waiting and depth[k] < 0:
                stack += waiting
                continue
            stack.pop()
            if depth[k] < 0:
                depth[k] = 1 + max((depth[source] for source in sources), default=0)
        tables, rows = {}, {}
        for (cell, nets), reached in zip(logic, depth, strict=True):
            inputs = [nets[pin] for pin in cell.inputs]
            for pin, function in cell.outputs.items():
                if (cell.name, pin) not in tables:
                    codes = np.arange(1 << PINS)
                    values = {name: (codes >> k & 1).astype(bool) for k, name in enumerate(cell.inputs)}
                    tables[cell.name, pin] = len(tables), eval(function, values) & np.ones(1 << PINS, bool)
                if pin in nets:
                    rows.setdefault(reached, []).append(
                        (nets[pin], *inputs, *[0] * (PINS - len(inputs)), tables[cell.name, pin][0] << PINS))
        self._tables = np.array([table for _, table in tables.values()], np.uint8).reshape(-1)
        self.levels = []
        for _, level in sorted(rows.items()):
            level = np.array(level, np.int64).T
            used = max(k for k in range(1, 1 + PINS) if k == 1 or level[k].any())  # others cost nothing
            self.levels.append((level[0], level[1 : 1 + used], level[1 + PINS]))

    def _settle(self, values):
        for output, inputs, base in self.levels:
            code = base + values[inputs[0]]
            for k, nets in enumerate(inputs[1:], 1):
                code += values[nets].astype(np.int64) << k
            values[output] = self._tables[code]

    def run(self, record):
        """Replays a :class:`actcodec.synth.traffic.Record` and counts in its window, where it compares all outputs,
        too.

        Raises
        ------
        SynthesisError
            If an output differs.
        """
        def bits(direction):
            chosen = [(name, port["bits"]) for name, port in self.ports.items()
                      if port["direction"] == direction and name != "clk"]
            nets = np.array([self.net(bit) for _, port in chosen for bit in port], np.int64)
            columns = [record.bits[name][:, : len(port)] for name, port in chosen]
            # A payload that is not valid may be anything.
            matters = [np.broadcast_to(record.bits[_valid(name)] if _valid(name) != name else np.uint8(1), column.shape)
                       for (name, _), column in zip(chosen, columns, strict=True)]
            nothing = [np.zeros((window.stop, 0), np.uint8)]
            return nets, *(np.concatenate(parts or nothing, axis=1) for parts in (columns, matters))

        window = record.window
        (inputs, stimuli, _), (outputs, expected, matters) = bits("input"), bits("output")
        values, before = np.zeros(self.size, np.uint8), np.zeros(self.size, np.uint8)
        values[1] = 1
        toggles, high = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        pulses, states = np.zeros(len(self.gates) + 1, np.int64), np.zeros((len(self.flops), 4), np.int64)
        has_q, has_qn = self.q >= 0, self.qn >= 0
        state = np.zeros(len(self.flops), np.uint8)
        enabled = np.ones(len(self.gates) + 1, np.uint8)
        rows = np.arange(len(self.flops))
        for cycle in range(window.stop):
            values[inputs] = stimuli[cycle]
            values[self.q[has_q]], values[self.qn[has_qn]] = state[has_q], 1 - state[has_qn]
            for macro in self.macros:
                macro.drive(values)
            self._settle(values)
            enabled[:-1] = values[self.enable]
            clocks, data = enabled[self.domain], values[self.d]
            if cycle in window:
                wrong = np.flatnonzero((values[outputs] != expected[cycle]) & matters[cycle].astype(bool))
                if wrong.size:
                    raise SynthesisError(f"{self.name}: its netlist differs from the RTL in cycle {cycle}, at "
                                         f"{wrong.size} outputs")
                toggles += values != before
                high += values
                pulses += enabled
                states[rows, 2 * data + state] += clocks
            before[:] = values
            state = np.where(clocks, data, state)
            for macro in self.macros:
                macro.clock(values)
        return Activity(len(window), toggles, high, pulses, states.reshape(-1, 2, 2))
