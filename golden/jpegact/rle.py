"""RLE, run lengths and Huffman codes of blocks (JPEG-ACT, section III-E; ITU-T T.81, section F.1.2); `rld` reads them.

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

from actcodec.golden.offload.blocks import BLOCK

FRAMINGS = ("block", "stream")
DC = ("none", "pred")
LARGEST = 8  # category that an int8 value, or the difference of two, can have

_row, _column = np.divmod(np.arange(BLOCK), 8)
_diagonal = _row + _column
ZIGZAG = np.lexsort((np.where(_diagonal % 2, _row, _column), _diagonal))  # 8 * row + column of each place


class Huffman(NamedTuple):
    """A Huffman table (T.81, annex C)."""

    counts: bytes  # codes of 1 to 16 bits
    symbols: bytes  # in the order of their codes
    code: np.ndarray  # of each of 256 symbols, uint64
    length: np.ndarray  # of the code in bits, int64; 0 where a symbol has none
    lookup: np.ndarray  # length << 8 | symbol for each of the 2^16 strings that start with a code; 0 for no code


def _huffman(counts, symbols):
    lengths, symbols = np.repeat(np.arange(1, 17), counts), np.array(symbols)
    # Codes ascend without gaps: in units of the longest one, each starts where the ones in front of it end.
    share = 1 << 16 - lengths
    code, length = np.zeros(256, np.uint64), np.zeros(256, np.int64)
    code[symbols], length[symbols] = np.cumsum(share) - share >> 16 - lengths, lengths
    entry = np.where(symbols % 16 <= LARGEST, lengths << 8 | symbols, 0)
    lookup = np.pad(np.repeat(entry, share), (0, 2**16 - share.sum())).astype(np.uint16)
    return Huffman(bytes(counts), bytes(symbols.tolist()), code, length, lookup)


K3 = _huffman([0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0], range(12))
_SHORT = bytes.fromhex("01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282")
K5 = _huffman([0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125], [
    *_SHORT, *(s for s in range(256) if 1 <= s % 16 <= 10 and s not in _SHORT),  # all others have 16 bits
])  # fmt: skip
EOB, ZRL = 0x00, 0xF0

_CATEGORY = np.array([v.bit_length() for v in range(256)])
_ZRLS = np.array([0, 1, 1 << 11 | 1, 1 << 22 | 1 << 11 | 1], np.uint64) * K5.code[ZRL]  # none to three in a row

def check(framing, dc="none"):
    """Raises ValueError for another framing or dc."""
    if framing not in FRAMINGS:
        raise ValueError(f"framing is {framing!r}, legal are {' and '.join(FRAMINGS)}")
    if dc not in DC:
        raise ValueError(f"dc is {dc!r}, legal are {' and '.join(DC)}")


def _packed(words, lengths):
    """Words one behind the other, in bytes whose bits they fill from the most significant one, uint8; zeros at the end.
    A word has up to 57 bits.
    """
    end = np.cumsum(lengths)
    data = np.zeros(-(-lengths.sum() // 8), np.uint8)
    byte, words = end - 1 >> 3, words << (-end % 8).astype(np.uint64)
    while byte.size:  # from each word's last byte to its first
        data |= np.bincount(byte, words & np.uint64(0xFF), data.size).astype(np.uint8)
        words = words >> np.uint64(8)
        byte, words = byte[words != 0] - 1, words[words != 0]
    return data


def encode(blocks, framing="block", dc="none"):
    """Compress `blocks` (int8, [n, 64] or [n, 8, 8], row-major with vertical frequency first): the payload (uint8) and
    the size of each block (int64), in bytes with its length byte where framing is "block", in bits where "stream".

    Raises ValueError for another type, shape, framing or dc.
    """
    check(framing, dc)
    blocks = np.asarray(blocks)
    n = len(blocks)
    if blocks.dtype != np.int8 or blocks.shape[1:] not in ((BLOCK,), (8, 8)):
        raise ValueError(f"blocks are {blocks.dtype} {blocks.shape}, legal is int8 of shape [n, {BLOCK}] and [n, 8, 8]")
    values = np.zeros((n, BLOCK + 1), np.int16)  # EOB has a place of its own behind coefficient 63
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
    return _packed(word, length), size
