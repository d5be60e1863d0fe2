"""What `nibble` and `rice` have in common: values without a sign, fields of bits, blocks that begin with a length.

Blocks are coded a few thousand at a time, so that what is computed between stays in a cache.
"""

from collections.abc import Callable, Sequence
from enum import IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.offload.blocks import BLOCK, LANES, Payload

MOST = 65  # bytes of a block
WORDS = 10  # of 64 bits, that it takes, and what shifts out of it
PART = 8192  # blocks at a time

_LENGTHS = np.array([v.bit_length() for v in range(256)], np.uint8)


class Fault(IntFlag):
    """What a decoder reports of a malformed block."""

    HEADER = 1  # no block has that first byte
    LENGTH = 2  # the length is not what the codes add up to
    PADDING = 4  # what fills the last byte is not zero
    SHORT = 8  # the payload ends in the block, or before it


class Recovered(NamedTuple):
    """What a decoder makes of any payload."""

    blocks: np.ndarray  # int8 [n, 64]
    faults: np.ndarray  # uint8 [n], sums of Fault
    excess: int  # bytes that follow the last block


def integers(name: str, values: ArrayLike, count: int, largest: int) -> tuple[int, ...]:
    """`values` as a tuple of `count` ints, 0 to `largest`; ValueError if they are anything else."""
    values = tuple(np.atleast_1d(values).tolist())
    if len(values) != count or any(type(v) is not int or not 0 <= v <= largest for v in values):
        raise ValueError(f"{name} is {values}, legal are {count} integers, 0 to {largest}")
    return values


def word(value: int, size: int) -> int:
    """`value` if it is an int of `size` bits without a sign; ValueError if not."""
    if type(value) is not int or not 0 <= value < 1 << size:
        raise ValueError(f"word of a table is {value!r}, legal are integers of {size} bits")
    return value


def check(table: object, kind: type) -> None:
    """Raises ValueError unless `table` is a table of that kind."""
    if not isinstance(table, kind):
        raise ValueError(f"table is {table!r}, has to be a {kind.__module__.split('.')[-1]}.{kind.__name__}")


def bytes_of(blocks: ArrayLike) -> NDArray[np.uint8]:
    """Blocks of int8 or uint8, [n, 64] or [n, 8, 8] (line by line), as uint8 [n, 64]; ValueError for anything else."""
    blocks = np.asarray(blocks)
    if blocks.dtype not in (np.int8, np.uint8):
        raise ValueError(f"values are {blocks.dtype}, legal are int8 and uint8")
    if blocks.shape[1:] not in ((BLOCK,), (LANES, LANES)):
        raise ValueError(f"shape of the blocks is {blocks.shape}, legal are [n, {BLOCK}] and [n, {LANES}, {LANES}]")
    return np.ascontiguousarray(blocks).view(np.uint8).reshape(-1, BLOCK)


def fold(x: NDArray[np.uint8], straight: bool) -> np.ndarray:
    """u of bytes x: 0, 1, 2, 3, ... for 0, -1, 1, -2, ..., and 255 for -128; if straight x as it is."""
    return x if straight else x << 1 ^ -(x >> 7)


def unfold(u: NDArray[np.uint8], straight: bool) -> np.ndarray:
    """The bytes x that `fold` makes u of."""
    return u if straight else u >> 1 ^ -(u & 1)


def length(values: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bits that values (uint8) need, 0 to 8."""
    return _LENGTHS[values]


def pairs(values: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours along the last axis as one field, the even one in the low bits: values and widths.

    `values` has a type that is full at most; that of the result has twice its size, or is uint64.
    """
    wide = f"u{min(8, 2 * values.itemsize)}"
    return values[..., ::2] | values[..., 1::2].astype(wide) << widths[..., ::2], widths[..., ::2] + widths[..., 1::2]


def merged(values: np.ndarray, widths: np.ndarray) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """All fields along the last axis, 64 bits at most, as one: uint64 values and widths."""
    while values.shape[-1] > 1:
        values, widths = pairs(values, widths)
    return values[..., 0].astype(np.uint64), widths[..., 0].astype(np.uint64)


def join(fields: NDArray[np.uint64], widths: NDArray[np.uint64]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Fields one after another, in blocks of whole bytes: payload (uint8) and the size of each block in bytes (int64).

    Both arguments are uint64 [m, n], for m fields of at most 64 bits of n blocks of at most 65 bytes; fields have no
    bit above their widths. Bits fill bytes from the least significant one; zeros fill the last byte of a block.
    """
    n = fields.shape[1]
    words = np.zeros(n * WORDS, np.uint64)
    first = np.arange(n, dtype=np.uint64) * np.uint64(64 * WORDS)
    end = first.copy()
    for field, width in zip(fields, widths, strict=True):
        place, up = (end >> 6).astype(np.intp), end & 63
        words[place] |= field << up
        words[place + 1] |= field >> 1 >> 63 - up  # a shift by 64 is none
        end += width
    sizes = (end - first + 7 >> 3).astype(np.int64)
    data = words.astype("<u8", copy=False).view(np.uint8).reshape(n, 8 * WORDS)
    return data[np.arange(8 * WORDS) < sizes[:, None]], sizes


def window(words: NDArray[np.uint64], offset: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """64 bits from bit `offset` (uint64, [n] or [m, n]) of n rows of words (uint64 [n, WORDS]); zeros after a row."""
    offset = np.minimum(offset, 64 * (WORDS - 1) - 1)
    place, down = (offset >> 6).astype(np.intp) + np.arange(0, words.size, WORDS), offset & 63
    words = words.reshape(-1)
    return words[place] >> down | words[place + 1] << 1 << 63 - down


def padding(words: NDArray[np.uint64], end: NDArray[np.uint64]) -> NDArray[np.bool]:
    """Whether a bit between bit `end` of a block and the end of that byte is set."""
    return window(words, end) & (np.uint64(1) << (-end & 7)) - 1 != 0


def _parts(n):
    return range(0, max(n, 1), PART)


def encode(blocks: ArrayLike,
           code: Callable[[NDArray[np.uint8]], tuple[np.ndarray, np.ndarray]]
           ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Payload and sizes of `blocks`; code(x) gives fields and widths, as `join` takes them, of blocks x (uint8)."""
    x = bytes_of(blocks)
    parts = [join(*code(x[i : i + PART])) for i in _parts(len(x))]
    payloads, sizes = zip(*parts, strict=True)
    return np.concatenate(payloads), np.concatenate(sizes)


def measure(blocks: ArrayLike, length: Callable[[NDArray[np.uint8]], np.ndarray]) -> NDArray[np.int64]:
    """Sizes of `blocks` in a payload; length(x) gives the bytes that follow the first one."""
    x = bytes_of(blocks)
    return np.concatenate([1 + length(x[i : i + PART]).astype(np.int64) for i in _parts(len(x))])


def _array(payload: Payload) -> np.ndarray:
    return payload if isinstance(payload, np.ndarray) else np.frombuffer(payload, np.uint8)


def _starts(payload, n, step):
    """Where each of n blocks begins, and where the last one ends: int64 [n + 1]; blocks after the payload are empty.

    `step` is the size of a block for each first byte. A walk from block to block is serial; in plain Python it takes
    0.1 us a block, less than finding the starts of all positions at once.
    """
    data, end, at = payload.tobytes(), payload.size, 0
    starts = [0]
    for _ in range(n):
        if at < end:
            at += step[data[at]]
        starts.append(at)
    return np.array(starts, np.int64)


def sizes(payload: Payload, n: int, step: Sequence[int], legal: NDArray[np.bool]) -> NDArray[np.int64]:
    """Sizes in bytes (int64) of the n blocks of a payload; `step` and `legal` tell size and legality for a first byte.

    Raises ValueError for a first byte that is not legal, and if blocks and payload do not end together.
    """
    payload = _array(payload)
    starts = _starts(payload, n, step)
    first = payload[starts[:-1][starts[:-1] < payload.size]]
    for block in np.flatnonzero(~legal[first])[:1]:
        raise ValueError(f"block {block} begins with a byte of {first[block]}, which is not legal")
    if starts[-1] != payload.size or np.any(starts[:-1] == payload.size):
        raise ValueError(f"the lengths of {n} blocks do not add up to the payload's {payload.size} bytes")
    return np.diff(starts)


def recover(payload: Payload, n: int, step: Sequence[int], legal: NDArray[np.bool],
            take: Callable[[NDArray[np.uint64]], tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Recovered:
    """What n blocks of any payload hold: Recovered.

    take(words) gives the bytes x (uint8 [m, 64]) of m blocks, and whether their lengths and paddings are wrong. Words
    are uint64 [m, WORDS], zeros after the end of a block or of the payload, and beyond 65 bytes: no legal block has
    more, and no hardware keeps more.
    """
    payload = _array(payload)
    starts, end, width = _starts(payload, n, step), payload.size, 8 * WORDS
    blocks, faults = np.empty((n, BLOCK), np.uint8), np.empty(n, np.uint8)
    for i in _parts(n) if n else ():
        at = starts[i : i + PART + 1]
        begin = np.minimum(at[:-1], end)
        data = np.pad(payload[begin[0] : at[-1]], (0, width))
        anywhere = np.ndarray(data.size - width + 1, f"V{width}", data, strides=(1,))
        data = anywhere[begin - begin[0]].view(np.uint8).reshape(-1, width)
        data *= (np.arange(width) < np.minimum(np.diff(at), MOST)[:, None]).view(np.uint8)
        words = data.view("<u8").astype(np.uint64, copy=False)
        x, wrong_length, wrong_padding = take(words)
        blocks[i : i + PART] = x
        fault = np.where(legal[data[:, 0]], 0, Fault.HEADER) | np.where(wrong_length, Fault.LENGTH, 0)
        fault |= np.where(wrong_padding, Fault.PADDING, 0)
        faults[i : i + PART] = fault | np.where((at[1:] > end) | (at[:-1] >= end), Fault.SHORT, 0)
    return Recovered(blocks.view(np.int8), faults, max(end - int(starts[-1]), 0))


def whole(recovered: Recovered) -> NDArray[np.int8]:
    """The blocks of a payload without a fault; ValueError for one with a fault, which names the first."""
    for block in np.flatnonzero(recovered.faults)[:1]:
        faults = ", ".join(str(fault.name).lower() for fault in Fault if fault & int(recovered.faults[block]))
        raise ValueError(f"block {block} of the payload is malformed: {faults}")
    if recovered.excess:
        raise ValueError(f"{recovered.excess} bytes follow the payload's last block")
    return recovered.blocks
