"""Functions of tensors, compiled by ``torch.compile``: to C++ on the CPU, to Triton on CUDA."""

from functools import cache
from types import FunctionType
from typing import Any

import torch

__all__ = ["compiled"]


class Compiled:
    """A function, compiled anew for each kind of arguments: shapes, types, devices, and numbers."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.versions: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        version = self.versions.get(key := _kind(arguments))
        if version is None:
            # a code object of its own, as Dynamo keeps at most eight versions of one
            code = self.function.__code__.replace(co_name=f"{self.function.__name__}_{len(self.versions)}")
            own = FunctionType(code, self.function.__globals__)
            version = self.versions[key] = torch.compile(own, dynamic=False, fullgraph=True)
        return version(*arguments)


def _kind(argument):
    if isinstance(argument, torch.Tensor):
        return argument.shape, argument.stride(), argument.dtype, argument.device
    return tuple(map(_kind, argument)) if isinstance(argument, tuple) else argument


@cache
def compiled(function: Any) -> Any:
    """The function, compiled when it is called, once for each kind of arguments. It has no defaults or keywords."""
    return Compiled(function)
