"""The next bits of each lane in each step, from the stream that `interleave` makes: what takes its bytes apart.

What lane a byte belongs to is known only when the lengths of all codes in front of it are, so there is a loop. It is
one over bytes, not over codes: with 8(j+1) of its bits, a lane knows the round in which it asks for byte j+3, the first
one whose code begins behind them. A calendar has who asks in which round, and a table what a byte means to a lane that
has some bits of a code already. This goes on to the next escape, whose raw steps move all other bits; they are taken
step by step, and so are rounds in which escapes are too close.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from operator import length_hint

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.comet.book import MAX_LENGTH, Book
from actcodec.golden.comet.interleave import LANES

ESCAPE_BYTES = np.repeat(np.array([1, 2, 6], np.uint8), [224, 16, 16])  # by the first one
_LANE_BYTES = 3  # bytes that have all bits that a lane holds
_AHEAD = 8 * _LANE_BYTES + 2  # rounds that a lane knows of, at most
_STOP = 1 << LANES  # in the calendar, behind the bits of the lanes
_FEW = 8  # rounds that take longer by bytes than by steps
_SMALL = 1 << 11  # rounds that take longer by bytes than by steps if the tables have to be made first
_PART = 1 << 13  # rounds at a time: what they have in lists is far more than what becomes of it


def escape_window(book: Book) -> int:
    """The first 8-bit window that begins with the escape's code; so do all above."""
    return 256 - (1 << 8 - book.length[-1])


@lru_cache(4)
def _tables(book):
    """What each byte means in each state of a lane: a list of [256] for each number of bits to ignore, 0 to 16, in
    front of the next code; 0 is behind a whole one.

    An entry has the next state, how many codes begin in the byte, the end of it included but not its start, windows
    (bytes) of the codes that end there, and, if one of them is the escape, 1 plus the codes that begin before it ends,
    else 0. Item 256 of a state is what it has of a code, a 1 in front.
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
    windows = np.zeros((states, 256, 8), np.uint8)
    for bit in range(8):
        part, begun = np.where(wait == bit, 1, part), begun + (wait == bit)
        part = np.where(part > 0, 2 * part + (np.arange(256) >> 7 - bit & 1), 0)
        row, byte = np.nonzero((part > 0) & ~inner[part])
        entry = symbol[part[row, byte]]
        windows[row, byte, ended[row, byte]] = book.code[entry] << 8 - book.length[entry]
        escape = (entry == book.U) & (stop[row, byte] == 0)
        stop[row[escape], byte[escape]] = begun[row[escape], byte[escape]] + 1
        part[row, byte] = 1
        begun[row, byte] += 1
        ended[row, byte] += 1
    begun, part = begun + (wait == 8), np.where(wait == 8, 1, part)
    number = np.zeros(256, int)
    number[parts] = np.arange(parts.size)
    following = np.where(part > 0, number[part], parts.size + wait - 9)

    tables: list[list] = [[] for _ in range(states)]
    data, same = windows.tobytes(), {}  # type: bytes, dict[bytes, bytes]
    columns = (array.reshape(-1).tolist() for array in (following, begun, ended, stop))
    entries = [(tables[state], n, same.setdefault(own := data[8 * i : 8 * i + m], own), escape)
               for i, (state, n, m, escape) in enumerate(zip(*columns, strict=True))]
    for i, table in enumerate(tables):
        table += entries[256 * i : 256 * i + 256]
    for table, bits in zip(tables, parts.tolist(), strict=False):
        table.append(bits)
    return [tables[0], *tables[parts.size :]]


class _Lane:
    """A lane in a run: `state`, and `end`, the round after all codes that begin in its bytes so far. `windows` are
    those of its steps, in pieces (bytes)."""

    __slots__ = ("bit", "end", "state", "windows")
    bit: int
    end: int
    state: list
    windows: list[bytes | bytearray]

    def leave(self, last, length):
        """Ends a run after the code of round `last`. Returns the window of that, and as bits again what the lane has
        behind it: they, and their number."""
        known = b"".join(self.windows[-_LANE_BYTES:])
        size = len(known) - (self.end - last - 2)
        self.windows[-_LANE_BYTES:] = [known[:size]]
        bits, count, part = 0, 0, self.state[256]
        for window in known[size:]:
            bits, count = bits << length[window] | window >> 8 - length[window], count + length[window]
        more = part.bit_length() - 1
        return known[size - 1], bits << more | part ^ 1 << more, count + more


def windows(source: Iterator[int], rounds: int, book: Book) -> Iterator[NDArray[np.uint8]]:
    """The next 8 bits of each lane in each step, uint8 [steps, 8], in parts of whole rounds; after a code, bits may be
    0 instead. `source` is an iterator over the stream's bytes that does not end."""
    if not rounds:
        return
    lanes = [_Lane() for _ in range(LANES)]
    for number, lane in enumerate(lanes):
        lane.bit, lane.windows = 1 << number, []
    buffers, left, bytes_in = [next(source) for _ in lanes], [8] * LANES, bytearray()  # between runs

    def step(counts):
        """Each lane takes as many bits as its table of `counts` has for its window. Returns the windows."""
        for lane, table in enumerate(counts):
            bits = left[lane]
            if bits < 16:  # the byte is not in the window yet
                buffers[lane] = (buffers[lane] & 0x7FFF) << 8 | next(source)
                bits += 8
            window = buffers[lane] >> bits - 8 & 0xFF
            left[lane] = bits - table[window]
            bytes_in.append(window)
        return bytes_in[-LANES:]

    code = [np.repeat(book.length, 1 << 8 - book.length).tolist()] * LANES
    one, eight, escape_bytes, escaped = [1] * 256, [8] * 256, ESCAPE_BYTES.tolist(), escape_window(book)

    def raw(round_):
        """The raw steps of a round, if any of its windows is an escape."""
        if max(round_) >= escaped:
            first = step([eight if window >= escaped else one for window in round_])
            number = [escape_bytes[p] if window >= escaped else 0 for p, window in zip(first, round_, strict=True)]
            for byte in range(1, max(number)):
                step([eight if byte < n else one for n in number])

    def hand_out():
        """The windows of steps to the lanes."""
        for number, lane in enumerate(lanes):
            lane.windows.append(bytes_in[number::LANES])
        bytes_in.clear()

    asking = [[lane for lane in lanes if mask & lane.bit] for mask in range(_STOP)]
    ask = [0] * (rounds + _AHEAD)  # the calendar: a bit for each lane
    calendar = iter(ask)
    tables: list[list] = []
    begin = begin_part = 0  # the next round, and the first one of this part
    single = rounds if rounds < _SMALL else 0  # rounds by steps before the next run
    while begin < rounds:
        for _ in islice(calendar, min(single, rounds - begin)):
            raw(step(code))
            begin += 1
        hand_out()
        if begin < rounds:
            ask[begin : begin + _AHEAD] = [0] * min(_AHEAD, len(ask) - begin)
            ask[max(begin, min(begin_part + _PART, rounds) - 1)] |= _STOP
            first: list[tuple[_Lane, int]] = []
            tables = tables or _tables(book)
            for lane, bits, size in zip(lanes, buffers, left, strict=True):
                lane.state, lane.end = tables[8 * _LANE_BYTES - size], begin
                first += ((lane, byte) for byte in (bits & (1 << size) - 1).to_bytes(_LANE_BYTES, "big"))
            owners = chain.from_iterable(map(asking.__getitem__, calendar))
            try:
                for lane, byte in chain(first, zip(owners, source, strict=False)):
                    lane.state, begun, ended, stop = lane.state[byte]
                    lane.windows.append(ended)
                    if stop:
                        ask[lane.end + stop - 2] |= _STOP
                    lane.end = end = lane.end + begun
                    ask[end] |= lane.bit
            except IndexError:  # there is no such item of `asking`
                last = len(ask) - length_hint(calendar) - 1
            round_, buffers[:], left[:] = zip(*(lane.leave(last, code[0]) for lane in lanes), strict=True)
            for number, lane in enumerate(lanes):
                if ask[last] & lane.bit:
                    buffers[number], left[number] = buffers[number] << 8 | next(source), left[number] + 8
            raw(round_)
            hand_out()
            single = 0 if last - begin > _FEW else max(_FEW, 2 * single)
            begin = last + 1
        if begin >= min(begin_part + _PART, rounds):
            columns = np.frombuffer(b"".join(chain.from_iterable(lane.windows for lane in lanes)), np.uint8)
            yield columns.reshape(LANES, -1).T
            for lane in lanes:
                lane.windows.clear()
            begin_part = begin
