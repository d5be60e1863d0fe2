"""Golomb-Rice codes in planes: a block code in place of ZVC, in both directions."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk
from actcodec.rtl.common.vectors import vectors
from actcodec.rtl.jpegact.nibble import Faults, fold, unfold
from actcodec.rtl.offload.config import rows

__all__ = ["Rice"]

TABLE = 64  # bits
RAW = 63  # what the length of a raw block is called
LINES = 13  # of the store
COMPRESS, DECOMPRESS = 17, 15  # steps from a line's or a row's to that in which it leaves


def _count(bits):
    """How many of ``bits`` are set, as a balanced tree."""
    half = len(bits) // 2
    return _count(bits[:half]) + _count(bits[half:]) if half else bits[0]


class Rice(wiring.Component):
    """Compresses blocks of 64 values into 1 to 65 bytes each, and back.

    A Rice code of a value is a unary number and k bits. Here all first bits of the unary numbers come first (P0, and in
    front of it flags F for groups of four that have none), then all second ones (P1), all third ones (P2), and then the
    k bits of all values, which are k + e bits where the unary number did not end. ``golden/jpegact/rice.py`` has the
    format.

    All moves in steps, one for each line that comes in. Compressing, lines wait in the store until the sum of all bits
    and so the length is known, while their planes are appended to each other in registers; the chunks of a block carry
    F and P0; P1 and P2; lines 0 and 1; 2 and 3; then a line each. Decompressing, three registers keep the rows that may
    have planes; P0, P1 and P2 are taken apart a line at a time, a few steps after each other, each from where the ones
    of the plane before say that it begins; the k bits follow, for which rows wait in the store as in a FIFO:

        compress    i -> classes -> counts -> e, length
                         classes -> planes appended --------------------> chunks
                    i -> store of 13 lines -> mantissas -> joined lines -> chunks
        decompress  rows -> store -> P0 -> P1 -> P2 -> widths
                            store -> two words -> 64 bits -> mantissas -> o

    Throughput: one line a cycle in both directions, 8 cycles a block, whatever the data. Latency: 18 cycles from the
    first line in to its chunk, 16 from the first row to its line. Buffering: 17 lines; a block waits until the lines of
    those behind it come, unless its last one carries ``last``. Combinational paths: ``chunks.ready`` to ``i.ready``,
    ``o.ready`` to ``rows.ready``.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8
        Blocks to compress, eight lines each: columns of a tile, vertical frequency ascending, or sectors.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk` of 16
        Compressed: eight chunks a block, of any size.
    rows, empty : stream of :func:`~actcodec.rtl.offload.config.rows` of 8
        To decompress: the first row of a block with its first byte in place of a mask and 8 that follow,
        seven more with 8 bytes each, and anything where the block has ended; ``empty``: the row is zeros, and so is the
        first byte.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors` of signed 8
        Decompressed blocks, 64 values whatever the stream is. In a block whose length is wrong, mantissas that lie far
        in front of where its sections may end can be zero.
    faults : output, :class:`~actcodec.rtl.jpegact.nibble.Faults`
        What was wrong with a block of this tensor. Until ``start``; complete a cycle after the last line was offered.
    decompress, table : input
        Constant from ``start`` on. The table has 64 bits: k in bits 44:0, three each, flags in 49:45 (0 to 16), e in
        61:50, three each, ascending, and in bit 62 whether values are unsigned bytes. Compressing, no sum of a k, but
        the first, and of the last e may be above 8.
    start : input
        Pulse, a cycle or more before the first line or row of a tensor; only while none is under way.
    """

    def __init__(self):
        values = stream.Signature(vectors(signed(8)))
        super().__init__(
            {
                "i": In(values),
                "chunks": Out(stream.Signature(chunk(16))),
                "o": Out(values),
                "faults": Out(Faults),
                "decompress": In(1),
                "table": In(TABLE),
                "rows": In(stream.Signature(rows(8))),
                "empty": In(1),
                "start": In(1),
            }
        )

    def elaborate(self, platform):
        m = self._m = Module()
        source, empty = self.rows, self.empty
        decompress, straight = self.decompress, self.table[62]
        flags, e = self.table[45:50], [self.table[50 + 3 * j :][:3] for j in range(4)]
        k = [self.table[3 * d :][:3] for d in range(15)]
        flagged = self._wire(Cat(flags >= 16 - g for g in range(16)))  # groups that have a flag

        # One-hot: the line that enters; row r comes with phase r + 2, so that both directions look up the same k.
        phase = Signal(8)
        beat = [phase[(s + 2) % 8] for s in range(8)]
        step, entering, flush, valid, last = Signal(), Signal(), Signal(), Signal(), Signal(reset_less=True)
        inside, leaves, more, free = Signal(COMPRESS), Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~valid | Mux(decompress, self.o.ready, self.chunks.ready)),
            entering.eq(~flush & Mux(decompress, source.valid, self.i.valid)),
            step.eq((entering | flush) & free),
            source.ready.eq(decompress & ~flush & free),
            self.i.ready.eq(~decompress & ~flush & free),
            leaves.eq(Mux(decompress, inside[DECOMPRESS - 1], inside[COMPRESS - 1])),
            more.eq(Mux(decompress, inside[DECOMPRESS - 2], inside[COMPRESS - 2])),
            self.o.valid.eq(valid & decompress),
            self.chunks.valid.eq(valid & ~decompress),
            self.o.payload.last.eq(last),
            self.chunks.payload.last.eq(last),
        ]
        with m.If(free):
            m.d.sync += valid.eq(step & leaves)
        with m.If(step):
            m.d.sync += [
                phase.eq(phase.rotate_left(1)),
                inside.eq(Cat(entering, inside)),
                flush.eq((entering & Mux(decompress, source.payload.last, self.i.payload.last))
                         | (flush & (more | ~leaves))),
                last.eq(flush & leaves & ~more),
            ]
        with m.If(self.start):
            m.d.sync += [phase.eq(Mux(decompress, 1 << 2, 1 << 0)), inside.eq(0)]
        self._step = step

        # -------------------------------------------------------------------------------------------------- k of a line
        def line_of(values, by):
            """``values`` of the line whose number is the phase and ``by``, for the next step."""
            return choose((phase[j], Cat(values((j + by) % 8))) for j in range(8))

        of_line = lambda line: [k[line + lane] for lane in range(8)]  # noqa: E731
        late, early = Signal(24, reset_less=True), Signal(24, reset_less=True)
        self._at(late, line_of(of_line, 0))  # line: phase - 1
        self._at(early, line_of(of_line, 5))  # line: phase - 4
        late_k = [late.word_select(lane, 3) for lane in range(8)]
        early_k = [early.word_select(lane, 3) for lane in range(8)]

        # --------------------------------------------------------------------------------------------------- the store
        store = [Signal(64, reset_less=True, name=f"store_{j}") for j in range(LINES)]
        byte = Signal(8, reset_less=True)  # the first one of the block that enters
        left, now, pushes = Signal(7, reset_less=True), Signal(7), Signal()
        header = self._wire(source.payload.mask & (~empty).replicate(8))
        m.d.comb += [
            now.eq(Mux(beat[0], Mux(header[:6] == RAW, 64, header[:6]), left) & (~empty).replicate(7)),
            pushes.eq(step & (~decompress | ~(beat[6] | beat[7]) | now.any())),
        ]
        kept = Cat((now[3:].any() | (now[:3] > j)).replicate(8) for j in range(8))
        u = Cat(fold(self.i.payload.data[lane], straight) for lane in range(8))
        with m.If(pushes):
            m.d.sync += store[0].eq(Mux(decompress, source.payload.data.as_value() & kept, u))
            m.d.sync += [store[j].eq(store[j - 1]) for j in range(1, LINES)]
        self._at(left, Cat(now[:3], Mux(now[3:].any(), now[3:] - 1, 0)) & now[3:].any().replicate(7))
        # First bytes go with their blocks.
        older, oldest = Signal(8, reset_less=True), Signal(6, reset_less=True)
        self._at(byte, header, beat[0])
        self._at(older, byte, beat[0])
        self._at(oldest, older[:6], beat[7])

        # ----------------------------------------------------------------------- first pass: classes, counts, e, length
        classes, over_bits = self._classes(store[0], late_k, straight)
        low = self._sum([kk & (~straight | store[0].word_select(lane, 8).any()).replicate(3)
                         for lane, kk in enumerate(late_k)])
        # Whether classes are at least 1, 2 and 3, by lanes: of the line that has come, and of those before.
        flow = [[Signal(8, reset_less=True, name=f"class_{c}_{j}") for c in range(3)] for j in range(7)]
        decoded = [Signal(8, name=f"decoded_{c}") for c in range(3)]
        for c in range(3):
            self._at(flow[0][c], Mux(decompress, decoded[c], classes[c]))
            for j in range(1, 7):
                self._at(flow[j][c], flow[j - 1][c])
        lows, some, over = Signal(6, reset_less=True), Signal(reset_less=True), Signal(8, reset_less=True)
        self._at(lows, low)
        self._at(some, store[0].any())
        self._at(over, over_bits)

        has = line_of(lambda line: [flagged[2 * line], flagged[2 * line + 1]], 6)  # at the second step
        ones = [self._wire(_count(flow[0][c])) for c in range(3)]
        present = self._present(flow[0][0], has)
        bits, escapes = Signal(7, reset_less=True), Signal(4, reset_less=True)
        self._at(bits, lows + ones[0] + ones[1] + (_count(present) << 2))
        self._at(escapes, ones[2])
        beyond, is_some, dc = Signal(4, reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        self._at(beyond, Cat((over >> e[j]).any() for j in range(4)))
        self._at(is_some, some)
        self._at(dc, flow[0][2][0])

        opening = phase[3]
        total, number = Signal(10, reset_less=True), Signal(7, reset_less=True)
        exceeds, nonzero, dc_escapes = Signal(4, reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        self._at(total, Mux(opening, flags, total) + bits)
        self._at(number, Mux(opening, 0, number) + escapes)
        self._at(exceeds, (exceeds & (~opening).replicate(4)) | beyond)
        self._at(nonzero, (nonzero & ~opening) | is_some)
        self._at(dc_escapes, dc, opening)

        which = Signal(2, reset_less=True)
        more_bits, product, sum_, large, empty_block = (
            Signal(size, reset_less=True, name=name) for name, size in (
                ("more_bits", 3), ("product", 10), ("sum", 11), ("large", 1), ("empty_block", 1)))
        index = self._wire(Cat((exceeds[0] & ~exceeds[1]) | exceeds[2], exceeds[1]))
        chosen = self._wire(choose((index == j, e[j]) for j in range(4)))
        beyond_8 = self._wire((k[0] + chosen)[:4])
        cut_off = Mux(dc_escapes & beyond_8[3], beyond_8[:3], 0)
        self._at(which, index, opening & ~decompress)
        self._at(more_bits, Mux(decompress, choose((older[6:] == j, e[j]) for j in range(4)), chosen),
                 Mux(decompress, beat[1], opening))
        self._at(product, self._sum([Mux(chosen[j], number << j, 0) for j in range(3)]), opening)
        self._at(sum_, total + 7 - cut_off, opening)
        self._at(large, exceeds[3], opening)
        self._at(empty_block, ~nonzero, opening)

        whole = self._wire((sum_ + product)[:11])
        size = Signal(6, reset_less=True)
        raw, zero, raw_out, plain_out = (Signal(reset_less=True, name=name)
                                         for name in ("raw", "zero", "raw_out", "plain_out"))
        is_raw = ~empty_block & (large | whole[9:].any() | whole[3:9].all())
        self._at(size, whole[3:9], phase[4])
        decides = Mux(decompress, beat[2], phase[4])
        self._at(raw, Mux(decompress, older[:6] == RAW, is_raw), decides)
        self._at(zero, Mux(decompress, older[:6] == 0, empty_block), decides)
        passes = Mux(decompress, beat[6], phase[7])
        self._at(raw_out, raw, passes)
        self._at(plain_out, raw | zero, passes)

        # ------------------------------------------------------------------------------------------- widths, mantissas
        escaping = self._classes(store[LINES - 2], early_k, straight)[0]
        present_u = [store[LINES - 2].word_select(lane, 8).any() for lane in range(8)]
        widths, escaped = [], Signal(8, reset_less=True)
        self._at(escaped, escaping[2])
        for lane in range(8):
            is_escape = Mux(decompress, flow[1][2][lane], escaping[2][lane])
            is_some_u = Mux(decompress, flow[1][0][lane], present_u[lane])
            wide = self._wire(early_k[lane] + more_bits)
            width = Mux(is_escape, Mux(wide[3], 8, wide), early_k[lane])
            width = Mux(straight & ~is_some_u, 0, width)
            widths.append(self._register(width[:4], 4))
        now_k = self._register(early, 24)
        final = [self._wire(Mux(raw, 8, Mux(zero, 0, width))) for width in widths]
        mantissas, sizes = [], []
        for lane in range(8):
            value = store[LINES - 1].word_select(lane, 8)
            begin = Mux(escaped[lane], Cat(~straight, 1) << now_k.word_select(lane, 3), 0)[:8]
            rest = self._wire((value - begin - straight)[:8])
            keep = Cat(final[lane] > j for j in range(8))
            mantissas.append(self._register(Mux(raw, unfold(value, straight), rest) & keep, 8))
            sizes.append(self._register(final[lane], 4))
        pairs = [self._wire(mantissas[2 * j] | (mantissas[2 * j + 1] << sizes[2 * j])[:16]) for j in range(4)]
        pair_sizes = [self._wire(sizes[2 * j] + sizes[2 * j + 1]) for j in range(4)]
        halves = [self._register((pairs[2 * j] | (pairs[2 * j + 1] << pair_sizes[2 * j]))[:32], 32) for j in range(2)]
        half_sizes = [self._register(pair_sizes[2 * j] + pair_sizes[2 * j + 1], 6) for j in range(2)]
        joined = [self._register((halves[0] | (halves[1] << half_sizes[0]))[:64], 64)]
        joined_sizes = [self._register(half_sizes[0] + half_sizes[1], 7)]
        for j in range(2):
            joined.append(self._register(joined[j], 64))
            joined_sizes.append(self._register(joined_sizes[j], 7))

        # ------------------------------------------------------------------------------------------------------- planes
        ahead = self._present(flow[5][0], line_of(lambda line: [flagged[2 * line], flagged[2 * line + 1]], 1))
        groups = [flow[5][0][:4], flow[5][0][4:]]
        first_plane = Cat(Mux(ahead[0], groups[0], groups[1]), Mux(ahead.all(), groups[1], 0))
        plane0 = self._register(Mux(ahead.any(), first_plane, 0), 8)
        step0 = self._register(_count(ahead), 2)
        found = self._register(Cat(group.any() for group in groups), 2)
        have = Signal(16, reset_less=True)
        self._at(have, Cat(have[2:], found))
        section0, end0 = self._append(plane0, step0 << 2, phase[0], flags, 80)
        section0 = section0 | (have >> (16 - flags)[:5])
        sections = []
        for c in range(2):
            gaps = compaction.moves(m, compaction.zeros(m, flow[6][c]))
            plane = self._register(Cat(compaction.close(m, list(flow[6][c + 1]), gaps)), 8)
            count = self._register(_count(flow[6][c]), 4)
            sections.append(self._append(plane, count, phase[1], 0, 64))

        # ------------------------------------------------------------------------------------------------------- chunks
        coded = ~plain_out
        first = Mux(raw_out, RAW, Cat(size, which) & coded.replicate(8))
        only, second, third, fourth = phase[0] & coded, phase[1] & coded, phase[2] & coded, phase[3] & coded
        other = ~(only | second | third | fourth)
        opens = phase[0] & plain_out
        one = choose([(only, Cat(first, section0)), (second, sections[0][0]), (third, joined[2]), (fourth, joined[1]),
                      (other & ~opens, joined[0]), (opens, Cat(first, joined[0]))])
        one_size = self._wire(choose([(only, end0 + 8), (second, sections[0][1]), (third, joined_sizes[2]),
                                      (fourth, joined_sizes[1]), (other & ~opens, joined_sizes[0]),
                                      (opens, joined_sizes[0] + 8)]))
        two = choose([(second, sections[1][0]), (third, joined[1]), (fourth, joined[0])])
        two_size = choose([(second, sections[1][1]), (third, joined_sizes[1]), (fourth, joined_sizes[0])])
        field = self._register((one | (two << one_size[:7]))[:128], 128)
        field_size = self._register(one_size + two_size, 8)

        over_byte, carried = Signal(8, reset_less=True), Signal(3, reset_less=True)
        begins, ends = phase[1], phase[0]
        behind = self._wire(carried & (~begins).replicate(3))
        upto = self._wire((field_size + behind)[:8])
        placed = self._wire((field << behind)[:136] | (over_byte & (behind.any()).replicate(8)))
        rest_at = self._wire(Cat((upto[3:] == j) for j in range(17)))
        self._at(over_byte, choose((rest_at[j], placed.word_select(j, 8)) for j in range(17)))
        self._at(carried, upto[:3])
        packed = Cat(placed.word_select(j, 8) & (~rest_at[j] | ends).replicate(8) for j in range(16))
        packed_count = upto[3:] + (ends & upto[:3].any())

        # ---------------------------------------------------------------------------------------- decompressing: planes
        begin_of_mantissas, heads = self._planes(store, beat, flags, flagged, decoded)

        # ------------------------------------------------------------------------------------- decompressing: mantissas
        # Words in the store that have not been read: where the next one is, and how many.
        tap, rest_words = Signal(LINES, reset_less=True), Signal(3, reset_less=True)
        long6, long7 = Signal(reset_less=True), Signal(reset_less=True)  # the block has a seventh row, and an eighth
        self._at(long6, now.any(), beat[6])
        self._at(long7, now.any(), beat[7])
        word, at_word = self._wire(begin_of_mantissas[6:] & (older[:6] != RAW).replicate(2)), Signal(2, reset_less=True)
        self._at(at_word, word, beat[2])
        cur, nxt = Signal(64, reset_less=True), Signal(64, reset_less=True)
        place, moved, pulls = Signal(6, reset_less=True), Signal(7), Signal()
        line_size = self._register(self._sum(final), 7)
        m.d.comb += [moved.eq(place + line_size), pulls.eq(step & decompress & (beat[3] | moved[6]))]
        with m.If(pulls):
            m.d.sync += [
                cur.eq(Mux(beat[3], choose((at_word == j, heads[j]) for j in range(4)), nxt)),
                nxt.eq(choose((tap[j] & rest_words.any(), store[j]) for j in range(LINES))),
            ]
        more_rows = long6 + long7
        with m.If(step & beat[2]):
            m.d.sync += [tap.eq(1 << (7 + more_rows - word)[:4]), rest_words.eq(5 + more_rows - word)]
        with m.Elif(step):
            with m.If(pushes & ~pulls):
                m.d.sync += tap.eq(tap << 1)
            with m.If(~pushes & pulls):
                m.d.sync += tap.eq(tap >> 1)
            with m.If(pulls & rest_words.any()):
                m.d.sync += rest_words.eq(rest_words - 1)
        self._at(place, Mux(beat[3], Mux(raw, 0, begin_of_mantissas[:6]), moved[:6]))
        passed = Signal(4, reset_less=True)  # words
        self._at(passed, Mux(beat[3], at_word, passed + moved[6]))

        both = Cat(cur, nxt)
        line = self._register((both >> place)[:64], 64)
        lower = self._register(line[:32], 32)
        upper = self._register((line >> half_sizes[0])[:32], 32)
        parts, limits = [], [self._register(self._register(size_, 4), 4) for size_ in sizes]
        for half, quarter in ((lower, 0), (upper, 2)):
            between = self._register(self._register(pair_sizes[quarter], 5), 5)
            parts += [half[:16], self._wire((half >> between)[:16])]
        fields = []
        for lane in range(8):
            part = parts[lane // 2]
            part = (part >> limits[lane - 1])[:8] if lane % 2 else part[:8]
            fields.append(self._register(part & Cat(limits[lane] > j for j in range(8)), 8))

        # What a block turns out to be is known a cycle behind its last line.
        closing, end, words, pad = Signal(), Signal(7, reset_less=True), Signal(4, reset_less=True), Signal()
        tail = choose((moved[3:] == j, both.word_select(j, 8)) for j in range(16))
        self._at(end, moved, beat[3])
        self._at(words, passed, beat[3])
        self._at(pad, moved[:3].any() & (tail & Cat(moved[:3] <= j for j in range(8))).any(), beat[3])
        m.d.sync += closing.eq(step & decompress & beat[3] & inside[11])
        with m.If(closing & ~plain_out):
            used = (Cat(C(0, 6), words) + end + 7) >> 3
            m.d.sync += [self.faults.length.eq(self.faults.length | (used != oldest)),
                         self.faults.padding.eq(self.faults.padding | pad)]
        result = []
        for lane in range(8):
            one_, two_, three_ = (flow[6][c][lane] for c in range(3))
            if_straight = Cat((two_ & ~three_), three_)
            signed_ = Cat((one_ & ~two_) | three_, two_)
            multiple = Mux(straight, if_straight, signed_) & (~plain_out).replicate(2)
            base = self._wire(((multiple << late_k[lane]) + (straight & one_ & ~plain_out))[:8])
            value = self._wire((base + fields[lane])[:8])
            result.append(Mux(raw_out, value, unfold(value, straight)))

        # -------------------------------------------------------------------------------------------------- the output
        out, count_out = Signal(128, reset_less=True), Signal(5, reset_less=True)
        self._at(out, Mux(decompress, Cat(result), packed))
        self._at(count_out, packed_count)
        m.d.comb += [self.chunks.payload.data.as_value().eq(out), self.chunks.payload.count.eq(count_out)]
        m.d.comb += [self.o.payload.data[lane].eq(out.word_select(lane, 8)) for lane in range(8)]

        with m.If(step & decompress & beat[1] & inside[0]):
            plain_byte = (byte[:6] == 0) | (byte[:6] == RAW)
            m.d.sync += self.faults.header.eq(self.faults.header | (plain_byte & byte[6:].any()))
        with m.If(self.start):
            m.d.sync += self.faults.eq(0)
        return m

    # ------------------------------------------------------------------------------------------------------------ parts
    def _wire(self, value):
        """A name for a value with several readers, which would otherwise be built once for each of them."""
        wire = Signal(len(value), name="wire")
        self._m.d.comb += wire.eq(value)
        return wire

    def _at(self, register, value, when=1):
        """With a step, ``when`` that is so, the register takes the value."""
        with self._m.If(self._step & when):
            self._m.d.sync += register.eq(value)

    def _register(self, value, width):
        register = Signal(width, reset_less=True, name="stage")
        self._at(register, value)
        return register

    def _sum(self, values):
        """The sum of values, as a balanced tree."""
        half = len(values) // 2
        return self._wire(self._sum(values[:half]) + self._sum(values[half:])) if half else values[0]

    def _classes(self, line, k, straight):
        """Of a line: whether classes are at least 1, 2 and 3, by lanes, and the OR of what quotients have beyond."""
        classes, beyond = [[], [], []], 0
        for lane in range(8):
            u = line.word_select(lane, 8)
            quotient = self._wire(u >> k[lane])
            whole = straight & ~(u & ((1 << k[lane]) - 1)[:8]).any()  # u - 1 has one less
            least = [quotient.any(), quotient[1:].any(), quotient[2:].any() | quotient[:2].all()]
            flags = [Mux(straight, u.any(), least[0]),
                     Mux(straight, least[0] & ~(whole & (quotient == 1)), least[1]),
                     Mux(straight, least[1] & ~(whole & (quotient == 2)), least[2])]
            flags = [self._wire(flag) for flag in flags]
            for flag, column in zip(flags, classes, strict=True):
                column.append(flag)
            excess = self._wire((quotient - Mux(straight, 2 + whole, 3))[:8])
            beyond = beyond | (excess & flags[2].replicate(8))
        return [self._wire(Cat(column)) for column in classes], beyond

    def _present(self, plane, has):
        """Which of the two groups of a line are in P0, by their values and whether they have flags."""
        return self._wire(Cat(plane[4 * g :][:4].any() | ~has[g] for g in range(2)))

    def _append(self, field, count, first, start, size):
        """A register to which ``count`` bits are appended in each step; with ``first`` it begins anew, at ``start``.
        Returns it and where it ends."""
        whole, end = Signal(size, reset_less=True, name="section"), Signal(range(size + 1), reset_less=True, name="end")
        place = self._wire(Mux(first, start, end)[: len(end)])
        fine = self._wire((field << place[:3])[:15])
        placed = choose((place[3:] == j, Cat(C(0, 8 * j), fine)[:size]) for j in range(size // 8))
        self._at(whole, Mux(first, 0, whole) | placed)
        self._at(end, place + count)
        return whole, end

    def _window(self, bits, place):
        """8 bits from ``place`` on, zeros behind the end."""
        coarse = self._wire(choose((place[3:] == j, bits[8 * j :][:15]) for j in range(-(-len(bits) // 8))))
        return self._wire((coarse >> place[:3])[:8])

    def _ones(self, bits, begin, end, when):
        """How many bits are set in every byte, of those from ``begin`` to before ``end``."""
        masked = [bits[j] & (begin <= j) & (end > j) for j in range(len(bits))]
        counts = []
        for j in range(0, len(bits), 8):
            counts.append(Signal(4, reset_less=True, name="ones"))
            self._at(counts[-1], _count(masked[j : j + 8]), when)
        return counts

    def _planes(self, store, beat, flags, flagged, decoded):
        """Takes P0, P1 and P2 apart, into ``decoded``. Returns where mantissas begin, and the first words."""
        rows0, rows1, rows2 = (Signal(size, reset_less=True, name=f"rows_{j}") for j, size in enumerate((80, 144, 256)))
        self._at(rows0, Cat(store[2], store[1])[:80], beat[3])
        self._at(rows1, Cat(store[3], store[2], store[1])[:144], beat[4])
        self._at(rows2, Cat(store[5], store[4], store[3], store[2]), beat[6])

        showing, begin1, begin2 = Signal(16, reset_less=True), Signal(7, reset_less=True), Signal(8, reset_less=True)
        shows = self._wire((~flagged | (store[2][:16] << (16 - flags)[:5]))[:16])
        self._at(showing, Mux(beat[3], shows, showing >> 2))
        self._at(begin1, flags + (_count(shows) << 2), beat[3])
        place0 = Signal(7, reset_less=True)
        self._at(place0, Mux(beat[3], flags, place0 + ((showing[0] + showing[1]) << 2)))
        byte = self._window(rows0, place0)
        groups = [byte[:4], Mux(showing[0], byte[4:], byte[:4])]
        one = [self._register(Cat(groups[g] & showing[g].replicate(4) for g in range(2)), 8)]
        one += [self._register(one[0], 8)]
        one += [self._register(one[1], 8)]
        one += [self._register(one[2], 8)]

        def under(plane, bits):
            opened = compaction.reopen(self._m, list(bits), compaction.moves(self._m, compaction.zeros(self._m, plane)))
            return Cat(opened) & plane

        place1 = Signal(8, reset_less=True)
        self._at(place1, Mux(beat[4], begin1, place1 + _count(one[0])))
        two = [self._register(under(one[1], self._register(self._window(rows1, place1), 8)), 8)]
        two += [self._register(two[0], 8)]

        number = Signal(7, reset_less=True)
        self._at(number, self._sum(self._ones(rows0, flags, begin1, beat[4])), beat[5])
        place2 = Signal(8, reset_less=True)
        self._at(place2, Mux(beat[6], begin1 + number, place2 + _count(two[0])))
        self._at(begin2, begin1 + number, beat[6])
        three = under(two[1], self._register(self._window(rows2[:216], place2), 8))
        self._m.d.comb += [decoded[0].eq(one[3]), decoded[1].eq(two[1]), decoded[2].eq(three)]

        counts = self._ones(rows1, begin1, begin2, beat[7])
        halves = [Signal(7, reset_less=True, name=f"half_{j}") for j in range(2)]
        for j in range(2):
            self._at(halves[j], self._sum(counts[9 * j :][:9]), beat[0])
        begin3 = Signal(8, reset_less=True)
        self._at(begin3, begin2 + halves[0] + halves[1], beat[1])
        return begin3, [rows2.word_select(j, 64) for j in range(4)]
