"""Measures the table of speed in ``docs/pytorch.md``: a step under each preset, over a step without.

``python -m docs.torch_speed`` records it as ``speed`` of ``docs/records/torch.json``, from which
:mod:`docs.torch_record` writes the table. Times are processor seconds of one thread; presets take turns.
"""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.torch import rules
from actcodec.torch.resnet import resnet20
from docs import torch_record
from docs.torch_memory import Language, seconds

__all__ = ["rows"]

ROUNDS = 3
VARIANTS = {"`jpeg-act`, nibble": ("jpeg-act", {"coder": "nibble"}),
            "`jpeg-act`, rice": ("jpeg-act", {"coder": "rice"})}
WAYS = {f"`{name}`": (name, {}) for name in (*rules.PRESETS, "dpr-fp8", "division", "comet", "mx")} | VARIANTS


def compressed(context, loss):
    with context:
        return loss()


def networks() -> Iterator[tuple[nn.Module, Callable[[], torch.Tensor]]]:
    """Models, and the loss of a batch."""
    resnet, x, y = resnet20(), torch.randn(16, 3, 32, 32), torch.randint(0, 10, (16,))
    yield resnet, lambda: F.cross_entropy(resnet(x), y)
    model, tokens = Language(2), torch.randint(0, 256, (4, 128))
    yield model, lambda: F.cross_entropy(model(tokens, lambda layer, x: layer(x)), tokens.flatten())


def rows(ways=WAYS, rounds=ROUNDS):
    """Preset, and times of a step of each network over that of one without."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ratios = []
    for model, loss in networks():
        functions = {"without": loss} | {way: partial(compressed, at.Compress(model, name, **options), loss)
                                         for way, (name, options) in ways.items()}
        times = seconds(functions, rounds)
        print(times, flush=True)
        ratios.append([times[way] / times["without"] for way in ways])
    return [list(row) for row in zip(ways, *ratios, strict=True)]


if __name__ == "__main__":
    torch_record.record("speed", rows())
