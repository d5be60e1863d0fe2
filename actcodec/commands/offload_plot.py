"""``actcodec offload --plot``: when layers run and tensors move."""

from collections.abc import Sequence
from typing import Any

from actcodec import plotting
from actcodec.commands.offload_step import Result

__all__ = ["draw"]

PARTS = {"forward": "#1b6ca8", "backward": "#5fa8d3", "out": "#d1495b", "back": "#edae49"}  # fields of a step
LEGEND = {"forward": "forward pass", "backward": "backward pass", "out": "tensors leave", "back": "tensors return"}


def draw(results: Sequence[Result], network: str, minibatch: int, target: str) -> None:
    """Draws two lines for each way into ``target``, a .png, .svg or .pdf: the layers, and the moves below."""
    figure, axes = plotting.pyplot().subplots(figsize=(9.5, 1.2 + 0.55 * len(results)), dpi=110, layout="constrained")
    last = max(one.step.seconds for one in results)
    for i, one in enumerate(results):
        for name, colour in PARTS.items():
            line(axes, getattr(one.step, name), i + (-0.36 if "ward" in name else 0.04), colour)
        axes.annotate(f"{1e3 * one.step.seconds:.1f} ms", (1e3 * one.step.seconds, i), (5, 0),
                      textcoords="offset points", va="center", fontsize=8)
    patches = [plotting.pyplot().Rectangle((0, 0), 1, 1, color=colour) for colour in PARTS.values()]
    figure.legend(patches, [LEGEND[name] for name in PARTS], loc="outside upper center", ncols=len(PARTS),
                  frameon=False, fontsize=9)
    labels = [one.way.name + (f"\n{one.way.cdus} CDU{'s' * (one.way.cdus > 1)}" if one.way.cdus else "")
              for one in results]
    axes.set_yticks(range(len(results)), labels, fontsize=8)
    axes.set(xlim=(0, 1.1e3 * last), ylim=(len(results) - 0.4, -0.6),
             xlabel=f"ms of a training step of {network}, minibatch {minibatch}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", color="#e4e7ea")
    axes.set_axisbelow(True)
    plotting.write(figure, target)


def line(axes: Any, spans: Sequence[Any], y: float, colour: str) -> None:
    """Draws spans as bars of one height, with a white edge where they are wide enough to show it."""
    bars = [(1e3 * start, 1e3 * (end - start)) for _, start, end in spans]
    axes.broken_barh(bars, (y, 0.32), facecolor=colour, edgecolor="white", linewidth=0.1)
