"""Compiles kernels in Triton for a GPU that need not be there, and looks at what became of floats.

``python -m tb.torch.ptx`` reads launches from its input, as JSON, and prints those of whose PTX a line is wrong. It is
a process of its own, as Triton is imported either for its interpreter or for its compiler.
"""

import importlib
import json
import os
import re
import subprocess
import sys
from typing import NamedTuple

import torch

TARGET = 80  # compute capability
# sums and products rounded as one, subnormal numbers lost, and quotients that are nearly right
WRONG = re.compile(r"\bfma\.|\bmad\.\S*f(16|32|64)|\.ftz\b|\.approx\b|\bdiv\.full")
TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.int8: "i8", torch.uint8: "u8",
         torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "i1"}


class Launch(NamedTuple):
    """A kernel with types of its arguments, its constants and a number of warps."""

    module: str
    kernel: str
    types: list
    constants: dict
    warps: int

    @classmethod
    def of(cls, kernel, arguments, constants, warps):
        ones = {name: 1 for name, argument in zip(kernel.arg_names, arguments, strict=False)
                if isinstance(argument, int) and argument == 1}  # to Triton, a constant
        return cls(kernel.fn.__module__, kernel.fn.__name__, [*map(type_of, arguments)], ones | constants, warps)


def type_of(argument):
    if isinstance(argument, torch.Tensor):
        return f"*{TYPES[argument.dtype]}"
    if isinstance(argument, float):
        return "fp32"
    return "constexpr" if argument == 1 else "i32" if abs(argument) < 1 << 31 else "i64"


def compiled(launch):
    """The PTX of a launch."""
    from triton import compile
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = getattr(importlib.import_module(launch.module), launch.kernel)
    types = dict(zip(kernel.arg_names, launch.types, strict=False)) | dict.fromkeys(launch.constants, "constexpr")
    source = ASTSource(kernel, types, launch.constants)
    options = {"num_warps": launch.warps, "enable_fp_fusion": False}
    return compile(source, target=GPUTarget("cuda", TARGET, 32), options=options).asm["ptx"]


def wrong(text):
    """The lines of PTX that are wrong."""
    return [line.strip() for line in text.splitlines() if WRONG.search(line)]


def check(launches):
    """The wrong lines of all launches, by kernel, from a process of its own."""
    environment = {**os.environ, "TRITON_INTERPRET": "0"}
    done = subprocess.run([sys.executable, "-m", __name__], input=json.dumps(launches), capture_output=True, text=True,
                          env=environment, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


if __name__ == "__main__":
    launches = [Launch(*fields) for fields in json.load(sys.stdin)]
    print(json.dumps({repr(one): lines for one in launches if (lines := wrong(compiled(one)))}))
