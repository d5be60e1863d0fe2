"""The demo's picture: channels before and after, the error, and ratio against error."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from actcodec.codecs import METHODS
from actcodec.plotting import pyplot, write

__all__ = ["draw"]

INK, QUIET = "#222222", "#8a8a8a"
CHANNELS = (3, 2)  # numbers of them: of a dense tensor, of a ReLU's
MAGNIFIED = 10
COLOURS = ("tab10", "Dark2")  # dark enough for text
DISTANCES = (14, 24, 36, 52)  # of a label from its mark, in points
DIRECTIONS = 16


def family(result: Any) -> str:
    """What results that differ only in the quantization table have in common: the mode and its other options."""
    return " ".join([result.mode, *(str(value) for name, value in result.options.items() if name != "dqt")])


def colours(results: Sequence[Any]) -> dict[str, str]:
    """{family: colour}."""
    palette = cycle(colour for name in COLOURS for colour in pyplot().get_cmap(name).colors)
    return dict(zip(dict.fromkeys(map(family, results)), palette, strict=False))


def examples(results: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """The results whose channels are drawn, and how many: for each kind the first one in JPEG-ACT's mode for it."""
    for mode, count in zip(METHODS["JPEG-ACT"], CHANNELS, strict=True):
        yield next(r for r in results if r.mode == mode), count


def draw(results: Sequence[Any], path: str | Path) -> None:
    """Draws ``results`` of :func:`actcodec.demo.run.run` into the PNG ``path``, and creates its folder if
    necessary."""
    plt = pyplot()
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": QUIET,
                         "xtick.color": INK, "ytick.color": INK})
    figure = plt.figure(figsize=(16, 6.4), dpi=110, facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 0.92])
    draw_channels(left, results)
    right.text(0.12, 0.885, "Small marks: one tensor each. Large marks: all tensors of a kind together.", color=QUIET)
    draw_ratios(right.add_axes((0.12, 0.1, 0.84, 0.74)), results)
    right.suptitle("Ratio against error", x=0.12, y=0.965, ha="left", fontsize=14, weight="bold")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    write(figure, path)


def draw_channels(figure: Any, results: Sequence[Any]) -> None:
    """Draws a few channels of two tensors, in three rows: before, after, error."""
    cases = list(examples(results))
    columns = [(result, channel) for result, count in cases for channel in liveliest(result.before[0], count)]
    axes = figure.subplots(3, len(columns), gridspec_kw={"left": 0.07, "right": 0.985, "top": 0.81, "bottom": 0.03,
                                                         "wspace": 0.06, "hspace": 0.06})
    for column, (result, channel) in enumerate(columns):
        before, after = result.before[0, channel], result.after[0, channel]
        limit = np.abs(before).max()
        axes[0, column].set_title(f"channel {channel}", fontsize=9, color=QUIET)
        for row, (image, scale) in enumerate([(before, limit), (after, limit), (after - before, limit / MAGNIFIED)]):
            axes[row, column].imshow(image, cmap="RdBu_r", vmin=-scale, vmax=scale, interpolation="nearest")
            axes[row, column].set(xticks=[], yticks=[])
            axes[row, column].spines[:].set_visible(False)
    for row, name in enumerate(["before", "after", f"error x {MAGNIFIED}"]):
        axes[row, 0].set_ylabel(name, fontsize=12)
    first = 0
    for result, count in cases:
        figure.text(axes[0, first].get_position().x0, 0.89,
                    f"{result.tensor}\n{result.label}, ratio {result.ratio:.1f}, error {result.relative_error:.2%}",
                    fontsize=10.5, linespacing=1.4, weight="bold", color=colours(results)[family(result)])
        first += count


def liveliest(channels: Sequence[np.ndarray], count: int) -> list[int]:
    """The numbers of the ``count`` channels that vary most, in ascending order."""
    return sorted(np.argsort([c.std() for c in channels])[-count:])


def draw_ratios(axes: Any, results: Sequence[Any]) -> None:
    """Draws a small mark for each tensor, mode and options, and a large, labelled one for all tensors of a kind. A line
    joins those that differ only in the table: the ratios of a coder at various errors."""
    lossless = min(r.relative_error for r in results if r.relative_error) / 3  # where "no error" is on the axis
    axes.axvspan(lossless / 1.6, lossless * 1.6, color="#f1f1f1", zorder=0)
    colour, names, obstacles = colours(results), [], []
    kinds = {name: {r.kind for r in results if family(r) == name} for name in colour}
    for name, kind in dict.fromkeys((family(r), r.kind) for r in results):
        marker, ends = "o" if kind == "dense" else "^", []
        style = {"color": colour[name], "marker": marker}
        for label in dict.fromkeys(r.label for r in results if (family(r), r.kind) == (name, kind)):
            some = [r for r in results if (r.label, r.kind) == (label, kind)]
            errors = np.array([r.relative_error or lossless for r in some])
            ratios = np.array([r.ratio for r in some])
            axes.scatter(errors, ratios, s=30, alpha=0.4, linewidths=0, **style)
            x, y = np.exp(np.log(errors).mean()), 1 / np.average(1 / ratios, weights=[r.before.size for r in some])
            axes.scatter(x, y, s=130, edgecolors="white", linewidths=1.4, zorder=3, **style)
            obstacles += [(x, y, 9), *zip(errors, ratios, [3] * len(errors), strict=True)]
            ends.append((x, y, some[0].options.get("dqt")))
        ends.sort()
        axes.plot(*zip(*(end[:2] for end in ends), strict=True), color=colour[name], linewidth=1.5, alpha=0.7)
        text = f"{name}, {kind}" if len(kinds[name]) > 1 else name
        if len(ends) > 1:
            names += [annotate(axes, table, (x, y), colour[name], 8) for x, y, table in ends]
        x, y, _ = ends[-1]
        names.append(annotate(axes, f"{text}  {y:.1f}" if len(ends) == 1 else text, (x, y), colour[name], 10))
    axes.set(xscale="log", yscale="log", xlabel="relative L2 error", ylabel="compression ratio", ylim=(0.8, 48))
    axes.set_yticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    axes.set_yticks([], minor=True)
    axes.text(lossless, 45, "no error", ha="center", va="top", fontsize=9, color=QUIET)
    axes.grid(color="#e6e6e6", zorder=0)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    handles = [axes.scatter([], [], s=60, color=QUIET, marker=m, label=text)
               for m, text in [("o", "dense tensor"), ("^", "ReLU tensor")]]
    axes.legend(handles=handles, loc="lower right", frameon=False)
    place(axes, names, obstacles)


def annotate(axes: Any, text: str, mark: Any, colour: str, size: float) -> Any:
    """A label for a mark, with a thin line between them; :func:`place` moves it."""
    from matplotlib.patheffects import withStroke

    return axes.annotate(text, mark, (0, 0), textcoords="offset points", color=colour, weight="bold", fontsize=size,
                         ha="center", va="center", zorder=4,
                         path_effects=[withStroke(linewidth=2.5, foreground="white")],
                         arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 5})


def place(axes: Any, names: Iterable[Any], obstacles: Any) -> None:
    """Moves each label, the longest first, to where it hides least of ``obstacles`` (x and y of the data, and half a
    width in pixels) and of earlier labels, inside the axes and close to its mark."""
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

    def boxes(name):
        """All candidates: the distance, the position, and the label's box there."""
        name.update_positions(renderer)
        box = Text.get_window_extent(name, renderer)  # without its line
        for distance in DISTANCES:
            for angle in np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS:
                x = distance * np.cos(angle) + np.cos(angle) * box.width / 2 / pixels
                y = distance * np.sin(angle)
                yield distance, (x, y), box.translated(x * pixels, y * pixels)

    def cost(distance, box):
        common = [Bbox.intersection(box, other) for other in occupied]
        inside = Bbox.intersection(box, axes.bbox)
        outside = box.width * box.height - (inside.width * inside.height if inside else 0)
        return sum(one.width * one.height for one in common if one) + 10 * outside + distance

    renderer, pixels = axes.figure.canvas.get_renderer(), axes.figure.dpi / 72
    occupied = [Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half) for (x, y), (*_, half) in zip(
        axes.transData.transform([mark[:2] for mark in obstacles]), obstacles, strict=True)]
    for name in sorted(names, key=lambda name: -len(name.get_text())):
        _, where, box = min(boxes(name), key=lambda candidate: cost(candidate[0], candidate[2]))
        name.set_position(where)
        occupied.append(box)
