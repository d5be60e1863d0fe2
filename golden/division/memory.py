"""Memory of the activations that a network keeps, by the shapes of its layers (DIVISION, sections 4 and 5.3, appendices
F, G and P), beside what the paper measured (table 1a).

Each convolution, batch normalisation and linear layer keeps its input, each by itself. ReLU and dropout keep a bit a
value, max pooling the places of its maxima, all other layers nothing.
"""

from typing import NamedTuple

from actcodec.golden.division import codec, paper
from actcodec.golden.division import view as views
from actcodec.golden.gist import networks, schedule

CATEGORIES = ("conv and bn", "linear", "masks", "maxima")
NETWORKS = {"resnet-50": lambda: networks.resnet50(late=True), "wrn-50-2": lambda: networks.resnet50(late=True, wide=2)}
# GB of activations at each minibatch, as the paper measured them on ImageNet; None: out of memory.
MINIBATCHES = (64, 128, 256, 512)
TABLE_1A = {
    "resnet-50": {"normal": (5.14, 10.25, 20.48, None), "DIVISION": (0.49, 0.99, 1.97, 3.94),
                  "ActNN": (0.49, 0.97, 1.94, 3.89)},
    "wrn-50-2": {"normal": (6.70, 13.38, 26.75, None), "DIVISION": (0.64, 1.27, 2.52, 5.02),
                 "ActNN": (0.62, 1.25, 2.49, 4.97)},
}  # fmt: skip


class Footprint(NamedTuple):
    """Activations kept by one way of training; `ratio` is normal training's bytes over these."""

    name: str
    bytes: dict  # of each category
    ratio: float

    @property
    def total(self):
        return sum(self.bytes.values())


def stored(shape, bits=2):
    """Bytes of a tensor of `shape`: its payload and two bytes of k for each plane. Raises as `codec.size`."""
    return codec.size(shape, bits) + 2 * views.view(shape).planes


def block_ratio(n, bits=2):
    """The counterpart of theorem 3A here: ratio of a conv-BN-ReLU block of planes of n x n values."""
    # Eight planes: flat blocks then end where a plane does.
    return 8 * 9 * n * n / (2 * stored((1, 8, n, n), bits) + n * n)


def evaluate(graph, minibatch, bits=2):
    """Three of `Footprint`: normal training, DIVISION with the terms of appendix P (block 8), and DIVISION here.

    Normal training keeps the inputs as float32; its ReLUs work in place, and their output is the next layer's input.
    Raises ValueError for a minibatch below 1 and for other bits.
    """
    if minibatch < 1:
        raise ValueError(f"minibatch is {minibatch}, must be at least 1")
    total = [dict.fromkeys(CATEGORIES, 0) for _ in range(3)]
    for node in graph:
        source = graph.nodes[node.inputs[0]] if node.inputs else node
        values = minibatch * node.size
        if node.op in ("conv", "bn", "fc"):
            linear = node.op == "fc"
            shape = (minibatch, source.size) if linear else (minibatch, *source.shape)
            category = CATEGORIES[linear]
            sizes = 4 * minibatch * source.size, paper.cached_bytes(shape, 8, bits), stored(shape, bits)
        elif node.op in ("relu", "dropout"):
            category, sizes = "masks", (0, *2 * [schedule.mask_bytes(values)])
        elif node.op == "maxpool":
            category, sizes = "maxima", (0, values, schedule.map_bytes(values))  # int8 in the paper, 4 bits here
        else:
            continue
        for way, size in zip(total, sizes, strict=True):
            way[category] += size
    normal = sum(total[0].values())
    names = "normal", "DIVISION, appendix P", "DIVISION, here"
    return [Footprint(name, way, normal / sum(way.values())) for name, way in zip(names, total, strict=True)]
