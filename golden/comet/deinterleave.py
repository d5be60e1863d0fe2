"""The eight sub-streams apart again, and their symbols: what `interleave` put together.

A lane with a byte more knows more codes ahead. Once 8(j+1) of its bits are known, so is the round in which it asks for
byte j+3: the first one whose code begins behind them. So lanes ask up to three bytes ahead, `Decoder` notes in a
calendar who asks in which round, and bytes go to lanes by it, one after another. What a byte means to a lane is in a
table by what the lane has of a code. This goes on until a round with an escape, whose raw steps move all other bits.
"""

from functools import lru_cache
from itertools import chain, count
from operator import length_hint

import numpy as np

from actcodec.golden.comet.book import MAX_LENGTH
from actcodec.golden.comet.interleave import LANES

ESCAPE_BYTES = np.repeat(np.uint8([1, 2, 6]), [224, 16, 16])  # by the first one
_COUNT = ESCAPE_BYTES.tolist()
_HELD = 3  # bytes that have all bits that a lane holds
_AHEAD = 8 * _HELD + 2  # rounds that a lane knows of, at most
_STOP = 1 << LANES  # in the calendar, behind the bits of the lanes
_PART = 1 << 13  # rounds at a time: what they have in lists is far more than what becomes of it


@lru_cache(16)
def _tables(book):
    """What each byte means in each state of a lane: a list of [256] for each number of bits to ignore, 0 to 16, in
    front of the next code; 0 is behind a whole one.

    An entry has the next state, how many codes begin in the byte, the end of it included but not its start, the
    symbols (bytes) of the codes that end there, and, if one of them is the escape, 1 plus the codes that begin before
    it ends, else 0. Item 256 of a state is what it has of a code, a 1 in front.
    """
    length = np.append(0, np.repeat(np.arange(8), 1 << np.arange(8)))  # of the part of a code, by that number
    window = np.repeat(np.arange(book.U + 1), 1 << MAX_LENGTH - book.length)
    symbol = np.append(window, window)  # of any number that ends a code
    symbol[1:256] = window[np.arange(1, 256) << 8 - length[1:] & 255]
    inner = np.zeros(512, bool)
    inner[1:256] = book.length[symbol[1:256]] > length[1:]

    parts, ignored = np.flatnonzero(inner), np.arange(1, 17)
    states = parts.size + ignored.size
    wait = np.append(np.full(parts.size, -1), ignored)[:, None]
    part = np.broadcast_to(np.append(parts, np.zeros_like(ignored))[:, None], (states, 256))
    begun, ended, stop = np.zeros((3, states, 256), int)
    symbols = np.zeros((states, 256, 8), np.uint8)
    for bit in range(8):
        part, begun = np.where(wait == bit, 1, part), begun + (wait == bit)
        part = np.where(part > 0, 2 * part + (np.arange(256) >> 7 - bit & 1), 0)
        row, byte = np.nonzero((part > 0) & ~inner[part])
        found = symbol[part[row, byte]]
        symbols[row, byte, ended[row, byte]] = found
        escape = (found == book.U) & (stop[row, byte] == 0)
        stop[row[escape], byte[escape]] = begun[row[escape], byte[escape]] + 1
        part[row, byte] = 1
        begun[row, byte] += 1
        ended[row, byte] += 1
    begun, part = begun + (wait == 8), np.where(wait == 8, 1, part)
    number = np.zeros(256, int)
    number[parts] = np.arange(parts.size)
    following = np.where(part > 0, number[part], parts.size + wait - 9)

    tables, data, same = [[] for _ in range(states)], symbols.tobytes(), {}
    columns = (array.reshape(-1).tolist() for array in (following, begun, ended, stop))
    entries = [(tables[state], n, same.setdefault(own := data[8 * i : 8 * i + m], own), escape)
               for i, (state, n, m, escape) in enumerate(zip(*columns, strict=True))]
    for i, table in enumerate(tables):
        table += entries[256 * i : 256 * i + 256]
    for table, bits in zip(tables, parts.tolist(), strict=False):
        table.append(bits)
    return [tables[0], *tables[parts.size :]]


class _Lane:
    """A lane. `bits`: what it holds when a round ends that had an escape, a 1 in front. Until the next one: `state`,
    `symbols` of its bytes so far, and `end`, the round behind all codes that begin in them."""

    __slots__ = ("bit", "bits", "end", "state", "symbols")

    def held(self, last, code, length):
        """Sets `bits` to what follows the code of round `last`, whose symbol it returns; drops later symbols."""
        known = b"".join(self.symbols[-_HELD:])
        size = len(known) - (self.end - last - 2)
        self.symbols[-_HELD:] = [known[:size]]
        bits, part = 1, self.state[256]
        for symbol in known[size:]:
            bits = bits << length[symbol] | code[symbol]
        more = part.bit_length() - 1
        self.bits = bits << more | part ^ 1 << more
        return known[size - 1]

    def take(self, whole, source):
        """A raw step: takes a byte if `whole`, else a bit, and asks if it has to. Returns the next byte."""
        size = self.bits.bit_length() - 1
        byte = self.bits >> size - 8 & 255
        if size < 16:
            self.bits, size = self.bits << 8 | next(source), size + 8
        size -= 8 if whole else 1
        self.bits = self.bits & (1 << size) - 1 | 1 << size
        return byte


def deinterleave(stream, rounds, book):
    """Symbols of a stream (bytes), uint8 [rounds, 8], and what the escapes among them are: (round, lane, its bytes);
    whether the stream ended early, to go on as zero bytes, and whether bytes are left.
    """
    found, escapes = np.empty((rounds, LANES), np.uint8), []
    given, missing = iter(bytes(stream)), count()
    source = chain(given, (0 for _ in missing))
    if rounds:
        _decode(source, book, found, escapes)
    return found, escapes, next(missing) > 0, next(given, None) is not None


def _decode(source, book, found, escapes):
    states, rounds = _tables(book), len(found)
    code, length = book.code.tolist(), book.length.tolist()
    lanes = [_Lane() for _ in range(LANES)]
    asking = [[lane for number, lane in enumerate(lanes) if mask >> number & 1] for mask in range(_STOP)]
    ask = [0] * (rounds + _AHEAD)  # the calendar: a bit for each lane
    calendar = iter(ask)
    for number, lane in enumerate(lanes):
        lane.bit, lane.bits, lane.symbols = 1 << number, 1 << 8 | next(source), []
    begin, kept = 0, 0  # of this run of rounds, and of the part
    while begin < rounds:
        last = min(kept + _PART, rounds) - 1
        ask[last] |= _STOP
        held = []
        for lane in lanes:
            size = lane.bits.bit_length() - 1
            lane.state, lane.end = states[8 * _HELD - size], begin
            held += ((lane, byte) for byte in (lane.bits ^ 1 << size).to_bytes(_HELD, "big"))
        asked = chain.from_iterable(map(asking.__getitem__, calendar))
        try:
            for lane, byte in chain(held, zip(asked, source)):
                lane.state, begun, symbols, stop = lane.state[byte]
                lane.symbols.append(symbols)
                if stop:
                    ask[lane.end + stop - 2] |= _STOP
                lane.end = end = lane.end + begun
                ask[end] |= lane.bit
        except IndexError:  # _STOP
            last = rounds + _AHEAD - length_hint(calendar) - 1
        escaped = [lane.held(last, code, length) == book.U for lane in lanes]
        for lane in asking[ask[last] ^ _STOP]:
            lane.bits = lane.bits << 8 | next(source)
        if any(escaped):
            first = [lane.take(e, source) for lane, e in zip(lanes, escaped, strict=True)]
            counts = [_COUNT[p] if e else 0 for p, e in zip(first, escaped, strict=True)]
            content = [first]
            for number in range(1, max(counts)):
                content.append([lane.take(number < n, source) for lane, n in zip(lanes, counts, strict=True)])
            escapes += [(last, lane, [step[lane] for step in content[:n]]) for lane, n in enumerate(counts) if n]
        begin = last + 1
        ask[begin : begin + _AHEAD] = [0] * min(_AHEAD, len(ask) - begin)
        if begin in (kept + _PART, rounds):
            for number, lane in enumerate(lanes):
                found[kept:begin, number] = np.frombuffer(b"".join(lane.symbols), np.uint8)
                lane.symbols.clear()
            kept = begin
