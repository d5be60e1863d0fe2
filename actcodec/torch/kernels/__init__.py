"""Native kernels of the codecs: C++ for tensors on the CPU, Triton on a GPU, the same bits in fewer passes over memory.
Values are float32, bfloat16 or float16.

A family is one source of each here. One in C++ is compiled when it is first used, once for each type of values, and
kept in the cache of all builds by its content, the compiler's command and the processor. Triton is imported with the
first tensor on a GPU, and has a cache of its own. Where there is no compiler or no Triton, on another device, while a
graph is traced, and with ``enabled = False``, the operations of PyTorch do the same.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import importlib.util
import platform
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from actcodec.sim.toolchain import SimulationError, build_once, cache_folder, call, compiler

__all__ = ["VALUES", "Library", "fused", "library", "of", "read"]

enabled = True
interpreted = False
"""Whether kernels of a GPU take tensors on the CPU, for tests. The interpreter runs them if TRITON_INTERPRET is set
in the environment before Triton is imported."""

FOLDER = Path(__file__).parent
# Bits are those of golden only if no product and sum are rounded as one.
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fwrapv",
         "-fPIC", "-shared", "-pthread")
OLDEST = 8, 0  # compute capability
VALUES = {torch.float32: "float", torch.bfloat16: "Bfloat16", torch.float16: "Float16"}
"""The types of values that a source is compiled for, and their names in C++."""
HALVES = {torch.bfloat16, torch.float16}


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
def library(name: str, dtype: torch.dtype = torch.float32) -> Library | None:
    """That of ``name``.cpp for values of a type; None, with a warning, if it cannot be compiled."""
    source = FOLDER / f"{name}.cpp"
    try:
        command = [*compiler(), *FLAGS, f"-DVALUE={VALUES[dtype]}"]
        digest = hashlib.sha256(repr((command, platform.machine(), _processor())).encode())
        for path in *sorted(FOLDER.glob("*.h")), source:
            digest.update(path.read_bytes())
        path = cache_folder() / f"{name}-{digest.hexdigest()[:24]}.so"
        return Library(build_once(path, _compile, command, source))
    except (SimulationError, OSError, RuntimeError) as error:  # the last one where there is no home
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


def of(module: str, *tensors: torch.Tensor, dtype: torch.dtype | None = None) -> Any:
    """The functions of a module's source in C++ or Triton, which has the module's name, if it can work on these
    tensors. Values are of the type ``dtype``, that of a tensor of 16 bits among these, or float32."""
    if not _usable(tensors):
        return None
    half = [dtype] if dtype in HALVES else []
    for one in tensors:
        if interpreted or not one.is_cpu:
            return fused(module, *tensors)
        if one.dtype in HALVES:
            half = [one.dtype]
    return library(module.rpartition(".")[2], *half)


def fused(module: str, *tensors: torch.Tensor) -> Any:
    """The functions of its source in Triton alone, some of which do what are several ones in C++."""
    if not _usable(tensors) or not all(_on_gpu(one.device) for one in tensors):
        return None
    return _in_triton(module.rpartition(".")[2])


def read(module: str, x: torch.Tensor) -> bool:
    """Whether its source reads a tensor of 16 bits as it is, and writes one."""
    return x.dtype in HALVES and of(module, x) is not None


def _usable(tensors):
    return enabled and not torch.compiler.is_compiling() and all([one.is_contiguous() for one in tensors])


@cache
def _capable(device):
    """Whether a GPU has what the kernels are compiled for in tests."""
    return torch.cuda.get_device_capability(device) >= OLDEST


def _on_gpu(device):
    return interpreted if device.type == "cpu" else device.type == "cuda" and _capable(device)


@cache
def _in_triton(name):
    """The module ``name`` here; None if there is none, and, with a warning, if there is no Triton."""
    if importlib.util.find_spec(f"{__name__}.{name}") is None:
        return None
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ImportError as error:
        warnings.warn(f"codecs run as operations of PyTorch, which is slower: no kernels of {name} in Triton ({error})",
                      stacklevel=3)
        return None
