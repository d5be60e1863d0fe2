"""``python -m actcodec.synth.layout.placer FILE``: Coloquinte as a program, for a task of
:func:`actcodec.synth.layout.placement.place` on the standard input."""

import pickle
import sys
from pathlib import Path

import coloquinte

__all__ = ["solve"]


def solve(task):
    """(x, y, orientation) of every cell, then of every port."""
    count, ports = len(task["widths"]), task["ports"]
    circuit = coloquinte.Circuit(count + len(ports))
    widths = task["widths"] + [0] * len(ports)
    circuit.cell_width = widths
    circuit.cell_height = [0 if fixed else task["row"] for fixed in task["fixed"]] + [0] * len(ports)
    circuit.cell_is_fixed = [*task["fixed"], *[True] * len(ports)]
    # Every other row is upside down, so that neighbours share a rail; and so are its cells.
    circuit.cell_row_polarity = [coloquinte.CellRowPolarity.SAME] * (count + len(ports))
    circuit.cell_x = task["x"] + [x for x, _ in ports]
    circuit.cell_y = task["y"] + [y for _, y in ports]
    for net in task["nets"]:
        circuit.add_net(*net)
    width, height = task["core"]
    circuit.setup_rows(coloquinte.Rectangle(0, width, 0, height), task["row"], True, True)
    effort = coloquinte.ColoquinteParameters(task["effort"], task["seed"])
    if task["expanded"]:
        circuit.expand_cells_to_density(task["expanded"], 0)
        circuit.place_global(effort)
        circuit.cell_width = widths  # or the room that cells had for spreading would stay
    circuit.place_detailed(effort)
    return circuit.cell_x, circuit.cell_y, [str(way).rpartition(".")[2] for way in circuit.cell_orientation]


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(pickle.dumps(solve(pickle.load(sys.stdin.buffer))))
