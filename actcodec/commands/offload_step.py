"""``actcodec offload``: the training step of a network for each way of moving its activations."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec import codecs
from actcodec.codecs.compressed import view
from actcodec.demo import sample
from actcodec.files import UserError
from actcodec.golden.common import footprint, overlap
from actcodec.golden.common.networks import Graph
from actcodec.golden.common.overlap import DENSE, DROPOUT, POOL, RELU, Layer, Step, Tensor
from actcodec.golden.offload import blocks
from actcodec.rates import Accelerator

__all__ = ["CDUS", "PAPER", "Machine", "Result", "Way", "evaluate", "facts", "methods", "way"]

CDUS = 4
_, SPARSE, BIT = codecs.TABLE_2["JPEG-ACT"]
PAPER = {"vDNN": 1.0, "cDMA+": 2.61 / 2.4, "SFPR": 2.61 * 1.35 / 1.59, "JPEG-BASE": 2.61 / 1.12, "JPEG-ACT": 2.61,
         "none": 2.61 * 1.13}
"""Speed relative to vDNN's, the mean of the paper's networks: from the ratios in its abstract and section VI-D, since
Figure 20 has no numbers."""


@dataclass(frozen=True)
class Machine:
    """Rates of the device, its link and the accelerator, in SI units."""

    flops: float
    memory: float
    link: float
    clock: float
    ahead: int = 1


@dataclass(frozen=True)
class Way:
    """How tensors move: in the mode of their kind, compressed by ``ratio``, or uncompressed; without ``moves``, not at
    all."""

    name: str
    modes: Mapping[str, str] = field(default_factory=dict)  # by kind of values, and for "mask"
    options: Mapping[str, Any] = field(default_factory=dict)
    ratio: float | None = None
    cdus: int = 0  # 0: the link alone
    moves: bool = True

    @property
    def lossless(self) -> bool:
        """Whether tensors come back exactly, so that a backward pass can find maxima in them."""
        return not any(codecs.find(mode).lossy for mode in self.modes.values())


@dataclass(frozen=True)
class Result:
    """The step in one way; bytes of its tensors in each direction before and after compression, and of each layer."""

    way: Way
    step: Step
    before: float
    after: float
    leaving: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return self.before / self.after if self.after else math.inf


def methods(cdus: int = CDUS) -> list[Way]:
    """The paper's ways (Table II), and none. optH stands for optL5H, which has it in all epochs but five."""
    kinds = (RELU, POOL, DROPOUT)
    options = {"JPEG-ACT": {"dqt": "optH"}}
    return [Way("none", moves=False), Way("vDNN"), *(
        Way(name, {DENSE: dense, **dict.fromkeys(kinds, sparse), "mask": mask}, options.get(name, {}), cdus=cdus)
        for name, (dense, sparse, mask) in codecs.TABLE_2.items())]


def way(mode: str, label: str, options: Mapping[str, Any], cdus: int) -> Way:
    """All tensors in a mode; if the paper has it for dense tensors, the others have the paper's modes. Masks take one
    bit per value, unless the mode is lossless. Raises :class:`UserError` for a mode without hardware."""
    name = codecs.find(mode).name
    if not codecs.find(name).format:
        raise UserError(f"mode {name} has no hardware in a lane")
    sparse = {dense: sparse for dense, sparse, mask in codecs.TABLE_2.values() if mask == BIT}.get(name, name)
    modes = {DENSE: name, **dict.fromkeys((RELU, POOL, DROPOUT), sparse)}
    return Way(label, {**modes, "mask": BIT if codecs.find(name).lossy else name}, options, cdus=cdus)


def evaluate(graph: Graph, minibatch: int, machine: Machine, ways: Sequence[Way]) -> list[Result]:
    """A :class:`Result` for each of ``ways``."""
    layers = overlap.layers(graph, minibatch)
    passes = ([one.forward.seconds(machine.flops, machine.memory) for one in layers],
              [one.backward.seconds(machine.flops, machine.memory) for one in layers])
    moving = overlap.tensors(graph, minibatch)
    return [_result(one, layers, passes, moving, machine) for one in ways]


def _result(way: Way, layers: Sequence[Layer], passes: tuple[Sequence[float], Sequence[float]],
            moving: Sequence[Tensor], machine: Machine) -> Result:
    out, back, leaving = ([0.0] * len(layers) for _ in range(3))
    before = after = 0.0
    for tensor in moving if way.moves else ():
        size = tensor.bytes if tensor.form != footprint.MAXIMA else 0  # its values move for another layer
        mode, stored = _stored(way, tensor)
        for decompress, place, total in ((False, tensor.leaves, out), (True, tensor.returns, back)):
            if mode:
                engine = Accelerator(way.cdus, machine.clock, machine.link)
                total[place] += engine.seconds(mode, blocks.view(view(tensor.shape)), stored, decompress)
            else:
                total[place] += stored / machine.link
        leaving[tensor.leaves] += stored
        before, after = before + size, after + stored
    step = overlap.schedule(*passes, out, back, machine.ahead)
    return Result(way, step, before, after, tuple(leaving))


def _stored(way: Way, tensor: Tensor) -> tuple[str, float]:
    """The mode of a tensor, empty if it passes no CDU, and its bytes on the link."""
    if tensor.form == footprint.MAXIMA:  # can be found again in maps that come back exactly
        return "", 0 if way.lossless else -(-tensor.values * footprint.BITS[1] // 8)
    if way.ratio:
        return SPARSE, tensor.bytes / way.ratio
    if not way.modes:
        return "", tensor.bytes
    name = way.modes["mask" if tensor.form == footprint.MASK else tensor.kind]
    mode, shape = codecs.find(name), view(tensor.shape)
    if mode.tiled and mode.fallback in codecs.MODES and not blocks.view(shape).tileable:
        mode = codecs.find(mode.fallback)
    options = {key: value for key, value in way.options.items() if mode.option(key)}
    size = mode.model.size(shape, **_stored_options(mode, options))
    if size is None:
        size = tensor.bytes / _ratio(mode.name, tensor.kind, tuple(sorted(options.items())))
    return mode.name, size


def _stored_options(mode: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each option that a file stores."""
    return {name: value for name, value in mode.option_values(options).items() if mode.option(name).stored}


@cache
def _ratio(mode: str, kind: str, options: tuple[tuple[str, Any], ...]) -> float:
    """The ratio of the package's sample: bytes of all tensors of a kind over those of their payloads."""
    model, before, after = codecs.find(mode), 0, 0
    for x in _activations(kind):
        before += x.nbytes
        after += model.model.compress(x, **model.option_values(dict(options))).payload_bytes
    return before / after


@cache
def _activations(kind: str) -> tuple[NDArray[np.float32], ...]:
    """The sample's tensors of a kind: dense maps; outputs of ReLUs, also for dropouts; 2x2 maxima of these."""
    if kind == POOL:
        folded = [x.reshape(*x.shape[:2], x.shape[2] // 2, 2, -1, 2) for x in _activations(RELU)]
        return tuple(np.ascontiguousarray(x.max((3, 5))) for x in folded)
    if kind == DROPOUT:
        return _activations(RELU)
    return tuple(x for name, x in sample().items() if name.startswith("ReLU") == (kind == RELU))


def facts(results: Sequence[Result], layers: Sequence[Layer], machine: Machine) -> list[dict[str, Any]]:
    """The JSON of ``--json``: a dict for each way, with its layers."""
    ways = []
    for one in results:
        step = one.step
        waits, (out, back) = step.waits, ({span.layer: span for span in spans} for spans in (step.out, step.back))
        rows = []
        for i, (layer, there, here) in enumerate(zip(layers, step.forward, reversed(step.backward), strict=True)):
            rows.append({
                "layer": layer.name, "op": layer.op, "bound": bound(layer, machine), "bytes": one.leaving[i],
                "forward": [there.start, there.end], "out": span(out.get(i)), "forward_wait": waits[i],
                "backward": [here.start, here.end], "back": span(back.get(i)), "backward_wait": waits[-1 - i]})
        ways.append({
            "way": one.way.name, "modes": dict(one.way.modes), "cdus": one.way.cdus,
            "options": {name: value if isinstance(value, bool | int | float) else str(value)
                        for name, value in one.way.options.items()},
            "bytes": one.before, "moved": one.after, "seconds": step.seconds, "forward_seconds": step.forward_seconds,
            "computing": step.computing, "moving": step.moving, "layers": rows})
    return ways


def span(move: Any) -> list[float] | None:
    return None if move is None else [move.start, move.end]


def bound(layer: Layer, machine: Machine) -> str:
    """What limits a layer's forward pass."""
    work = layer.forward
    return "compute" if work.flops / machine.flops > work.bytes / machine.memory else "memory"
