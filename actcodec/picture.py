"""The demo's picture: channels before and after, the error, and ratio against error."""

from itertools import cycle

import numpy as np

from actcodec.codecs import METHODS
from actcodec.demo import KINDS
from actcodec.plotting import pyplot, write

__all__ = ["draw"]

INK, QUIET = "#222222", "#8a8a8a"
SHOWN = (3, 2)  # channels of a dense tensor, of a ReLU's
MAGNIFIED = 10
COLOURS = ("tab10", "Dark2")  # dark enough to write with
PLACES = ((0, 12, "center"), (0, -24, "center"), (14, -4, "left"), (-14, -4, "right"), (10, 10, "left"),
          (-10, 10, "right"), (10, -18, "left"), (-10, -18, "right"), (0, 28, "center"), (0, -40, "center"))
"""Where a name may go, in points from its mark, the best place first."""


def colours(results):
    """{way of compressing: colour}."""
    found = cycle(colour for name in COLOURS for colour in pyplot().get_cmap(name).colors)
    return dict(zip(dict.fromkeys(r.label for r in results), found, strict=False))


def shown(results):
    """What the picture has channels of: for each kind the first tensor by JPEG-ACT's way, and how many channels."""
    for kind, mode, count in zip(KINDS, METHODS["JPEG-ACT"], SHOWN, strict=True):
        yield next(r for r in results if (r.kind, r.mode) == (kind, mode)), count


def draw(results, path):
    """Draws ``results`` of :func:`actcodec.demo.run` into the PNG ``path``."""
    plt = pyplot()
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": QUIET,
                         "xtick.color": INK, "ytick.color": INK})
    figure = plt.figure(figsize=(16, 6.4), dpi=110, facecolor="white")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 0.92])
    draw_channels(left, results)
    right.text(0.12, 0.885, "Small marks: one tensor each. Large marks: all tensors of a kind together.", color=QUIET)
    draw_ratios(right.add_axes((0.12, 0.1, 0.84, 0.74)), results)
    right.suptitle("Ratio against error", x=0.12, y=0.965, ha="left", fontsize=14, weight="bold")
    write(figure, path)


def draw_channels(figure, results):
    """A few channels of two tensors, in three rows: before, after, error."""
    chosen = list(shown(results))
    columns = [(result, channel) for result, count in chosen for channel in liveliest(result.before[0], count)]
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
    for result, count in chosen:
        figure.text(axes[0, first].get_position().x0, 0.89,
                    f"{result.tensor}\n{result.label}, ratio {result.ratio:.1f}, error {result.relative_error:.2%}",
                    fontsize=10.5, linespacing=1.4, weight="bold", color=colours(results)[result.label])
        first += count


def liveliest(channels, count):
    """The numbers of the channels that vary most, in ascending order."""
    return sorted(np.argsort([c.std() for c in channels])[-count:])


def draw_ratios(axes, results):
    """A small mark for every tensor and mode; a large one, named, for the mode's tensors of a kind together."""
    lossy = [r for r in results if r.relative_error]
    lossless = min(r.relative_error for r in lossy) / 3  # where a logarithmic axis puts "none"
    axes.axvspan(lossless / 1.6, lossless * 1.6, color="#f1f1f1", zorder=0)
    colour, names, marks = colours(results), [], []
    for label, kind in dict.fromkeys((r.label, r.kind) for r in results):
        of_mode = [r for r in results if (r.label, r.kind) == (label, kind)]
        errors = np.array([r.relative_error or lossless for r in of_mode])
        ratios = np.array([r.ratio for r in of_mode])
        marker = "o" if kind == "dense" else "^"
        axes.scatter(errors, ratios, s=46, color=colour[label], marker=marker, alpha=0.55, linewidths=0)
        x, y = np.exp(np.log(errors).mean()), 1 / np.average(1 / ratios, weights=[r.before.size for r in of_mode])
        axes.scatter(x, y, s=150, color=colour[label], marker=marker, edgecolors="white", linewidths=1.4, zorder=3)
        marks += [(x, y, 8), *zip(errors, ratios, [4] * len(errors), strict=True)]
        names.append(axes.annotate(f"{label}  {y:.1f}", (x, y), (0, 0), textcoords="offset points",
                                   color=colour[label], weight="bold", fontsize=10, zorder=4))
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
    place(axes, names, marks)


def place(axes, names, marks):
    """Moves each name to where it hides least of ``marks`` (x, y and half a width in pixels) and of the names before
    it, and stays inside of the axes."""
    from matplotlib.transforms import Bbox

    def hidden(text, place):
        text.set_position(place[:2])
        text.set_horizontalalignment(place[2])
        box = text.get_window_extent(renderer)
        common = [Bbox.intersection(box, other) for other in taken]
        inside = Bbox.intersection(box, axes.bbox)
        size = box.width * box.height
        return sum(one.width * one.height for one in common if one) + size - (
            inside.width * inside.height if inside else 0)

    renderer = axes.figure.canvas.get_renderer()
    taken = [Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half) for (x, y), (*_, half) in zip(
        axes.transData.transform([mark[:2] for mark in marks]), marks, strict=True)]
    for name in names:
        best = min(PLACES, key=lambda where, name=name: hidden(name, where))
        hidden(name, best)
        taken.append(name.get_window_extent(renderer))
