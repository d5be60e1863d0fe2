"""Arrays and bytes as the payloads of a stream, integers, and back."""

import numpy as np


def pack(values, width):
    """Packs integers into one, the first in the least significant bits."""
    mask = (1 << width) - 1
    result = 0
    for value in reversed(list(values)):
        result = (result << width) | (int(value) & mask)
    return result


def unpack(number, width, count, signed=False):
    """Undoes :func:`pack`; returns a list of ``count`` integers."""
    mask, top = (1 << width) - 1, 1 << (width - 1)
    values = [(number >> (width * k)) & mask for k in range(count)]
    return [value - 2 * top if value & top else value for value in values] if signed else values


def beats(vectors, width):
    """Vectors [..., n] of integers as payloads: ``n`` values of ``width`` bits, then ``last``, set on the last one."""
    values = np.ascontiguousarray(vectors, "<i8")
    size = values.shape[-1]
    bits = np.unpackbits(values.reshape(-1, size, 1).view(np.uint8), axis=2, count=width, bitorder="little")
    rows = np.packbits(bits.reshape(-1, size * width), axis=1, bitorder="little")
    return [int.from_bytes(row.tobytes(), "little") | (k == len(rows) - 1) << size * width
            for k, row in enumerate(rows)]


def chunk(content, last, size):
    """Up to ``size`` bytes as the payload of a stream of chunks: the bytes, how many they are, and ``last``."""
    count = 8 * size
    return int.from_bytes(bytes(content), "little") | len(content) << count | last << count + size.bit_length()


def chunks(content, size):
    """Bytes as full chunks, of which only the last may have less than ``size``; no bytes are an empty chunk."""
    starts = range(0, max(len(content), 1), size)
    return [chunk(content[start : start + size], start == starts[-1], size) for start in starts]


def sectors(words, empty=False):
    """A flat array of 32-bit words as payloads of 8 words, how many of them count, and ``last``; none are one beat of
    none, and ``empty`` puts such a beat after the others."""
    words = np.asarray(words, "<u4")
    starts = range(0, len(words) + 8 * empty if len(words) else 1, 8)
    return [int.from_bytes(part.tobytes(), "little") | len(part) << 256 | (start == starts[-1]) << 260
            for start in starts for part in [words[start : start + 8]]]
