"""Huffman coding of rounds of eight symbols, a lane each, with escapes (COMET, section 2.2; the coding of SZ).

A round is a code step, in which every lane gives the code of its symbol, and as many raw steps as its longest escape
has bytes. In a raw step a lane with a byte left gives it, any other one bit 0. The bytes of an escape, the first
called p:

    p = 0..223      symbol U + p
    p = 224..239    symbol (p mod 16) * 256 + next byte
    p = 240..255    an outlier: its symbol likewise, then its float, least significant byte first

An encoder takes the first form that fits, and always the third for an outlier; a decoder takes any. The last round is
filled up with symbol 0. Every pattern of bits means something, so decoding always ends.
"""

import enum
import itertools

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.comet.book import SYMBOLS, Book
from actcodec.golden.comet.deinterleave import ESCAPE_BYTES, escape_window, windows
from actcodec.golden.comet.interleave import LANES

_WIDE, _OUTLIER = 224, 240  # the first p of the second and of the third form
PART = 1 << 16  # symbols at a time: what is computed between stays in a cache


class Error(enum.Flag):
    """What was wrong with a stream; false if nothing was."""

    SHORT = enum.auto()  # it ended early, and went on as zero bytes
    EXCESS = enum.auto()  # bytes were left


def steps(u: np.ndarray, outliers: NDArray[np.bool], x: NDArray[np.float32],
          book: Book) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """What the lanes give: values and lengths in bits, both uint8 [steps, 8].

    `u` are a stream's symbols, `outliers` says which of them stand for an outlier, whose bits are those of `x`
    (float32); all one-dimensional. Code steps take 1 to 8 bits of a lane, raw steps 1 or 8.
    """
    places = np.flatnonzero(outliers)
    return sparse_steps(np.asarray(u), places, np.asarray(x)[places], book)


def sparse_steps(u: np.ndarray, places: NDArray[np.int64], x: NDArray[np.float32],
                 book: Book) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The same, where `places` are the indices of outliers, in ascending order, and `x` their values."""
    code = np.full(SYMBOLS, book.length[-1] << 8 | book.code[-1], np.uint16)  # of each symbol: its length, its value
    code[: book.U] = book.length[:-1] << 8 | book.code[:-1]
    bounds = np.searchsorted(places, np.arange(0, u.size + PART, PART))
    parts = [np.zeros((2, LANES, 0), np.uint8)]
    for i, first, last in zip(range(0, u.size, PART), bounds[:-1], bounds[1:], strict=False):
        part = _steps(u[i : i + PART], places[first:last] - i, x[first:last], book.U, code)
        parts.append(np.ascontiguousarray(part.view(np.uint8).reshape(-1, LANES, 2).T))
    values, lengths = np.concatenate(parts, axis=2)  # a lane's are side by side
    return values.T, lengths.T


def _steps(u, places, x, U, code):
    """Of one part: lengths, in the upper byte, and values, uint16 [steps, 8]."""
    rounds = -(-u.size // LANES)
    coded = np.full(rounds * LANES, code[0])
    code.take(u, out=coded[: u.size], mode="clip")
    coded[places] = code[-1]
    coded = coded.reshape(-1, LANES)
    escaped = u >= U
    escaped[places] = True
    escapes = np.flatnonzero(escaped)
    if not escapes.size:
        return coded

    wide, outlier = u[escapes].astype(np.int64), np.searchsorted(escapes, places)
    content = np.zeros((escapes.size, ESCAPE_BYTES.max()), np.uint8)
    content[:, 0] = np.where(wide < U + _WIDE, wide - U, _WIDE + (wide >> 8))
    content[outlier, 0] = _OUTLIER + (wide[outlier] >> 8)
    content[:, 1] = wide & 0xFF
    content[outlier, 2:] = np.ascontiguousarray(x, "<f4").view(np.uint8).reshape(-1, 4)
    count = ESCAPE_BYTES[content[:, 0]].astype(np.int64)

    raw = np.zeros(rounds, np.int64)
    place = escapes // LANES
    first = np.flatnonzero(np.diff(place, prepend=-1))
    raw[place[first]] = np.maximum.reduceat(count, first)
    start = np.cumsum(raw + 1) - raw - 1
    steps = np.full((rounds + raw.sum(), LANES), 1 << 8, np.uint16)  # a bit 0
    steps[start] = coded
    escape, byte = np.nonzero(np.arange(content.shape[1]) < count[:, None])
    steps[start[place[escape]] + 1 + byte, escapes[escape] % LANES] = 8 << 8 | content[escape, byte].astype(np.uint16)
    return steps


def symbols(steps: tuple[np.ndarray, np.ndarray],
            book: Book) -> tuple[NDArray[np.uint16], NDArray[np.bool], NDArray[np.float32]]:
    """Symbols (uint16), outliers (bool) and their values (float32, 0 for all others) of the values and lengths that the
    lanes gave, what filled up the last round included: the reverse of the function `steps`."""
    values, lengths = steps
    codes = np.asarray(values, np.int64) << 8 - np.asarray(lengths, np.int64)
    return _dense(*_symbols(codes.astype(np.uint8), book))


def _dense(u, places, floats):
    outliers, x = np.zeros(u.shape, bool), np.zeros(u.shape, np.float32)
    outliers[places], x[places] = True, floats
    return u, outliers, x


def decode(stream: bytes, count: int,
           book: Book) -> tuple[NDArray[np.uint16], NDArray[np.bool], NDArray[np.float32], Error]:
    """`count` symbols (uint16), outliers (bool), their values (float32, 0 for all others) of a stream (bytes), and an
    Error. All symbols come in any case: a stream that ends early goes on as zero bytes.
    """
    *values, error = sparse_decode(stream, count, book)
    return *_dense(*values), error


def sparse_decode(stream: bytes, count: int,
                  book: Book) -> tuple[NDArray[np.uint16], NDArray[np.int64], NDArray[np.float32], Error]:
    """The same with places (indices) of the outliers, in ascending order, and their values alone."""
    rest, missing, size = iter(bytes(stream)), itertools.count(), 0
    parts = [(np.zeros(0, np.uint16), np.zeros(0, np.int64), np.zeros(0, np.float32))]
    for part in windows(itertools.chain(rest, (0 for _ in missing)), -(-count // LANES), book):
        u, places, floats = _symbols(part, book)
        parts.append((u, places + size, floats))
        size += u.size
    u, places, floats = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
    there = np.searchsorted(places, count)
    error = Error.SHORT if next(missing) else Error.EXCESS if next(rest, None) is not None else Error(0)
    return u[:count], places[:there], floats[:there], error


def _symbols(windows, book):
    """Symbols (uint16), places of outliers and their values (float32), of the next 8 bits of each lane in each step."""
    escaped = windows >= escape_window(book)
    maybe = np.unique(np.flatnonzero(escaped) // LANES)  # some of these are raw steps
    first = windows[np.minimum(maybe + 1, len(windows) - 1)]
    raw_steps = np.where(escaped[maybe], ESCAPE_BYTES[first], 0).max(axis=1, initial=0)
    raw, end = np.zeros(len(windows), bool), 0
    for place, count in zip(maybe.tolist(), raw_steps.tolist(), strict=True):
        if place >= end:
            end = place + 1 + count
            raw[place + 1 : end] = True

    start = np.flatnonzero(~raw)
    symbol = np.repeat(np.arange(book.U + 1, dtype=np.uint16), 1 << 8 - book.length)
    u = symbol.take(windows.take(start, axis=0)).reshape(-1)
    escape = np.flatnonzero(u == book.U)

    def byte(number, escape):
        return windows[np.minimum(start[escape // LANES] + 1 + number, len(windows) - 1), escape % LANES]

    p = byte(0, escape).astype(np.uint16)
    u[escape] = np.where(p < _WIDE, book.U + p, p % 16 * 256 + byte(1, escape))
    outliers = escape[p >= _OUTLIER]
    floats = np.stack([byte(2 + k, outliers) for k in range(4)], axis=-1).view("<f4").reshape(-1)
    return u, outliers, floats
