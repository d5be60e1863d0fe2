"""Memory of the activations that a network keeps for its backward pass, with any codec.

Each convolution, batch normalisation and linear layer keeps its input, each by itself, as the codec makes it. ReLU and
dropout keep a bit a value, max pooling the places of its maxima, all other layers nothing (DIVISION, appendices F and
G; JPEG-ACT, Table II; Gist, section III-A).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from actcodec.golden.common.networks import Graph, Node

CATEGORIES = ("conv and bn", "linear", "masks", "maxima")
BITS = 1, 4  # of a mask and of the place of a maximum, as Gist's units make them
FORMS = VALUES, MASK, MAXIMA = "values", "mask", "maxima"
KEEP_INPUTS = ("conv", "bn", "fc", "matmul", "act")


class Stash(NamedTuple):
    """What a layer keeps for its backward pass: values of a `source`'s output, or a mask or the places of the maxima of
    its own."""

    layer: Node
    source: Node
    form: str  # one of FORMS


class Footprint(NamedTuple):
    """Sizes of activations that one way of training keeps; `ratio` is normal training's bytes over these."""

    name: str
    bytes: Mapping[str, float]  # of each category
    ratio: float

    @property
    def total(self) -> float:
        return sum(self.bytes.values())


def plain(shape: Sequence[int]) -> int:
    """Bytes of a float32 tensor."""
    return 4 * math.prod(shape)


def saved(graph: Graph) -> Iterator[Stash]:
    """What each layer keeps, in the order of execution."""
    for node in graph:
        if node.op in KEEP_INPUTS:
            yield from (Stash(node, graph.nodes[name], VALUES) for name in dict.fromkeys(node.inputs))
        elif node.op in ("relu", "dropout"):
            yield Stash(node, node, MASK)
        elif node.op == "maxpool":
            yield Stash(node, node, MAXIMA)


def sizes(graph: Graph, minibatch: int, stored: Callable[[Sequence[int]], float] = plain, mask: int = 0,
          maximum: int = 0) -> dict[str, float]:
    """Bytes of each category: {category: bytes}, float where a size is one.

    `graph` is one of `networks`, `stored(shape)` says how many bytes an input takes, [N, F] or [N, C, H, W];
    `mask` and `maximum` are bits for a value of a ReLU or a dropout, and for an output of a pooling. Without all three
    it is normal training: inputs are float32, ReLUs work in place, and their output is the next layer's input. Raises
    ValueError for a minibatch below 1.
    """
    if minibatch < 1:
        raise ValueError(f"minibatch is {minibatch}, must be at least 1")
    total: dict[str, float] = dict.fromkeys(CATEGORIES, 0)
    for layer, source, form in saved(graph):
        if form == VALUES:
            linear = layer.op in ("fc", "matmul")
            shape = (source.size,) if linear else source.shape
            total["linear" if linear else "conv and bn"] += stored((minibatch, *shape))
        else:
            category, bits = ("masks", mask) if form == MASK else ("maxima", maximum)
            total[category] += -(-minibatch * source.size * bits // 8)
    return total


def compared(normal: Mapping[str, float], ways: Mapping[str, Mapping[str, float]]) -> list[Footprint]:
    """A `Footprint` of normal training's bytes and one of each of the others: {name: bytes of each category}."""
    size = sum(normal.values())
    return [Footprint(name, way, size / sum(way.values())) for name, way in {"normal": normal, **ways}.items()]
