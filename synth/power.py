"""Power of a mapped netlist while real activations pass it, by OpenSTA and the library's own tables.

:mod:`~actcodec.synth.traffic` has what passes the unit, :mod:`~actcodec.synth.replay` counts how often each net toggles
and how long it is high. OpenSTA gets both for every pin, and reports. Two of its figures (version 2.0.17) cannot be
taken as they are:

- Internal energies of the rising and the falling edge are added for every transition, where a transition is one of the
  two. Half of it is right.
- It takes every clock pin to toggle in every cycle, also behind a clock gate that is off, its edges to be as slow as
  one gate makes them that drives hundreds of flip-flops, and the pins of a flip-flop (``D & Q & !QN``) to be
  independent. So edges are set to be steep, and what clock pins take is found from the library: the energy of an edge
  in each state, times how often the replay saw it. OpenSTA's own figure for them is what a second report without any
  data activity says, and goes.

The clock has neither tree nor wires, and drives its pins' capacitance alone: :attr:`Power.clock`. All other nets have
the library's default wire load, which OpenSTA adds by itself.
"""

import json
import re
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from actcodec.synth import timing, traffic
from actcodec.synth.cells import cells
from actcodec.synth.library import BUILD, PERIOD, SynthesisError, liberty
from actcodec.synth.replay import Netlist
from actcodec.synth.sources import fingerprint

__all__ = ["Power", "estimate", "measure"]

VOLTAGE = 1.1
EDGE = 0.001  # ns, of clocks, which are ideal also behind a clock gate that drives hundreds of flip-flops
ANNOTATE = """
proc annotate {{pins ports on}} {{
  foreach {{pin activity duty}} $pins {{
    sta::set_power_pin_activity [sta::find_pin $pin] [expr {{$activity * $on}}] $duty
  }}
  foreach {{port activity duty}} $ports {{
    sta::set_power_input_port_activity [get_ports $port] [expr {{$activity * $on}}] $duty
  }}
}}
set_assigned_transition {edge} [get_pins {{{clocked}}}]
set pins {{{pins}}}
set ports {{{ports}}}
annotate $pins $ports 1
puts "with activity"
report_power -digits 12
annotate $pins $ports 0
puts "without"
report_power -digits 12
"""


@dataclass(frozen=True)
class Power:
    """mW of a unit: ``registers`` (flip-flops), ``logic``, ``gates`` (clock gates), ``clock`` (the capacitance of all
    clock pins); the same as ``internal``, ``switching`` and ``leakage``. On average of ``cycles``, ``toggles`` is how
    often a data net moves in one, and ``clocked`` the share of them in which a flip-flop is clocked."""

    registers: float
    logic: float
    gates: float
    clock: float
    internal: float
    switching: float
    leakage: float
    toggles: float
    clocked: float
    cycles: int

    @property
    def total(self):
        return self.registers + self.logic + self.gates + self.clock


def _numbers(text):
    return [float(number) for number in re.findall(r"-?[\d.]+", text)]


@cache
def _energies(library):
    """What clock pins take, of each cell that has one: {cell: (capacitance of CK in fF, leakage in nW, energy in fJ)}.

    Energy of a flip-flop: [D, Q], of both edges of CK in that state. Of a clock gate: energy while it is off, and
    (loads, energies) of the pulse while it is on. Edges are as steep as the tables have them: the clock is ideal.
    """
    costs = {}
    _, *parts = re.split(r"^\s*cell \((\w+)\)", library.read_text(), flags=re.MULTILINE)
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        cell = cells(library).get(name)
        if cell is None or cell.kind == "logic":
            continue
        _, *pins = re.split(r"^\s*pin \((\w+)\)", text, flags=re.MULTILINE)
        pins = dict(zip(pins[::2], pins[1::2], strict=True))

        def tables(pin, pins=pins):
            """{when: [rising, falling]}, each (loads, energies) at the steepest edge."""
            result = {}
            for block in re.split(r"internal_power \(\)", pins[pin])[1:]:
                when = re.search(r'when\s*:\s*"([^"]*)"', block)
                edges = []
                for edge in ("rise", "fall"):
                    body = re.search(rf"{edge}_power\s*\(\w+\)\s*\{{(.*?)\}}", block, re.DOTALL)[1]
                    rows = re.findall(r'"([^"]*)"', re.search(r"values \((.*?)\);", body, re.DOTALL)[1])
                    loads = re.search(r'index_2 \("([^"]*)"\)', body)
                    edges.append((_numbers(loads[1]), _numbers(rows[0])) if loads else ([0.0], _numbers(rows[0])[:1]))
                result[when and when[1]] = edges
            return result

        capacitance = float(re.search(r"^\s*capacitance\s*:\s*([\d.]+)", pins["CK"], re.MULTILINE)[1])
        leakage = float(re.search(r"cell_leakage_power\s*:\s*([\d.]+)", text)[1])
        hidden = {when: sum(edge[1][0] for edge in edges) for when, edges in tables("CK").items()}
        if cell.kind == "gate":
            (loads, rise), (_, fall) = tables("GCK")["E"]
            energy = hidden["!E & !GCK"], (loads, np.add(rise, fall))
        elif len(cell.inputs) == 2:
            energy = np.array([[hidden[f"{'' if d else '!'}D & {'' if q else '!'}Q & {'!' if q else ''}QN"]
                                for q in (0, 1)] for d in (0, 1)])
        else:
            continue
        costs[name] = capacitance, leakage, energy
    return costs


def _report(netlist, activity, library, folder):
    """OpenSTA's groups: [with activity, without][sequential, combinational][internal, switching, leakage], in mW."""
    rates, duties = activity.toggles / activity.cycles, activity.high / activity.cycles
    pins = [f"{key}/{pin} {rates[net]:.5f} {duties[net]:.5f}" for key, (cell, nets) in netlist.cells.items()
            for pin, net in nets.items() if pin not in ("CK", "GCK")]
    ports = []
    for name, port in netlist.ports.items():
        if name != "clk" and port["direction"] == "input":
            for k, bit in enumerate(port["bits"]):
                label = f"{name}[{k}]" if len(port["bits"]) > 1 else name
                ports.append(f"{{{label}}} {rates[netlist.net(bit)]:.5f} {duties[netlist.net(bit)]:.5f}")
    clocked = " ".join(f"{key}/CK" for key in netlist.flops)
    script = ANNOTATE.format(edge=EDGE, clocked=clocked, pins=" ".join(pins), ports=" ".join(ports))
    text = timing.run(timing.link(library, folder, ["net.v"], netlist.name) + timing.constraints() + script, folder)
    rows = re.findall(r"^(Sequential|Combinational)\s+(\S+)\s+(\S+)\s+(\S+)", text, re.MULTILINE)
    if len(rows) != 4:
        raise SynthesisError(f"{netlist.name}: OpenSTA reports no power")
    return 1000 * np.array([[float(value) for value in row[1:]] for row in rows]).reshape(2, 2, 3)


def estimate(name, folder, record, build=BUILD):
    """The :class:`Power` of the netlist ``name`` in ``folder`` while a :class:`~actcodec.synth.traffic.Record`
    passes it."""
    library = liberty(build)
    module = json.loads((folder / "net.json").read_text())["modules"][name]
    netlist = Netlist(name, module, cells(library))
    return _power(netlist, netlist.run(record), library, folder)


def measure(job, folder, build=BUILD):
    """The power of what ``job`` (of :mod:`~actcodec.synth.catalogue`) was mapped to in ``folder``: {direction:
    :class:`Power`}, empty for hardware that no run of :mod:`~actcodec.synth.traffic` has; remembered. A unit that rests
    in a direction shows what its clock and leakage take.

    Raises
    ------
    SynthesisError
        If the netlist does not answer as the RTL did, or if OpenSTA fails.
    """
    results = {}
    if job.parts:  # an accelerator, which is the sum of its units
        return results
    sources = [Path(__file__).parent / name for name in ("power.py", "replay.py", "traffic.py", "cells.py")]
    memo = folder / f"power-{fingerprint([folder / 'net.v', *sources])}.json"
    if memo.exists():
        return {direction: Power(**figures) for direction, figures in json.loads(memo.read_text()).items()}
    for direction in traffic.DIRECTIONS:
        record = traffic.record(job, direction, build)
        if record is not None:
            results[direction] = estimate(job.name, folder, record, build)
    memo.write_text(json.dumps({direction: asdict(figures) for direction, figures in results.items()}))
    return results


def _power(netlist, activity, library, folder):
    energies, cycle = _energies(library), 1e-15 / (PERIOD * 1e-12) * 1e3  # fJ in every cycle to mW
    (busy, idle), square = _report(netlist, activity, library, folder), VOLTAGE**2
    kinds = [netlist.cells[key][0].name for key in netlist.flops]
    clocked = activity.clocked / activity.cycles
    pins = np.array([energies[kind][0] for kind in kinds])
    # Flip-flops
    edges = sum((energies[kind][2] * states).sum() for kind, states in zip(kinds, activity.states, strict=True))
    register = (busy[0, 0] - idle[0, 0]) / 2 + cycle * edges / activity.cycles
    # Clock gates
    loads = np.bincount(netlist.domain, pins, len(netlist.gates) + 1)
    kinds = [netlist.cells[key][0].name for key in netlist.gates]
    inside = sum((1 - on) * energies[kind][2][0] + on * np.interp(load, *energies[kind][2][1])
                 for kind, on, load in zip(kinds, clocked, loads, strict=False))
    gate, leak = cycle * inside, 1e-6 * sum(energies[kind][1] for kind in kinds)
    logic = (busy[1, 0] - idle[1, 0]) / 2
    loads[-1] += sum(energies[kind][0] for kind in kinds)
    clock = cycle * square * float(loads @ clocked)
    switching = busy[:, 1] - idle[:, 1]
    nets = np.setdiff1d(np.arange(2, netlist.size), [netlist.clock, *netlist.gck])
    on = clocked[netlist.domain].mean() if len(netlist.flops) else 0
    return Power(cycles=activity.cycles, **{name: round(float(value), 6) for name, value in {
        "registers": register + switching[0] + busy[0, 2], "logic": logic + switching[1] + busy[1, 2] - leak,
        "gates": gate + leak, "clock": clock, "internal": register + gate + logic, "leakage": busy[:, 2].sum(),
        "switching": switching.sum() + clock, "toggles": activity.toggles[nets].mean() / activity.cycles, "clocked": on,
    }.items()})
