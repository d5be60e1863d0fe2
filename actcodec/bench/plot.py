"""The picture of ``actcodec bench``: rates of the CDUs, and the effective offload rate beside the paper's."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from actcodec.bench.cycles import AT_CACHE, CACHE, CLOCK, FIXED, ONE_PORT, PAPER, PCIE, SECTOR, SHOWN
from actcodec.plotting import pyplot, write

__all__ = ["draw"]

INK, QUIET, LIMIT = "#222222", "#8a8a8a", "#c9c9c9"
RATIO_COLOURS = dict(zip(FIXED, ("#7cc6e8", "#4aa3df", "#1b6ca8", "#0b3c5d"), strict=True))
COLOURS = {"cDMA+": "#66a182", "JPEG-BASE jpeg80": "#1d7d74", "JPEG-ACT optL": "#d1495b",
           "JPEG-ACT optL nibble": "#e0737f", "JPEG-ACT optL rice": "#eda6ac", "JPEG-ACT optH": "#8c1c34",
           "JPEG-ACT optH nibble": "#6b3fa0", "JPEG-ACT optH rice": "#3c1874", "JPEG-ACT optH, dense": "#b8860b",
           "JPEG-ACT optH nibble, dense": "#d9a520", "JPEG-ACT optH rice, dense": "#f0cf65"}
STYLES: dict[str, dict[str, Any]] = {
    CACHE: {"color": "#000000", "marker": "x", "markersize": 8, "linewidth": 0.8},
    CACHE + ONE_PORT: {"color": "#e07b00", "marker": "^"}, ONE_PORT: {"color": "#e07b00", "marker": "v"}}
PAPER_COLOURS = {"cDMA+": "#66a182", "JPEG-BASE": "#1d7d74", "SFPR": "#9a6fb0", "JPEG-ACT": "#8c1c34"}


def draw(rates: Sequence[Any], offloads: Sequence[Any], path: str | Path) -> None:
    """Draws the results of :func:`actcodec.bench.run.run` into the PNG ``path``."""
    plt = pyplot()
    plt.rcParams.update({"font.size": 10, "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": QUIET,
                         "xtick.color": INK, "ytick.color": INK})
    figure, axes = plt.subplots(1, 3, figsize=(18, 5.6), dpi=110, facecolor="white",
                                gridspec_kw={"width_ratios": [1.05, 1, 1], "left": 0.1, "right": 0.985, "top": 0.85,
                                             "bottom": 0.11, "wspace": 0.2})
    draw_rates(axes[0], rates)
    draw_numbers(axes[1], offloads)
    draw_ratios(axes[2], offloads)
    for axis in axes[1:]:
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_ylabel("effective offload rate, GB/s")
        axis.set_ylim(0, 215)
    write(figure, path)


def title(axis: Any, text: str, below: str) -> None:
    axis.set_title(f"{text}\n", loc="left", fontsize=13, weight="bold")
    axis.text(0, 1.02, below, transform=axis.transAxes, color=QUIET, fontsize=9)


def draw_rates(axis: Any, rates: Sequence[Any]) -> None:
    """Fraction of the limit for each mode, direction and width."""
    rates = [r for r in rates if r.cdus == SHOWN]
    widths = sorted({r.width for r in rates})
    rows = [(mode, back) for mode in dict.fromkeys(r.mode for r in rates) for back in (False, True)]
    by_place = {(r.mode, r.decompress, r.width): 8 / r.steady for r in rates}
    shares = np.array([[by_place[*row, width] for width in widths] for row in rows])
    axis.imshow(shares, cmap="Blues", vmin=0.8, vmax=1.15, aspect="auto")
    for (y, x), share in np.ndenumerate(shares):
        axis.text(x, y, f"{share:.3f}", ha="center", va="center", fontsize=9)
    axis.set_xticks(range(len(widths)), widths)
    axis.set_yticks(range(len(rows)), [f"{mode} {'decompress' if back else 'compress'}" for mode, back in rows])
    axis.set_xlabel("width of the tensor")
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    title(axis, "Sectors a cycle and CDU", f"Steady state, {SHOWN} CDUs; the limit is 1.")


def lines(axis: Any, offloads: Sequence[Any], name: str, **style: Any) -> None:
    """The offload rates of tensors called ``name`` by the number of CDUs, compressing and (dotted) back."""
    for back in (False, True):
        points = sorted((o.cdus, o.rate) for o in offloads if (o.name, o.decompress) == (name, back))
        if not points:  # of a quick bench
            return
        axis.plot(*zip(*points, strict=True), **{"marker": "o", "markersize": 4, **style,
                                                **({"linestyle": ":", "label": None} if back else {})})


def draw_numbers(axis: Any, offloads: Sequence[Any]) -> None:
    """Rate by the number of CDUs."""
    cdus = np.linspace(1, 8, 141)
    for ratio in FIXED:
        exact = next(o.ratio for o in offloads if o.name == f"{ratio}x")
        axis.plot(cdus, np.minimum(cdus * SECTOR * CLOCK, exact * PCIE), color=LIMIT, linewidth=4, zorder=0)
        lines(axis, offloads, f"{ratio}x", color=RATIO_COLOURS[ratio], label=f"{ratio}x, synthetic")
    most = f"{max(FIXED)}x"
    for more, style in STYLES.items():
        lines(axis, offloads, f"{most}{more}", label=f"{most}{more}", **style)
    for name, colour in COLOURS.items():
        exact = next(o.ratio for o in offloads if o.name == name)
        lines(axis, offloads, name, color=colour, marker="s", label=f"{name}, ResNet-20, {exact:.1f}x")
    for name, (_, rate) in PAPER.items():
        axis.plot(SHOWN, rate, "*", color=PAPER_COLOURS[name], markeredgecolor="white", markersize=15, zorder=5,
                  label=f"paper, {name}")
    axis.set_xlabel("CDUs")
    axis.legend(fontsize=8, frameon=False, ncols=2, loc="upper left")
    title(axis, "By the number of CDUs (Figure 21)",
          f"DMA engine of {PCIE} GB/s, {CLOCK} GHz. Dotted: decompression. Grey: limits.")


def draw_ratios(axis: Any, offloads: Sequence[Any]) -> None:
    """Rate by compression ratio, with four CDUs."""
    ratios = np.linspace(1, 17, 161)
    for cdus in (1, 2, SHOWN):
        limit = np.minimum(cdus * SECTOR * CLOCK, ratios * PCIE)
        axis.plot(ratios, limit, color=LIMIT, linewidth=4 if cdus == SHOWN else 1, zorder=0)
    for back in (False, True):
        bars = [o for o in offloads if o.cdus == SHOWN and o.decompress == back]
        synthetic = sorted((o.ratio, o.rate) for o in bars if o.name not in COLOURS and o.name not in AT_CACHE)
        fill = "none" if back else "full"
        axis.plot(*zip(*synthetic, strict=True), "o", color="#1b6ca8", markersize=6, fillstyle=fill,
                  label=f"synthetic, {'decompression' if back else 'compression'}")
        for o in bars:
            if o.name in COLOURS:
                axis.plot(o.ratio, o.rate, "s", color=COLOURS[o.name], fillstyle=fill,
                          label=None if back else f"{o.name}, ResNet-20")
    for name, point in PAPER.items():
        axis.plot(*point, "*", color=PAPER_COLOURS[name], markeredgecolor="white", markersize=15, zorder=5,
                  label=f"paper, {name}")
    axis.set_xlabel("compression ratio")
    axis.legend(fontsize=8, frameon=False, loc="lower right")
    title(axis, "By compression ratio (Table V)",
          f"{SHOWN} CDUs. Grey: limits; thin: those of 1 and 2 CDUs.")
