"""The table of a sweep, and its curves."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rich.table import Table

from actcodec.console import Console

__all__ = ["draw", "show", "summary"]


def summary(results: Sequence[Any]) -> list[dict[str, Any]]:
    """A row for each network and label, of [(label, result)]: dictionaries with ``accuracy``, its ``deviation`` and the
    half width of its 95 % ``interval`` (Student's t; both are None for a single seed), ``runs``, ``diverged``,
    ``ratio`` and ``loss``, the mean of the last points of the curves."""
    groups = defaultdict(list)
    for label, result in results:
        groups[result["configuration"]["network"], label].append(result)
    rows = []
    for (network, label), runs in groups.items():
        accuracies = [one["accuracy"] for one in runs]
        deviation = stdev(accuracies) if len(accuracies) > 1 else None
        losses = [one["losses"][-1] for one in runs if one["converged"]]
        rows.append({"network": network, "label": label, "runs": len(runs), "accuracy": mean(accuracies),
                     "deviation": deviation, "interval": deviation and interval(deviation, len(accuracies)),
                     "diverged": sum(not one["converged"] for one in runs),
                     "ratio": mean(one["ratio"] for one in runs), "loss": mean(losses) if losses else None,
                     "seconds": mean(one["seconds"] for one in runs)})
    return rows


def interval(deviation: float, count: int) -> float:
    """Half of the 95 % confidence interval of a mean."""
    from scipy.stats import t

    return float(t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)


def show(rows: Iterable[Mapping[str, Any]]) -> None:
    """Prints the table."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("network", "preset"):
        table.add_column(name, no_wrap=True)
    for name in ("runs", "accuracy, %", "s", "95 %", "diverged", "loss", "ratio", "seconds"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["network"], row["label"], str(row["runs"]), f"{row['accuracy']:.2f}",
                      *("-" if row[key] is None else f"{sign}{row[key]:.2f}"
                        for key, sign in (("deviation", ""), ("interval", "±"))),
                      str(row["diverged"]), "-" if row["loss"] is None else f"{row['loss']:.3f}", f"{row['ratio']:.2f}",
                      f"{row['seconds']:.0f}")
    Console(width=120, markup=False, highlight=False).print(table)


def draw(results: Sequence[Any], target: str | Path) -> None:
    """Draws the curves of losses, and of accuracies where the test was made along the way, a colour for each label;
    .png, .svg or .pdf. A run that diverged ends early, and has no part in the means."""
    from actcodec.plotting import pyplot, write
    from actcodec.train.configuration import span

    plt = pyplot()
    whole = [(label, result) for label, result in results if result["converged"]]
    tested = bool(whole) and all(len(result["accuracies"]) > 1 for _, result in whole)
    figure, every = plt.subplots(1, 1 + tested, figsize=(9 + 3 * tested, 5), dpi=110, layout="constrained",
                                 squeeze=False)
    axes, labels = every[0, 0], list(dict.fromkeys(label for label, _ in results))
    for label, result in results:
        losses = result["losses"]
        places = [(i + 0.5) * span(result["configuration"]["steps"]) for i in range(len(losses))]
        first = label not in [line.get_label() for line in axes.lines]
        axes.plot(places, [math.nan if loss is None else loss for loss in losses], linewidth=1, alpha=0.8,
                  color=plt.get_cmap("tab10")(labels.index(label) % 10), label=label if first else "_again")
    axes.set(xlabel="step", ylabel="loss, mean of a fiftieth of all steps")
    axes.legend(fontsize=8)
    for number, label in enumerate(labels if tested else ()):
        runs = [result for one, result in whole if one == label]
        if not runs:
            continue
        means = [mean(values) for values in zip(*(one["accuracies"] for one in runs), strict=True)]
        places = [(i + 1) * runs[0]["configuration"]["steps"] / len(means) for i in range(len(means))]
        every[0, 1].plot(places, means, linewidth=1, marker=".", color=plt.get_cmap("tab10")(number % 10))
        every[0, 1].set(xlabel="step", ylabel="accuracy, %, mean of all seeds")
    for axes in every[0]:
        axes.spines[["top", "right"]].set_visible(False)
    write(figure, target)
