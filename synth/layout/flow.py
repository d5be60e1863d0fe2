"""From a mapped netlist to one with places, wires, and the sizes and buffers that these ask for; cached by content.

Coloquinte places the cells, each net becomes a Steiner tree of resistors and capacitors, and OpenSTA times the netlist
with these. If it is late, cells are placed once more, where nets count by the slack that sizing would leave them. Then
all cells get other sizes at once, by a timing of our own that OpenSTA corrects; where that does not suffice, late
signals get new trees of buffers; and what has changed is made legal. OpenSTA judges every try. In the end the netlist
is proved to be what the RTL says.
"""

import copy
import json
import shutil
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import monotonic

import numpy as np

from actcodec.synth import memories, relaxation, timing
from actcodec.synth.delays import Delays
from actcodec.synth.equivalence import prove
from actcodec.synth.flow import yosys
from actcodec.synth.judge import judge
from actcodec.synth.layout import clock, lef, trees, wires
from actcodec.synth.layout.placement import place
from actcodec.synth.library import BUILD, PERIOD, SynthesisError, liberty, version
from actcodec.synth.netlist import Netlist
from actcodec.synth.sources import fingerprint
from actcodec.synth.tables import tables

__all__ = ["SOURCES", "Layout", "identity", "lay"]

SOURCES = tuple(Path(__file__).with_name(f"{name}.py")  # whose change makes results void
                for name in ("clock", "flow", "lef", "macros", "placement", "placer", "steiner", "trees", "wires"))
WAYS = {(False, False): "N", (True, False): "FN", (False, True): "FS", (True, True): "S"}  # by (flip, turn), as in DEF
TRIES = 8
MARGIN = 2.0  # ps that sizing aims at, as cells move when they become legal; with each try one more
ROUNDS = 60  # of sizing, the first time; later half as many
# A net's length counts up to nine times, the more the less slack it has below this many ps. A signal with many readers
# counts once: it gets a tree of its own.
HEAVIEST, AMPLE, READERS = 9.0, 50.0, 50


@dataclass(frozen=True)
class Layout:
    """What a placed netlist came to. Areas in um2, slacks in ps by OpenSTA, lengths of wires in mm.

    ``mapped``: slack and area as mapped, with the library's usual wires; ``placed``: slack of the same cells with the
    wires of their first places, ``late`` ends; ``slack``, ``area``, ``left`` late ends, after sizing and new trees;
    ``corners``: slack with other capacitances of wires, by fF/um; ``share``: of the wires in the capacitance of
    signals; ``core``: um of its sides; ``buffers`` of new ``trees``; ``functions``: how many were proved to be those of
    the RTL, None if the proof did not finish.
    """

    cells: int
    mapped: tuple
    placed: float
    late: int
    slack: float
    left: int
    area: float
    corners: dict
    length: float
    share: float
    core: tuple
    trees: int
    buffers: int
    clock: dict
    functions: int | None
    seconds: float = 0.0

    @property
    def fmax(self):
        """MHz before and after."""
        return tuple(1e6 / (PERIOD - slack) for slack in (self.placed, self.slack))


def identity(what):
    """A key of a netlist of that key, placed."""
    return fingerprint(SOURCES, what, lef.digest(), version("coloquinte", "placement for this Python"))


class _Try:
    """A netlist with places: wires, OpenSTA's verdict, and delays that agree with it."""

    def __init__(self, netlist, placement, library, folder, stem, top, arrival):
        self.netlist, self.placement = netlist, placement
        self.wires = wires.wires(netlist, placement)
        self.verdict = judge(netlist, wires.spef(netlist, self.wires, top), library, folder, stem, top, arrival)
        self.delays = Delays(netlist, self.wires, tables(library), arrival)
        self.delays.time()
        self.delays.calibrate(self.verdict.slacks)
        self.area, self.met = round(self.delays.area(), 3), not self.verdict.late
        # More is better.
        self.rank = (not self.verdict.overloads, self.met, -self.area if self.met else self.verdict.worst)

    def freeze(self):
        """Keeps netlist, places and timing as they are now; ``slack`` of each cell is that of its worst pin."""
        self.module, self.load = copy.deepcopy(self.netlist.module), float(np.sum(self.delays.load))
        self.slack, owner = np.full(len(self.netlist.kinds), np.inf), self.delays.owner
        worst = np.nan_to_num(self.delays.slack.reshape(-1, 2).min(1), nan=np.inf)  # where nothing ever arrives
        np.minimum.at(self.slack, owner[owner >= 0], worst[owner >= 0])
        return self


def weigh(delays):
    """{net: how much its length is to count}, by what :func:`~actcodec.synth.relaxation.resize` leaves of slack."""
    relaxation.resize(delays, ROUNDS, MARGIN, 0)
    slack = delays.slack.reshape(-1, 2).min(1)
    share = np.clip((AMPLE - slack) / max(AMPLE - delays.worst(), 1), 0, 1)
    share = np.where(np.isfinite(slack), share, 0)  # but where nothing ever arrives
    return {bit: 1 + (HEAVIEST - 1) * float(share[net.driver]) ** 2
            for bit, net in delays.netlist.nets.items() if len(net.sinks) <= READERS}


def _settle(first, again):
    """Sizes, plants and places until all ends are in time, or :data:`TRIES` are up; ``again`` makes a try of a netlist
    and places that are not legal. Returns the best try and how many trees were planted in it."""
    best, current, planted = first.freeze(), first, 0
    count = 0
    for attempt in range(TRIES):
        if attempt and not current.met:
            moved, new = trees.plant(current.delays, current.placement)
            if new:
                planted += new
                current = again(current.netlist, moved)
                if current.rank > best.rank:
                    best, count = current.freeze(), planted
        relaxation.resize(current.delays, ROUNDS if not attempt else ROUNDS // 2, MARGIN + attempt, attempt)
        for cell, kind in enumerate(current.delays.kinds):
            current.netlist.change(cell, current.delays.names[kind])
        current = again(current.netlist, current.placement)
        if current.rank > best.rank:
            best, count = current.freeze(), planted
        if current.met:
            break
    return best, count


def _write(name, source, folder, module):
    """The netlist as JSON and Verilog, and beside it what its proof needs of the mapping in ``source``."""
    for file in [*source.glob("*.il"), *source.glob("generic.*"), *source.glob("memories.v")]:
        shutil.copy(file, folder / file.name)
    design = json.loads((source / "net.json").read_text())
    design["modules"][name] = module
    (folder / "net.json").write_text(json.dumps(design))
    yosys(["read_json net.json", f"hierarchy -top {name}", "check -mapped -assert -nolatches", "opt_clean -purge",
           "write_json net.json", "write_verilog -noattr -noexpr -nohex -nodec -simple-lhs net.v"], folder, name, "net")


def _places(netlist, best):
    """What ``places.json`` has, in steps of 10 nm and ps."""
    placement = best.placement
    ways = [WAYS[both] for both in zip(placement.flip.tolist(), placement.turn.tolist(), strict=True)]
    cells = zip(netlist.kinds, placement.x.tolist(), placement.y.tolist(), ways, best.slack.tolist(), strict=True)
    return {"core": [placement.core.width, placement.core.height], "macros": [asdict(one) for one in
                                                                              placement.macros.blocks],
            "ports": {name: point for (name, _, _), point in zip(netlist.ports, placement.ports.tolist(), strict=True)},
            "cells": {name: [kind, x, y, way, round(slack, 1) if np.isfinite(slack) else None]
                      for name, (kind, x, y, way, slack) in zip(netlist.names, cells, strict=True)}}


def lay(name, figures, source, arrival=timing.ARRIVAL, build=BUILD):
    """Places the netlist in the folder ``source``, of :class:`~actcodec.synth.flow.Figures`, or remembers that it did.

    Returns ``(layout, folder, cached)``; in the folder are ``net.v`` and ``net.json`` as mapping leaves them, and the
    places, ``places.json``: sides of the core, macros, ports, and {cell: [kind, x, y, orientation, slack]}, the slack
    null where nothing is to be in time.

    Raises
    ------
    SynthesisError
        If a tool is missing or fails, if the netlist has modules, or if it is not what the RTL says.
    """
    start, library = monotonic(), liberty(build).absolute()
    folder = Path(build, f"placed-{name}-{identity((source.name, str(arrival)))}")
    summary = folder / "layout.json"
    if summary.exists():
        return Layout(**json.loads(summary.read_text())), folder, True
    folder.mkdir(parents=True, exist_ok=True)
    netlist = Netlist(json.loads((source / "net.json").read_text())["modules"][name])
    if strange := sorted(kind for kind in set(netlist.kinds) - set(lef.shapes()) if not memories.bits(kind)):
        raise SynthesisError(f"{name}: no place for {', '.join(strange[:3])}: modules are not placed")

    def again(netlist, placement, weights=None):
        return _Try(netlist, place(netlist, placement, weights), library, folder, "try", name, arrival)

    first, weights = again(netlist, None), None
    if not first.met:
        weights = weigh(first.delays)
    best, planted = _settle(again(netlist, None, weights) if weights else first, partial(again, weights=weights))
    _write(name, source, folder, best.module)
    proof = prove(name, folder, build=build)
    final = Netlist(best.module)
    corners = {label: judge(final, wires.spef(final, wires.wires(final, best.placement, mix), name), library, folder,
                            label, name, arrival).worst
               for label, mix in (("low", wires.LOW), ("high", wires.HIGH), ("load", wires.LOAD))}
    wired = sum(sum(wire.capacitance) for wire in best.wires.values())
    core = best.placement.core
    (folder / "places.json").write_text(json.dumps(_places(final, best)))
    layout = Layout(
        cells=len(final.kinds), mapped=(figures.slack, figures.area), placed=first.verdict.worst,
        late=first.verdict.late,
        slack=best.verdict.worst, left=best.verdict.late, area=best.area, corners=corners,
        length=round(wires.length(best.wires), 2), share=round(wired / best.load, 3),
        core=(core.width / lef.UM, core.height / lef.UM), trees=planted,
        buffers=sum(cell.startswith("$placed$") for cell in final.names), clock=asdict(clock.plan(
            final, best.placement, tables(library))), functions=proof.outputs if proof.proved else None,
        seconds=round(monotonic() - start, 1))
    summary.write_text(json.dumps(asdict(layout)))
    return Layout(**json.loads(summary.read_text())), folder, False
