"""What only decompression has of the Rice code in planes: planes and mantissas taken apart, and how a block ends."""

from amaranth.hdl import C, Cat, Mux, Signal

from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import choose

__all__ = ["LINES", "RAW", "mantissas", "planes", "popcount"]

RAW = 63  # what the length of a raw block is called
# Of the store. A word waits longest there as the third and last one of a block, when only the block's last line reaches
# it and all eight rows of the next one come in meanwhile.
LINES = 14


def popcount(bits):
    """How many of ``bits`` are set, as a balanced tree."""
    half = len(bits) // 2
    return popcount(bits[:half]) + popcount(bits[half:]) if half else bits[0]


def window(parts, bits, place):
    """8 bits from ``place`` on, zeros behind the end."""
    coarse = parts.wire(choose((place[3:] == j, bits[8 * j :][:15]) for j in range(-(-len(bits) // 8))))
    return parts.wire((coarse >> place[:3])[:8])


def ones(parts, bits, begin, end, when):
    """How many bits are set in every byte, of those from ``begin`` to before ``end``."""
    masked = [bits[j] & (begin <= j) & (end > j) for j in range(len(bits))]
    counts = []
    for j in range(0, len(bits), 8):
        counts.append(Signal(4, reset_less=True, name="ones"))
        parts.at(counts[-1], popcount(masked[j : j + 8]), when)
    return counts


def planes(parts, store, beat, flags, flagged, decoded):
    """Takes P0, P1 and P2 apart, into ``decoded``. Returns where mantissas begin, and the first words."""
    rows0, rows1, rows2 = (Signal(size, reset_less=True, name=f"rows_{j}") for j, size in enumerate((80, 144, 256)))
    parts.at(rows0, Cat(store[2], store[1])[:80], beat[3])
    parts.at(rows1, Cat(store[3], store[2], store[1])[:144], beat[4])
    parts.at(rows2, Cat(store[5], store[4], store[3], store[2]), beat[6])

    showing, begin1, begin2 = Signal(16, reset_less=True), Signal(7, reset_less=True), Signal(8, reset_less=True)
    shows = parts.wire((~flagged | (store[2][:16] << (16 - flags)[:5]))[:16])
    parts.at(showing, Mux(beat[3], shows, showing >> 2))
    parts.at(begin1, flags + (popcount(shows) << 2), beat[3])
    place0 = Signal(7, reset_less=True)
    parts.at(place0, Mux(beat[3], flags, place0 + ((showing[0] + showing[1]) << 2)))
    byte = window(parts, rows0, place0)
    groups = [byte[:4], Mux(showing[0], byte[4:], byte[:4])]
    one = [parts.register(Cat(groups[g] & showing[g].replicate(4) for g in range(2)), 8)]
    one += [parts.register(one[0], 8)]
    one += [parts.register(one[1], 8)]
    one += [parts.register(one[2], 8)]

    def under(plane, bits):
        opened = compaction.reopen(parts.m, list(bits), compaction.moves(parts.m, compaction.zeros(parts.m, plane)))
        return Cat(opened) & plane

    place1 = Signal(8, reset_less=True)
    parts.at(place1, Mux(beat[4], begin1, place1 + popcount(one[0])))
    two = [parts.register(under(one[1], parts.register(window(parts, rows1, place1), 8)), 8)]
    two += [parts.register(two[0], 8)]

    number = Signal(7, reset_less=True)
    parts.at(number, parts.sum(ones(parts, rows0, flags, begin1, beat[4])), beat[5])
    place2 = Signal(8, reset_less=True)
    parts.at(place2, Mux(beat[6], begin1 + number, place2 + popcount(two[0])))
    parts.at(begin2, begin1 + number, beat[6])
    three = under(two[1], parts.register(window(parts, rows2[:216], place2), 8))
    parts.m.d.comb += [decoded[0].eq(one[3]), decoded[1].eq(two[1]), decoded[2].eq(three)]

    counts = ones(parts, rows1, begin1, begin2, beat[7])
    halves = [Signal(7, reset_less=True, name=f"half_{j}") for j in range(2)]
    for j in range(2):
        parts.at(halves[j], parts.sum(counts[9 * j :][:9]), beat[0])
    begin3 = Signal(8, reset_less=True)
    parts.at(begin3, begin2 + halves[0] + halves[1], beat[1])
    return begin3, [rows2.word_select(j, 64) for j in range(4)]


def mantissas(parts, unit, block, begin_of_mantissas, heads):
    """Takes the mantissas of a line from the words that wait in the store, and tells what is wrong with a block at its
    end. Returns the eight fields.

    ``unit`` has what moves: ``step``, ``beat``, ``inside``, ``decompress``, ``store``, ``pushes``, ``faults``;
    ``block`` what is known of one: bytes that enter ``now``, its first byte when it is ``older`` and ``oldest``,
    whether it is ``raw`` or, at the output, ``plain_out``; the line's ``final`` widths, and later their sums
    (``sizes``, ``pair_sizes``, ``half_sizes``).
    """
    m = parts.m
    # Words in the unit.store that have not been read: where the next one is, and how many.
    tap, rest_words = Signal(LINES, reset_less=True), Signal(3, reset_less=True)
    long6, long7 = Signal(reset_less=True), Signal(reset_less=True)  # the block has a seventh row, and an eighth
    parts.at(long6, block.now.any(), unit.beat[6])
    parts.at(long7, block.now.any(), unit.beat[7])
    word = parts.wire(begin_of_mantissas[6:] & (block.older[:6] != RAW).replicate(2))
    at_word = Signal(2, reset_less=True)
    parts.at(at_word, word, unit.beat[2])
    cur, nxt = Signal(64, reset_less=True), Signal(64, reset_less=True)
    place, moved, pulls = Signal(6, reset_less=True), Signal(7), Signal()
    line_size = parts.register(parts.sum(block.final), 7)
    m.d.comb += [moved.eq(place + line_size), pulls.eq(unit.step & unit.decompress & (unit.beat[3] | moved[6]))]
    with m.If(pulls):
        m.d.sync += [
            cur.eq(Mux(unit.beat[3], choose((at_word == j, heads[j]) for j in range(4)), nxt)),
            nxt.eq(choose((tap[j] & rest_words.any(), unit.store[j]) for j in range(LINES))),
        ]
    more_rows = long6 + long7
    with m.If(unit.step & unit.beat[2]):
        m.d.sync += [tap.eq(1 << (7 + more_rows - word)[:4]), rest_words.eq(5 + more_rows - word)]
    with m.Elif(unit.step):
        with m.If(unit.pushes & ~pulls):
            m.d.sync += tap.eq(tap << 1)
        with m.If(~unit.pushes & pulls):
            m.d.sync += tap.eq(tap >> 1)
        with m.If(pulls & rest_words.any()):
            m.d.sync += rest_words.eq(rest_words - 1)
    parts.at(place, Mux(unit.beat[3], Mux(block.raw, 0, begin_of_mantissas[:6]), moved[:6]))
    passed = Signal(4, reset_less=True)  # words
    parts.at(passed, Mux(unit.beat[3], at_word, passed + moved[6]))

    both = Cat(cur, nxt)
    line = parts.register((both >> place)[:64], 64)
    lower = parts.register(line[:32], 32)
    upper = parts.register((line >> block.half_sizes[0])[:32], 32)
    pieces, limits = [], [parts.register(parts.register(size_, 4), 4) for size_ in block.sizes]
    for half, quarter in ((lower, 0), (upper, 2)):
        between = parts.register(parts.register(block.pair_sizes[quarter], 5), 5)
        pieces += [half[:16], parts.wire((half >> between)[:16])]
    fields = []
    for lane in range(8):
        part = pieces[lane // 2]
        part = (part >> limits[lane - 1])[:8] if lane % 2 else part[:8]
        fields.append(parts.register(part & Cat(limits[lane] > j for j in range(8)), 8))

    # What a block turns out to be is known a cycle behind its last line.
    closing, end, words, pad = Signal(), Signal(7, reset_less=True), Signal(4, reset_less=True), Signal()
    tail = choose((moved[3:] == j, both.word_select(j, 8)) for j in range(16))
    parts.at(end, moved, unit.beat[3])
    parts.at(words, passed, unit.beat[3])
    parts.at(pad, moved[:3].any() & (tail & Cat(moved[:3] <= j for j in range(8))).any(), unit.beat[3])
    m.d.sync += closing.eq(unit.step & unit.decompress & unit.beat[3] & unit.inside[11])
    with m.If(closing & ~block.plain_out):
        used = (Cat(C(0, 6), words) + end + 7) >> 3
        m.d.sync += [unit.faults.length.eq(unit.faults.length | (used != block.oldest)),
                     unit.faults.padding.eq(unit.faults.padding | pad)]
    return fields
