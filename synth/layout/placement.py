"""Where cells are: rows of a core that is filled to :data:`FILLED`, by Coloquinte. Lengths are in steps of 10 nm."""

import pickle
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from actcodec.synth import memories
from actcodec.synth.layout.lef import ROW, SITE, Shape, shapes
from actcodec.synth.layout.macros import Macros, arrange
from actcodec.synth.library import SynthesisError, version

__all__ = ["FILLED", "Core", "Placement", "place"]

FILLED = 0.70  # of the core, by cells as they come from mapping
EXPANDED = 0.85  # what cells are widened to while they spread, so that every row has gaps
EFFORT, SEED = 3, 1


@dataclass(frozen=True)
class Core:
    """The area with the rows."""

    width: int
    rows: int

    @property
    def height(self):
        return self.rows * ROW


NO_MACROS = Macros((), {}, {})


@dataclass
class Placement:
    """``x``, ``y`` of each cell's lower left corner; whether it is mirrored (``flip``) and upside down (``turn``);
    ``ports``: (x, y) of each port's bit; ``macros`` of memories, whose cells are at (0, 0)."""

    core: Core
    x: np.ndarray
    y: np.ndarray
    flip: np.ndarray
    turn: np.ndarray
    ports: np.ndarray
    macros: Macros = NO_MACROS

    def moved(self, x, y, flip, turn):
        """The same with other places for the cells."""
        return replace(self, x=x, y=y, flip=flip, turn=turn)

    def points(self, netlist):
        """(x, y) of every pin."""
        kinds = _shapes(netlist, self.macros)
        points = np.zeros((len(netlist.owner), 2), np.int64)
        inside = netlist.owner >= 0
        cells = netlist.owner[inside]
        offsets = np.array([kinds[cell].pins[netlist.label[pin]] for pin, cell in
                            zip(np.flatnonzero(inside).tolist(), cells.tolist(), strict=True)]).reshape(-1, 2)
        widths = np.array([kind.width for kind in kinds], np.int64)[cells]
        points[inside, 0] = self.x[cells] + np.where(self.flip[cells], widths - offsets[:, 0], offsets[:, 0])
        points[inside, 1] = self.y[cells] + np.where(self.turn[cells], ROW - offsets[:, 1], offsets[:, 1])
        points[~inside] = self.ports
        return points


def _shapes(netlist, macros):
    """The :class:`~actcodec.synth.layout.lef.Shape` of each cell; a memory has no width, and its pins' places are those
    in the core."""
    shape = shapes()
    return [Shape(0, macros.spots[name]) if name in macros.spots else shape[kind]
            for name, kind in zip(netlist.names, netlist.kinds, strict=True)]


def _core(widths):
    """A square core for cells of these widths."""
    area = sum(widths) * ROW / FILLED
    rows = max(round(area**0.5 / ROW), 1)
    return Core(max(-(-round(area / (rows * ROW)) // SITE) * SITE, *widths), rows)


def _boundary(core, count, macros):
    """Points for ports in their order, evenly around the core, or above and below where macros stand beside it."""
    if macros.blocks:
        half = -(-count // 2)
        return np.array([(core.width * (k % half) // half, core.height * (k // half)) for k in range(count)], np.int64)
    points = []
    for at in (2 * (core.width + core.height) * k // count for k in range(count)):
        side = core.width + core.height
        if at < core.width:
            points.append((at, 0))
        elif at < side:
            points.append((core.width, at - core.width))
        elif at < side + core.width:
            points.append((side + core.width - at, core.height))
        else:
            points.append((0, 2 * side - at))
    return np.array(points, np.int64).reshape(-1, 2)


def _coloquinte(task):
    """Places a circuit, in a process of its own, as Coloquinte writes to the standard output whatever happens."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer")
        done = subprocess.run([sys.executable, "-m", "actcodec.synth.layout.placer", answer], input=pickle.dumps(task),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            raise SynthesisError(f"Coloquinte: {done.stderr.decode(errors='replace').strip().splitlines()[-1]}")
        return pickle.loads(answer.read_bytes())


def place(netlist, before=None, weights=None):
    """Places all cells; or, with a :class:`Placement` from ``before`` changes, makes it legal again: cells that have
    become wider, or come from nowhere, get room. ``weights``, {net: factor}: how much a net's length counts, 1 if the
    net has none.

    Raises
    ------
    SynthesisError
        Without Coloquinte, or if the cells no longer fit into the core.
    """
    version("coloquinte", "placement for this Python")
    count, macros = len(netlist.kinds), before.macros if before else NO_MACROS
    kinds = {name: kind for name, kind in zip(netlist.names, netlist.kinds, strict=True) if memories.bits(kind)}
    if kinds and not before:
        area = sum(shapes()[kind].width for kind in netlist.kinds if not memories.bits(kind)) * ROW / FILLED
        width, rows, macros = arrange(kinds, area)
    shape = _shapes(netlist, macros)
    widths = [one.width for one in shape]
    core = before.core if before else Core(width, rows) if kinds else _core(widths)
    if sum(widths) > core.width * core.rows:
        raise SynthesisError(f"{count} cells do not fit into the core any more")
    ports = before.ports if before else _boundary(core, len(netlist.ports), macros)
    fixed = np.array([name in kinds for name in netlist.names], bool)
    x, y = (before.x, before.y) if before else (np.where(fixed, 0, side // 2) for side in (core.width, core.height))
    first, nets, weights = len(netlist.owner) - len(ports), [], weights or {}
    for bit, net in netlist.nets.items():
        cells, xs, ys = [], [], []
        for pin in (net.driver, *net.sinks):
            cell = int(netlist.owner[pin])
            at = shape[cell].pins[netlist.label[pin]] if cell >= 0 else (0, 0)
            cells.append(cell if cell >= 0 else count + pin - first)
            xs.append(at[0])
            ys.append(at[1])
        nets.append((cells, xs, ys, weights.get(bit, 1.0)))
    task = {"widths": widths, "fixed": fixed.tolist(), "ports": ports.tolist(), "x": x.tolist(),
            "y": y.tolist(), "nets": nets, "row": ROW,
            "core": (core.width, core.height), "expanded": None if before else EXPANDED, "effort": EFFORT, "seed": SEED}
    x, y, ways = _coloquinte(task)
    # To the nearest site: as all widths are multiples of it, cells that do not overlap still do not.
    x = (np.array(x[:count]) + SITE // 2) // SITE * SITE
    return Placement(core, x, np.array(y[:count]), np.array([way in ("S", "FN") for way in ways[:count]], bool),
                     np.array([way in ("S", "FS") for way in ways[:count]], bool), ports, macros)
