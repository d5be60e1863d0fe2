"""Native kernels of the codecs: C++ for float32 tensors on the CPU, the same bits in fewer passes over memory.

A family is one source here. It is compiled when it is first used, and kept in the cache of all builds by its content,
the compiler's command and the processor. Where there is no compiler, on another device, while a graph is traced, and
with ``enabled = False``, the operations of PyTorch do the same.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from actcodec.sim.toolchain import SimulationError, build_once, cache_folder, call, compiler

__all__ = ["Library", "library", "of"]

enabled = True

HEADER = Path(__file__).with_name("common.h")
# Bits are those of golden only if no product and sum are rounded as one.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
         "-fPIC", "-shared", "-pthread")


class Library:
    """The functions of a compiled source. They take tensors (as pointers; None is a null pointer), whole numbers (as
    int64) and floats (as double), at the end they get the number of PyTorch's threads, and they return int64. Other
    threads of Python run meanwhile."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))

    def __getattr__(self, name: str) -> Callable[..., int]:
        function = self._library[name]
        function.restype = ctypes.c_int64

        def run(*arguments: Any) -> int:
            if function.argtypes is None:
                function.argtypes = [*map(_type, arguments), ctypes.c_int64]
            return function(*[one.data_ptr() if isinstance(one, torch.Tensor) else one for one in arguments],
                            torch.get_num_threads())

        setattr(self, name, run)
        return run


def _type(argument):
    if argument is None or isinstance(argument, torch.Tensor):
        return ctypes.c_void_p
    return ctypes.c_double if isinstance(argument, float) else ctypes.c_int64


@cache
def library(name: str) -> Library | None:
    """That of ``name``.cpp; None, with a warning, if it cannot be compiled."""
    source = HEADER.with_name(f"{name}.cpp")
    try:
        command = [*compiler(), *FLAGS]
        digest = hashlib.sha256(repr((command, platform.machine(), _processor())).encode())
        for path in HEADER, source:
            digest.update(path.read_bytes())
        path = cache_folder() / f"{name}-{digest.hexdigest()[:24]}.so"
        return Library(build_once(path, _compile, command, source))
    except (SimulationError, OSError) as error:
        warnings.warn(f"codecs run as operations of PyTorch, which is slower: no native kernels of {name} ({error})",
                      stacklevel=2)
        return None


def _compile(folder, command, source):
    call([*command, source, "-o", folder / "made.so"])
    return folder / "made.so"


def _processor():
    """What ``-march=native`` depends on: a home may be shared by several machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return [line for line in lines if line.startswith(("flags", "Features", "model name"))][:2]


def of(module: str, *tensors: torch.Tensor) -> Library | None:
    """The library of a module, whose source has the module's name, if it can work on these tensors."""
    if torch.compiler.is_compiling() or not enabled:
        return None
    if not all(one.device.type == "cpu" and one.is_contiguous() for one in tensors):
        return None
    return library(module.rpartition(".")[2])
