"""Measures the table of memory in ``docs/pytorch.md``: on the CPU, by the events of PyTorch's allocator.

``python -m docs.torch_memory`` records it as ``memory`` of ``docs/records/torch.json``, from which
:mod:`docs.torch_record` writes the table. Times are processor seconds of one thread; ways take turns. It takes six
minutes, and twice as many while the compiler's cache is empty.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from actcodec.train.networks import resnet50
from docs import torch_record
from tb.torch.memory import measured

__all__ = ["BUDGET", "Language", "Vision", "greatest", "keep_memory", "rows", "seconds", "step"]

ROUNDS = 2
BUDGET = 1 << 30  # bytes, for the greatest batch
KEEP = {-1: 2**31 - 1, -2: 2**28, -4: 0}  # of mallopt: what is left at the end of the heap, its growth, no mappings
WAYS: tuple[tuple[str, str | None, dict[str, Any], bool], ...] = (
    ("plain", None, {}, False), ("checkpoints", None, {}, True), ("`sfpr`, signs", "sfpr", {"signs": True}, False),
    ("`jpeg-act`, signs", "jpeg-act", {"signs": True}, False), ("`gist-fp8`", "gist-fp8", {}, False),
    ("`division`, 4 bits", "division", {"bits": 4}, False), ("`comet`", "comet", {}, False),
    ("checkpoints, `sfpr`", "sfpr", {}, True), ("checkpoints, `division`, 4 bits", "division", {"bits": 4}, True))
QUANTIZED = {"allowed_dtypes": "torch.float32", "size_in_mb": 0.01, "quant_type": "torch.float8_e5m2"}
INDUCTOR: dict[str, dict[str, Any]] = {
    "Inductor": {}, "Inductor, FP8": {"post_grad_fusion_options": {"activation_quantization_aten_pass": QUANTIZED}}}


def keep_memory() -> None:
    """Has glibc keep what is freed, as other allocators do. Else it gives memory back to the system, in some steps more
    than in others, and fetches it again."""
    for option, value in KEEP.items():
        ctypes.CDLL(None).mallopt(option, value)


def blocks(count: int, width: int, heads: int) -> nn.ModuleList:
    """Of a transformer, with the norms first."""
    return nn.ModuleList(nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(count))


class Language(nn.Module):
    """A transformer that predicts characters."""

    def __init__(self, layers: int = 6, width: int = 256) -> None:
        super().__init__()
        self.embedding, self.fc = nn.Embedding(256, width), nn.Linear(width, 256)
        self.layers = blocks(layers, width, width // 64)

    def forward(self, tokens: torch.Tensor, run: Callable[..., torch.Tensor]) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = run(layer, x)
        return self.fc(x).flatten(0, 1)


class Vision(nn.Module):
    """ViT-B of patches of 16 x 16 (Dosovitskiy et al., ICLR 2021): twelve layers, 768 wide, twelve heads; the mean of
    its tokens is classified."""

    def __init__(self, width: int = 768) -> None:
        super().__init__()
        self.patches, self.fc = nn.Conv2d(3, width, 16, 16), nn.Linear(width, 1000)
        self.places = nn.Parameter(torch.randn(1, 196, width) / 50)
        self.layers = blocks(12, width, width // 64)

    def forward(self, x: torch.Tensor, run: Callable[..., torch.Tensor]) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x = run(layer, x)
        return self.fc(x.mean(1))


Loss = Callable[[Callable[..., torch.Tensor]], torch.Tensor]  # of a batch, with a function that runs a model's blocks


def networks() -> Iterator[tuple[str, int, nn.Module, Callable[[int], Loss]]]:
    """Name, examples in a batch, model, and what makes the loss for so many examples."""
    resnet = resnet50()

    def pictures(count: int) -> Loss:
        x, y = torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,))

        def loss(run: Callable[..., torch.Tensor]) -> torch.Tensor:
            h = x
            for layer in resnet:
                h = run(layer, h) if len(list(layer.children())) else layer(h)
            return F.cross_entropy(h, y)

        return loss

    yield "ResNet-50, 4 x 32 x 32", 4, resnet, pictures
    vision = Vision()

    def patches(count: int) -> Loss:
        x, y = torch.randn(count, 3, 224, 224), torch.randint(0, 1000, (count,))
        return lambda run: F.cross_entropy(vision(x, run), y)

    yield "ViT-B, 2 x 224 x 224", 2, vision, patches
    model = Language(12, 832)

    def characters(count: int) -> Loss:
        tokens = torch.randint(0, 256, (count, 128))
        return lambda run: F.cross_entropy(model(tokens, run), tokens.flatten())

    yield "transformer, 2 x 128", 2, model, characters


def direct(layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return layer(x)


def compiled(loss: Loss, options: dict[str, Any]) -> Callable[[], torch.Tensor]:
    """The forward pass by PyTorch's compiler, which is compiled when it is first called, and its backward pass, too."""
    return torch.compile(lambda: loss(direct), fullgraph=True, dynamic=False, options=options)


def ways(model: nn.Module, loss: Loss) -> dict[str, Callable[[], torch.Tensor]]:
    """The forward pass in each way, whose result is the loss."""
    passes = {}
    for way, preset, options, checkpointed in WAYS:
        context: Any = at.Compress(model, preset, **options) if preset else contextlib.nullcontext()

        def run(layer: nn.Module, x: torch.Tensor, again: bool = checkpointed) -> torch.Tensor:
            return checkpoint(layer, x, use_reentrant=False) if again else direct(layer, x)

        def forward(context: Any = context, run: Any = run) -> torch.Tensor:
            with context:
                return loss(run)

        passes[way] = forward
    return passes | {way: compiled(loss, options) for way, options in INDUCTOR.items()}


def memory(forward: Callable[[], torch.Tensor]) -> tuple[int, int]:
    """Bytes that a forward pass leaves, and that a step has at its peak."""
    first = measured(forward)
    second = measured(first.result.backward)
    return first.left, max(first.peak, first.left + second.peak)


def seconds(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Processor time of functions, which take turns: the least of so many rounds."""
    least: dict[str, float] = {}
    for _ in range(rounds):
        for way, function in functions.items():
            start = time.process_time()
            function()
            least[way] = min(least.get(way, float("inf")), time.process_time() - start)
    return least


def step(forward: Callable[[], torch.Tensor]) -> None:
    """Forward and backward pass."""
    forward().backward()


def greatest(batch: int, one: tuple[int, int], two: tuple[int, int]) -> int | None:
    """The greatest batch whose step stays within the budget, by what :func:`memory` says of a batch and of one of twice
    as many examples: at the peak a part is the same for every batch, and the rest grows with it. None if it grows by
    clearly less than what is held: then activations are not at their peak, as they will be in larger batches."""
    (left, peak), (more, twice) = one, two
    return (BUDGET - (2 * peak - twice)) * batch // (twice - peak) if twice - peak > 0.95 * (more - left) else None


def rows(rounds: int = ROUNDS) -> Iterator[list[Any]]:
    """Network, way, MiB that the forward pass leaves, MiB at the peak of a step, its time over that of plain, examples
    a second, and the greatest batch within the budget, if that can be told."""
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, batch, model, loss in networks():
        torch.compiler.reset()  # it compiles a function a few times only
        functions, larger = ways(model, loss(batch)), ways(model, loss(2 * batch))
        for forward in (functions["plain"], *(one[way] for one in (functions, larger) for way in INDUCTOR)):
            step(forward)  # gradients stay, and neither these nor compiling are part of what is measured
        sizes = {way: memory(forward) for way, forward in functions.items()}
        twice = {way: memory(forward) for way, forward in larger.items()}
        times = seconds({way: partial(step, forward) for way, forward in functions.items()}, rounds)
        print(name, times, flush=True)
        for way, (left, peak) in sizes.items():
            yield [name, way, left / 2**20, peak / 2**20, times[way] / times["plain"], batch / times[way],
                   greatest(batch, (left, peak), twice[way])]


if __name__ == "__main__":
    torch_record.record("memory", list(rows()))
