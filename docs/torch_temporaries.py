"""Measures the table of temporaries in ``docs/pytorch.md``: what codecs need at a time, by the events of PyTorch's
allocator.

``python -m docs.torch_temporaries`` records it as ``temporaries`` of ``docs/records/torch.json``, from which
:mod:`docs.torch_record` writes the table.
"""

from collections.abc import Iterator
from typing import Any

import torch

from docs import torch_record
from tb.torch.test_temporaries import peaks

__all__ = ["WAYS", "rows"]

CODED = ("jpeg-act", "sfpr-zvc", "mx")
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"`{mode}`": (mode, {}) for mode in ("sfpr", "sfpr-zvc", "jpeg-act", "jpeg-base", "brc", "zvc", "ssdc",
                                            "ssdc-fp8", "dpr-fp16", "dpr-fp10", "dpr-fp8", "division", "comet", "mx")},
    **{f"`{mode}`, {coder}": (mode, {"coder": coder}) for mode in CODED for coder in ("nibble", "rice")}}


def rows(ways: dict[str, tuple[str, dict[str, Any]]] = WAYS) -> Iterator[list[Any]]:
    """Codec, and bytes at a time while it encodes and while it decodes, in times of the input's."""
    torch.set_num_threads(1)
    for way, (mode, options) in ways.items():
        yield [way, *peaks(mode, options, dense=False)]


if __name__ == "__main__":
    torch_record.record("temporaries", list(rows()))
