"""AC-GC: chooses quantizers during training, by a bound on the error of gradients (Evans, Aamodt, NeurIPS 2021)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from actcodec import codecs
from actcodec.golden.common import acgc
from actcodec.torch import acgc_layers
from actcodec.torch import rules as ruling
from actcodec.torch.golden import codec

__all__ = ["AcGc"]

WEIGHTED = nn.Conv2d, nn.Linear
KINDS = tuple(kind for kind in ruling.ACTIVATIONS if kind != "mask")


class AcGc:
    """Gives the input of each layer the smallest of several quantizers whose error AC-GC's bound allows.

    It adds a rule for each such layer to a :class:`~actcodec.torch.Compress`, before the rules that this has already,
    which still apply to all other tensors, and to all tensors until the first choice. Call :meth:`update` after each
    backward pass, before gradients are cleared.

    Parameters
    ----------
    compress : Compress
        Of the model, with the rules that it has when this is created.
    choices : list
        Rules of :func:`~actcodec.torch.rule`, of which only mode and options count. The smallest result within the
        bound is chosen; if there is none, the tensor is left as it is. A mode with an ``error_bound``, given without
        options, gets the bound itself.
    e2 : float
        The paper's e^2: how much larger the square of a gradient's error may be than with exact activations.
    window : int
        Steps from one choice to the next.

    Layers are ``torch.nn.Conv2d`` and ``Linear``, by the gradient of their weights; norms, by those of their input and
    of their weights; GELU and SiLU, by that of their input (:mod:`actcodec.torch.acgc_layers`). Convolutions and linear
    layers that read the same tensor have a common limit; if others read it, too, the smallest limit counts. Raises
    ValueError for a model without such a layer, and for a parameter out of range.

    Attributes
    ----------
    history : list of dictionaries
        One for each choice: ``step``; and ``layers``, for each layer that saved an input: the ``limit`` on its squared
        error, the squared ``error`` of the choice, its ``mode`` and ``options``, and the ``ratio``. Without a choice
        ``mode`` is None, ``options`` are empty, ``error`` is 0 and ``ratio`` 1.
    """

    def __init__(self, compress: Any, choices: Sequence[ruling.Rule], *, e2: float = 0.5, window: int = 100) -> None:
        acgc.limit(e2, [], [], [])
        if any(one.mode is None for one in choices):
            raise ValueError("choices has a rule without a mode")
        if window < 1 or not choices:
            raise ValueError(f"window is {window!r} with {len(choices)} choices, both must be 1 or more")
        self.compress, self.e2, self.window, self._step = compress, e2, window, 0
        self._choices, self._rest = tuple(choices), compress.rules
        self.history: list[dict[str, Any]] = []
        self._modules = {name: module for name, module in compress.model.named_modules()
                         if isinstance(module, WEIGHTED + acgc_layers.LAYERS)}
        if not self._modules:
            raise ValueError("the model has no layer with a bound by AC-GC")
        self._chosen: dict[str, ruling.Rule] = {}  # by the layer that saves an input
        self._begin()
        compress.layers.watch = self._look

    def _begin(self):
        self._readers: defaultdict[str, list[str]] = defaultdict(list)
        self._inputs: dict[str, torch.Tensor] = {}
        self._outputs: dict[str, float] = {}  # squared norms of the gradients of outputs
        self._limits: dict[str, float] = {}  # of norms and activation layers

    def _look(self, name, module, args, output):
        """Records a layer in a step in which choices are made."""
        if name not in self._modules or self._step % self.window or not output.requires_grad or len(args) != 1:
            return
        entry, weighted = self.compress.kept(args[0]), isinstance(module, WEIGHTED)
        if entry is None or not args[0].requires_grad or (weighted and not module.weight.requires_grad):
            return
        self._readers[entry[0]].append(name)
        self._inputs[entry[0]] = x = args[0].detach()  # the exact one, for this step

        def passed(gradient):
            if weighted:
                self._outputs[name] = self._outputs.get(name, 0.0) + float(gradient.double().square().sum())
            else:
                self._limits[name] = min(self._limits.get(name, math.inf),
                                         acgc_layers.limit(module, x, gradient, self.e2))

        output.register_hook(passed)

    @torch.no_grad()
    def update(self) -> None:
        """Chooses anew, if this step is due."""
        if self._step % self.window == 0:
            layers = {}
            for layer, names in self._readers.items():
                weighted = [(name, self._modules[name]) for name in names if name in self._outputs]
                weighted = [(name, one) for name, one in weighted if one.weight.grad is not None]
                limits = [self._limits[name] for name in names if name in self._limits]
                if weighted or limits:
                    layers[layer] = self._choose(layer, min([self._shared(weighted), *limits]))
            self.history.append({"step": self._step, "layers": layers})
            self.compress.set(rules=[*self._chosen.values(), *self._rest])
            self._begin()
        self._step += 1

    def _shared(self, modules):
        """The common limit of convolutions and linear layers."""
        return acgc.limit(self.e2, [float(one.weight.grad.double().square().sum()) for _, one in modules],
                          [self._outputs[name] for name, _ in modules],
                          [acgc.reuse(one.kernel_size, one.stride) if isinstance(one, nn.Conv2d) else 1.0
                           for _, one in modules])

    def _choose(self, layer, limit):
        x = self._inputs[layer].float().contiguous()
        tries = []
        for one in self._choices:
            assert one.mode is not None
            options = one.options
            if not options and bounded(one.mode):
                if not 0 < limit < math.inf:
                    continue
                options = {"error_bound": acgc.bound(limit, x.numel())}
            coder = codec(one.mode, options, self.compress.engine)
            packed = coder.encode(x)
            error = float((coder.decode(packed).double() - x).square().sum())
            if error <= limit:
                tries.append((packed.nbytes, error, one.mode, options))
        if not tries:
            self._chosen[layer] = ruling.rule(None, kind=KINDS, layer=layer)
            return {"limit": limit, "error": 0.0, "mode": None, "options": {}, "ratio": 1.0}
        size, error, mode, options = min(tries, key=lambda one: one[0])
        self._chosen[layer] = ruling.rule(mode, kind=KINDS, layer=layer, **options)
        return {"limit": limit, "error": error, "mode": mode, "options": options, "ratio": x.nbytes / size}


def bounded(mode: Any) -> bool:
    """Whether a mode has an option that bounds the error of each value."""
    return isinstance(mode, str) and codecs.find(mode).option("error_bound") is not None
