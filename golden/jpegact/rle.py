"""RLE and RLD, run lengths and Huffman codes of blocks (JPEG-ACT, section III-E; ITU-T T.81, sections F.1.2, F.2.2).

Codes are those of baseline JPEG with the tables for luminance alone (T.81, tables K.3 and K.5), most significant bit
first. A block is read in zigzag order (figure A.6). First comes the DC value's category (how many bits it has) as a
code of K.3, with its bits; then each AC value that is not zero as a code of K.5 for `run << 4 | category`, with its
bits, where the run counts the zeros in front of it. ZRL (0xF0) stands for 16 zeros that a value follows; EOB (0x00)
ends a block unless coefficient 63 is not zero. The bits of a value v < 0 of category s are those of v + 2^s - 1.

`dc` says what the DC value is: with "none" coefficient 0 itself, with "pred" what it adds to that of the block before
in the same stream (0 before the first).

`framing` says how blocks follow each other:
- "block": each is filled with ones to whole bytes and has their number, a byte that does not count itself, in front of
  it: 2 to 145 bytes in all. The next block is found without decoding, so n decoders can each take one, and damaged
  codes harm no other block.
- "stream": no gaps, not even at bytes; the last byte is filled with ones. What follows damage is lost.

Neither has stuffed bytes (T.81, section B.1.1.5): no marker can occur where the length is known.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.common import bitstring
from actcodec.golden.jpegact.huffman import EOB, K3, K5, ZRL
from actcodec.golden.jpegact.zigzag import ZIGZAG
from actcodec.golden.offload.blocks import BLOCK, Payload

FRAMINGS = ("block", "stream")
DC = ("none", "pred")

_CATEGORY = np.array([v.bit_length() for v in range(256)])
_ZRLS = np.array([0, 1, 1 << 11 | 1, 1 << 22 | 1 << 11 | 1], np.uint64) * K5.code[ZRL]  # none to three in a row

REASONS = (
    "", "a code that is in no table", "a run that goes beyond coefficient 63", "an end before the block is complete",
    "damage in front of it",
)  # fmt: skip
_NO_CODE, _BEYOND, _CUT, _DAMAGE = range(1, 5)


class Salvaged(NamedTuple):
    """What a damaged payload still gives."""

    blocks: np.ndarray  # int8 [n, 64]
    errors: np.ndarray  # uint8 [n]: index of each block's error in REASONS, 0 if it has none


def _check(framing, dc="none"):
    if framing not in FRAMINGS:
        raise ValueError(f"framing is {framing!r}, legal are {' and '.join(FRAMINGS)}")
    if dc not in DC:
        raise ValueError(f"dc is {dc!r}, legal are {' and '.join(DC)}")


def _array(payload: Payload) -> np.ndarray:
    return payload if isinstance(payload, np.ndarray) else np.frombuffer(payload, np.uint8)


def encode(blocks: ArrayLike, framing: str = "block", dc: str = "none") -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Compress `blocks` (int8, [n, 64] or [n, 8, 8], row-major with vertical frequency first): the payload (uint8) and
    the size of each block (int64), in bytes with its length byte where framing is "block", in bits where "stream".

    Raises ValueError for another type, shape, framing or dc.
    """
    _check(framing, dc)
    blocks = np.asarray(blocks)
    if blocks.dtype != np.int8 or blocks.shape[1:] not in ((BLOCK,), (8, 8)):
        raise ValueError(f"blocks are {blocks.dtype} {blocks.shape}, legal is int8 of shape [n, {BLOCK}] and [n, 8, 8]")
    n = len(blocks)
    values = np.zeros((n, BLOCK + 1), np.int16)  # EOB has a place of its own after coefficient 63
    values[:, :BLOCK] = blocks.reshape(n, BLOCK)[:, ZIGZAG]
    if dc == "pred":
        values[:, 0] = np.diff(values[:, 0], prepend=np.int16(0))
    coded = values != 0
    coded[:, [0, BLOCK]] = True
    place = np.nonzero(coded)[1]
    value = values[coded].astype(np.int64)
    first, last = np.flatnonzero(place == 0), np.flatnonzero(place == BLOCK)

    run = np.diff(place, prepend=0) - 1
    run[first] = 0
    complete = last[run[last] == 0]
    run[last] = 0
    category = _CATEGORY[np.abs(value)]
    symbol = run % 16 << 4 | category
    word, length = K5.code[symbol], K5.length[symbol]
    word[first], length[first] = K3.code[symbol[first]], K3.length[symbol[first]]
    word[complete] = length[complete] = 0  # no EOB, which is symbol 0, where nothing is left to end
    word = word << category.astype(np.uint64) | (value + (value < 0) * ((1 << category) - 1)).astype(np.uint64)
    length += category
    word |= _ZRLS[run // 16] << length.astype(np.uint64)  # in front of the value: 57 bits at most
    length += run // 16 * K5.length[ZRL]

    size = np.add.reduceat(length, first) if n else np.zeros(0, np.int64)
    if framing == "block":
        fill = -size % 8
        size = (size + fill) // 8
        word[first] |= size.astype(np.uint64) << length[first].astype(np.uint64)
        length[first] += 8
        size += 1
    else:
        fill = np.zeros(n, np.int64)
        fill[-1:] = -size.sum() % 8
    word[last] = word[last] << fill.astype(np.uint64) | (1 << fill).astype(np.uint64) - np.uint64(1)
    length[last] += fill
    return bitstring.packed(word, length), size


def symbols(blocks: ArrayLike) -> NDArray[np.int64]:
    """How many codes each of `blocks` (as in `encode`) has: DC, a code for each other value and for each 16 zeros in
    front of one, and EOB: int64 [n]."""
    values = np.asarray(blocks).reshape(-1, BLOCK)[:, ZIGZAG]
    coded = values != 0
    coded[:, 0] = True
    block, place = np.nonzero(coded)
    run = np.diff(place, prepend=0) - 1
    run[place == 0] = 0
    return np.bincount(block, 1 + run // 16, len(values)).astype(np.int64) + (values[:, -1] == 0)


def _windows(payload):
    """The 32 bits from each byte on, uint32, to four bytes after the end, where there are ones."""
    padded = np.concatenate([payload, np.full(8, 0xFF, np.uint8)]).astype(np.uint32)
    return padded[:-3] << 24 | padded[1:-2] << 16 | padded[2:-1] << 8 | padded[3:]


def _frames(payload, n):
    """Bits at which the codes of each of `n` blocks start and end in framing "block", and where the last one ends in
    bytes by the lengths alone; blocks that the payload does not reach are empty.
    """
    data, size, places = payload.tobytes(), payload.size, [0]
    for _ in range(n):
        place = places[-1]
        places.append(place + (1 + data[place] if place < size else 1))
    starts = np.minimum(np.array(places, np.int64) + 1, payload.size)
    ends = np.minimum(places, payload.size)
    return 8 * starts[:-1], 8 * ends[1:], places[-1]


def _walk(payload, n):
    """Bits at which each of `n` blocks starts in framing "stream", right up to the first damaged one."""

    def at_each_bit(entries):
        return entries.astype(np.uint8)[windows].tobytes()

    # What a code would do is looked up for all bits at once, so that the loop over the true codes only adds up.
    windows = (_windows(payload)[:, None] >> np.arange(16, 8, -1, dtype=np.uint32)).astype(np.uint16)
    dc_bits, ac_bits = (at_each_bit((table.lookup >> 8) + (table.lookup & 15)) for table in (K3, K5))
    # EOB goes on to the next block, and so does what is no code.
    places = at_each_bit(np.where(K5.lookup & 0xFF == EOB, BLOCK, (K5.lookup >> 4 & 15) + 1))
    starts, bit = [], 0
    for _ in range(n):
        starts.append(bit)
        bit += dc_bits[bit]
        place = 1
        while place < BLOCK:
            place += places[bit]
            bit += ac_bits[bit]
    return np.array(starts, np.int64)


def _symbols(payload, starts, ends):
    """Decode blocks whose codes start and end at these bits: values in zigzag order (int16 [n, 64]), errors, and the
    bits after the last code that counts: one in the table, with all its bits and those of its value.
    """
    windows = _windows(payload)
    values, errors, bits = np.zeros((starts.size, BLOCK), np.int16), np.zeros(starts.size, np.uint8), starts.copy()
    live, bit, end, place, table = np.arange(starts.size), starts, ends, np.zeros(starts.size, np.int32), K3
    while live.size:
        window = windows[bit >> 3] << (bit & 7).astype(np.uint32)  # 25 bits of it are true, 24 are needed
        entry = table.lookup[window >> 16].astype(np.int32)
        symbol, length, category = entry & 0xFF, entry >> 8, entry & 15
        value = (window << length.astype(np.uint32) >> 8).astype(np.int32) >> 24 - category  # 24 bits, of which 8 count
        value -= (value < 1 << category >> 1) * ((1 << category) - 1)
        after = bit + np.where(entry, length + category, 16)
        place += symbol >> 4
        beyond = place >= BLOCK - (symbol == ZRL)  # a value has to follow ZRL
        more = place < BLOCK - 1
        if table is K5:
            more &= symbol != EOB
        bad = (after > end) | (entry == 0) | beyond
        if bad.any():
            errors[live] = np.select([after > end, entry == 0, beyond], [_CUT, _NO_CODE, _BEYOND])
            live, place, value, more, end, after = (part[~bad] for part in (live, place, value, more, end, after))
        values[live, place] = value  # 0 for EOB and ZRL
        bits[live] = after
        live, place, bit, end, table = live[more], place[more] + 1, after[more], end[more], K5
    return values, errors, bits


def _read(payload, n, framing, dc="none"):
    """Salvaged, the bits where the codes of each block start and should and do end, and where the last one ends in
    bytes.
    """
    if framing == "block":
        starts, ends, total = _frames(payload, n)
    else:
        starts, ends = _walk(payload, n), np.full(n, 8 * payload.size)
    values, errors, bits = _symbols(payload, starts, ends)
    if dc == "pred":
        values[:, 0] = np.cumsum(values[:, 0]) * (bits > starts)
    if framing == "stream":
        total = -(-bits.max(initial=0) // 8)
        damaged = np.cumsum(errors != 0) > (errors != 0)
        values[damaged], errors[damaged] = 0, _DAMAGE
    blocks = np.zeros((n, BLOCK), np.int8)
    blocks[:, ZIGZAG] = values
    return Salvaged(blocks, errors), starts, ends, bits, total


def _sound(payload, n, framing, dc="none"):
    """The `n` blocks and their sizes in bits, without what is around them; raises as `decode` does."""
    (blocks, errors), starts, ends, bits, total = _read(payload, n, framing, dc)
    for i in np.flatnonzero(errors)[:1]:
        raise ValueError(f"block {i} is damaged: {REASONS[errors[i]]}")
    if total != payload.size:
        raise ValueError(f"the codes of {n} blocks do not add up to the payload's {payload.size} bytes")
    filled = np.arange(n) if framing == "block" else np.arange(n)[-1:]
    fill = (ends - bits)[filled]
    zeros = ~payload[(ends[filled] >> 3) - 1] & (1 << np.minimum(fill, 7)) - 1
    for i in filled[(fill > 7) | (zeros != 0)][:1]:
        raise ValueError(f"block {i} is damaged: behind its codes is more than a byte's filling of ones")
    return blocks, bits - starts


def sizes(payload: Payload, n: int, framing: str = "block") -> NDArray[np.int64]:
    """Sizes (int64), as `encode` gives them, of the `n` blocks in `payload`: in bytes where framing is "block", which
    needs nothing but the length bytes, in bits where it is "stream".

    The payload is bytes or an array of uint8. Raises ValueError if it is not exactly as long as its length bytes, or
    its codes, say; for damaged codes where it needs them; and for another framing.
    """
    _check(framing)
    payload = _array(payload)
    if framing == "stream":
        return _sound(payload, n, framing)[1]
    starts, ends, total = _frames(payload, n)
    if total != payload.size:
        raise ValueError(f"the lengths of {n} blocks do not add up to the payload's {payload.size} bytes")
    return 1 + (ends - starts) // 8


def decode(payload: Payload, n: int, framing: str = "block", dc: str = "none") -> NDArray[np.int8]:
    """The `n` blocks (int8 [n, 64]) in `payload`; the reverse of `encode`.

    The payload is bytes or an array of uint8. Raises ValueError for damage, as far as codes show it (see `salvage`), if
    the payload is not exactly as long as they and the length bytes say, if a byte is not filled with ones, and for
    another framing or dc.
    """
    _check(framing, dc)
    return _sound(_array(payload), n, framing, dc)[0]


def salvage(payload: Payload, n: int, framing: str = "block", dc: str = "none") -> Salvaged:
    """Salvaged: what a decoder in hardware makes of `n` blocks, which has to go on after damage.

    An error of a block is a code in no table (categories above 8 are in none), a run beyond coefficient 63 (after ZRL a
    value has to come, so it may end at 62), and an end before the block is complete: of the block in framing "block",
    else of the payload. The values in front of it stay, the rest of the block is zeros. With framing "block" the next
    one starts where the length byte says; with "stream" all that follow are zeros with an error, too. A DC value that
    is lost counts as no difference for the next one with dc "pred".

    No errors are what lies after the last code of a block, and a value of category 8 that int8 cannot hold, which
    keeps its low 8 bits. Raises ValueError for another framing or dc.
    """
    _check(framing, dc)
    return _read(_array(payload), n, framing, dc)[0]
