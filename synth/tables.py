"""The library's delays as arrays, from its Liberty file: times in ps, capacitances in fF.

A row is what one transition of an input does to an output of a cell: two tables, delay and transition of the output, by
the input's transition and by the load.
"""

import re
from functools import lru_cache

import numpy as np

from actcodec.synth import memories
from actcodec.synth.library import areas, limits

__all__ = ["FALL", "RISE", "Tables", "tables"]

RISE, FALL = 0, 1
EDGES = ("rise", "fall")
CAUSES = {"positive_unate": lambda edge: (edge,), "negative_unate": lambda edge: (1 - edge,)}


def _numbers(text):
    return [float(number) for number in re.findall(r"[-\d.e+]+", text)]


def _table(body, name):
    """(first axis, second axis, values) of a table."""
    match = re.search(rf"^\s*{name}\s*\(\w+\)\s*\{{(.*?)\}}", body, re.MULTILINE | re.DOTALL)
    if not match:
        return None
    first, second, values = (_numbers(re.search(rf"{key}\s*\((.*?)\);", match[1], re.DOTALL)[1])
                             for key in ("index_1", "index_2", "values"))
    return first, second, np.array(values).reshape(len(first), len(second))


def _attribute(body, name, other=None):
    match = re.search(rf'^\s*{name}\s*:\s*"?([^";]*)"?\s*;', body, re.MULTILINE)
    return match[1].strip() if match else other


class Tables:
    """``edges`` {kind: ((input, its edge, output, its edge), ...)}, the rows of a kind from ``first`` [kind] on;
    ``capacitance`` {kind: {input: fF}}; ``limit`` {kind: {output: fF that it may drive}}; ``setup`` {kind: {input:
    array [edge, transition]}} by ``setup_axis``, with a clock whose edge takes no time; ``area`` {kind: um2};
    ``family`` {kind: kinds that differ in nothing but drive, the weakest first}; ``usual`` (readers): the fF of a
    wire by the library's own table."""

    def __init__(self, library):
        self.edges, self.first, self.capacitance, self.setup, self.limit = {}, {}, {}, {}, {}
        self._usual(library.read_text())
        self.area = dict(areas(library))
        for place, limit in limits(library).items():
            kind, pin = place.split("/")
            self.limit.setdefault(kind, {})[pin] = limit
        rows, loads, values = 0, [], []
        _, *cells = re.split(r"^\s*cell \((\w+)\)", library.read_text(), flags=re.MULTILINE)
        for kind, text in zip(cells[::2], cells[1::2], strict=True):
            _, *pins = re.split(r"^\s*pin \((\w+)\)", text, flags=re.MULTILINE)
            edges, self.capacitance[kind], self.setup[kind] = [], {}, {}
            for pin, body in zip(pins[::2], pins[1::2], strict=True):
                head, *arcs = re.split(r"^\s*timing \(\)", body, flags=re.MULTILINE)
                if _attribute(head, "direction") == "input":
                    self.capacitance[kind][pin] = float(_attribute(head, "capacitance", "0"))
                    self._constraint(kind, pin, arcs)
                    continue
                for source, edge, cause, delay, transition in self._arcs(arcs):
                    self.slews = 1000 * np.array(delay[0])
                    edges.append((source, cause, pin, edge))
                    loads.append(delay[1])
                    values.append(np.stack([delay[2], transition[2]], -1))
            self.edges[kind], self.first[kind] = tuple(edges), rows
            rows += len(edges)
        self.loads, self.values = np.array(loads), 1000 * np.array(values)
        alike = {}
        for kind, edges in self.edges.items():
            base, _, drive = kind.rpartition("_X")
            if drive.isdigit():
                alike.setdefault((base, edges), []).append((int(drive), kind))
        self.family = {kind: tuple(kind for _, kind in sorted(kinds)) for kinds in alike.values() for _, kind in kinds}

    def _usual(self, text):
        name = _attribute(text, "default_wire_load")
        body = name and re.search(rf'^\s*wire_load\s*\("{name}"\)\s*\{{(.*?)^\s*\}}', text, re.MULTILINE | re.DOTALL)[1]
        points = [_numbers(pair) for pair in re.findall(r"fanout_length\s*\((.*?)\)", body or "")]
        self.lengths = dict(sorted((int(count), length) for count, length in points)) or {1: 0.0}
        self.slope = float(_attribute(body or "", "slope", "0"))
        self.per_length = float(_attribute(body or "", "capacitance", "0"))

    def usual(self, count):
        counts = list(self.lengths)
        beyond = max(count - counts[-1], 0)
        return self.per_length * (np.interp(count, counts, list(self.lengths.values())) + beyond * self.slope)

    def learn(self, kind):
        """Adds a memory: it takes the same time whatever its edges and loads are."""
        if kind in self.first or not memories.bits(kind):
            return
        pins = memories.pins(kind)
        outputs = pins.pop("RD")
        self.edges[kind] = tuple(("CK", RISE, pin, edge) for pin in outputs for edge in (RISE, FALL))
        self.first[kind], count = len(self.values), len(self.edges[kind])
        times = np.broadcast_to([memories.ACCESS, 1000 * memories.EDGE], (count, *self.values.shape[1:]))
        self.values = np.concatenate([self.values, times])
        self.loads = np.concatenate([self.loads, np.repeat(self.loads[:1], count, 0)])
        self.capacitance[kind] = {pin: memories.CAPACITANCE for names in pins.values() for pin in names}
        self.setup[kind] = {pin: np.full((2, len(self.setup_axis)), memories.SETUP)
                            for port, names in pins.items() if port != "CK" for pin in names}
        self.area[kind], self.family[kind] = 0.0, (kind,)

    @staticmethod
    def _arcs(arcs):
        for body in arcs:
            how = _attribute(body, "timing_type", "combinational")
            if how not in ("combinational", "rising_edge"):
                continue
            for edge, name in enumerate(EDGES):
                delay, transition = _table(body, f"cell_{name}"), _table(body, f"{name}_transition")
                if delay is None:
                    continue
                causes = CAUSES.get(_attribute(body, "timing_sense"), lambda edge: (RISE, FALL))(edge)
                for cause in (RISE,) if how == "rising_edge" else causes:
                    yield _attribute(body, "related_pin"), edge, cause, delay, transition

    def _constraint(self, kind, pin, arcs):
        for body in arcs:
            if _attribute(body, "timing_type") == "setup_rising":
                both = [_table(body, f"{edge}_constraint") for edge in EDGES]
                self.setup_axis = 1000 * np.array(both[0][0])
                self.setup[kind][pin] = 1000 * np.array([table[2][:, 0] for table in both])

    def look(self, rows, slew, load):
        """(delay, transition of the output) of rows, by the transition of their inputs and their loads; straight lines
        between and beyond what the tables have."""
        at = np.clip(np.searchsorted(self.slews, slew) - 1, 0, len(self.slews) - 2)
        axis = self.loads.take(rows, 0)
        width = axis.shape[-1]
        to = np.clip(np.count_nonzero(axis < load[:, None], -1) - 1, 0, width - 2)
        place = rows * width + to
        low, high = self.loads.take(place), self.loads.take(place + 1)
        x = ((slew - self.slews[at]) / (self.slews[at + 1] - self.slews[at]))[:, None]
        y = ((load - low) / (high - low))[:, None]
        pairs = self.values.reshape(-1, 2)
        place = (rows * len(self.slews) + at) * width + to
        near, far = (pairs.take(place + k, 0) * (1 - y) + pairs.take(place + k + 1, 0) * y for k in (0, width))
        both = near * (1 - x) + far * x
        return both[:, 0], both[:, 1]


@lru_cache
def tables(library):
    """The :class:`Tables` of a Liberty file."""
    return Tables(library)
