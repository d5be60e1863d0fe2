"""Time of a training step whose activations leave the device, and return, beside the computation.

The schedule is vDNN's (Rhu et al., MICRO 2016, section III), as JPEG-ACT has it (section III-A): a tensor leaves while
the last layer that reads it in the forward pass runs, and is back before the first layer of the backward pass that
reads it. A layer runs for as long as its arithmetic or its memory traffic takes, whichever is longer. What moves
tensors is one engine for both directions, since a CDU compresses or decompresses: they pass in the order of requests.

Memory is bounded by `ahead`, in layers whose tensors move. In the forward pass such a layer starts once all tensors of
the one `ahead` places before it have left; in the backward pass its tensors are requested when the one `ahead` places
before it starts. With 1, vDNN's, that makes each move overlap with one such layer and with what follows up to the next.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from actcodec.golden.common.footprint import MASK, VALUES, saved
from actcodec.golden.common.networks import Graph, Node

__all__ = ["KINDS", "Layer", "Span", "Step", "Tensor", "Work", "layers", "schedule", "tensors"]

KINDS = DENSE, RELU, POOL, DROPOUT = "dense", "relu", "pool", "dropout"
FLOAT = 4  # bytes of a value
PRODUCTS = ("conv", "fc", "matmul")


class Work(NamedTuple):
    """What a layer has to do in one pass: floating-point operations, and bytes of memory traffic."""

    flops: float
    bytes: float

    def seconds(self, flops: float, memory: float) -> float:
        """At so many operations and bytes per second."""
        return max(self.flops / flops, self.bytes / memory)


class Layer(NamedTuple):
    name: str
    op: str
    forward: Work
    backward: Work


@dataclass(frozen=True)
class Tensor:
    """A tensor that moves; `leaves` and `returns` are places in the list of layers."""

    name: str  # of the layer that made it
    kind: str  # one of KINDS
    form: str  # one of footprint.FORMS
    shape: tuple[int, ...]
    leaves: int  # the layer beside which it may leave
    returns: int  # the first layer of the backward pass that needs it

    @property
    def values(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return FLOAT * self.values


class Span(NamedTuple):
    layer: int
    start: float
    end: float


@dataclass(frozen=True)
class Step:
    """When what happens, in seconds: layers in each pass, and moves of layers that have some."""

    forward: tuple[Span, ...]
    backward: tuple[Span, ...]
    out: tuple[Span, ...]
    back: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        return self.backward[-1].end

    @property
    def forward_seconds(self) -> float:
        return self.forward[-1].end

    @property
    def computing(self) -> float:
        return sum(end - start for _, start, end in (*self.forward, *self.backward))

    @property
    def moving(self) -> float:
        return sum(end - start for _, start, end in (*self.out, *self.back))

    @property
    def waits(self) -> list[float]:
        """Seconds that computation waits before each layer, the forward pass's first, then the backward pass's."""
        spans = (Span(-1, 0, 0), *self.forward, *self.backward)
        return [after.start - before.end for before, after in pairwise(spans)]


def layers(graph: Graph, minibatch: int) -> list[Layer]:
    """The layers of `graph` with their work for a minibatch of float32 samples. Raises ValueError for one below 1.

    A product takes two operations, and twice as many in the backward pass, for the gradients of weights and of the
    input; the gradient of the network's input is not computed. Traffic is what each layer reads and writes by itself.
    Batch normalisation reads its maps twice in each pass, the first time for the sums.
    """
    if minibatch < 1:
        raise ValueError(f"minibatch is {minibatch}, must be at least 1")
    return [Layer(node.name, node.op, *_work(graph, node, minibatch)) for node in graph if node.op != "input"]


def _work(graph: Graph, node: Node, minibatch: int) -> tuple[Work, Work]:
    first = all(graph.nodes[name].op == "input" for name in node.inputs)
    out = minibatch * node.size
    into = minibatch * sum(graph.nodes[name].size for name in node.inputs)
    gradient = 0 if first else into
    flops = 2 * out * node.products
    if node.op in PRODUCTS:
        passes = 1 if first else 2
        forward, backward = into + out + node.weights, passes * (out + node.weights) + into + gradient
    elif node.op == "bn":
        passes, forward, backward = 0, 2 * into + out, 2 * (into + out) + gradient
    elif node.op in ("relu", "dropout", "act", "lrn", "softmax"):
        passes, forward, backward = 0, into + out, into + out + gradient
    else:
        passes, forward, backward = 0, into + out, out + gradient
    return Work(flops, FLOAT * forward), Work(passes * flops, FLOAT * backward)


def tensors(graph: Graph, minibatch: int) -> list[Tensor]:
    """What moves, each tensor once, in the order in which it leaves: all that `footprint.saved` has, but for masks of
    layers whose values move anyway. Raises ValueError for a minibatch below 1."""
    if minibatch < 1:
        raise ValueError(f"minibatch is {minibatch}, must be at least 1")
    places = {node.name: i for i, node in enumerate(node for node in graph if node.op != "input")}
    readers = graph.consumers()
    once: dict[tuple[str, str], Tensor] = {}
    for layer, source, form in saved(graph):
        own = places.get(source.name, -1)
        leaves = max((places[name] for name in readers[source.name]), default=own)
        if form != VALUES:
            leaves = min(own + 1, len(places) - 1)  # it is there as soon as the layer has run
        shape = (minibatch, *(source.shape if max(source.shape[1:], default=1) > 1 else (source.size,)))
        once[source.name, form] = Tensor(source.name, _kind(graph, source), form, shape, leaves, places[layer.name])
    moving = [one for (name, form), one in once.items() if form != MASK or (name, VALUES) not in once]
    return sorted(moving, key=lambda one: one.leaves)


def _kind(graph: Graph, node: Node) -> str:
    """Where the zeros of a layer's output come from, if it has any."""
    if node.op in ("lrn", "concat"):
        kinds = {_kind(graph, graph.nodes[name]) for name in node.inputs}
        return kinds.pop() if len(kinds) == 1 else DENSE
    return {"relu": RELU, "maxpool": POOL, "dropout": DROPOUT}.get(node.op, DENSE)


def schedule(forward: Sequence[float], backward: Sequence[float], out: Sequence[float], back: Sequence[float],
             ahead: int = 1) -> Step:
    """The step, from seconds of each layer: its two passes, and the moves out and back of its tensors.

    All four are in the order of the forward pass; 0 is for a layer without a move. Raises ValueError for lengths that
    differ or are 0, for seconds below 0, and for `ahead` below 1.
    """
    if len({len(forward), len(backward), len(out), len(back)}) != 1 or not forward:
        raise ValueError(f"layers are {len(forward)}, {len(backward)}, {len(out)}, {len(back)}, must be as many, and "
                         "at least 1")
    if min(map(min, (forward, backward, out, back))) < 0:
        raise ValueError(f"seconds are {min(map(min, (forward, backward, out, back)))}, must be at least 0")
    if ahead < 1:
        raise ValueError(f"ahead is {ahead}, must be at least 1")
    now = engine = 0.0
    spans: tuple[list[Span], ...] = ([], [], [], [])
    there, here, leaving, returning = spans
    for i, seconds in enumerate(forward):
        if out[i]:
            if len(leaving) >= ahead:
                now = max(now, leaving[-ahead].end)
            start = max(engine, now)
            engine = start + out[i]
            leaving.append(Span(i, start, engine))
        there.append(Span(i, now, now + seconds))
        now += seconds
    turn, starts = now, list[float]()
    for i in range(len(backward) - 1, -1, -1):
        if back[i]:
            start = max(engine, starts[-ahead] if len(starts) >= ahead else turn)
            engine = start + back[i]
            returning.append(Span(i, start, engine))
            now = max(now, engine)
            starts.append(now)
        here.append(Span(i, now, now + backward[i]))
        now += backward[i]
    return Step(*map(tuple, spans))
