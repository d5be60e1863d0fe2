"""Memory of the activations that a network keeps for its backward pass, with any codec.

Each convolution, batch normalisation and linear layer keeps its input, each by itself, as the codec makes it. ReLU and
dropout keep a bit a value, max pooling the places of its maxima, all other layers nothing (DIVISION, appendices F and
G; JPEG-ACT, Table II; Gist, section III-A).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from actcodec.golden.gist.networks import Graph

CATEGORIES = ("conv and bn", "linear", "masks", "maxima")
BITS = 1, 4  # of a mask and of the place of a maximum, as Gist's units make them


class Footprint(NamedTuple):
    """Activations kept by one way of training; `ratio` is normal training's bytes over these."""

    name: str
    bytes: Mapping[str, float]  # of each category
    ratio: float

    @property
    def total(self) -> float:
        return sum(self.bytes.values())


def plain(shape: Sequence[int]) -> int:
    """Bytes of a float32 tensor."""
    return 4 * math.prod(shape)


def kept(graph: Graph, minibatch: int, stored: Callable[[Sequence[int]], float] = plain, mask: int = 0,
         maximum: int = 0) -> dict[str, float]:
    """Bytes of each category: {category: bytes}, float where a size is one.

    `graph` is one of `gist.networks`, `stored(shape)` says how many bytes an input takes, [N, F] or [N, C, H, W];
    `mask` and `maximum` are bits for a value of a ReLU or a dropout, and for an output of a pooling. Without all three
    it is normal training: inputs are float32, ReLUs work in place, and their output is the next layer's input. Raises
    ValueError for a minibatch below 1.
    """
    if minibatch < 1:
        raise ValueError(f"minibatch is {minibatch}, must be at least 1")
    total: dict[str, float] = dict.fromkeys(CATEGORIES, 0)
    for node in graph:
        source = graph.nodes[node.inputs[0]] if node.inputs else node
        values = minibatch * node.size
        if node.op in ("conv", "bn"):
            total["conv and bn"] += stored((minibatch, *source.shape))
        elif node.op == "fc":
            total["linear"] += stored((minibatch, source.size))
        elif node.op in ("relu", "dropout"):
            total["masks"] += -(-values * mask // 8)
        elif node.op == "maxpool":
            total["maxima"] += -(-values * maximum // 8)
    return total


def compared(normal: Mapping[str, float], ways: Mapping[str, Mapping[str, float]]) -> list[Footprint]:
    """A `Footprint` of normal training's bytes and one of each of the others: {name: bytes of each category}."""
    size = sum(normal.values())
    return [Footprint(name, way, size / sum(way.values())) for name, way in {"normal": normal, **ways}.items()]
