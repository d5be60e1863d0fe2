"""``actcodec mfr``: Gist's Memory Footprint Ratios as tables, JSON and stacked bars."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from statistics import fmean
from typing import Any

from rich.table import Table

from actcodec import files, plotting
from actcodec.console import Console
from actcodec.golden.common import networks
from actcodec.golden.gist import memory, schedule

__all__ = ["Result", "draw", "evaluate", "facts", "parse_sparsity", "show"]

FIGURES = {8: "end to end", 10: "lossless alone", 13: "DPR alone", 17: "dynamic"}
COLOURS = dict(zip(schedule.CATEGORIES, ("#edae49", "#d1495b", "#1b6ca8", "#b9c4cc"), strict=True))


@dataclass(frozen=True)
class Result:
    """The bars of one network."""

    network: str
    minibatch: int
    dpr: str
    weight_bytes: int
    bars: list


def parse_sparsity(words: Sequence[str]) -> tuple[float, dict[str, float]]:
    """``(default, {layer: sparsity})`` of words such as ``0.7`` and ``relu1=0.6``. Raises :class:`files.UserError`."""
    default, layers = schedule.SPARSITY, {}
    for word in words:
        layer, equals, number = word.rpartition("=")
        try:
            share = float(number)
        except ValueError:
            raise files.UserError(f"--sparsity {word}: must be a number or LAYER=NUMBER") from None
        if equals:
            layers[layer] = share
        else:
            default = share
    return default, layers


def evaluate(names: Sequence[str], minibatch: int | None = None, dpr: str | None = None,
             sparsity: Sequence[str] = ()) -> list[Any]:
    """A :class:`Result` for each of the networks ``names``, with the paper's minibatch and DPR format unless given.
    Raises :class:`files.UserError`."""
    default, layers = parse_sparsity(sparsity)
    results = []
    for name in names:
        graph = networks.NETWORKS[name]()
        batch, narrow = minibatch or memory.MINIBATCH[name], dpr or memory.SMALLEST_DPR[name]
        try:
            zeros = schedule.sparsities(graph, default, layers)
        except ValueError as error:
            raise files.UserError(str(error)) from error
        results.append(Result(name, batch, narrow, 4 * graph.weights, memory.evaluate(graph, batch, narrow, zeros)))
    return results


def facts(results: Sequence[Any]) -> list[dict[str, Any]]:
    """The JSON of ``--json``: a dict for each network."""
    return [{**asdict(result), "bars": [{**asdict(bar), "total": bar.total} for bar in result.bars]}
            for result in results]


def show(results: Sequence[Any]) -> None:
    """Prints a table for each network, and one of all their ratios if there are several."""
    console = Console(highlight=False)
    for result in results:
        table = Table("GB", *map(two_lines, schedule.CATEGORIES), "total", "MFR", box=None, header_style="bold",
                      title=f"{result.network}, minibatch {result.minibatch}", title_justify="left",
                      caption=f"not counted: weights, {gigabytes(result.weight_bytes)}, and as much for gradients",
                      caption_justify="left", collapse_padding=True, pad_edge=False)
        align(table)
        for figure, bars in groupby(result.bars, lambda bar: bar.figure):
            table.add_row(f"[bold]Figure {figure}: {FIGURES[figure]}")
            for bar in bars:
                sizes = (*bar.bytes.values(), bar.total)
                table.add_row(f"  {bar.name}", *map(gigabytes, sizes), f"{bar.mfr:.2f}")
        console.print(table, "")
    if len(results) > 1:
        console.print(summary(results))


def summary(results: Sequence[Any]) -> Any:
    table = Table("MFR", "lossless", "lossless\n+ DPR", "dynamic", "dynamic,\nlossless", "dynamic,\n+ DPR",
                  "nothing\ndecoded", box=None, header_style="bold")
    align(table)
    rows = [[bar.mfr for bar in result.bars if bar.figure in (8, 17)][1:] for result in results]
    for name, row in zip([*(result.network for result in results), "mean"],
                         [*rows, [fmean(column) for column in zip(*rows, strict=True)]], strict=True):
        table.add_row(name, *(f"{mfr:.2f}" for mfr in row))
    return table


def align(table: Any) -> None:
    """Aligns names left and numbers right, without wrapping."""
    for column in table.columns:
        column.no_wrap = True
    for column in table.columns[1:]:
        column.justify = "right"


def two_lines(name: str) -> str:
    return name.replace("/Pool-", "/Pool-\n").replace(" ", "\n")


def gigabytes(size: float) -> str:
    return f"{size / 1e9:.3f}"


def draw(results: Sequence[Any], target: str) -> None:
    """Draws a panel of stacked bars for each network into ``target``, a .png, .svg or .pdf."""
    columns = min(2, len(results))
    rows = -(-len(results) // columns)
    figure, panels = plotting.pyplot().subplots(rows, columns, figsize=(8.5 * columns, 4.6 * rows), dpi=110,
                                                squeeze=False, layout="constrained")
    for panel, result in zip(panels.flat, results, strict=False):
        draw_network(panel, result)
    for panel in panels.flat[len(results):]:
        panel.remove()
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    plotting.write(figure, target)


def draw_network(panel: Any, result: Any) -> None:
    """Bars of one network, grouped by figure, the MFR on each."""
    groups = [bar.figure for bar in result.bars]
    places = [i + list(FIGURES).index(figure) for i, figure in enumerate(groups)]
    bottom = [0.0] * len(groups)
    for name, colour in COLOURS.items():
        heights = [bar.bytes[name] / 1e9 for bar in result.bars]
        panel.bar(places, heights, bottom=bottom, color=colour, label=name, width=0.8)
        bottom = [a + b for a, b in zip(bottom, heights, strict=True)]
    for place, top, bar in zip(places, bottom, result.bars, strict=True):
        panel.annotate(f"{bar.mfr:.2f}", (place, top), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    for figure, title in FIGURES.items():
        first, last = (places[i] for i in (groups.index(figure), len(groups) - 1 - groups[::-1].index(figure)))
        panel.annotate(f"figure {figure}:\n{title}", ((first + last) / 2, max(bottom) * 1.24), ha="center", va="top",
                       fontsize=7.5)
    panel.set_xticks(places, [bar.name for bar in result.bars], rotation=40, ha="right", fontsize=7.5,
                     rotation_mode="anchor")
    panel.set(title=f"{result.network}, minibatch {result.minibatch}", ylabel="GB", ylim=(0, max(bottom) * 1.27))
    panel.spines[["top", "right"]].set_visible(False)
