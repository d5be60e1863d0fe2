"""The layers of a PyTorch model, from the shapes of a traced forward pass."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from actcodec.files import UserError
from actcodec.golden.common.networks import Graph

__all__ = ["load", "trace"]

OPS = {
    "conv": ("convolution", "_convolution"),
    "fc": ("addmm", "mm"),
    "matmul": ("bmm", "baddbmm"),
    "bn": ("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional",
           "_batch_norm_with_update", "native_layer_norm", "native_group_norm"),
    "relu": ("relu", "hardtanh", "threshold", "clamp", "clamp_min", "leaky_relu"),
    "maxpool": ("max_pool2d_with_indices", "max_pool3d_with_indices", "adaptive_max_pool2d"),
    "avgpool": ("avg_pool2d", "avg_pool3d", "_adaptive_avg_pool2d", "mean"),
    "dropout": ("native_dropout",),
    "sum": ("add", "sub"),
    "concat": ("cat", "stack"),
    "softmax": ("_softmax", "_safe_softmax", "_log_softmax"),
    "act": ("gelu", "silu", "sigmoid", "tanh", "elu", "softplus", "mish", "hardswish", "hardsigmoid", "mul", "div",
            "pow", "exp", "log", "sqrt", "rsqrt"),
}
"""{op of ``networks``: operations of ATen}. Any other operation that computes values from activations is a ``move``."""
NAMES = {name: op for op, names in OPS.items() for name in names}


def load(text: str, minibatch: int, image: int) -> Graph:
    """The graph of the model that the function MODULE:FUNCTION returns, for ``image`` x ``image`` pixels in three
    channels. Raises :class:`UserError`."""
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise UserError(f"--model {text}: must be MODULE:FUNCTION")
    try:
        sys.path.insert(0, "")
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"--model {text}: {error}") from error
    finally:
        sys.path.remove("")
    try:
        model = function()
        if not isinstance(model, torch.nn.Module):
            raise TypeError(f"returns {type(model).__name__}, must be a torch.nn.Module")
        return trace(model, minibatch, (3, image, image), text.rpartition(":")[2])
    except Exception as error:
        raise UserError(f"--model {text}: {error}") from error


def trace(model: torch.nn.Module, minibatch: int, shape: tuple[int, ...], name: str = "model") -> Graph:
    """A :class:`~actcodec.golden.common.networks.Graph` of a forward pass in training, for samples of ``shape``. Only
    shapes are computed: the model moves to the device ``meta``, and loses its weights.

    Operations that compute no values from activations, such as views, are no layers. Raises what the model raises, and
    ValueError if no operation has an activation as its input.
    """
    model = model.train().to("meta")
    x = torch.empty(minibatch, *shape, device="meta")
    weights = {_memory(p): p.numel() for p in model.parameters()}
    tracer = _Tracer(Graph(name, shape), x, dict.fromkeys(map(_memory, model.buffers()), 0) | weights)
    hooks = [hook for path, module in model.named_modules() for hook in (
        module.register_forward_pre_hook(lambda *_, path=path: tracer.stack.append(path)),
        module.register_forward_hook(lambda *_: tracer.stack.pop() and None))]
    try:
        with torch.no_grad(), tracer:
            model(x)
    finally:
        for hook in hooks:
            hook.remove()
    if len(tracer.graph.nodes) == 1:
        raise ValueError("no operation of the model has an activation as its input")
    return tracer.graph


class _Tracer(TorchDispatchMode):
    """Adds a node to a graph for each operation that computes values from activations."""

    def __init__(self, graph: Graph, x: torch.Tensor, weights: dict[int, int]) -> None:
        super().__init__()
        self.graph, self.minibatch, self.weights, self.stack = graph, len(x), weights, [""]
        self.writers = {_memory(x): "input"}  # {memory: the layer that wrote it last}
        self.alive: list[torch.Tensor] = [x]  # so that no memory is used twice

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        operands = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        first = next((x for x in tree_leaves(result) if isinstance(x, torch.Tensor)), None)
        self.alive += [x for x in tree_leaves(result) if isinstance(x, torch.Tensor)]
        inputs = list(dict.fromkeys(self.writers[_memory(x)] for x in operands if _memory(x) in self.writers))
        aten = function._schema.name.split("::")[1]
        view = first is not None and _memory(first) in self.writers and not function._schema.is_mutable
        if first is None or not inputs or view or aten.endswith("_like") or aten.startswith("new_"):
            return result
        aten = aten.rstrip("_")
        others = [x for x in operands if _memory(x) not in self.writers]
        op = NAMES.get(aten, "move")
        if aten in ("mul", "div") and len(operands) == 1:  # by a number
            op = "move"
        elif aten == "mul" and any(x.shape == first.shape and _memory(x) not in self.weights for x in others):
            op = "dropout"  # by random numbers
        self.writers[_memory(first)] = self.graph.add(
            self.named(aten), op, inputs, self.sample(first), sum(self.weights.get(_memory(x), 0) for x in others),
            products=_products(op, aten, args, first))
        return result

    def named(self, aten: str) -> str:
        """The name of the running module, followed by the operation if the module has several."""
        path = self.stack[-1]
        names = (path, f"{path}.{aten}".strip("."), *(f"{path}.{aten}-{i}".strip(".") for i in range(
            2, len(self.graph.nodes) + 3)))
        leaf = path and not any(name.startswith(f"{path}.") for name in self.graph.nodes)
        return next(name for name in names[0 if leaf else 1:] if name not in self.graph.nodes)

    def sample(self, x: torch.Tensor) -> tuple[int, ...]:
        """The shape of one sample; flat if the first dimension is not the minibatch, or if there are too many."""
        if x.dim() and x.shape[0] == self.minibatch and x.dim() <= 5:
            return tuple(x.shape[1:]) or (1,)
        return (-(-x.numel() // self.minibatch),)


def _memory(x: torch.Tensor) -> int:
    return x.untyped_storage()._cdata


def _products(op: str, aten: str, args: Any, out: torch.Tensor) -> int:
    """Products per value of the output."""
    if op == "conv":
        x, weight, transposed = args[0], args[1], args[6]
        each = math.prod(weight.shape[1:])
        return -(-x.numel() * each // out.numel()) if transposed else each
    if op in ("fc", "matmul"):
        return int(args[1 if aten in ("addmm", "baddbmm") else 0].shape[-1])
    return 0
