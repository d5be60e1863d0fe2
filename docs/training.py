"""The tables of ``docs/training.md``, from the results in ``docs/training/``: ``python -m docs.training`` writes each
between the lines ``<!-- NAME -->`` and ``<!-- /NAME -->``; with ``--curves`` it also draws the curves. Needs the extra
``train``.
"""

import sys
from pathlib import Path
from statistics import median

from actcodec.train import sweep, table
from docs import marks

__all__ = ["DOCUMENT", "render"]

DOCUMENT = Path(__file__).parent / "training.md"
FOLDER = Path(__file__).parent / "training"
RESNET50 = {"none": (94.5, None), "cdma": (None, 1.1), "gist-fp8": (94.4, 4.1), "sfpr": (94.5, 4.0),
            "jpeg-act optL": (94.4, 5.2), "jpeg-act optH": (93.8, 7.6), "jpeg-act optL5H": (94.4, 7.5)}
"""Accuracy and ratio of ResNet50 on CIFAR-10, JPEG-ACT's Table I."""
DENSE = {"jpeg-act jpeg80": 5.77, "jpeg-act jpeg60": 6.46, "jpeg-act optL": 5.08, "jpeg-act optH": 8.01,
         "jpeg-act optL5H": 7.96}
"""Ratio of conv and sum, row SH+ZVC of its Table III."""


AT = (0, 40, 80, 120, 160, 199)  # steps of A2DTWP's precision


def results(name):
    """[(label, result)] of a sweep that was run."""
    todo = sweep.read(FOLDER / f"{name}.toml")
    return list(sweep.work(todo, None, FOLDER / name))


def number(value, form=".2f", sign=""):
    return "" if value is None else f"{sign}{value:{form}}"


def rows(runs, paper=()):
    """Cells that all tables have, and a paper's."""
    summary = table.summary(runs)
    exact = next((row["accuracy"] for row in summary if row["label"] == "none"), None)
    for row in summary:
        cells = [row["label"], row["runs"], number(row["accuracy"]), number(row["deviation"]),
                 number(row["interval"], sign="±"), number(exact and row["accuracy"] - exact, "+.2f"),
                 number(row["loss"], ".3f"), number(row["ratio"])]
        yield [str(cell) for cell in cells] + [number(value, ".1f") for value in dict(paper).get(row["label"], ())]


def lines(head, body):
    yield f"| {' | '.join(head)} |"
    yield f"|---|{'---:|' * (len(head) - 1)}"
    yield from (f"| {' | '.join(cells + [''] * (len(head) - len(cells)))} |" for cells in body)


HEAD = ["preset", "runs", "accuracy, %", "s", "95 %", "to none", "loss", "ratio"]


def table1():
    yield from lines([*HEAD, "Table I, ResNet50: %", "ratio"], rows(results("long") + results("tables"), RESNET50))


def table3():
    body = []
    runs = results("long") + results("tables")
    for label, paper in DENSE.items():
        ratios = [result["ratios"]["dense"] for one, result in runs if one == label]
        ours = sum(ratios) / len(ratios)
        body.append([label, number(ours), number(paper), number(100 * (ours / paper - 1), "+.0f") + " %"])
    yield from lines(["DQT", "here, ResNet-20", "Table III, ResNet50, SH+ZVC", "difference"], body)


def division():
    yield from lines(HEAD, rows(results("division")))


def comet():
    yield from lines(HEAD, rows(results("comet")))


def equation3():
    looks = {}
    for label, result in results("comet"):
        for one in result["bounds"][1:] if label == "comet" else ():
            for layer, entry in one["layers"].items():
                looks.setdefault(layer, []).append(
                    (entry["bound"], entry["predicted"] / entry["target"], entry["measured"] / entry["predicted"]))
    body = []
    for layer, points in looks.items():
        bounds, predicted, measured = zip(*points, strict=True)
        body.append([layer, f"{min(bounds):.3f} to {max(bounds):.3f}", number(median(predicted)),
                     number(median(measured)), f"{min(measured):.2f} to {max(measured):.2f}"])
    yield from lines(["layer", "error bound", "predicted over wanted, median", "measured over predicted, median",
                      "and its range"], body)


def awp():
    body = []
    for label, result in results("awp"):
        changes, steps = result["precision"], result["configuration"]["steps"]

        def now(step, changes=changes):
            return next(one["ratio"] for one in reversed(changes) if one["step"] <= step)

        sent = sum(1 / now(step) for step in range(steps)) / steps
        body.append([label, number(result["accuracy"]), *(number(now(step)) for step in AT), number(1 / sent)])
    yield from lines(["", "accuracy, %", *(f"ratio at step {step}" for step in AT), "over all steps"], body)


TABLES = {function.__name__: function for function in (table1, table3, division, comet, equation3, awp)}


def render(text):
    """A document with the tables of what is in the folder."""
    return marks.render(text, TABLES)


if __name__ == "__main__":
    DOCUMENT.write_text(render(DOCUMENT.read_text()))
    if "--curves" in sys.argv[1:]:
        table.draw(results("long"), FOLDER / "long.svg")
