"""Memory of the activations that a network keeps, by the shapes of its layers (DIVISION, sections 4 and 5.3, appendices
F, G and P), beside what the paper measured (table 1a).
"""

from collections.abc import Sequence

from actcodec.golden.common import footprint, networks
from actcodec.golden.common.footprint import Footprint
from actcodec.golden.common.networks import Graph
from actcodec.golden.division import codec, paper
from actcodec.golden.division import view as views

NETWORKS = networks.PYTORCH
# GB of activations at each minibatch, as the paper measured them on ImageNet; None: out of memory.
MINIBATCHES = (64, 128, 256, 512)
TABLE_1A = {
    "resnet-50": {"normal": (5.14, 10.25, 20.48, None), "DIVISION": (0.49, 0.99, 1.97, 3.94),
                  "ActNN": (0.49, 0.97, 1.94, 3.89)},
    "wrn-50-2": {"normal": (6.70, 13.38, 26.75, None), "DIVISION": (0.64, 1.27, 2.52, 5.02),
                 "ActNN": (0.62, 1.25, 2.49, 4.97)},
}  # fmt: skip


def stored(shape: Sequence[int], bits: int = 2) -> int:
    """Bytes of a tensor of `shape`: its payload and two bytes of k for each plane. Raises as `codec.size`."""
    return codec.size(shape, bits) + 2 * views.view(shape).planes


def block_ratio(n: int, bits: int = 2) -> float:
    """The counterpart of theorem 3A here: ratio of a conv-BN-ReLU block of planes of n x n values."""
    # Eight planes: flat blocks then end where a plane does.
    return 8 * 9 * n * n / (2 * stored((1, 8, n, n), bits) + n * n)


def evaluate(graph: Graph, minibatch: int, bits: int = 2) -> list[Footprint]:
    """Three of `Footprint`: normal training, DIVISION with the terms of appendix P (block 8), and DIVISION here.

    Raises ValueError for a minibatch below 1 and for other bits.
    """
    return footprint.compared(footprint.sizes(graph, minibatch), {
        "DIVISION, appendix P": appendix(graph, minibatch, bits),
        "DIVISION, here": footprint.sizes(graph, minibatch, lambda shape: stored(shape, bits), *footprint.BITS),
    })  # fmt: skip


def appendix(graph: Graph, minibatch: int, bits: int = 2) -> dict[str, float]:
    """Bytes of each category with the terms of appendix P; the place of a maximum is an int8 there."""
    return footprint.sizes(graph, minibatch, lambda shape: paper.cached_bytes(shape, 8, bits), 1, 8)
