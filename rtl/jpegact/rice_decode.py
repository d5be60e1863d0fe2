"""What only decompression has of the Rice code in planes: planes and mantissas taken apart, and how a block ends."""

from amaranth.hdl import C, Cat, Mux, Signal

from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import Digits, choose, window
from actcodec.rtl.jpegact.bits import unfold

__all__ = ["LINES", "RAW", "mantissas", "planes", "values"]

RAW = 63  # what the length of a raw block is called
# Of the store. A word waits longest there as the third and last one of a block, when only the block's last line reaches
# it and all eight rows of the next one come in meanwhile.
LINES = 14
NEAREST = 4  # line of the store from which a word is ever read


def eight(parts, bits, place):
    """8 bits from ``place`` on, zeros after the end."""
    coarse = parts.wire(choose((place[3:] == j, bits[8 * j :][:15]) for j in range(-(-len(bits) // 8))))
    return parts.wire((coarse >> place[:3])[:8])


def ones(parts, bits, end, when):
    """How many bits are set in every byte, of those before ``end``."""
    masked = bits & parts.above(end, len(bits))
    counts = []
    for j in range(0, len(bits), 8):
        counts.append(Signal(4, reset_less=True, name="ones"))
        parts.at(counts[-1], parts.ones(masked[j : j + 8]), when)
    return counts


def since(parts, bits, begin, most):
    """The ``bits`` from ``begin`` on, which is ``most`` or less."""
    return Cat(bits[:most] & ~parts.above(begin, most), bits[most:])


def halves(parts, counts, when):
    """Two numbers whose sum is that of ``counts``."""
    half = len(counts) // 2
    sums = [Signal(7, reset_less=True, name=f"half_{j}") for j in range(2)]
    for one, some in zip(sums, (counts[:half], counts[half:]), strict=True):
        parts.at(one, parts.sum(some), when)
    return sums


def planes(parts, store, beat, flags, flagged, decoded, rows):
    """Takes P0, P1 and P2 apart, into ``decoded``; ``rows`` are three registers for the rows that may have them.
    Returns what these take and when, where mantissas begin, and the first words."""
    # A plane has bits only for values whose bit in the plane before is set, so where a row's bits begin is the number
    # of ones so far. These are three accumulators (`place0` to `place2`), each a few steps behind the one before; where
    # the next plane begins is the sum of all ones, counted in parallel over the block, long before the last row.
    rows0, rows1, rows2 = rows
    present, presence = Signal(5, reset_less=True), Signal(16, reset_less=True)
    begin1, begin2 = Signal(7, reset_less=True), Signal(8, reset_less=True)
    parts.at(present, parts.ones(store[1][:16] & parts.above(flags, 16)), beat[2])
    shows = parts.wire((~flagged | (store[2][:16] << (16 - flags)[:5]))[:16])
    parts.at(presence, Mux(beat[3], shows, presence >> 2))
    parts.at(begin1, (64 - 3 * flags)[:7] + (present << 2), beat[3])
    # What lies in front of P0, and of P1, is not to be counted. The end of P0 is known a step after its first row.
    loads = [(since(parts, Cat(store[2], store[1])[:80], flags, 16), 3),
             (since(parts, Cat(store[3], store[2], store[1])[:144], begin1, 80), 4),
             (Cat(store[5], store[4], store[3], store[2]), 6)]
    place0 = Signal(7, reset_less=True)
    parts.at(place0, Mux(beat[3], flags, place0 + ((presence[0] + presence[1]) << 2)))
    byte = eight(parts, rows0, place0)
    groups = [byte[:4], Mux(presence[0], byte[4:], byte[:4])]
    one = [parts.register(Cat(groups[g] & presence[g].replicate(4) for g in range(2)), 8)]
    one += [parts.register(one[0], 8)]
    one += [parts.register(one[1], 8)]
    one += [parts.register(one[2], 8)]

    def under(plane, bits):
        opened = compaction.reopen(parts.m, list(bits), compaction.moves(parts.m, compaction.zeros(parts.m, plane)))
        return Cat(opened) & plane

    place1 = Signal(8, reset_less=True)
    parts.at(place1, Mux(beat[4], begin1, place1 + parts.ones(one[0])))
    two = [parts.register(under(one[1], parts.register(eight(parts, rows1, place1), 8)), 8)]
    two += [parts.register(two[0], 8)]

    number = halves(parts, ones(parts, rows0, begin1, beat[4]), beat[5])
    place2 = Signal(8, reset_less=True)
    end1 = parts.wire((begin1 + number[0] + number[1])[:8])
    parts.at(place2, Mux(beat[6], end1, place2 + parts.ones(two[0])))
    parts.at(begin2, end1, beat[6])
    three = under(two[1], parts.register(eight(parts, rows2[:216], place2), 8))
    parts.m.d.comb += [decoded[0].eq(one[3]), decoded[1].eq(two[1]), decoded[2].eq(three)]

    number = halves(parts, ones(parts, rows1, begin2, beat[7]), beat[0])
    begin3 = Signal(8, reset_less=True)
    parts.at(begin3, begin2 + number[0] + number[1], beat[1])
    return loads, begin3, [rows2.word_select(j, 64) for j in range(4)]


def mantissas(parts, unit, block, begin_of_mantissas, heads, line, halves):
    """Takes the mantissas of a line from the words that wait in the store, by way of the registers ``line`` and
    ``halves``, and tells what is wrong with a block at its end. Returns what these become, and the eight fields.

    ``unit`` has what moves: ``step``, ``beat``, ``inside``, ``decompress``, ``store``, ``push``, ``faults``;
    ``block`` what is known of one: whether there are ``more`` bytes; its first byte, when it is ``older`` and
    ``oldest``; whether it is ``raw``, ``zero`` or, at the output, ``plain_out``; the line's ``widths``, and later those
    that it really has (``sizes``) and their sums (``pair_sizes``, ``half_sizes``).
    """
    # Mantissas follow one another at any bit, a line of up to 64 bits per step, and the words that contain them arrive
    # a variable number of steps earlier. Two registers (`cur`, `nxt`) are a window of 128 bits, of which a line is cut
    # by a turn with one-hot digits; `moved[6]`, the carry of the place, pulls the next word, from where the one-hot
    # `tap` follows it through the store. Within a line, halves, quarters and lanes are cut by the sums of their widths.
    m = parts.m
    # Words in the unit.store that have not been read: where the next one is, and how many.
    tap, rest_words = Signal(LINES, reset_less=True), Signal(3, reset_less=True)
    long6, long7 = Signal(reset_less=True), Signal(reset_less=True)  # the block has a seventh row, and an eighth
    parts.at(long6, block.more, unit.beat[6])
    parts.at(long7, block.more, unit.beat[7])
    word = parts.wire(begin_of_mantissas[6:] & (block.older[:6] != RAW).replicate(2))
    at_word = Signal(2, reset_less=True)
    parts.at(at_word, word, unit.beat[2])
    cur, nxt = Signal(64, reset_less=True), Signal(64, reset_less=True)
    place, moved, pull = Signal(6, reset_less=True), Signal(7), Signal()
    line_size = parts.register(Mux(block.raw, 64, Mux(block.zero, 0, parts.sum(block.widths))), 7)
    m.d.comb += [moved.eq(place + line_size), pull.eq(unit.decompress & (unit.beat[3] | moved[6]))]
    with m.If(unit.step & pull):
        m.d.sync += [
            cur.eq(Mux(unit.beat[3], choose((at_word == j, heads[j]) for j in range(4)), nxt)),
            nxt.eq(choose((tap[j] & rest_words.any(), unit.store[j])
                           for j in range(NEAREST, LINES))),
        ]
    more_rows = long6 + long7
    with m.If(unit.step & unit.beat[2]):
        m.d.sync += rest_words.eq(5 + more_rows - word)
    with m.Elif(unit.step & pull & rest_words.any()):
        m.d.sync += rest_words.eq(rest_words - 1)
    # By gates, not by an enable: `pull` comes too late for a clock gate.
    with m.If(unit.step):
        goes = [unit.push & ~pull, ~unit.push & pull, ~(unit.push ^ pull)]
        m.d.sync += tap.eq(choose([
            (unit.beat[2], (1 << (7 + more_rows - word)[:4])[:LINES]),
            *((~unit.beat[2] & when, there) for when, there in zip(goes, (tap << 1, tap >> 1, tap), strict=True)),
        ])[:LINES])
    target = parts.wire(Mux(unit.beat[3], Mux(block.raw, 0, begin_of_mantissas[:6]), moved[:6]))
    digits = Digits([2, 2, 2], 64, "digits", init=None)
    parts.at(place, target)
    with m.If(unit.step):
        m.d.sync += digits.eq(target)
    passed = Signal(4, reset_less=True)  # words
    parts.at(passed, Mux(unit.beat[3], at_word, passed + moved[6]))

    both = Cat(cur, nxt)
    next_line = Cat(window(m, list(both), digits[:], 64))
    next_halves = Cat(line[:32], (line >> block.half_sizes[0])[:32])
    pieces, limits = [], [parts.register(parts.register(size_, 4), 4) for size_ in block.sizes]
    for half, quarter in ((halves[:32], 0), (halves[32:], 2)):
        between = parts.register(parts.register(block.pair_sizes[quarter], 5), 5)
        pieces += [half[:16], parts.wire((half >> between)[:16])]
    fields = []
    for lane in range(8):
        part = pieces[lane // 2]
        part = (part >> limits[lane - 1])[:8] if lane % 2 else part[:8]
        fields.append(part & Cat(limits[lane] > j for j in range(8)))

    # What a block turns out to be is known a cycle after its last line.
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
    return next_line, next_halves, Cat(fields)


def values(parts, classes, fields, k, straight, plain, raw):
    """The values of a line from their classes, lane by lane, and the ``fields`` of their mantissas."""
    results = []
    for lane in range(8):
        one, two, three = (column[lane] for column in classes)
        if_straight = Cat(two & ~three, three)
        signed_ = Cat((one & ~two) | three, two)
        multiple = Mux(straight, if_straight, signed_) & (~plain).replicate(2)
        carry = straight & one & ~plain  # values without a sign are one more
        base = (multiple << k[lane])[:8]
        value = parts.wire((Cat(carry, base) + Cat(carry, fields.word_select(lane, 8)))[1:9])
        results.append(Mux(raw, value, unfold(value, straight)))
    return Cat(results)
