"""Measures the table of speed in ``docs/pytorch.md``: a step under each preset, over a step without.

``python -m docs.torch_speed`` records it as ``speed`` of ``docs/records/torch.json``, from which
:mod:`docs.torch_record` writes the table. Times are processor seconds of one thread; presets take turns.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from actcodec.torch import rules
from actcodec.torch.resnet import Resnet, resnet18, resnet20
from docs import torch_record
from docs.torch_memory import Language, keep_memory, seconds, step

__all__ = ["rows"]

ROUNDS = 25
CHECKPOINTS = "checkpoints, no preset"
VARIANTS = {f"`{mode}`, {coder}": (mode, {"coder": coder}) for mode in ("jpeg-act", "sfpr-zvc", "mx")
            for coder in ("nibble", "rice")}
VARIANTS["`jpeg-act`, div, rice"] = "jpeg-act", {"quantizer": "div", "coder": "rice"}
MODES = *rules.PRESETS, "dpr-fp8", "bitpack-2", "division", "comet", "mx"
WAYS = {f"`{name}`": (name, {}) for name in MODES} | VARIANTS


def compressed(context, loss):
    with context:
        return loss()


def again(layer, x):
    return checkpoint(layer, x, use_reentrant=False)


def networks() -> Iterator[tuple[nn.Module, Callable[[Callable[..., torch.Tensor]], torch.Tensor]]]:
    """Models, and the loss of a batch, with a function that runs their blocks."""
    for model, count in (resnet18(), 8), (resnet20(), 64):
        yield model, partial(pictures, model, torch.randn(count, 3, 32, 32), torch.randint(0, 10, (count,)))
    language, tokens = Language(2), torch.randint(0, 256, (4, 128))
    yield language, lambda run: F.cross_entropy(language(tokens, run), tokens.flatten())


def pictures(model: Resnet, x: torch.Tensor, y: torch.Tensor, run: Callable[..., torch.Tensor]) -> torch.Tensor:
    """The loss of a ResNet."""
    x = model.relu(model.bn(model.conv(x)))
    for layer in model.layers:
        x = run(layer, x)
    return F.cross_entropy(model.fc(x.mean((2, 3))), y)


def rows(ways=WAYS, rounds=ROUNDS):
    """Preset, and times of a step of each network over that of one without."""
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ratios = []
    for model, loss in networks():
        plain = partial(loss, lambda layer, x: layer(x))
        functions: dict = {"without": plain, CHECKPOINTS: partial(loss, again)}
        for way, (name, options) in ways.items():
            functions[way] = partial(compressed, at.Compress(model, name, **options), plain)
        times = seconds({way: partial(step, forward) for way, forward in functions.items()}, rounds)
        print(times, flush=True)
        ratios.append([times[way] / times["without"] for way in (CHECKPOINTS, *ways)])
    return [list(row) for row in zip((CHECKPOINTS, *ways), *ratios, strict=True)]


if __name__ == "__main__":
    torch_record.record("speed", rows())
