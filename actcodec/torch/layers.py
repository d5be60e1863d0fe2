"""Which layer of a model is running: hooks around each of its modules."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from actcodec.torch import saved

__all__ = ["Layers"]


class Layers:
    """The layers of a ``model``. While they are attached, ``begin`` is called at the start of each pass, and ``watch``,
    if set, after each module, with its name, the module, its arguments and its output."""

    def __init__(self, model: nn.Module, begin: Callable[[], None]) -> None:
        self.model, self._begin = model, begin
        self.watch: Callable[[str, nn.Module, Any, Any], None] | None = None
        self._running: list[str] = []  # the innermost one is the last
        self._numbers: Counter[str] = Counter()
        self._handles: list[Any] = []
        self._parameters: dict[int, Any] = {}  # memory of weights and buffers, with a reference to it
        self._lazy = False

    def attach(self) -> None:
        """Starts to follow the model."""
        self._find_parameters()
        self._running.clear()
        self._numbers.clear()
        self._begin()
        # Not always_call: compiled code guards on the id of such a hook, so each pass would be compiled anew.
        for name, module in self.model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):  # which takes no hooks
                continue
            self._handles += [module.register_forward_pre_hook(Call(self, name)),
                              module.register_forward_hook(Return(self, name))]

    def detach(self) -> None:
        """Stops following it."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._parameters = {}

    def __getstate__(self) -> dict[str, Any]:
        """For a copy: without references to memory, which must not be copied, and without hooks."""
        return self.__dict__ | {"_parameters": {}, "_handles": [], "_running": []}

    def next(self) -> tuple[str, int]:
        """The layer that is running, "" for none, and the number of its next tensor."""
        layer = self._running[-1] if self._running else ""
        self._numbers[layer] += 1
        return layer, self._numbers[layer] - 1

    def own(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is in the memory of a weight or buffer."""
        return saved.memory(tensor) in self._parameters

    def _find_parameters(self):
        """Notes the memory of all parameters and buffers; those of lazy modules only once they are initialized."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        lazy = [is_lazy(tensor) for tensor in tensors]
        self._lazy = any(lazy)
        self._parameters = {saved.memory(tensor): saved.reference(tensor)
                            for tensor, wait in zip(tensors, lazy, strict=True)
                            if not wait and saved.plain(tensor) and tensor.numel()}

    def call(self, name: str) -> None:
        if self._lazy:  # a lazy module's own hook came first
            self._find_parameters()
        if not name:
            self._running.clear()
            if self._numbers:  # the model runs once more in the same context
                self._numbers.clear()
                self._begin()
        self._running.append(name)

    def leave(self, name: str, module: nn.Module, arguments: Any, output: Any) -> None:
        if name not in self._running:  # after an error before its call
            return
        while self._running.pop() != name:  # modules that an error left
            pass
        if self.watch:
            self.watch(name, module, arguments, output)


class Call:
    """The hook before a module. In a copy of the module it does nothing."""

    def __init__(self, layers: Layers | None = None, name: str = "") -> None:
        self._layers, self._name = layers, name

    def __call__(self, module: Any, arguments: Any) -> None:
        if self._layers is not None and not torch.compiler.is_compiling():
            self._layers.call(self._name)

    def __reduce__(self) -> Any:
        return type(self), ()


class Return(Call):
    """The hook after a module, likewise."""

    def __call__(self, module: Any, arguments: Any, output: Any = None) -> None:
        if self._layers is not None and not torch.compiler.is_compiling():
            self._layers.leave(self._name, module, arguments, output)
