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

import numpy as np

from actcodec.golden.comet.interleave import LANES

_WIDE, _OUTLIER = 224, 240  # the first p of the second and of the third form
_ESCAPE_BYTES = np.repeat(np.uint8([1, 2, 6]), [_WIDE, 16, 16])  # by p
_MOST_STEPS = 7  # of a round


class Error(enum.Flag):
    """What was wrong with a stream; false if nothing was."""

    SHORT = enum.auto()  # it ended early, and went on as zero bytes
    EXCESS = enum.auto()  # bytes were left


def steps(u, outliers, x, book):
    """What the lanes give: values and lengths in bits, both uint8 [steps, 8].

    `u` are a stream's symbols, `outliers` says which of them stand for an outlier, whose bits are those of `x`
    (float32); all one-dimensional. Code steps take 1 to 8 bits of a lane, raw steps 1 or 8.
    """
    u, outliers = np.asarray(u, np.int64), np.asarray(outliers, bool)
    rounds = -(-u.size // LANES)
    escapes = np.flatnonzero(outliers | (u >= book.U))
    coded = np.zeros(rounds * LANES, np.int64)
    coded[: u.size] = u
    coded[escapes] = book.U

    wide, outlier = u[escapes], outliers[escapes]
    near = ~outlier & (wide < book.U + _WIDE)
    content = np.zeros((escapes.size, _ESCAPE_BYTES.max()), np.uint8)
    content[:, 0] = np.where(near, wide - book.U, np.where(outlier, _OUTLIER, _WIDE) + (wide >> 8))
    content[:, 1] = wide & 0xFF
    content[:, 2:] = np.ascontiguousarray(x, "<f4")[escapes].view(np.uint8).reshape(-1, 4)
    count = _ESCAPE_BYTES[content[:, 0]].astype(np.int64)

    raw = np.zeros(rounds, np.int64)
    np.maximum.at(raw, escapes // LANES, count)
    start = np.cumsum(raw + 1) - raw - 1
    values = np.zeros((rounds + raw.sum(), LANES), np.uint8)
    lengths = np.ones_like(values)
    values[start] = book.code[coded].reshape(-1, LANES)
    lengths[start] = book.length[coded].reshape(-1, LANES)
    escape, byte = np.nonzero(np.arange(content.shape[1]) < count[:, None])
    place = start[escapes[escape] // LANES] + 1 + byte, escapes[escape] % LANES
    values[place] = content[escape, byte]
    lengths[place] = 8
    return values, lengths


def symbols(steps, book):
    """Symbols (uint16), outliers (bool) and their values (float32, 0 for all others) of the values and lengths that the
    lanes gave, what filled up the last round included: the reverse of the function `steps`."""
    values, lengths = steps
    return _symbols((np.asarray(values, np.int64) << 8 - np.asarray(lengths, np.int64)).astype(np.uint8), book)


def decode(stream, count, book):
    """`count` symbols (uint16), outliers (bool), their values (float32, 0 for all others) of a stream (bytes), and an
    Error. All symbols come in any case: a stream that ends early goes on as zero bytes.
    """
    windows, needed = _windows(stream, -(-count // LANES), book)
    error = Error.SHORT if needed > len(stream) else Error.EXCESS if needed < len(stream) else Error(0)
    return *(part[:count] for part in _symbols(windows, book)), error


def _escape(book):
    """The first 8-bit window that begins with the escape's code; so do all above."""
    return 256 - (1 << 8 - book.length[-1])


def _windows(stream, rounds, book):
    """The next 8 bits of each lane in each step, uint8 [steps, 8], and how many bytes the stream should have.

    A loop over steps: what lane a byte belongs to is known only when the lengths of all codes in front of it are.
    """
    if not rounds:
        return np.zeros((0, LANES), np.uint8), 0
    data = bytes(stream).ljust(LANES * (1 + _MOST_STEPS * rounds), b"\0")
    held, left, position = list(data[:LANES]), [8] * LANES, LANES
    windows = bytearray()

    def step(taken):
        """Each lane takes as many bits as its table in `taken` has for its window. Returns the windows."""
        nonlocal position
        for lane, table in enumerate(taken):
            bits = left[lane]
            if bits < 16:  # the byte is not in the window yet
                held[lane] = (held[lane] & 0x7FFF) << 8 | data[position]
                position += 1
                bits += 8
            window = held[lane] >> bits - 8 & 0xFF
            left[lane] = bits - table[window]
            windows.append(window)
        return windows[-LANES:]

    code = [np.repeat(book.length, 1 << 8 - book.length).tolist()] * LANES
    one, eight, escape_bytes = [1] * 256, [8] * 256, _ESCAPE_BYTES.tolist()
    escape = _escape(book)
    for _ in range(rounds):
        found = step(code)
        if max(found) >= escape:
            escaped = [window >= escape for window in found]
            first = step([eight if e else one for e in escaped])
            count = [escape_bytes[p] if e else 0 for p, e in zip(first, escaped, strict=True)]
            for byte in range(1, max(count)):
                step([eight if byte < n else one for n in count])
    return np.frombuffer(windows, np.uint8).reshape(-1, LANES), position


def _symbols(windows, book):
    """As `symbols`, of the next 8 bits of each lane in each step."""
    escaped = windows >= _escape(book)
    maybe = np.flatnonzero(escaped.any(axis=1))  # some of these are raw steps
    first = windows[np.minimum(maybe + 1, len(windows) - 1)]
    raw_steps = np.where(escaped[maybe], _ESCAPE_BYTES[first], 0).max(axis=1, initial=0)
    raw, end = np.zeros(len(windows), bool), 0
    for place, count in zip(maybe.tolist(), raw_steps.tolist(), strict=True):
        if place >= end:
            end = place + 1 + count
            raw[place + 1 : end] = True

    start = np.flatnonzero(~raw)
    u = np.repeat(np.arange(book.U + 1, dtype=np.uint16), 1 << 8 - book.length)[windows[start]]
    outliers, x = np.zeros(u.shape, bool), np.zeros(u.shape, np.float32)
    escape = np.nonzero(u == book.U)

    def byte(number, escape):
        rounds, lanes = escape
        return windows[np.minimum(start[rounds] + 1 + number, len(windows) - 1), lanes]

    p = byte(0, escape).astype(np.uint16)
    u[escape] = np.where(p < _WIDE, book.U + p, p % 16 * 256 + byte(1, escape))
    outlier = tuple(axis[p >= _OUTLIER] for axis in escape)
    outliers[outlier] = True
    x[outlier] = np.stack([byte(2 + k, outlier) for k in range(4)], axis=-1).view("<f4").reshape(-1)
    return u.reshape(-1), outliers.reshape(-1), x.reshape(-1)
