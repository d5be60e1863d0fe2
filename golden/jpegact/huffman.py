"""JPEG's Huffman tables for luminance (ITU-T T.81, tables K.3 and K.5), as far as int8 values need them."""

from typing import NamedTuple

import numpy as np

LARGEST = 8  # category that an int8 value, or the difference of two, can have


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
