"""Measures the table of 16-bit tensors in ``docs/pytorch.md``: kernels that read and write them, against a float32 copy
before and after.

``python -m docs.torch_halves`` records it as ``halves`` of ``docs/records/torch.json``, from which
:mod:`docs.torch_record` writes the table. Times are processor seconds of one thread, the least of several.
"""

from collections.abc import Iterator
from typing import Any

import torch

from actcodec.torch.golden import codec
from docs import torch_record
from docs.torch_memory import keep_memory, seconds

__all__ = ["WAYS", "rows"]

ROUNDS = 9
SHAPE = 16, 32, 128, 128
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"`{mode}`": (mode, {}) for mode in ("sfpr", "sfpr-zvc", "jpeg-act", "brc", "ssdc-fp8", "dpr-fp8", "division",
                                            "comet", "mx", "bitpack-2")},
    "`jpeg-act`, nibble": ("jpeg-act", {"coder": "nibble"})}


def gains(one: Any, x: torch.Tensor, rounds: int) -> Iterator[float]:
    """How many times as fast a codec encodes and decodes a tensor without the copy."""
    packed, copied = one.encode(x), one.encode(x.float())
    for direct, copy in ((lambda: one.encode(x), lambda: one.encode(x.float())),
                         (lambda: one.decode(packed), lambda: one.decode(copied).to(x.dtype))):
        times = seconds({"copy": copy, "direct": direct}, rounds)
        yield times["copy"] / times["direct"]


def rows(ways: dict[str, tuple[str, dict[str, Any]]] = WAYS, shape: tuple[int, ...] = SHAPE,
         rounds: int = ROUNDS) -> Iterator[list[Any]]:
    """Codec, and its gains for both types."""
    keep_memory()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    values = torch.randn(shape).relu_()
    for way, (mode, options) in ways.items():
        yield [way, *(gain for dtype in (torch.bfloat16, torch.float16)
                      for gain in gains(codec(mode, options), values.to(dtype), rounds))]


if __name__ == "__main__":
    torch_record.record("halves", list(rows()))
