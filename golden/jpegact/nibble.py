"""Nibble planes with 2-bit width codes: a block code in place of ZVC, for blocks of 64 int8 values.

u is 0, 1, 2, 3, ... for the values 0, -1, 1, -2, ... (straight: the value as an unsigned byte). Four values in a row
are a group, 16 groups a block. A group has a width w, and each bit plane j < w of its four u is one nibble:

    byte 0         L, the bytes that follow: 0 if all values are zero, 64 if the block is raw, else 4 to 63
    bytes 1 to 4   unless L is 0 or 64: the code of group g in bits 2g + 1 : 2g of the little-endian word
    from there     nibbles, the low half of a byte first: planes 0 to w - 1 of group 0, then of group 1, and so on, the
                   group's first value in the lowest bit; a nibble of zeros if their number is odd

The table of a tensor has four widths for each group, and the code says which one it is: the smallest that is enough
(the lowest code that has it). A block is raw, with w = 8 everywhere, if the largest is not enough for a group or if L
would be 64 or more. So a block has 1 to 65 bytes, and there is one stream for a block and a table. Blocks follow each
other with no padding; the first byte alone tells where the next one starts.

Values are numbered as a CDU meets them. In DCT mode this is column by column, vertical frequency ascending: of tiles
that have vertical frequency first, encode `tiles.swapaxes(1, 2)`.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.jpegact import bits
from actcodec.golden.jpegact.bits import Recovered
from actcodec.golden.offload.blocks import Payload

GROUPS = 16
RAW = 64  # the length of a raw block
MOST = 118  # nibbles of a block that is not raw
MISFIT = 88  # nibbles that a raw block costs more than another, about: what `fit` pays for a width that is not enough

STEP = [1 + first for first in range(256)]
LEGAL = np.array([first == 0 or 4 <= first <= RAW for first in range(256)])
_ABOVE = np.array([[0, 1, 2, 3], [0, 1, 2, 4], [-8, 0, 1, 3], [-8, 0, 1, 2]])  # widths of a family, less the base

# Bit 8v + j of a word (bit j of value v) goes to bit 4j + v (plane j): a rotation of the five bits of its place, which
# is four exchanges of two of them, each a swap of the bits that the mask tells with those `distance` above.
_SWAPS = [
    (2**b - 2**a, np.uint32(sum(1 << p for p in range(32) if p >> a & 1 and not p >> b & 1)))
    for a, b in ((0, 3), (1, 4), (2, 3), (3, 4))
]


@dataclass(frozen=True)
class Table:
    """The widths of a tensor: for each of 16 groups a base b (0 to 7) and a family (0 to 3).

    | family | widths for codes 0, 1, 2, 3 |
    |---|---|
    | 0 | b, b + 1, b + 2, b + 3 |
    | 1 | b, b + 1, b + 2, b + 4 |
    | 2 | 0, b, b + 1, b + 3 |
    | 3 | 0, b, b + 1, b + 2 |

    Widths above 8 count as 8. Raises ValueError for anything else.
    """

    base: tuple[int, ...]
    family: tuple[int, ...]
    straight: bool = False  # u is the value as an unsigned byte

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", bits.integers("base", self.base, GROUPS, 7))
        object.__setattr__(self, "family", bits.integers("family", self.family, GROUPS, 3))
        object.__setattr__(self, "straight", bool(self.straight))

    @property
    def widths(self) -> NDArray[np.uint8]:
        """Widths of all groups and codes, uint8 [16, 4]."""
        return _WIDTHS[np.array(self.base) + 8 * np.array(self.family)]

    @property
    def word(self) -> int:
        """The table in 81 bits: base in bits 5g + 2 : 5g, family in 5g + 4 : 5g + 3 of group g, straight in bit 80."""
        entries = zip(self.base, self.family, strict=True)
        return sum((b | f << 3) << 5 * g for g, (b, f) in enumerate(entries)) | self.straight << 80

    @classmethod
    def of(cls, word: int) -> Self:
        """The table of a word; all words of 81 bits are legal. ValueError for anything else."""
        entries = [bits.word(word, 81) >> 5 * g & 31 for g in range(GROUPS)]
        return cls(tuple(v & 7 for v in entries), tuple(v >> 3 for v in entries), word >> 80 == 1)


_BASES, _FAMILIES = np.tile(np.arange(8), 4), np.repeat(np.arange(4), 8)  # of the 32 entries that a table may have
_WIDTHS = np.clip(_ABOVE[_FAMILIES] + _BASES[:, None], 0, 8).astype(np.uint8)  # of each entry, for all codes
_COSTS = np.where(np.arange(9)[:, None] <= _WIDTHS[:, None], _WIDTHS[:, None], MISFIT).min(axis=2).T  # of a need


def _swap(words, swaps):
    for distance, mask in swaps:
        change = (words ^ words >> distance) & mask
        words = words ^ change ^ change << distance
    return words


def _planes(u):
    """Planes of the groups of u (uint8 [n, 64]), nibble j for bit j: uint32 [n, 16]."""
    return _swap(u.view("<u4").astype(np.uint32, copy=False), _SWAPS)


def _values(planes):
    """The reverse of `_planes`."""
    return _swap(planes, _SWAPS[::-1]).astype("<u4", copy=False).view(np.uint8)


def _of_codes(widths, code):
    """Widths of the groups ([n, 16]) that have these codes."""
    return widths.reshape(-1)[code + np.arange(0, 4 * GROUPS, 4, dtype=np.uint8)]


def _plan(x, table):
    """Planes, codes and widths of the groups, and the length, of blocks x (uint8 [n, 64])."""
    widths = table.widths
    planes = _planes(bits.fold(x, table.straight))
    largest = ((1 << 4 * widths.T.astype(np.int64)) - 1).astype(np.uint32)  # planes that a width has room for
    code = (planes > largest[0]).view(np.uint8) + (planes > largest[1]) + (planes > largest[2])
    w = _of_codes(widths, code)
    total = w.sum(axis=1, dtype=np.int64)
    raw = (total > MOST) | (planes > largest[3]).any(axis=1)
    empty = ~planes.any(axis=1)
    w[raw], w[empty] = 8, 0
    return planes, code, w, np.where(empty, 0, np.where(raw, RAW, 4 + (total + 1 >> 1)))


def _fields(x, table):
    planes, code, w, length = _plan(x, table)
    coded = (length != 0) & (length != RAW)
    codes = (code.astype(np.float64) @ 4.0 ** np.arange(GROUPS)).astype(np.uint64)
    lines, widths = bits.pairs(planes.astype(np.uint64), 4 * w.astype(np.uint64))
    head = length.astype(np.uint64) | codes * coded << 8
    return np.vstack([head, lines.T]), np.vstack([np.where(coded, np.uint64(40), np.uint64(8)), widths.T])


def encode(blocks: ArrayLike, table: Table) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Compress `blocks` (int8 or uint8, [n, 64] or [n, 8, 8]): the payload (uint8) and the sizes in bytes (int64).

    Raises ValueError for another type or shape and unless `table` is a Table.
    """
    bits.check(table, Table)
    return bits.encode(blocks, lambda x: _fields(x, table))


def measure(blocks: ArrayLike, table: Table) -> NDArray[np.int64]:
    """The sizes that `encode` gives, without the payload."""
    bits.check(table, Table)
    return bits.measure(blocks, lambda x: _plan(x, table)[3])


def sizes(payload: Payload, n: int) -> NDArray[np.int64]:
    """Sizes in bytes (int64) of the `n` blocks that follow each other in `payload`, which needs no table.

    The payload is bytes or an array of uint8. Raises ValueError for a length byte of 1 to 3 or above 64, and unless the
    payload ends with the last block.
    """
    return bits.sizes(payload, n, STEP, LEGAL)


def _take(words, table):
    first = words[:, 0]
    length = first & 255
    coded = (length != 0) & (length != RAW)
    code = (first[:, None] >> np.arange(8, 40, 2, dtype=np.uint64)).astype(np.uint8) & 3
    w = _of_codes(table.widths, code)
    w[length == RAW], w[length == 0] = 8, 0
    low, high = (4 * w[:, lane::2].T.astype(np.uint64) for lane in (0, 1))
    end = np.where(coded, np.uint64(40), np.uint64(8)) + np.cumsum(low + high, axis=0)
    line = bits.window(words, end - low - high)
    planes = np.empty(w.shape, np.uint32)
    planes[:, ::2] = (line & (np.uint64(1) << low) - 1).T
    planes[:, 1::2] = (line >> low & (np.uint64(1) << high) - 1).T
    x = bits.unfold(_values(planes), table.straight)
    end = end[-1]
    return x, coded & (end + 7 >> 3 != 1 + length), coded & bits.padding(words, end)


def recover(payload: Payload, n: int, table: Table) -> Recovered:
    """`n` blocks of any payload, malformed ones included: bits.Recovered.

    Every block gives 64 values, and the next one starts where its length says. Faults of a block are a header of 1 to 3
    or above 64, a length that is not 4 + ceil(sum of widths / 2), an odd nibble that is not zero, and too short a
    payload. What lies after the end of a block or of the payload counts as zeros, as does what an illegal length has
    beyond 65 bytes.
    """
    bits.check(table, Table)
    return bits.recover(payload, n, STEP, LEGAL, lambda words: _take(words, table))


def decode(payload: Payload, n: int, table: Table) -> NDArray[np.int8]:
    """The `n` blocks (int8 [n, 64]) in `payload`; the reverse of `encode`.

    The payload is bytes or an array of uint8. Raises ValueError for a malformed payload, as `recover` tells, and unless
    `table` is a Table.
    """
    return bits.whole(recover(payload, n, table))


def counts(blocks: ArrayLike, straight: bool = False) -> NDArray[np.int64]:
    """How many groups of each place need each width: int64 [16, 9]. Counts of several tensors may be added.

    Blocks that are all zero do not count: they have a byte under any table. Raises ValueError as `encode` does.
    """
    x = bits.bytes_of(blocks)
    u = bits.fold(x[x.any(axis=1)], straight)
    need = bits.length(np.bitwise_or.reduce(u.reshape(-1, GROUPS, 4), axis=2))
    place = need + 9 * np.arange(GROUPS)
    return np.bincount(place.reshape(-1), minlength=9 * GROUPS).reshape(GROUPS, 9)


def best(counts: NDArray[np.int64], straight: bool = False) -> Table:
    """The Table for groups with these `counts`: for each place the cheapest of the 32 entries.

    An entry costs the width of each group in nibbles, and MISFIT where none is enough. Raises ValueError unless
    `counts` are 16 x 9 numbers.
    """
    counts = np.asarray(counts)
    if counts.shape != (GROUPS, 9):
        raise ValueError(f"shape of the counts is {counts.shape}, legal is {(GROUPS, 9)}")
    entry = (counts @ _COSTS).argmin(axis=1)
    return Table(_BASES[entry], _FAMILIES[entry], straight)


def fit(blocks: ArrayLike, straight: bool = False) -> Table:
    """The Table for `blocks`, by their `counts`; raises ValueError as `encode` does."""
    return best(counts(blocks, straight), straight)
