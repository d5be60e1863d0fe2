"""What only compression has of the Rice code in planes: classes of values, the length of a block, fields joined to
chunks."""

from amaranth.hdl import C, Cat, Mux, Signal

from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import Digits, choose, turn
from actcodec.rtl.jpegact.bits import unfold
from actcodec.rtl.jpegact.rice_decode import RAW

__all__ = ["Length", "chunks", "classes", "first_byte", "mantissas", "merged", "planes"]


def classes(parts, line, k, straight):
    """Of a line: whether classes are at least 1, 2 and 3, by lanes, and for which e an escape is too large."""
    # Division by 2^k is three levels of multiplexers, one for each bit of k. The trick is in q: classes only tell 0, 1,
    # 2 and more, and escapes whether the quotient reaches 2^e + 3, so a few ORs of q's bits replace every comparison.
    columns, beyond = [[], [], []], 0
    for lane in range(8):
        u = line.word_select(lane, 8)
        one = parts.wire(Mux(k[lane][0], u[1:], u))
        two = parts.wire(Mux(k[lane][1], one[2:], one))
        q = parts.wire(Mux(k[lane][2], two[4:], two))
        # Without signs classes are those of u - 1, which has the same quotient but where all that is shifted out is 0.
        remainder = (k[lane][0] & u[0]) | (k[lane][1] & one[:2].any()) | (k[lane][2] & two[:4].any())
        more = parts.wire(straight & remainder)
        third = parts.wire(q[1] & (q[0] | more))  # of the lower two bits
        flags = q.any() | more, q[1:].any() | (q[0] & more), q[2:].any() | third
        for column, flag in zip(columns, flags, strict=True):
            column.append(parts.wire(flag))
        # Whether the quotient reaches 2^e + 3, or less by one.
        reaches = [q[2:].any() | (q[:2].all() & more), q[3:].any() | (q[2] & (q[:2].any() | more))]
        reaches += [q[e + 1 :].any() | (q[e] & (q[2:e].any() | third)) for e in range(2, 8)]
        beyond = beyond | Cat(reaches)
    return [parts.wire(Cat(column)) for column in columns], beyond


class Length:
    """The first pass over a block: the smallest e and the length.

    ``index``, ``e``: combinational, while ``opening``; then ``which``, the same, ``empty`` and ``raw`` and ``size``, of
    which the last two are right a step later.
    """

    def __init__(self, parts, flags, e, k0, decompress, opening):
        self._parts, self._flags = parts, flags
        self._opening = opening
        self._exceeds = Signal(4, reset_less=True)
        self._number = Signal(7, reset_less=True)
        self._total = Signal(10, reset_less=True)
        self._nonzero, self._escape = Signal(reset_less=True), Signal(reset_less=True)
        exceeds = self._exceeds
        index = parts.wire(Cat((exceeds[0] & ~exceeds[1]) | exceeds[2], exceeds[1]))
        self.e = parts.wire(choose((index == j, e[j]) for j in range(4)))
        # Of the first value alone k + e may be above 8: it is cut off.
        ends = [parts.wire((k0 + e[j])[:4]) for j in range(4)]
        cut_off = choose(((index == j) & ends[j][3] & self._escape, ends[j][:3]) for j in range(4))
        self.which = Signal(2, reset_less=True)
        low, high, rest = Signal(9, reset_less=True), Signal(9, reset_less=True), Signal(10, reset_less=True)
        large = Signal(reset_less=True)
        self.empty = Signal(reset_less=True)
        number = self._number
        parts.at(self.which, index, opening & ~decompress)
        parts.at(low, Mux(self.e[0], number, 0) + Mux(self.e[1], number << 1, 0), opening)
        parts.at(high, Mux(self.e[2], number << 2, 0), opening)
        parts.at(rest, self._total + 7 - cut_off, opening)
        parts.at(large, exceeds[3], opening)
        parts.at(self.empty, ~self._nonzero, opening)
        bits = parts.wire((rest + low + high)[:11])
        self.raw = ~self.empty & (large | bits[9:].any() | bits[3:9].all())
        self.size = bits[3:9]

    def add(self, bits, escapes, beyond, some, escape):
        """Adds a line: numbers of bits and of escapes; for which e these are too large; whether a value is not zero,
        and whether the first one is an escape."""
        parts, opening = self._parts, self._opening
        parts.at(self._total, Mux(opening, self._flags, self._total) + bits[0] + bits[1])
        parts.at(self._number, Mux(opening, 0, self._number) + escapes)
        parts.at(self._exceeds, (self._exceeds & (~opening).replicate(4)) | beyond)
        parts.at(self._nonzero, (self._nonzero & ~opening) | some)
        parts.at(self._escape, escape, opening)


def mantissas(parts, line, escaped, k, straight, raw, final):
    """The mantissas of a line, each with its ``final`` width."""
    results = []
    for lane in range(8):
        value = line.word_select(lane, 8)
        begin = Mux(escaped[lane], Cat(~straight, 1) << k[lane], 0)[:8]
        rest = parts.wire((Cat(~straight, value) + Cat(~straight, ~begin))[1:9])  # less 1, if straight
        keep = Cat(final[lane] > j for j in range(8))
        results.append(Mux(raw, unfold(value, straight), rest) & keep)
    return Cat(results)


def merged(parts, low, high, size):
    """Two fields as one: the upper one behind the ``size`` bits of the lower one."""
    return parts.wire((low | (high << size))[: len(low) + len(high)])


def _append(parts, whole, field, count, first, start):
    """What becomes of a register ``whole`` to which ``count`` bits are appended in each step; with ``first`` it begins
    anew, at ``start``. Returns that, where it ends, and where it will."""
    # Appending at any bit without a wide shifter: three bits of the place shift the field finely, the others select the
    # byte in which it is ORed into the register, which is zero there.
    size = len(whole)
    end = Signal(range(size + 1), reset_less=True, name="end")
    place = parts.wire(Mux(first, start, end)[: len(end)])
    fine = parts.wire((field << place[:3])[:15])
    placed = choose((place[3:] == j, Cat(C(0, 8 * j), fine)[:size]) for j in range(size // 8))
    parts.at(end, place + count)
    return Mux(first, 0, whole) | placed, end, parts.wire((end + count)[: len(end)])


def planes(parts, sections, flow, ahead, phase, flags):
    """Appends the planes of lines to ``sections``, registers for F and P0, and for P1 and P2. Returns what these
    become, what F and P0 are, and for each section where it ends and where it will."""
    groups = [flow[5][0][:4], flow[5][0][4:]]
    first_plane = Cat(Mux(ahead[0], groups[0], groups[1]), Mux(ahead.all(), groups[1], 0))
    plane0 = parts.register(Mux(ahead.any(), first_plane, 0), 8)
    step0 = parts.register(parts.ones(ahead), 2)
    nonzero = parts.register(Cat(group.any() for group in groups), 2)
    have = Signal(16, reset_less=True)
    parts.at(have, Cat(have[2:], nonzero))
    next0, *ends = _append(parts, sections[0], plane0, step0 << 2, phase[0], flags)
    ends, nexts = [ends], []
    for c in range(2):
        gaps = compaction.moves(parts.m, compaction.zeros(parts.m, flow[6][c]))
        plane = parts.register(Cat(compaction.close(parts.m, list(flow[6][c + 1]), gaps)), 8)
        count = parts.register(parts.ones(flow[6][c]), 4)
        value, *end = _append(parts, sections[1][64 * c :][:64], plane, count, phase[1], 0)
        nexts.append(value)
        ends.append(end)
    return (next0, Cat(nexts)), sections[0] | (have >> (16 - flags)[:5]), ends


def chunks(parts, phase, first, coded, coming, sections, ends, lines, sizes, size, field):
    """Puts the fields of a block together: the first byte, F and P0; P1 and P2; lines 0 and 1; 2 and 3; then a line
    each. ``lines``: the latest one first, with their ``sizes``, of which ``size`` is that of the one that comes next.
    ``coded``: the block has planes, ``coming``: the next one. ``field`` keeps what has been joined; returns what it
    becomes, and a chunk and its bytes."""
    # Fields of three kinds and any width become bytes in two steps, each with one shifter. First two fields are joined:
    # the second is turned by the size of the first, which is known a step ahead. Then the pair is put behind the up to
    # seven bits that the chunk before has left over.
    # The size of the first of two fields is known a step ahead.
    lead, digits = Signal(7, reset_less=True), Digits([2, 2, 3], 65, "lead", init=None)
    begins = [phase[7], phase[0] & coded, phase[1] & coded, phase[2] & coded]
    known = [Cat(ends[0][1][:3], ends[0][1][3:] + 1), ends[1][1], sizes[1], sizes[0]]
    known[0] = Mux(coming, known[0], Cat(size[:3], size[3:] + 1))
    ahead = parts.wire(choose([*zip(begins, known, strict=True), (~Cat(begins).any(), size)])[:7])
    with parts.m.If(parts.step):
        parts.m.d.sync += [lead.eq(ahead), *digits.eq(ahead)]
    only, second, third, fourth, opens, other = begun = [Signal(name=f"begun_{j}", reset_less=True) for j in range(6)]
    begins = [phase[7] & coming, *begins[1:], phase[7] & ~coming]
    for one, begin in zip(begun, [*begins, ~Cat(begins).any()], strict=True):
        parts.at(one, begin)
    one = choose([(only, Cat(first, sections[0])), (second, sections[1][:64]), (third, lines[2]), (fourth, lines[1]),
                  (other, lines[0]), (opens, Cat(first, lines[0]))])
    two = choose([(second, sections[1][64:]), (third, lines[1]), (fourth, lines[0])])
    two_size = choose([(second, ends[2][0]), (third, sizes[1]), (fourth, sizes[0])])
    joined = one | Cat(turn(parts.m, list(two), digits[:], 128))
    total = parts.register(lead + two_size, 8)

    over, behind = Signal(8, reset_less=True), Signal(3, reset_less=True)  # bits left over from the chunk before
    final = phase[0]
    low = parts.wire((total[:3] + behind)[:4])
    placed = parts.wire((field << behind)[:136] | over)
    at = parts.wire(Cat(total[3:] == j for j in range(17)))
    rest_at = parts.wire(Mux(low[3], at << 1, at)[:17])  # the byte in which all ends
    keep = (~final).replicate(8)
    parts.at(over, choose((rest_at[j], placed.word_select(j, 8)) for j in range(17)) & keep)
    parts.at(behind, low[:3] & keep[:3])
    packed = Cat(placed.word_select(j, 8) & (~rest_at[j] | final).replicate(8) for j in range(16))
    return joined, packed, total[3:] + low[3] + (final & low[:3].any())


def first_byte(raw, size, which, coded):
    """Of a block."""
    return Mux(raw, RAW, Cat(size, which) & coded.replicate(8))
