"""Golomb-Rice codes in planes: a block code in place of ZVC, for blocks of 64 int8 values.

u is 0, 1, 2, 3, ... for the values 0, -1, 1, -2, ... A Rice code of u is u >> k in unary, then the k low bits. Here all
first unary bits of a block come first, then all second ones of the values that have them, then the third ones, so that
nothing waits for one value's end. There is no fourth: a value with u >> k >= 3 has u - 3 * 2^k in min(8, k + e) bits.

    byte 0    bits 5:0: L, the bytes that follow, 63 if the block is raw; bits 7:6: i, which of the table's four e is e
    F         for each of the last `flags` groups (of four values in a row): whether one of its values has class > 0
    P0        for each value of the groups that have no flag or a flag of 1: whether its class is 1 or more
    P1        for each 1 in P0: whether the class is 2 or more
    P2        for each 1 in P1: whether it is 3
    M         for each value its mantissa

| class | planes | bits of the mantissa | u |
|---|---|---|---|
| 0 | 0 | k | mantissa |
| 1 | 10 | k | 2^k + mantissa |
| 2 | 110 | k | 2 * 2^k + mantissa |
| 3 | 111 | min(8, k + e) | 3 * 2^k + mantissa |

Sections follow each other without gaps, values ascend, a field has its least significant bit first, bits fill bytes
from the least significant one, and zeros fill the last byte. i is the first one that is enough. A block of zeros is the
byte 0; a raw block (no e is enough, or L would be above 62) is the byte 63 and the values as they are. So a block has 1
to 65 bytes, and there is one stream for a block and a table. Blocks follow each other with no padding; the first byte
alone tells where the next one starts.

Straight tables are for values without a sign, u = x as an unsigned byte: class 0 is u = 0 and has no mantissa, the
others begin one later: u = 1 + (class - 1) * 2^k + mantissa.

Values are numbered as a CDU meets them. In DCT mode this is column by column, vertical frequency ascending: of tiles
that have vertical frequency first, encode `tiles.swapaxes(1, 2)`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import bits
from actcodec.golden.jpegact.bits import Recovered
from actcodec.golden.jpegact.rice_sizes import DIAGONAL, DIAGONALS, GROUPS, MOST, RAW, Sizes
from actcodec.golden.offload.blocks import BLOCK, LANES, Payload

USUAL = 1, 2, 3, 5  # e
SAMPLE = 2048  # blocks whose table is good for a tensor: its payload is 0.02 % longer than with one of all blocks

STEP = [1 + (BLOCK if first % 64 == RAW else first % 64) for first in range(256)]
LEGAL = np.array([first < 64 or first % 64 not in (0, RAW) for first in range(256)])
_MASK = ((1 << np.arange(9)) - 1).astype(np.uint8)
_SUMS = np.uint64(0x0101010101010101)  # times 8 bytes: byte i of the product is the sum of bytes 0 to i


def _tables():
    """The bits of a value that a mask picks, moved together; and the reverse: uint8 [mask, value]."""
    byte = np.arange(256, dtype=np.uint8)
    pick, spread = np.zeros((2, 256, 256), np.uint8)
    for bit in range(8):
        inside = (byte >> bit & 1)[:, None]
        place = np.bitwise_count(byte & (1 << bit) - 1)[:, None]
        pick |= (inside & byte >> bit) << place
        spread |= (inside & byte >> place) << bit
    return pick, spread


_PICK, _SPREAD = _tables()


@dataclass(frozen=True)
class Table:
    """The parameters of a tensor.

    `k`: 15 values of 0 to 7, for line + place in the line, which is an anti-diagonal of a tile. `flags`, 0 to 16: how
    many groups, the last ones, have a flag. `e`: 4 values of 0 to 7, ascending, equal ones allowed. Raises ValueError
    for anything else.
    """

    k: tuple[int, ...]
    flags: int
    e: tuple[int, ...] = USUAL
    straight: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", bits.integers("k", self.k, DIAGONALS, 7))
        object.__setattr__(self, "flags", *bits.integers("flags", [self.flags], 1, GROUPS))
        object.__setattr__(self, "e", bits.integers("e", self.e, 4, 7))
        object.__setattr__(self, "straight", bool(self.straight))
        if list(self.e) != sorted(self.e):
            raise ValueError(f"e is {self.e}, has to ascend")

    @property
    def word(self) -> int:
        """The table in 64 bits: k in bits 44:0, three each, flags in 49:45, e in 61:50, straight in bit 62, 0 in 63."""
        k, e = (sum(v << 3 * i for i, v in enumerate(values)) for values in (self.k, self.e))
        return k | self.flags << 45 | e << 50 | self.straight << 62

    @classmethod
    def of(cls, word: int) -> Self:
        """The table of a word. Raises ValueError if it has none: flags above 16, e that do not ascend, bit 63 set."""
        values = [bits.word(word, 63) >> 3 * i & 7 for i in range(DIAGONALS)]
        return cls(tuple(values), word >> 45 & 31, tuple(word >> 50 + 3 * i & 7 for i in range(4)), word >> 62 == 1)


def _spread_k(table):
    """k of the 64 values, and for each e how many bits more the mantissa of class 3 has: uint8 [64], [4, 64]."""
    k = np.array(table.k, np.uint8)[DIAGONAL]
    return k, np.minimum(np.array(table.e, np.uint8)[:, None], 8 - k)


def _plan(x, table):
    """Of blocks x (uint8 [n, 64]): mantissas, their widths, the planes, P0 by groups, the groups shown, i and L."""
    k, more = _spread_k(table)
    u = bits.fold(x, table.straight)
    some = (u != 0).view(np.uint8) if table.straight else np.uint8(0)
    v = u - some
    quotient = v >> k
    top = np.minimum(quotient, 2 if table.straight else 3)
    mantissa, c = v - (top << k), top + some
    # k + e bits hold a mantissa if e bits hold its part above k bits; where they are cut to 8, both always do
    need = bits.length((quotient - top).max(axis=1))
    i = (need > np.array(table.e[:3], np.uint8)[:, None]).sum(axis=0, dtype=np.uint8)
    w = k + more[i] * (c == 3)
    if table.straight:
        w *= some
    planes = [np.packbits(c > above, axis=1, bitorder="little") for above in range(3)]
    group = np.stack([planes[0] & 15, planes[0] >> 4], axis=2).reshape(-1, GROUPS)
    present = ((group != 0) | (np.arange(GROUPS) < GROUPS - table.flags)).view(np.uint8)
    total = table.flags + 4 * present.sum(axis=1, dtype=np.int64) + w.sum(axis=1, dtype=np.int64)
    total += np.bitwise_count(np.hstack(planes[:2])).sum(axis=1, dtype=np.int64)
    length = total + 7 >> 3
    raw = (need > table.e[3]) | (length > MOST)
    length = np.where(u.any(axis=1), np.where(raw, RAW, length), 0)
    return mantissa, w, planes, group, present, i, length


def _fields(x, table):
    mantissa, w, planes, group, present, i, length = _plan(x, table)
    flags = np.packbits(group != 0, axis=1, bitorder="little").view("<u2")[:, 0] >> GROUPS - table.flags
    head = length.astype(np.uint64) | i.astype(np.uint64) << 6 | flags.astype(np.uint64) << 8
    parts = [(head, np.full(len(x), 8 + table.flags, np.uint64)), bits.merged(group, 4 * present)]
    for mask, plane in pairwise(planes):
        parts.append(bits.merged(_PICK[mask, plane], np.bitwise_count(mask)))
    lines = bits.merged(*(part.reshape(-1, LANES, LANES) for part in (mantissa, w)))
    fields, widths = (np.vstack([*(part[j] for part in parts), lines[j].T]) for j in (0, 1))
    plain, raw = (length == 0) | (length == RAW), length == RAW
    fields[0, plain], widths[0, plain] = length[plain], 8
    fields[1:, plain], widths[1:, plain] = 0, 0
    fields[-LANES:, raw], widths[-LANES:, raw] = x[raw].view("<u8").T, 64
    return fields, widths


def encode(blocks: ArrayLike, table: Table) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Compress `blocks` (int8 or uint8, [n, 64] or [n, 8, 8]): the payload (uint8) and the sizes in bytes (int64).

    Raises ValueError for another type or shape and unless `table` is a Table.
    """
    bits.check(table, Table)
    return bits.encode(blocks, lambda x: _fields(x, table))


def measure(blocks: ArrayLike, table: Table) -> NDArray[np.int64]:
    """The sizes that `encode` gives, without the payload."""
    bits.check(table, Table)
    length = bits.measure(blocks, lambda x: _plan(x, table)[-1])
    return length + (length == 1 + RAW)  # 63 stands for 64 bytes


def sizes(payload: Payload, n: int) -> NDArray[np.int64]:
    """Sizes in bytes (int64) of the `n` blocks that follow each other in `payload`, which needs no table.

    The payload is bytes or an array of uint8. Raises ValueError for a first byte with L of 0 or 63 and i other than 0,
    and unless the payload ends with the last block.
    """
    return bits.sizes(payload, n, STEP, LEGAL)


def _take(words, table):
    n, (k, more) = len(words), _spread_k(table)
    first = words[:, 0].astype(np.uint8)
    length = first & 63
    present = np.ones((n, GROUPS), np.uint8)
    flag = np.arange(8, 8 + table.flags, dtype=np.uint64)
    present[:, GROUPS - table.flags :] = words[:, :1] >> flag & 1
    end = np.full(n, 8 + table.flags, np.uint64)

    upto = np.cumsum(4 * present, axis=1, dtype=np.uint8)
    group: np.ndarray = (bits.window(words, end)[:, None] >> upto - 4 * present).astype(np.uint8) & 15 * present
    plane = group[:, ::2] | group[:, 1::2] << 4
    end += upto[:, -1]
    c = np.unpackbits(plane, axis=1, bitorder="little")
    for _ in range(2):
        ones = np.bitwise_count(plane)
        upto = np.cumsum(ones, axis=1, dtype=np.uint8)
        plane = _SPREAD[plane, (bits.window(words, end)[:, None] >> upto - ones).astype(np.uint8)]
        end += upto[:, -1]
        c += np.unpackbits(plane, axis=1, bitorder="little")

    w = k + more[first >> 6] * (c == 3)
    if table.straight:
        w *= c > 0
    upto = (w.view("<u8") * _SUMS).astype("<u8", copy=False)
    line, below = (upto >> 56).T, (upto << 8).view(np.uint8).reshape(n, LANES, LANES)
    ends = end + np.cumsum(line, axis=0)
    mantissa = bits.window(words, ends - line).T[:, :, None] >> below
    mantissa = mantissa.astype(np.uint8).reshape(n, BLOCK) & _MASK[w]
    u = ((c - (c > 0) << k) + (c > 0) if table.straight else c << k) + mantissa
    x = bits.unfold(u, table.straight)
    raw, end = length == RAW, ends[-1]
    x[raw] = words.astype("<u8", copy=False).view(np.uint8)[raw, 1 : 1 + BLOCK]
    coded = (length != 0) & ~raw
    return x, coded & (end + 7 >> 3 != 1 + length), coded & bits.padding(words, end)


def recover(payload: Payload, n: int, table: Table) -> Recovered:
    """`n` blocks of any payload, malformed ones included: bits.Recovered.

    Every block gives 64 values, and the next one starts where its first byte says. Faults of a block are a header (L of
    0 or 63 with i other than 0, which is ignored), a length that is not what the sections add up to, a bit that is set
    between the last mantissa and the end of that byte, and too short a payload. What lies after the end of a block or
    of the payload counts as zeros.
    """
    bits.check(table, Table)
    return bits.recover(payload, n, STEP, LEGAL, lambda words: _take(words, table))


def decode(payload: Payload, n: int, table: Table) -> NDArray[np.int8]:
    """The `n` blocks (int8 [n, 64]) in `payload`; the reverse of `encode`.

    The payload is bytes or an array of uint8. Raises ValueError for a malformed payload, as `recover` tells, and unless
    `table` is a Table.
    """
    bits.check(table, Table)
    return bits.whole(recover(payload, n, table))


def _moves(straight):
    """Steps of `fit`, as changes of k, flags and e: of one alone, of all k if straight, of all e, of flags by more."""
    one = np.eye(DIAGONALS + 1 + len(USUAL), dtype=int)
    k, flags, e = one[:DIAGONALS], one[DIAGONALS : DIAGONALS + 1], one[DIAGONALS + 1 :]
    moves = np.vstack([k.sum(axis=0) if straight else k, e, e.sum(axis=0), flags, 2 * flags, 4 * flags])
    return np.vstack([moves, -moves]).tolist()


def _recommended(parameters):
    """The k, flags and e nearest to these that obey the limits, and k + e <= 8 for all but the first k."""
    k = [min(max(value, 0), 7) for value in parameters[:DIAGONALS]]
    most = min(7, 8 - max(k[1:]))
    e = sorted(min(max(value, 0), most) for value in parameters[DIAGONALS + 1 :])
    return *k, min(max(parameters[DIAGONALS], 0), GROUPS), *e


def fit(blocks: ArrayLike, straight: bool = False, most: int = SAMPLE, sizes: Callable = Sizes) -> Table:
    """The Table under which `blocks` are smallest, as far as descent finds it, in some 20 ms.

    Starts from k = log2(0.69 * mean of u), takes every step of one parameter that makes the payload smaller, and ends
    when there is none. Of more than `most` blocks some, at equal distances, stand for all. Straight tables have one k.
    Only tables with k + e <= 8 are tried: then only the first value, with a k of its own, ever needs the limit of 8
    bits. `sizes` may be another implementation of Sizes. Raises ValueError as `encode` does, and for a `most` below 1.
    """
    if most < 1:
        raise ValueError(f"most is {most}, has to be at least 1")
    x = bits.bytes_of(blocks)
    x = x[:: max(1, -(-len(x) // most))]
    state = sizes(x, straight)
    mean = state.sums / max(len(x), 1)
    mean = np.full(DIAGONALS, mean.mean()) if straight else np.bincount(DIAGONAL, mean) / np.bincount(DIAGONAL)
    k = np.rint(np.log2(np.maximum(0.69 * mean, 1))).astype(int)
    best = _recommended([*k.tolist(), GROUPS // 2, *USUAL])
    least, before = state.total(*best), None
    while least != before:
        before = least
        for move in _moves(straight):
            other = _recommended([value + change for value, change in zip(best, move, strict=True)])
            if other != best and (size := state.total(*other)) < least:
                best, least = other, size
    return Table(best[:DIAGONALS], best[DIAGONALS], best[DIAGONALS + 1 :], straight)
