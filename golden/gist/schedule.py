"""Gist's Schedule Builder (sections IV-A and IV-B): a training step as a list of operations, with what each reads and
writes.

The forward pass runs a graph's layers in order, the backward pass runs them in reverse. A feature map that the backward
pass reads is stashed. With an encoding its life has three parts: float32 until its last forward use, encoded through
the gap, and decoded to float32 from its first backward use to its last. Encode and decode are operations of their own.

Besides the gradient of its output, the backward pass of a layer reads (figure 4) its input (conv, fc, bn), its output
(ReLU, softmax), both (max pooling as CNTK does it, lrn), a mask (dropout) or nothing (average pooling, concat, sum).

What becomes of a stashed map (table I, figure 6):

    ReLU-Pool        output of a ReLU that only pooling reads: Binarize, one bit a value, written by the ReLU and never
                     decoded; each max pooling behind it writes a 4-bit map, and reads neither its input nor its output
    ReLU/Pool-Conv   output of a ReLU or a pooling that a convolution reads: SSDC
    Other            DPR

DPR also narrows the values of SSDC. SSDC is taken only where it is smaller than what the map would be without it: with
float32 values that is above 20 % of zeros, the paper's threshold.

In place (section III-C): a ReLU writes over its input. Its backward pass writes over the gradient of its output in
every schedule, the baseline's too; docs/memory.md says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from actcodec.golden.common.networks import POOLS, Graph, Node
from actcodec.golden.gist import dpr, ssdc

__all__ = ["BASELINE", "CATEGORIES", "LOSSLESS", "SPARSITY", "Options", "Schedule", "Step", "build",
           "category", "dense_bytes", "map_bytes", "mask_bytes", "sparsities", "ssdc_bytes"]

RELU_POOL, RELU_CONV, OTHER, IMMEDIATE = CATEGORIES = (
    "ReLU-Pool", "ReLU/Pool-Conv", "other stashed", "immediately consumed")
READS_INPUT = ("conv", "fc", "bn", "maxpool", "lrn")
READS_OUTPUT = ("relu", "softmax", "maxpool", "lrn")
SPARSITY = 0.8  # of ReLU outputs: the only figure in the paper's text (VGG16, section III-A)


@dataclass(frozen=True)
class Options:
    """Which of Gist's techniques are on. `dpr` is a format of DPR, or None.

    `decode` false is the paper's optimized software (section V-H): the backward pass reads encoded maps directly.
    Raises ValueError for an unknown format.
    """

    ssdc: bool = False
    binarize: bool = False
    inplace: bool = False
    dpr: str | None = None
    decode: bool = True

    def __post_init__(self) -> None:
        if self.dpr is not None:
            dpr.named(self.dpr)


BASELINE = Options()
LOSSLESS = Options(ssdc=True, binarize=True, inplace=True)


@dataclass
class Step:
    """One operation; `reads` and `writes` name data structures."""

    name: str
    reads: list[str]
    writes: list[str]


@dataclass
class Schedule:
    """Steps in order, and the size in bytes and the category of each data structure they name."""

    steps: list[Step] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    categories: dict[str, str] = field(default_factory=dict)

    def data(self, name: str, size: int, category: str) -> str:
        self.sizes[name] = size
        self.categories[name] = category
        return name


def mask_bytes(values: int) -> int:
    """Binarize: one bit a value."""
    return -(-values // 8)


def map_bytes(outputs: int) -> int:
    """Positions of the maxima: four bits an output of the pooling."""
    return -(-outputs // 2)


def dense_bytes(values: int, form: str | None = None) -> int:
    """Float32, or whole 32-bit words of a DPR format."""
    return 4 * -(-values // (dpr.named(form).per_word if form else 1))


def ssdc_bytes(values: int, sparsity: float, form: str | None = None) -> int:
    """Narrow CSR: the non-zero values, a byte of column each, two bytes of count for each row."""
    nonzero = values - round(sparsity * values)
    return dense_bytes(nonzero, form) + nonzero + 2 * -(-values // ssdc.ROW)


def category(graph: Graph, readers: Mapping[str, Sequence[str]], node: Node) -> str:
    """Of a node's output if it is stashed; `readers` is graph.consumers()."""
    ops = {graph.nodes[name].op for name in readers[node.name]}
    if node.op == "relu" and ops and ops.issubset(POOLS):
        return RELU_POOL
    if node.op in ("relu", *POOLS) and "conv" in ops:
        return RELU_CONV
    return OTHER


def sparsities(graph: Graph, default: float = SPARSITY, layers: Mapping[str, float] | None = None) -> dict[str, float]:
    """Share of zeros in each layer's output: `default` after a ReLU, unless `layers` has another for its name.

    A k x k max pooling takes s to s ** k: zeros lie in runs, so this is between s (all of a window zero or none) and
    s ** (k * k) (no correlation). Lrn, dropout and concat hand on what they get; other outputs have no zeros.
    Raises ValueError for a layer that does not exist, or a share outside 0 to 1.
    """
    layers = layers or {}
    for name in layers:
        graph.shape(name)
    for share in (default, *layers.values()):
        if not 0 <= share <= 1:
            raise ValueError(f"sparsity is {share}, must be 0 to 1")
    result: dict[str, float] = {}
    for node in graph:
        inputs = [(result[name], graph.nodes[name].size) for name in node.inputs]
        if node.name in layers:
            share = layers[node.name]
        elif node.op == "relu":
            share = default
        elif node.op in ("maxpool", "lrn", "dropout", "concat"):
            share = (sum(s * size for s, size in inputs) / sum(size for _, size in inputs)) ** node.window
        else:
            share = 0.0
        result[node.name] = share
    return result


def build(graph: Graph, minibatch: int, options: Options = BASELINE,
          sparsity: Mapping[str, float] | None = None) -> Schedule:
    """The Schedule of one training step of `graph` on `minibatch` samples.

    `sparsity` maps layers to shares of zeros (default: sparsities(graph)). The input, weights and their gradients, and
    workspace are not in it, as in the paper's baseline (section V-A). Raises ValueError for a minibatch below 1.
    """
    if minibatch < 1:
        raise ValueError(f"minibatch is {minibatch}, must be at least 1")
    return _Builder(graph, minibatch, options, sparsity or sparsities(graph)).schedule


class _Builder:
    def __init__(self, graph: Graph, minibatch: int, options: Options, sparsity: Mapping[str, float]) -> None:
        self.graph, self.minibatch, self.options, self.sparsity = graph, minibatch, options, sparsity
        self.readers = graph.consumers()
        self.categories = {node.name: category(graph, self.readers, node) for node in graph}
        self.binarized = {name for name, kind in self.categories.items() if options.binarize and kind == RELU_POOL}
        # The loss is read as soon as it is made: nothing to stash.
        self.stashed = {name for node in graph if node.op != "softmax" for name in self.reads_back(node)}
        # What only a ReLU reads: the ReLU may work in its buffer, unless it is stashed.
        only = {node.inputs[0]: node.name for node in graph if node.op == "relu" and node.inputs != ("input",)
                and self.readers[node.inputs[0]] == [node.name]}
        self.gradients = {name: f"{only.get(name, name)} gradient" for name in graph.nodes}
        self.maps = {name: only[name] if options.inplace and name in only and name not in self.stashed else name
                     for name in graph.nodes}
        self.schedule = Schedule()
        self.encoded: dict[str, str] = {}
        self.decoded: set[str] = set()
        layers = [node for node in graph if node.op != "input"]
        for node in layers:
            self.declare(node)
        for node in layers:
            self.forward(node)
        for node in reversed(layers):
            self.backward(node)

    def reads_back(self, node):
        """Float32 maps that the backward pass of a layer reads, decoded where they were encoded."""
        if node.name in self.binarized or (node.op in POOLS and node.inputs[0] in self.binarized):
            return []
        inputs = [name for name in node.inputs if node.op in READS_INPUT and name != "input"]
        return inputs + [node.name] * (node.op in READS_OUTPUT)

    def declare(self, node):
        """The data structures of a layer: its map, what it leaves for its backward pass, the gradient of its map."""
        data, name, values = self.schedule.data, node.name, self.minibatch * node.size
        size = self.encoded_bytes(node, values) if name in self.stashed else None
        if size is not None:
            self.encoded[name] = data(f"{name} encoded", size, self.categories[name])
            if self.options.decode:
                data(f"{name} decoded", 4 * values, IMMEDIATE)
        if self.maps[name] == name:
            data(name, 4 * values, self.categories[name] if name in self.stashed and size is None else IMMEDIATE)
        if node.op != "softmax":
            data(self.gradients[name], 4 * values, IMMEDIATE)
        if name in self.binarized:
            data(f"{name} mask", mask_bytes(values), RELU_POOL)
        if node.op == "maxpool" and node.inputs[0] in self.binarized:
            data(f"{name} map", map_bytes(values), RELU_POOL)
        if node.op == "dropout":
            data(f"{name} mask", 4 * values, OTHER)

    def encoded_bytes(self, node, values):
        """Size of the smallest encoding the options allow, or None to stay float32."""
        sizes = [dense_bytes(values, self.options.dpr)]
        if self.options.ssdc and self.categories[node.name] == RELU_CONV:
            sizes.append(ssdc_bytes(values, self.sparsity[node.name], self.options.dpr))
        return min(sizes) if min(sizes) < dense_bytes(values) else None

    def extras(self, node):
        return [name for name in (f"{node.name} mask", f"{node.name} map") if name in self.schedule.sizes]

    def forward(self, node):
        steps = self.schedule.steps
        reads = [self.maps[name] for name in node.inputs if name != "input"]
        steps.append(Step(node.name, reads, [self.maps[node.name], *self.extras(node)]))
        for name in dict.fromkeys((*node.inputs, node.name)):
            last = (self.readers[name] or [name])[-1]
            if last == node.name and name in self.encoded:
                steps.append(Step(f"encode {name}", [name], [self.encoded[name]]))

    def backward(self, node):
        steps, reads = self.schedule.steps, self.extras(node)
        for name in self.reads_back(node):
            source = self.encoded.get(name, name)
            if name in self.encoded and self.options.decode:
                source = f"{name} decoded"
                if name not in self.decoded:
                    self.decoded.add(name)
                    steps.append(Step(f"decode {name}", [self.encoded[name]], [source]))
            reads.append(source)
        if node.op != "softmax":
            reads.append(self.gradients[node.name])
        writes = [self.gradients[name] for name in node.inputs if name != "input"]
        steps.append(Step(f"{node.name} backward", reads, writes))
