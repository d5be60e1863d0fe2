"""The size of every cell and the order of its equal inputs, as ABC's own choice knows neither clocks nor flip-flops.

OpenSTA times the netlist and orders inputs; then all cells get other sizes at once, by a timing of our own that OpenSTA
has corrected. OpenSTA judges every try.
"""

import json
import os
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from threading import Thread

import numpy as np

from actcodec.synth import relaxation, timing
from actcodec.synth.delays import Delays
from actcodec.synth.judge import judge
from actcodec.synth.netlist import Netlist, reached
from actcodec.synth.tables import tables

__all__ = ["apart", "resize"]


def _watch():
    """Ends this process with the one that made it, even where that one was killed."""
    Thread(target=lambda: (parent_process().join(), os._exit(1)), daemon=True).start()


# Processes, as NumPy's work on arrays as short as these holds up all other threads.
WORKERS = ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"), initializer=_watch)
TRIES = 10
MARGIN = 0.5  # ps that sizing aims at, the first time; as much more with each try
ROUNDS = 60  # of sizing, the first time; later half as many
FAR = -10  # ps, beyond which tries end when they bring too little


class _Usual:
    """A wire without a place: the capacitance that the library estimates from the number of its readers."""

    def __init__(self, farad):
        self.capacitance = farad,

    def delays(self, loads):
        """Ps from the driver to each of its readers."""
        return [0.0] * len(loads)


def _drive(netlist, table):
    """Gives each clock gate the drive that its flip-flops ask for."""
    for cell, pins in enumerate(netlist.pins):
        if "GCK" in pins and netlist.own(cell):
            readers = [netlist.kinds[netlist.owner[pin]] for pin in netlist.clocks.get(pins["GCK"], ())]
            load = sum(table.capacitance[kind]["CK"] for kind in readers) + table.usual(len(readers))
            family = table.family[netlist.kinds[cell]]
            netlist.change(cell, next((kind for kind in family if table.limit[kind]["GCK"] >= load / relaxation.FULL),
                                      family[-1]))


def _settle(netlist, library, folder, stem, top, arrival):
    """Sizes and orders until all ends are in time, or :data:`TRIES` are up. Returns the kinds of the best try's cells,
    and their pins."""
    table, best, before = tables(library), None, -np.inf
    _drive(netlist, table)
    usual = {bit: _Usual(table.usual(len(net.sinks))) for bit, net in netlist.nets.items()}
    for attempt in range(TRIES + 1):
        verdict = judge(netlist, None, library, folder, f"{stem}-try", top, arrival, order=True)
        for cell, moves in verdict.moves.items():
            netlist.swap(cell, moves)
        if verdict.moves:
            netlist.number()
        if not attempt or verdict.moves:
            delays = Delays(netlist, usual, table, arrival)
            delays.time()
        worst = verdict.worst
        rank = not verdict.overloads, worst >= 0, -delays.area() if worst >= 0 else worst  # more is better
        if best is None or rank > best[0]:
            best = rank, list(netlist.kinds), [dict(pins) for pins in netlist.pins]
        left, pace = TRIES - attempt, worst - before
        if not left or (attempt > 1 and worst >= 0) or (worst < FAR and left * pace < -worst):
            break
        before = worst
        delays.calibrate(verdict.slacks)
        relaxation.resize(delays, ROUNDS if not attempt else ROUNDS // 2, MARGIN * (attempt + 1), attempt)
        for cell, kind in enumerate(delays.kinds):
            netlist.change(cell, delays.names[kind])
    return best[1:]


def _places(before, after):
    """{pin: the one that has its net now}, where that is another."""
    left, moves = dict(after), {}
    for pin, net in before.items():
        to = pin if left.get(pin) == net else next(other for other, has in left.items() if has == net != before[other])
        del left[to]
        if to != pin:
            moves[pin] = to
    return moves


def resize(library, folder, stem, top, netlist, arrival=timing.ARRIVAL):
    """Gives the cells of a :class:`~actcodec.synth.netlist.Netlist` other drives and their equal inputs another order,
    so that all ends are in time for the least area, or else as early as they get; cells of its parts stay as they are.
    Changes ``folder/stem.v``, which has its own cells, and returns {cell: its new kind} and {cell: {pin: the one that
    has its net now}}.
    """
    first, pins = list(netlist.kinds), [dict(one) for one in netlist.pins]
    best, places = _settle(netlist, library, folder, stem, top, arrival)
    kinds = {name: kind for name, was, kind in zip(netlist.names, first, best, strict=True) if kind != was}
    moves = {name: moved for name, before, after in zip(netlist.names, pins, places, strict=True)
             if before != after and (moved := _places(before, after))}

    def changed(match):
        kind, cell, ports = match.groups()
        new = moves.get(cell, {})
        ports = re.sub(r"^    \.(\w+)\(", lambda port: f"    .{new.get(port[1], port[1])}(", ports, flags=re.MULTILINE)
        return f"  {kinds.get(cell, kind)} {cell} (\n{ports}  );"

    path = folder / f"{stem}.v"
    instance = re.compile(r"^  (\w+) (\w+) \(\n(.*?)^  \);", re.MULTILINE | re.DOTALL)
    path.write_text(instance.sub(changed, path.read_text()))
    return kinds, moves


def _from_file(library, folder, stem, top, source, arrival):
    module = json.loads((folder / f"{source}.json").read_text())["modules"][top]
    return resize(library, folder, stem, top, Netlist(reached(module)), arrival)


def apart(*arguments):
    """:func:`resize` in a process of its own, by ``(library, folder, stem, top, source, arrival)``: of the module
    ``top`` in ``folder/source.json``."""
    return WORKERS.submit(_from_file, *arguments).result()
