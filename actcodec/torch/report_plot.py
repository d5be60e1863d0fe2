"""The picture of a report: bytes of each tensor, before and after."""

from pathlib import Path
from typing import Any

from actcodec.plotting import pyplot, write

__all__ = ["draw"]

QUIET = "#d8d8d8"
COLOURS = {"dense": "#2f6db3", "relu": "#d98c21", "mask": "#8a5ab5", "pool": "#3d9a55", "dropout": "#b54a4a",
           "softmax": "#777777"}


def draw(report: Any, target: str | Path) -> None:
    """Draws a bar for each row into ``target``: its bytes in grey, those packed in the colour of its kind."""
    rows = report.rows[::-1]
    figure, axes = pyplot().subplots(figsize=(9, 1 + 0.24 * max(len(rows), 4)), dpi=110, layout="constrained")
    places = range(len(rows))
    axes.barh(places, [row.nbytes / 2**20 for row in rows], color=QUIET)
    for kind, colour in COLOURS.items():
        mine = [i for i in places if rows[i].kind == kind]
        if mine:
            axes.barh(mine, [rows[i].packed / 2**20 for i in mine], color=colour, label=kind)
    for i, row in enumerate(rows):
        axes.text(row.nbytes / 2**20, i, f" {row.mode} {row.table} {row.ratio:.1f}".replace("  ", " "), va="center",
                  fontsize=7)
    axes.set_yticks(places, [row.layer for row in rows], fontsize=7)
    axes.set(xlabel="MiB", title=f"{report.total['ratio']:.2f} times smaller")
    if rows:
        axes.legend(fontsize=8, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    write(figure, target)
