"""Tensors packed into as few bytes as their payload, in a few operations: bits, narrow codes, and zeros left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from actcodec.torch import kernels

__all__ = ["Bits", "Sparse", "capturing", "joined", "pack_bits", "pack_codes", "pack_words", "padded", "part_of",
           "sparse", "unpack_bits", "unpack_codes", "unpack_values", "unpack_words"]

SPREAD = 0x0101010101010101  # times a byte: eight copies
PICK = 0x8040201008040201 - (1 << 64)  # of copy i, bit i
KINDS = {**dict.fromkeys(kernels.VALUES, 0), torch.int8: 1, torch.int16: 2, torch.bool: 3, torch.uint8: 3,
         torch.int32: 4}  # to kernels
WORDS = {2: torch.int16, 4: torch.int32}  # by their bytes
GATHER = sum(1 << 56 - 7 * i for i in range(8))  # times eight bytes of 0 or 1: bit i of the top byte is byte i


def pack_bits(x: torch.Tensor, low: float = 0, nan: bool = False) -> torch.Tensor:
    """A bit for each value, in bytes, least significant bit first: whether it is above ``low``, or, with ``nan``, is no
    number."""
    x = x.view(-1)
    out = torch.empty(-(-x.numel() // 8), dtype=torch.uint8, device=x.device)
    if x.dtype in KINDS and (native := kernels.of(__name__, x)):
        if x.is_floating_point():
            native.pack_above(x, x.numel(), float(low), int(nan), out)
        else:
            native.pack_positive(x, x.numel(), KINDS[x.dtype], out)
        return out
    part = part_of(x)
    for i in range(0, x.numel(), part):
        bits = (x[i:i + part] <= low).logical_not_() if nan else x[i:i + part] > low
        bits = F.pad(bits, (0, -bits.numel() % 8)) if bits.numel() % 8 else bits
        out[i // 8:(i + part) // 8] = (bits.view(torch.int64) * GATHER).bitwise_right_shift_(56)
    return out


def padded(x: torch.Tensor, unit: int) -> torch.Tensor:
    """``x`` with zeros after its last dimension, up to a multiple of ``unit``; ``x`` itself if it has such a size."""
    missing = -x.shape[-1] % unit
    return F.pad(x, (0, missing)) if missing else x


class Bits:
    """Packs bools that are added in parts."""

    def __init__(self) -> None:
        self.count = 0
        self._bytes: list[torch.Tensor] = []
        self._rest: list[torch.Tensor] = []

    def add(self, bools: torch.Tensor) -> None:
        """Adds bools of any shape."""
        self.count += bools.numel()
        bools = joined([*self._rest, bools.reshape(-1)])
        whole = bools.numel() // 8 * 8
        self._bytes.append(pack_bits(bools[:whole]))
        self._rest = [bools[whole:].clone()]

    def bytes(self) -> torch.Tensor:
        """All bools, packed."""
        return joined([*self._bytes, *map(pack_bits, self._rest)])


def part_of(x: torch.Tensor) -> int:
    """About how many values to process at a time: what fits a processor's cache, or keeps a GPU busy; all of them for a
    compiler, which fuses everything into one loop."""
    if torch.compiler.is_compiling():
        return 1 << 62
    return 1 << 26 if x.is_cuda else 1 << 17


def unpack_bits(bits: torch.Tensor, count: int) -> torch.Tensor:
    """The first ``count`` bools of packed bits."""
    out = torch.empty(8 * bits.numel(), dtype=torch.bool, device=bits.device)
    if native := kernels.of(__name__, bits):
        native.unpack(bits, bits.numel(), out)
        return out[:count]
    part = part_of(bits) // 8
    for i in range(0, bits.numel(), part):
        spread = (bits[i:i + part].to(torch.int64) * SPREAD).bitwise_and_(PICK)
        torch.ne(spread.view(torch.uint8), 0, out=out[8 * i:8 * (i + part)])
    return out[:count]


def unpack_values(bits: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
    """The same, as 0 and 1 of a type."""
    if dtype in kernels.VALUES and (native := kernels.of(__name__, bits, dtype=dtype)):
        out = torch.empty(count, dtype=dtype, device=bits.device)
        native.unpack_values(bits, count, out)
        return out
    return unpack_bits(bits, count).to(dtype)


def pack_codes(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Flat codes of 1, 2, 4 or 8 bits (uint8), packed into bytes."""
    if native := kernels.of(__name__, codes):
        data = torch.empty(-(-codes.numel() * bits // 8), dtype=torch.uint8, device=codes.device)
        native.pack_codes(codes, codes.numel(), bits, data)
        return data
    data = padded(codes, 8 // bits)
    while bits < 8:
        data = data[::2] | data[1::2] << bits
        bits *= 2
    return data


def unpack_codes(data: torch.Tensor, bits: int, count: int) -> torch.Tensor:
    """The inverse of :func:`pack_codes`: ``count`` codes."""
    if native := kernels.of(__name__, data):
        codes = torch.empty(count, dtype=torch.uint8, device=data.device)
        native.unpack_codes(data, count, bits, codes)
        return codes
    width = 8
    while width > bits:
        width //= 2
        data = torch.stack([data & (1 << width) - 1, data >> width], 1).view(-1)
    return data[:count]


def pack_words(codes: torch.Tensor, width: int) -> torch.Tensor:
    """Flat codes of ``width`` bits (int16), packed: as many per int32 as fit."""
    count = 32 // width
    data = padded(codes, count).view(-1, count).to(torch.int32) & (1 << width) - 1
    words = data[:, 0].clone()
    for i in range(1, count):
        words |= data[:, i] << width * i
    return words


def unpack_words(words: torch.Tensor, width: int, count: int) -> torch.Tensor:
    """The inverse of :func:`pack_words`: ``count`` codes, with 0 above ``width`` bits."""
    codes = [(words >> width * i & (1 << width) - 1).to(torch.int16) for i in range(32 // width)]
    return torch.stack(codes, 1).view(-1)[:count]


class Sparse(NamedTuple):
    """A tensor without its zeros: a bit for each value, and the values that are not 0, ``count`` of them. With too few
    zeros to save memory, ``bits`` is None, and ``values`` are all."""

    bits: torch.Tensor | None
    values: torch.Tensor
    count: Any = None

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.bits is None else self.bits.nbytes)

    def dense(self, count: int) -> torch.Tensor:
        """All of its values, flat."""
        if self.bits is None:
            return self.values
        if native := kernels.of(__name__, self.bits, self.values):
            out = torch.empty(count, dtype=self.values.dtype, device=self.values.device)
            native.scatter(self.bits, self.values, self.values.numel(), count, out.itemsize, out)
            return out
        out = torch.zeros(count, dtype=self.values.dtype, device=self.values.device)
        return out.masked_scatter_(unpack_bits(self.bits, count), self.values)


def sparse(x: torch.Tensor, negative_zero: bool = False) -> Sparse:
    """The :class:`Sparse` of a contiguous tensor; with ``negative_zero``, floats that are -0.0 are kept. While a CUDA
    graph is captured, which cannot depend on their number, all values are kept."""
    x = x.view(-1)
    numbers = x.view(WORDS[x.itemsize]) if negative_zero else x
    if capturing(x):
        return Sparse(None, x, torch.count_nonzero(numbers))
    if numbers.dtype in KINDS and (native := kernels.fused(__name__, x)):
        return Sparse(*native.sparse(numbers, x))
    if numbers.dtype in KINDS and (native := kernels.of(__name__, x)):
        mask = torch.empty(-(-x.numel() // 8), dtype=torch.uint8)
        count = native.pack_nonzero(numbers, x.numel(), KINDS[numbers.dtype], mask)
        if mask.nbytes + count * x.itemsize >= x.nbytes:
            return Sparse(None, x, count)
        values = torch.empty(count, dtype=x.dtype)
        native.gather(x, x.numel(), x.itemsize, mask, values)
        return Sparse(mask, values, count)
    bits, parts, part = [], [], part_of(x)
    for i in range(0, x.numel(), part):
        mask = numbers[i:i + part] != 0
        bits.append(pack_bits(mask))
        parts.append(x[i:i + part].masked_select(mask))
    packed = Sparse(joined(bits), joined(parts), sum(map(len, parts)))
    return packed if packed.nbytes < x.nbytes else packed._replace(bits=None, values=x)


def joined(parts: list[torch.Tensor]) -> torch.Tensor:
    """The parts, concatenated; a single one is not copied."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def capturing(x: torch.Tensor) -> bool:
    """Whether a CUDA graph is being captured that works on a tensor."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()
