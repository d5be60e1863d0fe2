"""Which PyTorch function runs at this moment, which says what a tensor is saved for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

__all__ = ["RECURRENT", "RELU", "Operations"]

RELU = frozenset({torch.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_, F.relu})
RECURRENT = frozenset({torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu})


class Operations(TorchFunctionMode):
    """A context in which :attr:`running` is the function of :data:`RELU` or :data:`RECURRENT` that runs, else None.

    What autograd saves meanwhile is saved by that function. The graph does not tell: a node can be asked what it has
    saved, but a checkpoint answers by computing it once more. Compilers trace through.
    """

    def __init__(self) -> None:
        super().__init__()
        self.running: Callable[..., Any] | None = None

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.compiler.is_compiling() or (func not in RELU and func not in RECURRENT):
            return func(*args, **(kwargs or {}))
        self.running = func
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.running = None
