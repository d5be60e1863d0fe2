"""The table of memory in docs/pytorch.md, measured (``python -m docs.torch_memory``): on the CPU, by the events of
PyTorch's allocator. Times are processor seconds of one thread."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from actcodec.torch.resnet import resnet20
from tb.torch.memory import measured

__all__ = ["rows"]

ROUNDS = 3
WAYS: tuple[tuple[str, str | None, dict[str, Any], bool], ...] = (
    ("plain", None, {}, False), ("checkpoints", None, {}, True), ("`sfpr`, signs", "sfpr", {"signs": True}, False),
    ("`jpeg-act`, signs", "jpeg-act", {"signs": True}, False), ("`gist-fp8`", "gist-fp8", {}, False),
    ("`division`, 4 bits", "division", {"bits": 4}, False), ("`comet`", "comet", {}, False),
    ("checkpoints, `sfpr`", "sfpr", {}, True), ("checkpoints, `division`, 4 bits", "division", {"bits": 4}, True))


class Language(nn.Module):
    """A causal transformer of four layers, 128 wide."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.fc = nn.Embedding(256, 128), nn.Linear(128, 256)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(128, 4, 512, 0.0, batch_first=True) for _ in range(4))

    def forward(self, tokens: torch.Tensor, run: Callable[..., torch.Tensor]) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = run(layer, x)
        return self.fc(x).flatten(0, 1)


def networks() -> Iterator[tuple[str, nn.Module, Callable[[Callable[..., torch.Tensor]], torch.Tensor]]]:
    """Name, model, and the loss of a batch, with a function that runs its blocks."""
    resnet, x, y = resnet20(), torch.randn(64, 3, 32, 32), torch.randint(0, 10, (64,))

    def pictures(run: Callable[..., torch.Tensor]) -> torch.Tensor:
        h = resnet.relu(resnet.bn(resnet.conv(x)))
        for layer in resnet.layers:
            h = run(layer, h)
        return F.cross_entropy(resnet.fc(h.mean(dim=(2, 3))), y)

    yield "ResNet-20, 64 pictures", resnet, pictures
    model, tokens = Language(), torch.randint(0, 256, (16, 128))
    yield "language model, 16 x 128", model, lambda run: F.cross_entropy(model(tokens, run), tokens.flatten())


def rows() -> Iterator[tuple[str, str, float, float, float]]:
    """Network, way, MiB that the forward pass leaves, MiB at the peak of a step, seconds of a step."""
    torch.set_num_threads(1)
    for name, model, loss in networks():
        for way, preset, options, checkpointed in WAYS:
            context: Any = at.Compress(model, preset, **options) if preset else contextlib.nullcontext()

            def run(layer: nn.Module, x: torch.Tensor, again: bool = checkpointed) -> torch.Tensor:
                return checkpoint(layer, x, use_reentrant=False) if again else layer(x)

            def forward(context: Any = context, run: Any = run, loss: Any = loss) -> torch.Tensor:
                with context:
                    return loss(run)

            def step(forward: Any = forward) -> None:
                forward().backward()

            step()
            peak = measured(step).peak
            seconds = []
            for _ in range(ROUNDS):
                start = time.process_time()
                step()
                seconds.append(time.process_time() - start)
            yield name, way, measured(forward).left / 2**20, peak / 2**20, min(seconds)


def main() -> None:
    print("| | | held, MiB | peak, MiB | step, s |\n|---|---|---:|---:|---:|")
    for name, way, held, peak, seconds in rows():
        print(f"| {name} | {way} | {held:.1f} | {peak:.1f} | {seconds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
