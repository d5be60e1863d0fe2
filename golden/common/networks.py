"""Layer graphs of networks, and the small description they are built from: the six of Gist's evaluation (section V-A),
ResNets as PyTorch has them, and any that `actcodec.torch.graph` traces.

A Graph is a list of nodes in the order in which the forward pass runs them. A node is one layer:

    name      unique in its graph; published names where there are some
    op        one of OPS
    inputs    names of earlier nodes
    shape     of the output for one sample, (C, H, W); inferred
    weights   number of trained values, biases included; inferred
    window    edge of a max pooling's window, else 1
    products  in each value of the output: of a convolution, a linear layer or a product of matrices, else 0

Stride and padding only shape the output and are not kept. Ops that no built-in network has: `matmul`, a product of two
activations; `act`, of which the backward pass reads the input (GELU, a product of two maps); `move`, of which it reads
nothing (padding, a mean).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

__all__ = ["IMAGE", "NETWORKS", "OPS", "POOLS", "PYTORCH", "Graph", "Node"]

POOLS = ("maxpool", "avgpool")
OPS = ("input", "conv", "fc", "relu", *POOLS, "bn", "lrn", "dropout", "concat", "sum", "softmax",
       "matmul", "act", "move")
IMAGE = 3, 224, 224


@dataclass(frozen=True)
class Node:
    """A layer; see the module."""

    name: str
    op: str
    inputs: tuple[str, ...]
    shape: tuple[int, ...]
    weights: int = 0
    window: int = 1
    products: int = 0

    @property
    def size(self) -> int:
        """Output values for one sample."""
        return math.prod(self.shape)


class Graph:
    """A network, built layer by layer: each method adds a node, infers its shape and returns its name.

    `nodes` maps names to nodes in the order of execution. The methods raise ValueError for a name that is taken,
    an input that does not exist, or shapes that do not fit.
    """

    def __init__(self, name: str, shape: Sequence[int] = IMAGE) -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}
        self.add("input", "input", (), shape)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())

    @property
    def weights(self) -> int:
        return sum(node.weights for node in self)

    def consumers(self) -> dict[str, list[str]]:
        """Names of the nodes that read each node's output, in the order of execution."""
        readers: dict[str, list[str]] = {name: [] for name in self.nodes}
        for node in self:
            for source in node.inputs:
                readers[source].append(node.name)
        return readers

    def shape(self, name: str) -> tuple[int, ...]:
        if name not in self.nodes:
            raise ValueError(f"no layer {name!r} in {self.name}")
        return self.nodes[name].shape

    def add(self, name: str, op: str, inputs: Iterable[str], shape: Sequence[int], weights: int = 0,
            window: int = 1, products: int = 0) -> str:
        if op not in OPS:
            raise ValueError(f"op of {name!r} is {op!r}, must be one of {', '.join(OPS)}")
        if name in self.nodes:
            raise ValueError(f"{self.name} has two layers called {name!r}")
        if min(shape) < 1:
            raise ValueError(f"{name!r} would have the shape {shape}")
        self.nodes[name] = Node(name, op, tuple(inputs), tuple(shape), weights, window, products)
        return name

    def conv(self, x: str, name: str, channels: int, kernel: int, stride: int = 1, pad: int = 0, groups: int = 1,
             bias: bool = True) -> str:
        depth, height, width = self.shape(x)
        if depth % groups or channels % groups:
            raise ValueError(f"{name!r} cannot split {depth} to {channels} channels into {groups} groups")
        shape = channels, *((edge + 2 * pad - kernel) // stride + 1 for edge in (height, width))
        products = depth // groups * kernel**2
        return self.add(name, "conv", [x], shape, channels * (products + bias), products=products)

    def maxpool(self, x: str, name: str, kernel: int, stride: int = 1, pad: int = 0, ceil: bool = True) -> str:
        """Max pooling; `ceil` keeps a last window that is not full, as Caffe does."""
        depth, *edges = self.shape(x)
        spans = [edge + 2 * pad - kernel + (stride - 1) * ceil for edge in edges]
        return self.add(name, "maxpool", [x], (depth, *(span // stride + 1 for span in spans)), window=kernel)

    def avgpool(self, x: str, name: str) -> str:
        """Average over the whole map."""
        return self.add(name, "avgpool", [x], (self.shape(x)[0], 1, 1))

    def fc(self, x: str, name: str, channels: int) -> str:
        products = math.prod(self.shape(x))
        return self.add(name, "fc", [x], (channels, 1, 1), channels * (products + 1), products=products)

    def relu(self, x: str, name: str) -> str:
        return self.add(name, "relu", [x], self.shape(x))

    def bn(self, x: str, name: str) -> str:
        return self.add(name, "bn", [x], self.shape(x), 2 * self.shape(x)[0])

    def lrn(self, x: str, name: str) -> str:
        return self.add(name, "lrn", [x], self.shape(x))

    def dropout(self, x: str, name: str) -> str:
        return self.add(name, "dropout", [x], self.shape(x))

    def softmax(self, x: str, name: str = "loss") -> str:
        """Softmax and cross entropy: keeps the probabilities, and starts the backward pass."""
        return self.add(name, "softmax", [x], self.shape(x))

    def concat(self, inputs: Sequence[str], name: str) -> str:
        shapes = [self.shape(x) for x in inputs]
        if len({shape[1:] for shape in shapes}) != 1:
            raise ValueError(f"{name!r} cannot join maps of shapes {shapes}")
        return self.add(name, "concat", inputs, (sum(shape[0] for shape in shapes), *shapes[0][1:]))

    def sum(self, inputs: Sequence[str], name: str) -> str:
        shapes = [self.shape(x) for x in inputs]
        if len(set(shapes)) != 1:
            raise ValueError(f"{name!r} cannot add maps of shapes {shapes}")
        return self.add(name, "sum", inputs, shapes[0])

    def conv_relu(self, x: str, suffix: int | str, channels: int, kernel: int, **parameters: Any) -> str:
        return self.relu(self.conv(x, f"conv{suffix}", channels, kernel, **parameters), f"relu{suffix}")

    def classifier(self, x: str, widths: Sequence[int], first: int) -> None:
        """Fully connected layers, all but the last with ReLU and dropout, then softmax."""
        for i, width in enumerate(widths[:-1], first):
            x = self.dropout(self.relu(self.fc(x, f"fc{i}", width), f"relu{i}"), f"drop{i}")
        self.softmax(self.fc(x, f"fc{first + len(widths) - 1}", widths[-1]))


def alexnet(image: Sequence[int] = IMAGE, lrn: bool = False) -> Graph:
    """AlexNet (Krizhevsky et al., 2012), 224x224 padded by 2, both GPUs' halves in one map.

    `lrn` adds the local response normalisation between ReLU and pooling. Gist's runs had none there: Binarize alone
    gives its AlexNet 1.26x (section V-C), and with LRN in between only relu5 would be followed by a pool.
    """
    g = Graph("alexnet", image)
    x = g.conv_relu("input", 1, 96, 11, stride=4, pad=2)
    x = g.maxpool(g.lrn(x, "norm1") if lrn else x, "pool1", 3, 2)
    x = g.conv_relu(x, 2, 256, 5, pad=2, groups=2)
    x = g.maxpool(g.lrn(x, "norm2") if lrn else x, "pool2", 3, 2)
    x = g.conv_relu(x, 3, 384, 3, pad=1)
    x = g.conv_relu(x, 4, 384, 3, pad=1, groups=2)
    x = g.conv_relu(x, 5, 256, 3, pad=1, groups=2)
    g.classifier(g.maxpool(x, "pool5", 3, 2), (4096, 4096, 1000), 6)
    return g


def nin(image: Sequence[int] = IMAGE) -> Graph:
    """Network in Network for ImageNet (Lin et al., 2013, as its authors trained it)."""
    g = Graph("nin", image)
    x = "input"
    stages = ((96, 11, 4, 0, 96, 96), (256, 5, 1, 2, 256, 256), (384, 3, 1, 1, 384, 384), (1024, 3, 1, 1, 1024, 1000))
    for i, (channels, kernel, stride, pad, *mlp) in enumerate(stages, 1):
        x = g.conv_relu(x, i, channels, kernel, stride=stride, pad=pad)
        for letter, width in zip("ab", mlp, strict=True):
            x = g.conv_relu(x, f"{i}{letter}", width, 1)
        if i < 4:
            x = g.maxpool(x, f"pool{i}", 3, 2)
        if i == 3:
            x = g.dropout(x, "drop")
    g.softmax(g.avgpool(x, "pool4"))
    return g


def overfeat(image: Sequence[int] = IMAGE) -> Graph:
    """Overfeat, the fast model (Sermanet et al., 2013)."""
    g = Graph("overfeat", image)
    x = g.maxpool(g.conv_relu("input", 1, 96, 11, stride=4), "pool1", 2, 2)
    x = g.maxpool(g.conv_relu(x, 2, 256, 5), "pool2", 2, 2)
    for i, channels in enumerate((512, 1024, 1024), 3):
        x = g.conv_relu(x, i, channels, 3, pad=1)
    g.classifier(g.maxpool(x, "pool5", 2, 2), (3072, 4096, 1000), 6)
    return g


def vgg16(image: Sequence[int] = IMAGE) -> Graph:
    """VGG16 (Simonyan and Zisserman, 2014), configuration D."""
    g = Graph("vgg16", image)
    x = "input"
    for i, (channels, layers) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)), 1):
        for j in range(1, layers + 1):
            x = g.conv_relu(x, f"{i}_{j}", channels, 3, pad=1)
        x = g.maxpool(x, f"pool{i}", 2, 2)
    g.classifier(x, (4096, 4096, 1000), 6)
    return g


INCEPTION = {  # 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection
    "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128)}


def inception_v1(image: Sequence[int] = IMAGE) -> Graph:
    """Inception-v1, GoogLeNet (Szegedy et al., 2015, table 1), without the two auxiliary classifiers."""
    g = Graph("inception-v1", image)
    x = g.conv_relu("input", 1, 64, 7, stride=2, pad=3)
    x = g.lrn(g.maxpool(x, "pool1", 3, 2), "norm1")
    x = g.conv_relu(g.conv_relu(x, "2_reduce", 64, 1), 2, 192, 3, pad=1)
    x = g.maxpool(g.lrn(x, "norm2"), "pool2", 3, 2)
    for name, (one, three_reduce, three, five_reduce, five, projection) in INCEPTION.items():
        branches = [g.conv_relu(x, f"{name}_1x1", one, 1),
                    g.conv_relu(g.conv_relu(x, f"{name}_3x3_reduce", three_reduce, 1), f"{name}_3x3", three, 3, pad=1),
                    g.conv_relu(g.conv_relu(x, f"{name}_5x5_reduce", five_reduce, 1), f"{name}_5x5", five, 5, pad=2),
                    g.conv_relu(g.maxpool(x, f"pool{name}", 3, 1, 1), f"{name}_pool", projection, 1)]
        x = g.concat(branches, f"concat{name}")
        if name in ("3b", "4e"):
            x = g.maxpool(x, f"pool{name[0]}", 3, 2)
    x = g.dropout(g.avgpool(x, "pool5"), "drop")
    g.softmax(g.fc(x, "fc", 1000))
    return g


def resnet50(image: Sequence[int] = IMAGE, late: bool = False, wide: int = 1) -> Graph:
    """ResNet-50 (He et al., 2015): stride in the first 1x1 convolution of a bottleneck, projections at each stage.

    With `late` the stride is in the 3x3 convolution, as PyTorch's model has it. `wide` multiplies the channels inside
    of the bottlenecks: WRN-50-2 (Zagoruyko and Komodakis, 2016) is 2 times as wide, and late.
    """
    g = Graph("resnet-50" if wide == 1 else f"wrn-50-{wide}", image)

    def conv_bn(x, suffix, channels, kernel, **options):
        return g.bn(g.conv(x, f"conv{suffix}", channels, kernel, bias=False, **options), f"bn{suffix}")

    x = g.maxpool(g.relu(conv_bn("input", 1, 64, 7, stride=2, pad=3), "relu1"), "pool1", 3, 2, 1, ceil=False)
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3)), 2):
        for letter in "abcdef"[:blocks]:
            name = f"{stage}{letter}"
            stride = 2 if letter == "a" and stage > 2 else 1
            first, second = (1, stride) if late else (stride, 1)
            y = g.relu(conv_bn(x, f"{name}_1", wide * width, 1, stride=first), f"relu{name}_1")
            y = g.relu(conv_bn(y, f"{name}_2", wide * width, 3, stride=second, pad=1), f"relu{name}_2")
            y = conv_bn(y, f"{name}_3", 4 * width, 1)
            shortcut = conv_bn(x, f"{name}_0", 4 * width, 1, stride=stride) if letter == "a" else x
            x = g.relu(g.sum([y, shortcut], f"sum{name}"), f"relu{name}")
    g.softmax(g.fc(g.avgpool(x, "pool5"), "fc", 1000))
    return g


NETWORKS = {"alexnet": alexnet, "nin": nin, "overfeat": overfeat, "vgg16": vgg16, "inception-v1": inception_v1,
            "resnet-50": resnet50}
PYTORCH = {"resnet-50": partial(resnet50, late=True), "wrn-50-2": partial(resnet50, late=True, wide=2)}
