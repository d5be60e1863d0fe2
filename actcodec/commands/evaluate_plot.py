"""The picture of ``actcodec evaluate``: ratio against error."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from actcodec.plotting import pyplot, write

__all__ = ["draw"]

QUIET = "#8a8a8a"


def draw(rows: Sequence[Mapping[str, Any]], target: str) -> None:
    """Draws ``rows`` into ``target``: a small mark for each tensor and label, a large one for each label."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(9, 6), dpi=110, layout="constrained")
    errors = [row["relative_error"] for row in rows if 0 < row["relative_error"] < np.inf]
    exact = min(errors, default=1e-3) / 3  # where a logarithmic axis puts "none"
    axes.axvspan(exact / 1.4, exact * 1.4, color="#f1f1f1", zorder=0)
    for number, label in enumerate(dict.fromkeys(row["label"] for row in rows)):
        colour = plt.get_cmap("tab20")(number % 20)
        points = [(min(row["relative_error"], 1e3) or exact, row["ratio"]) for row in rows if row["label"] == label]
        sizes = [row["bytes"] for row in rows if row["label"] == label]
        x, y = np.array(points).T
        if len(points) > 1:
            axes.scatter(x, y, s=30, color=colour, alpha=0.5, linewidths=0)
        mean = np.exp(np.log(x).mean()), 1 / np.average(1 / y, weights=sizes)
        axes.scatter(*mean, s=110, color=colour, edgecolors="white", zorder=3)
        axes.annotate(f"{label}  {mean[1]:.1f}", mean, (7, 5 + 9 * (number % 2)), textcoords="offset points",
                      fontsize=9, color=colour, zorder=4)
    axes.set(xscale="log", yscale="log", xlabel="relative L2 error", ylabel="compression ratio")
    axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_yticks([], minor=True)
    axes.text(exact, axes.get_ylim()[1], "no error", ha="center", va="top", fontsize=8, color=QUIET)
    axes.grid(color="#e6e6e6", zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    write(figure, target)
