"""The picture of ``actcodec dqt``: the best tables for ZVC, the named ones, and the result of the search."""

from collections.abc import Sequence
from typing import Any

from actcodec.golden.jpegact import dqt, quantize
from actcodec.golden.jpegact.dqt import Sample
from actcodec.plotting import pyplot, write

__all__ = ["draw"]


def draw(samples: Sequence[Sample], table: Any, target: str) -> None:
    """Draws the picture of ``samples`` into ``target``; ``table`` is the ratio, error and coder of the result."""
    figure, axes = pyplot().subplots(figsize=(8, 5.5), dpi=110, layout="constrained")
    counts = dqt.total(samples)
    best = dqt.frontier(counts)
    axes.plot(best.errors, best.ratios, color="#1b6ca8", label="best tables of shifts, ZVC")
    for name in quantize.TABLES:
        shifts = quantize.shifts(quantize.table(name))
        point = counts.error(shifts), counts.nbytes / counts.size(shifts)
        axes.plot(*point, "o", color="#8a8a8a")
        axes.annotate(name, point, (6, -10), textcoords="offset points", fontsize=9, color="#8a8a8a")
    ratio, error, coder = table
    axes.plot(error, ratio, "*", color="#d1495b", markersize=15, label=f"this one, {coder}: {ratio:.2f} at {error:.4f}")
    axes.set(xlabel="relative L2 error", ylabel="compression ratio", ylim=(0, None))
    axes.grid(color="#e6e6e6")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    write(figure, target)
