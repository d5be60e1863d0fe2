"""The demo's picture: channels before and after, the error, and ratio against error."""

import numpy as np

from actcodec.plotting import pyplot, write

__all__ = ["draw"]

INK, QUIET = "#222222", "#8a8a8a"
COLOURS = {"jpeg-act optL": "#1b6ca8", "jpeg-act optH": "#0b3c5d", "jpeg-act jpeg80": "#4aa3df",
           "jpeg-act jpeg60": "#7cc6e8", "sfpr": "#9a6fb0", "sfpr-zvc": "#d1495b", "brc": "#edae49",
           "zvc": "#66a182", "raw": "#777777", "jpeg-base": "#1d7d74", "comet 0.05": "#b5651d", "division": "#7a5195"}
SHOWN = [("conv0", "jpeg-act optL", 3), ("ReLU_layers_0_relu1", "sfpr-zvc", 2)]  # tensor, mode, channels
MAGNIFIED = 10
PLACES = {"jpeg-act optL": (0, -32, "center"), "jpeg-act optH": (18, -14, "left"), "zvc": (14, -4, "left"),
          "jpeg-act jpeg80": (-8, 6, "right"), "sfpr": (0, -24, "center"), "sfpr-zvc": (-10, 10, "right"),
          "raw": (14, -4, "left"), "comet 0.05 ReLU": (-14, 6, "right"), "comet 0.05": (-14, 2, "right"),
          "jpeg-base": (10, 10, "left"), "jpeg-act jpeg60": (14, -2, "left"), "division": (0, -24, "center"),
          "division ReLU": (-10, 14, "center")}
"""Where a name goes, in points from its mark, so that neighbours do not overlap; "ReLU" behind one that dense tensors
have, too."""


def colour(label):
    """Of a way of compressing; one that has none of its own gets one by its name."""
    return COLOURS.get(label) or pyplot().get_cmap("tab20")(sum(label.encode()) % 20)


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
    by_name = {(r.tensor, r.label): r for r in results}
    columns = [(by_name[tensor, label], channel) for tensor, label, count in SHOWN
               for channel in liveliest(by_name[tensor, label].before[0], count)]
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
    for tensor, label, count in SHOWN:
        result = by_name[tensor, label]
        figure.text(axes[0, first].get_position().x0, 0.89,
                    f"{tensor}\n{label}, ratio {result.ratio:.1f}, error {result.relative_error:.2%}",
                    fontsize=10.5, linespacing=1.4, weight="bold", color=colour(label))
        first += count


def liveliest(channels, count):
    """The numbers of the channels that vary most, in ascending order."""
    return sorted(np.argsort([c.std() for c in channels])[-count:])


def draw_ratios(axes, results):
    """A small mark for every tensor and mode; a large one, named, for the mode's tensors of a kind together."""
    lossy = [r for r in results if r.relative_error]
    lossless = min(r.relative_error for r in lossy) / 3  # where a logarithmic axis puts "none"
    axes.axvspan(lossless / 1.6, lossless * 1.6, color="#f1f1f1", zorder=0)
    for label, kind in dict.fromkeys((r.label, r.kind) for r in results):
        of_mode = [r for r in results if (r.label, r.kind) == (label, kind)]
        errors = np.array([r.relative_error or lossless for r in of_mode])
        ratios = np.array([r.ratio for r in of_mode])
        marker = "o" if kind == "dense" else "^"
        axes.scatter(errors, ratios, s=46, color=colour(label), marker=marker, alpha=0.55, linewidths=0)
        x, y = np.exp(np.log(errors).mean()), 1 / np.average(1 / ratios, weights=[r.before.size for r in of_mode])
        axes.scatter(x, y, s=150, color=colour(label), marker=marker, edgecolors="white", linewidths=1.4, zorder=3)
        dx, dy, side = PLACES.get(f"{label} {kind}") or PLACES.get(label, (0, 12, "center"))
        axes.annotate(f"{label}  {y:.1f}", (x, y), (dx, dy), textcoords="offset points", ha=side, color=colour(label),
                      weight="bold", fontsize=10, zorder=4)
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
