"""The block codes ``nibble`` and ``rice`` in torch (``golden/jpegact/nibble.py``, ``rice.py``): kernels make golden's
payload, operations the same bits in sections (:mod:`actcodec.torch.planes`).

A coder's ``fit`` chooses a table for blocks, uint8 [n, 64], in the CDU's order of values; ``straight`` tables are for
values without a sign. ``size`` has the bytes of the payload with a table, ``encode`` returns what is kept, ``decode``
is its inverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from actcodec.golden.jpegact import nibble, rice
from actcodec.golden.offload.blocks import BLOCK, LANES
from actcodec.torch import kernels
from actcodec.torch.packing import joined, padded
from actcodec.torch.planes import CODERS, Planes, best_of, sample

__all__ = ["CODERS", "Encoded", "Fused", "FusedNibble", "FusedRice", "Native", "NativeNibble", "NativeRice", "Payload",
           "coder_of", "decode", "lines", "smallest", "values_of_lines"]

PART = 1 << 12  # blocks that are encoded at a time
MOST = 1 + BLOCK  # bytes of a block in either code
LOW = 40  # bits of the lower part of a table of nibble planes


class Payload(NamedTuple):
    """A tensor of so many blocks, encoded as golden does with a table."""

    data: torch.Tensor
    blocks: int
    table: int  # golden's word
    sizes: Any = None  # on a GPU: bytes of the blocks of each program that decodes it

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + (0 if self.sizes is None else self.sizes.nbytes)


Encoded = Planes | Payload


class Native:
    """A coder by kernels, whose functions begin with its ``name``; ``model`` is golden's. Tables are golden's words."""

    name: str
    model: Any

    def __init__(self, native: Any) -> None:
        self._native = native

    def _call(self, function: str, *arguments: Any) -> int:
        return getattr(self._native, f"{self.name}_{function}")(*arguments)

    @staticmethod
    def arguments(table: int) -> tuple[int, ...]:
        """What kernels get of a table: numbers of 64 bits."""
        return (table,)

    def fit(self, x: torch.Tensor, straight: bool) -> int:
        """The best table for blocks."""
        raise NotImplementedError

    def size(self, x: torch.Tensor, table: int) -> int:
        """Bytes of the payload."""
        return self._call("size", x, x.shape[0], *self.arguments(table))

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Payload, int]:
        """Blocks encoded with the best table, straight or not as in ``ways``, and the bytes of the payload."""
        raise NotImplementedError

    def encode(self, x: torch.Tensor, table: int) -> Payload:
        """Blocks encoded with a table."""
        blocks, arguments = x.shape[0], self.arguments(table)
        room = torch.empty(min(blocks, PART) * MOST, dtype=torch.uint8)
        payloads = []
        for part in x.split(PART) if blocks > PART else (x,):  # a payload's size is known when it is there
            size = self._call("encode", part, part.shape[0], *arguments, room, room.numel())
            payloads.append(room[:size].clone())
        return Payload(joined(payloads), blocks, table)

    def decode(self, encoded: Payload) -> torch.Tensor:
        """Blocks, uint8 [n, 64]."""
        out = torch.empty(encoded.blocks, BLOCK, dtype=torch.uint8)
        self._call("decode", encoded.data, encoded.data.numel(), encoded.blocks, *self.arguments(encoded.table), out)
        return out


class NativeNibble(Native):
    """Nibble planes with 2-bit width codes."""

    name, model = "nibble", nibble

    def fit(self, x: torch.Tensor, straight: bool) -> int:
        """The best table for blocks."""
        return self._fit(x, straight)[0]

    def _fit(self, x: torch.Tensor, straight: bool) -> tuple[int, int]:
        """The best table, and bytes that the payload of no table is below."""
        numbers = torch.empty(3, dtype=torch.int64)
        self._call("fit", x, x.shape[0], straight, numbers)
        low, high, least = numbers.tolist()
        return low | high << LOW, least

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Payload, int]:
        """Blocks encoded with the best table, straight or not as in ``ways``, and the bytes of the payload."""
        tables, least = zip(*[self._fit(x, straight) for straight in ways], strict=True)
        first, *others = sorted(range(len(ways)), key=least.__getitem__)
        best = self.encode(x, tables[first])
        for i in others:  # the way breaks ties
            if (least[i], i) < (best.nbytes, first) and (self.size(x, tables[i]), i) < (best.nbytes, first):
                best, first = self.encode(x, tables[i]), i
        return best, best.nbytes

    @staticmethod
    def arguments(table: int) -> tuple[int, ...]:
        return table & (1 << LOW) - 1, table >> LOW


class NativeRice(Native):
    """Golomb-Rice codes in planes."""

    name, model = "rice", rice

    def fit(self, x: torch.Tensor, straight: bool) -> int:
        """The best table for a sample of the blocks."""
        return self.best(x, (straight,))

    def best(self, x: torch.Tensor, ways: tuple[bool, ...]) -> int:
        """The table for a sample, straight or not as in ``ways``."""
        return self._call("fit", x, x.shape[0], rice.SAMPLE, ways[0], ways[-1])

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Payload, int]:
        """Blocks encoded with that table, and the bytes of the payload."""
        encoded = self.encode(x, self.best(x, ways))
        return encoded, len(encoded.data)


class Fused(Native):
    """A coder by kernels in Triton, for which the CPU waits once for each table, and once for each payload's size."""

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Payload, int]:
        """Blocks encoded with the best table, straight or not as in ``ways``, and the bytes of the payload."""
        return self._smallest(x, [self.fit(x, straight) for straight in ways])

    def encode(self, x: torch.Tensor, table: int) -> Payload:
        """Blocks encoded with a table."""
        return self._smallest(x, [table])[0]

    def _smallest(self, x: torch.Tensor, tables: list[int]) -> tuple[Payload, int]:
        sizes = [self._sizes(x, table) for table in tables]
        ends = [one.cumsum(0) for one in sizes]
        totals = [int(one[-1]) if len(one) else 0 for one in ends]
        best = totals.index(least := min(totals))
        data = torch.zeros(-(-least // 4), dtype=torch.int32, device=x.device)  # kernels write words
        self._call("encode", x, len(x), *self.arguments(tables[best]), ends[best], data)
        return Payload(data.view(torch.uint8)[:least], len(x), tables[best], sizes[best]), least

    def _sizes(self, x: torch.Tensor, table: int) -> torch.Tensor:
        sizes = torch.empty(-(-len(x) // self._native.UNIT), dtype=torch.int16, device=x.device)
        self._call("sizes", x, len(x), *self.arguments(table), sizes)
        return sizes

    def size(self, x: torch.Tensor, table: Any) -> int:
        """Bytes of the payload."""
        return int(self._sizes(x, table).sum())

    def decode(self, encoded: Payload) -> torch.Tensor:
        """Blocks, uint8 [n, 64]."""
        out = torch.empty(encoded.blocks, BLOCK, dtype=torch.uint8, device=encoded.data.device)
        ends = encoded.sizes.cumsum(0)
        self._call("decode", encoded.data, encoded.blocks, *self.arguments(encoded.table), ends, out)
        return out


class FusedNibble(Fused, NativeNibble):
    """Nibble planes with 2-bit width codes."""

    def fit(self, x: torch.Tensor, straight: bool) -> int:
        """The best table for blocks."""
        counts = torch.zeros(nibble.GROUPS, 9, dtype=torch.int64, device=x.device)
        self._call("counts", x, len(x), straight, counts)
        return nibble.best(counts.cpu().numpy(), straight).word


class FusedRice(Fused, NativeRice):
    """Golomb-Rice codes in planes."""

    def best(self, x: torch.Tensor, ways: tuple[bool, ...]) -> int:
        """The table for a sample, straight or not as in ``ways``, which the CPU finds: hundreds of steps with little to
        compute."""
        blocks, native = np.ascontiguousarray(sample(x)), kernels.library("blockcodes")
        return NativeRice(native).best(torch.from_numpy(blocks), ways) if native else best_of(blocks, ways).word

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Payload, int]:
        """Blocks encoded with that table, and the bytes of the payload."""
        return self._smallest(x, [self.best(x, ways)])


NATIVE: dict[str, type[Native]] = {coder.name: coder for coder in (NativeNibble, NativeRice)}
FUSED: dict[str, type[Fused]] = {coder.name: coder for coder in (FusedNibble, FusedRice)}


def coder_of(name: str, *tensors: torch.Tensor) -> Native | None:
    """The coder by kernels that can work on these tensors."""
    native = kernels.of(__name__, *tensors)
    kinds: Mapping[str, type[Native]] = NATIVE if isinstance(native, kernels.Library) else FUSED
    return kinds[name](native) if native else None


def smallest(name: str, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Encoded, int]:
    """Blocks encoded by a coder with the best table, straight or not as in ``ways``, and the bytes of the payload."""
    return (coder_of(name, x) or CODERS[name]).smallest(x, ways)


def decode(name: str, encoded: Encoded) -> torch.Tensor:
    """Blocks, uint8 [n, 64]; of a payload without kernels by golden's model."""
    if isinstance(encoded, Planes):
        return CODERS[name].decode(encoded)
    if coder := coder_of(name, encoded.data):
        return coder.decode(encoded)
    model = NATIVE[name].model
    blocks = model.decode(encoded.data.cpu().numpy(), encoded.blocks, model.Table.of(encoded.table))
    return torch.from_numpy(blocks.view(np.uint8)).to(encoded.data.device)


def lines(q: torch.Tensor, view: Any) -> torch.Tensor:
    """Blocks, uint8 [n, 64], of flat int8 values without tiles."""
    if view.width != view.padded_width:
        q = padded(q.view(view.rows, view.width), LANES).view(-1)
    return padded(q.view(torch.uint8), BLOCK).view(-1, BLOCK)


def values_of_lines(x: torch.Tensor, view: Any) -> torch.Tensor:
    """The inverse of :func:`lines`."""
    x = x.view(torch.int8).view(-1)[:view.rows * view.padded_width]
    return x if view.width == view.padded_width else x.view(view.rows, -1)[:, :view.width].reshape(-1)
