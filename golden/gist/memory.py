"""Memory of a schedule: liveness, CNTK's static sharing (Gist, section IV-C), dynamic allocation (section V-H), and the
Memory Footprint Ratios of the paper's figures 8, 10, 13 and 17.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from actcodec.golden.common.networks import NETWORKS, Graph
from actcodec.golden.gist import schedule
from actcodec.golden.gist.schedule import BASELINE, CATEGORIES, IMMEDIATE, LOSSLESS, Options, Schedule

__all__ = ["MINIBATCH", "SMALLEST_DPR", "Footprint", "dynamic", "evaluate", "lives", "share", "static"]

MINIBATCH = dict.fromkeys(NETWORKS, 64) | {"resnet-50": 32}
# The smallest format that keeps the accuracy (section V-D1). The text does not name one for the last two.
SMALLEST_DPR = {"alexnet": "fp8", "overfeat": "fp8", "inception-v1": "fp10", "vgg16": "fp16", "nin": "fp16",
                "resnet-50": "fp16"}


def lives(plan: Schedule) -> dict[str, tuple[int, int]]:
    """Dict of data structure: (first, last) index of the steps that name it; it is live in both and in between."""
    spans: dict[str, tuple[int, int]] = {}
    for i, step in enumerate(plan.steps):
        for name in (*step.reads, *step.writes):
            spans[name] = spans.get(name, (i,))[0], i
    return spans


def share(plan: Schedule, apart: Collection[str] = ()) -> list[list[str]]:
    """CNTK's sharing: a list of groups of names whose lives do not overlap, the largest member first.

    Data structures are taken from the largest to the smallest; each goes to the smallest group that is free for its
    life, or founds one. What is in `apart` is not shared: each has a group of its own.
    """
    spans = lives(plan)
    alone = [[name] for name in spans if name in apart]
    together = sorted((name for name in spans if name not in apart), key=lambda name: -plan.sizes[name])
    shared: list[list[str]] = []  # smallest group first
    busy: list[int] = []  # a bit for each step
    for name in together:
        first, last = spans[name]
        life = (2 << last) - (1 << first)
        fits = next((i for i, steps in enumerate(busy) if not steps & life), None)
        if fits is None:
            shared.insert(0, [name])
            busy.insert(0, life)
        else:
            shared[fits].append(name)
            busy[fits] |= life
    return alone + shared[::-1]


def static(plan: Schedule, share_stashed: bool = True) -> dict[str, int]:
    """Bytes of each category with static allocation. A group counts as what its largest member is.

    Without `share_stashed` it is the paper's investigation baseline: stashed maps, encoded or not, share with nothing.
    """
    apart = () if share_stashed else {name for name, kind in plan.categories.items() if kind != IMMEDIATE}
    total = Counter(dict.fromkeys(CATEGORIES, 0))
    for group in share(plan, apart):
        total[plan.categories[group[0]]] += plan.sizes[group[0]]
    return dict(total)


def dynamic(plan: Schedule) -> dict[str, int]:
    """Bytes of each category in the step where most bytes are live, if each is allocated and freed when it must be."""
    spans = lives(plan)
    change = np.zeros((len(CATEGORIES), len(plan.steps) + 1), np.int64)
    rows = [CATEGORIES.index(plan.categories[name]) for name in spans]
    sizes = [plan.sizes[name] for name in spans]
    np.add.at(change, (rows, [first for first, _ in spans.values()]), sizes)
    np.subtract.at(change, (rows, [last + 1 for _, last in spans.values()]), sizes)
    live = change.cumsum(1)
    return dict(zip(CATEGORIES, live[:, live.sum(0).argmax()].tolist(), strict=True))


@dataclass
class Footprint:
    """One bar of a figure. `mfr` is the footprint of the figure's baseline over this one (equation 1)."""

    figure: int
    name: str
    bytes: dict[str, int]  # of each category
    mfr: float

    @property
    def total(self) -> int:
        return sum(self.bytes.values())


def evaluate(graph: Graph, minibatch: int, dpr: str, sparsity: Mapping[str, float] | None = None) -> list[Footprint]:
    """The bars of figures 8 (end to end), 10 (lossless) and 13 (DPR) on the investigation baseline, and 17 (dynamic).

    `dpr` is the smallest format that keeps the network's accuracy. `sparsity` is that of schedule.build.
    """
    lossy = replace(LOSSLESS, dpr=dpr)
    bars = [(8, "CNTK baseline", BASELINE), (8, "lossless", LOSSLESS), (8, f"lossless + {dpr}", lossy),
            (10, "investigation baseline", BASELINE), (10, "SSDC", Options(ssdc=True)),
            (10, "Binarize", Options(binarize=True)), (10, "SSDC + Binarize", Options(ssdc=True, binarize=True)),
            (10, "lossless", LOSSLESS),
            *((13, f"DPR {name}", Options(dpr=name)) for name in dict.fromkeys(("fp16", dpr))),
            (17, "dynamic baseline", BASELINE), (17, "lossless", LOSSLESS), (17, f"lossless + {dpr}", lossy),
            (17, "same, nothing decoded", replace(lossy, decode=False))]
    allocators = {8: static, 10: lambda plan: static(plan, share_stashed=False), 17: dynamic}
    allocators[13] = allocators[10]
    plans = {options: schedule.build(graph, minibatch, options, sparsity) for *_, options in bars}
    sizes = [allocators[figure](plans[options]) for figure, _, options in bars]
    baselines = {8: sum(sizes[0].values()), 10: sum(sizes[3].values())}
    baselines |= {17: baselines[8], 13: baselines[10]}
    return [Footprint(figure, name, size, baselines[figure] / sum(size.values()))
            for (figure, name, _), size in zip(bars, sizes, strict=True)]
