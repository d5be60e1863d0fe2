"""Golomb-Rice codes in planes: a block code in place of ZVC, in both directions."""

from types import SimpleNamespace

from amaranth.hdl import C, Cat, Module, Mux, Signal

from actcodec.rtl.common import compaction
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact import rice_decode
from actcodec.rtl.jpegact.bits import Coder, Parts, fold, unfold
from actcodec.rtl.jpegact.rice_decode import LINES, RAW, popcount

__all__ = ["Rice"]

TABLE = 64  # bits
SECOND = 11  # the place in the store at which a line passes a second time, to give its mantissas
COMPRESS, DECOMPRESS = 17, 15  # steps from a line's or a row's to that in which it leaves


class Rice(Coder):
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
                    i -> store of 14 lines -> mantissas -> joined lines -> chunks
        decompress  rows -> store -> P0 -> P1 -> P2 -> widths
                            store -> two words -> 64 bits -> mantissas -> o

    Throughput: one line a cycle in both directions, 8 cycles a block, whatever the data. Latency: 18 cycles from the
    first line in to its chunk, 16 from the first row to its line. Buffering: 18 lines; a block waits until the lines of
    those behind it come, unless its last one carries ``last``. Combinational paths: ``chunks.ready`` to ``i.ready``,
    ``o.ready`` to ``rows.ready``.

    Ports
    -----
    Those of :class:`~actcodec.rtl.jpegact.bits.Coder`. In a block whose length is wrong, mantissas that lie far in
    front of where its sections may end can be zero. ``table``: k in bits 44:0, three each, flags in 49:45 (0 to 16), e
    in 61:50, three each, ascending, and in bit 62 whether values are unsigned bytes. Compressing, no sum of a k, but
    the first, and of the last e may be above 8.
    """

    def __init__(self):
        # Row r comes with phase r + 2, so that both directions look up the same k.
        super().__init__(TABLE, COMPRESS, DECOMPRESS, opens=2)

    def elaborate(self, platform):
        m = Module()
        source, empty = self.rows, self.empty
        decompress, straight = self.decompress, self.table[62]
        flags, e = self.table[45:50], [self.table[50 + 3 * j :][:3] for j in range(4)]
        k = [self.table[3 * d :][:3] for d in range(15)]

        phase, step, inside, _ = self._steps(m)
        beat = [phase[(s + 2) % 8] for s in range(8)]  # row s enters
        parts = self._parts = Parts(m, step)
        flagged = parts.wire(Cat(flags >= 16 - g for g in range(16)))  # groups that have a flag

        # -------------------------------------------------------------------------------------------------- k of a line
        def line_of(values, by):
            """``values`` of the line whose number is the phase and ``by``, for the next step."""
            return choose((phase[j], Cat(values((j + by) % 8))) for j in range(8))

        of_line = lambda line: [k[line + lane] for lane in range(8)]  # noqa: E731
        late, early = Signal(24, reset_less=True), Signal(24, reset_less=True)
        parts.at(late, line_of(of_line, 0))  # line: phase - 1
        parts.at(early, line_of(of_line, 5))  # line: phase - 4
        late_k = [late.word_select(lane, 3) for lane in range(8)]
        early_k = [early.word_select(lane, 3) for lane in range(8)]

        # --------------------------------------------------------------------------------------------------- the store
        store = [Signal(64, reset_less=True, name=f"store_{j}") for j in range(LINES)]
        byte = Signal(8, reset_less=True)  # the first one of the block that enters
        left, now, pushes = Signal(7, reset_less=True), Signal(7), Signal()
        header = parts.wire(source.p.mask & (~empty).replicate(8))
        m.d.comb += [
            now.eq(Mux(beat[0], Mux(header[:6] == RAW, 64, header[:6]), left) & (~empty).replicate(7)),
            pushes.eq(step & (~decompress | ~(beat[6] | beat[7]) | now.any())),
        ]
        kept = Cat((now[3:].any() | (now[:3] > j)).replicate(8) for j in range(8))
        u = Cat(fold(self.i.p.data[lane], straight) for lane in range(8))
        with m.If(pushes):
            m.d.sync += store[0].eq(Mux(decompress, source.p.data.as_value() & kept, u))
            m.d.sync += [store[j].eq(store[j - 1]) for j in range(1, LINES)]
        parts.at(left, Cat(now[:3], Mux(now[3:].any(), now[3:] - 1, 0)) & now[3:].any().replicate(7))
        # First bytes go with their blocks.
        older, oldest = Signal(8, reset_less=True), Signal(6, reset_less=True)
        parts.at(byte, header, beat[0])
        parts.at(older, byte, beat[0])
        parts.at(oldest, older[:6], beat[7])

        # ----------------------------------------------------------------------- first pass: classes, counts, e, length
        classes, over_bits = self._classes(store[0], late_k, straight)
        low = parts.sum([kk & (~straight | store[0].word_select(lane, 8).any()).replicate(3)
                         for lane, kk in enumerate(late_k)])
        # Whether classes are at least 1, 2 and 3, by lanes: of the line that has come, and of those before.
        flow = [[Signal(8, reset_less=True, name=f"class_{c}_{j}") for c in range(3)] for j in range(7)]
        decoded = [Signal(8, name=f"decoded_{c}") for c in range(3)]
        for c in range(3):
            parts.at(flow[0][c], Mux(decompress, decoded[c], classes[c]))
            for j in range(1, 7):
                parts.at(flow[j][c], flow[j - 1][c])
        lows, some, over = Signal(6, reset_less=True), Signal(reset_less=True), Signal(8, reset_less=True)
        parts.at(lows, low)
        parts.at(some, store[0].any())
        parts.at(over, over_bits)

        has = line_of(lambda line: [flagged[2 * line], flagged[2 * line + 1]], 6)  # at the second step
        ones = [parts.wire(popcount(flow[0][c])) for c in range(3)]
        present = self._present(flow[0][0], has)
        bits, escapes = Signal(7, reset_less=True), Signal(4, reset_less=True)
        parts.at(bits, lows + ones[0] + ones[1] + (popcount(present) << 2))
        parts.at(escapes, ones[2])
        beyond, is_some, dc = Signal(4, reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        parts.at(beyond, Cat((over >> e[j]).any() for j in range(4)))
        parts.at(is_some, some)
        parts.at(dc, flow[0][2][0])

        opening = phase[3]
        total, number = Signal(10, reset_less=True), Signal(7, reset_less=True)
        exceeds, nonzero, dc_escapes = Signal(4, reset_less=True), Signal(reset_less=True), Signal(reset_less=True)
        parts.at(total, Mux(opening, flags, total) + bits)
        parts.at(number, Mux(opening, 0, number) + escapes)
        parts.at(exceeds, (exceeds & (~opening).replicate(4)) | beyond)
        parts.at(nonzero, (nonzero & ~opening) | is_some)
        parts.at(dc_escapes, dc, opening)

        which = Signal(2, reset_less=True)
        more_bits, product, sum_, large, empty_block = (
            Signal(size, reset_less=True, name=name) for name, size in (
                ("more_bits", 3), ("product", 10), ("sum", 11), ("large", 1), ("empty_block", 1)))
        index = parts.wire(Cat((exceeds[0] & ~exceeds[1]) | exceeds[2], exceeds[1]))
        chosen = parts.wire(choose((index == j, e[j]) for j in range(4)))
        beyond_8 = parts.wire((k[0] + chosen)[:4])
        cut_off = Mux(dc_escapes & beyond_8[3], beyond_8[:3], 0)
        parts.at(which, index, opening & ~decompress)
        parts.at(more_bits, Mux(decompress, choose((older[6:] == j, e[j]) for j in range(4)), chosen),
                 Mux(decompress, beat[1], opening))
        parts.at(product, parts.sum([Mux(chosen[j], number << j, 0) for j in range(3)]), opening)
        parts.at(sum_, total + 7 - cut_off, opening)
        parts.at(large, exceeds[3], opening)
        parts.at(empty_block, ~nonzero, opening)

        whole = parts.wire((sum_ + product)[:11])
        size = Signal(6, reset_less=True)
        raw, zero, raw_out, plain_out = (Signal(reset_less=True, name=name)
                                         for name in ("raw", "zero", "raw_out", "plain_out"))
        is_raw = ~empty_block & (large | whole[9:].any() | whole[3:9].all())
        parts.at(size, whole[3:9], phase[4])
        decides = Mux(decompress, beat[2], phase[4])
        parts.at(raw, Mux(decompress, older[:6] == RAW, is_raw), decides)
        parts.at(zero, Mux(decompress, older[:6] == 0, empty_block), decides)
        passes = Mux(decompress, beat[6], phase[7])
        parts.at(raw_out, raw, passes)
        parts.at(plain_out, raw | zero, passes)

        # ------------------------------------------------------------------------------------------- widths, mantissas
        escaping = self._classes(store[SECOND], early_k, straight)[0]
        present_u = [store[SECOND].word_select(lane, 8).any() for lane in range(8)]
        widths, escaped = [], Signal(8, reset_less=True)
        parts.at(escaped, escaping[2])
        for lane in range(8):
            is_escape = Mux(decompress, flow[1][2][lane], escaping[2][lane])
            is_some_u = Mux(decompress, flow[1][0][lane], present_u[lane])
            wide = parts.wire(early_k[lane] + more_bits)
            width = Mux(is_escape, Mux(wide[3], 8, wide), early_k[lane])
            width = Mux(straight & ~is_some_u, 0, width)
            widths.append(parts.register(width[:4], 4))
        now_k = parts.register(early, 24)
        final = [parts.wire(Mux(raw, 8, Mux(zero, 0, width))) for width in widths]
        mantissas, sizes = [], []
        for lane in range(8):
            value = store[SECOND + 1].word_select(lane, 8)
            begin = Mux(escaped[lane], Cat(~straight, 1) << now_k.word_select(lane, 3), 0)[:8]
            rest = parts.wire((value - begin - straight)[:8])
            keep = Cat(final[lane] > j for j in range(8))
            mantissas.append(parts.register(Mux(raw, unfold(value, straight), rest) & keep, 8))
            sizes.append(parts.register(final[lane], 4))
        pairs = [parts.wire(mantissas[2 * j] | (mantissas[2 * j + 1] << sizes[2 * j])[:16]) for j in range(4)]
        pair_sizes = [parts.wire(sizes[2 * j] + sizes[2 * j + 1]) for j in range(4)]
        halves = [parts.register((pairs[2 * j] | (pairs[2 * j + 1] << pair_sizes[2 * j]))[:32], 32) for j in range(2)]
        half_sizes = [parts.register(pair_sizes[2 * j] + pair_sizes[2 * j + 1], 6) for j in range(2)]
        joined = [parts.register((halves[0] | (halves[1] << half_sizes[0]))[:64], 64)]
        joined_sizes = [parts.register(half_sizes[0] + half_sizes[1], 7)]
        for j in range(2):
            joined.append(parts.register(joined[j], 64))
            joined_sizes.append(parts.register(joined_sizes[j], 7))

        # ------------------------------------------------------------------------------------------------------- planes
        ahead = self._present(flow[5][0], line_of(lambda line: [flagged[2 * line], flagged[2 * line + 1]], 1))
        groups = [flow[5][0][:4], flow[5][0][4:]]
        first_plane = Cat(Mux(ahead[0], groups[0], groups[1]), Mux(ahead.all(), groups[1], 0))
        plane0 = parts.register(Mux(ahead.any(), first_plane, 0), 8)
        step0 = parts.register(popcount(ahead), 2)
        found = parts.register(Cat(group.any() for group in groups), 2)
        have = Signal(16, reset_less=True)
        parts.at(have, Cat(have[2:], found))
        section0, end0 = self._append(plane0, step0 << 2, phase[0], flags, 80)
        section0 = section0 | (have >> (16 - flags)[:5])
        sections = []
        for c in range(2):
            gaps = compaction.moves(m, compaction.zeros(m, flow[6][c]))
            plane = parts.register(Cat(compaction.close(m, list(flow[6][c + 1]), gaps)), 8)
            count = parts.register(popcount(flow[6][c]), 4)
            sections.append(self._append(plane, count, phase[1], 0, 64))

        # ------------------------------------------------------------------------------------------------------- chunks
        coded = ~plain_out
        first = Mux(raw_out, RAW, Cat(size, which) & coded.replicate(8))
        only, second, third, fourth = phase[0] & coded, phase[1] & coded, phase[2] & coded, phase[3] & coded
        other = ~(only | second | third | fourth)
        opens = phase[0] & plain_out
        one = choose([(only, Cat(first, section0)), (second, sections[0][0]), (third, joined[2]), (fourth, joined[1]),
                      (other & ~opens, joined[0]), (opens, Cat(first, joined[0]))])
        one_size = parts.wire(choose([(only, end0 + 8), (second, sections[0][1]), (third, joined_sizes[2]),
                                      (fourth, joined_sizes[1]), (other & ~opens, joined_sizes[0]),
                                      (opens, joined_sizes[0] + 8)]))
        two = choose([(second, sections[1][0]), (third, joined[1]), (fourth, joined[0])])
        two_size = choose([(second, sections[1][1]), (third, joined_sizes[1]), (fourth, joined_sizes[0])])
        field = parts.register((one | (two << one_size[:7]))[:128], 128)
        field_size = parts.register(one_size + two_size, 8)

        over_byte, carried = Signal(8, reset_less=True), Signal(3, reset_less=True)
        begins, ends = phase[1], phase[0]
        behind = parts.wire(carried & (~begins).replicate(3))
        upto = parts.wire((field_size + behind)[:8])
        placed = parts.wire((field << behind)[:136] | (over_byte & (behind.any()).replicate(8)))
        rest_at = parts.wire(Cat((upto[3:] == j) for j in range(17)))
        parts.at(over_byte, choose((rest_at[j], placed.word_select(j, 8)) for j in range(17)))
        parts.at(carried, upto[:3])
        packed = Cat(placed.word_select(j, 8) & (~rest_at[j] | ends).replicate(8) for j in range(16))
        packed_count = upto[3:] + (ends & upto[:3].any())

        # ----------------------------------------------------------------------------------------------- decompressing
        begin_of_mantissas, heads = rice_decode.planes(parts, store, beat, flags, flagged, decoded)
        fields = rice_decode.mantissas(parts, SimpleNamespace(
            step=step, beat=beat, inside=inside, decompress=decompress, store=store, pushes=pushes, faults=self.faults,
        ), SimpleNamespace(
            now=now, older=older, oldest=oldest, raw=raw, plain_out=plain_out, final=final, sizes=sizes,
            pair_sizes=pair_sizes, half_sizes=half_sizes,
        ), begin_of_mantissas, heads)
        result = []
        for lane in range(8):
            one_, two_, three_ = (flow[6][c][lane] for c in range(3))
            if_straight = Cat((two_ & ~three_), three_)
            signed_ = Cat((one_ & ~two_) | three_, two_)
            multiple = Mux(straight, if_straight, signed_) & (~plain_out).replicate(2)
            base = parts.wire(((multiple << late_k[lane]) + (straight & one_ & ~plain_out))[:8])
            value = parts.wire((base + fields[lane])[:8])
            result.append(Mux(raw_out, value, unfold(value, straight)))

        # -------------------------------------------------------------------------------------------------- the output
        out, count_out = Signal(128, reset_less=True), Signal(5, reset_less=True)
        parts.at(out, Mux(decompress, Cat(result), packed))
        parts.at(count_out, packed_count)
        m.d.comb += [self.chunks.p.data.as_value().eq(out), self.chunks.p.count.eq(count_out)]
        m.d.comb += [self.o.p.data[lane].eq(out.word_select(lane, 8)) for lane in range(8)]

        with m.If(step & decompress & beat[1] & inside[0]):
            plain_byte = (byte[:6] == 0) | (byte[:6] == RAW)
            m.d.sync += self.faults.header.eq(self.faults.header | (plain_byte & byte[6:].any()))
        with m.If(self.start):
            m.d.sync += self.faults.eq(0)
        return m

    def _classes(self, line, k, straight):
        """Of a line: whether classes are at least 1, 2 and 3, by lanes, and the OR of what quotients have beyond."""
        parts = self._parts
        classes, beyond = [[], [], []], 0
        for lane in range(8):
            u = line.word_select(lane, 8)
            quotient = parts.wire(u >> k[lane])
            whole = straight & ~(u & ((1 << k[lane]) - 1)[:8]).any()  # u - 1 has one less
            least = [quotient.any(), quotient[1:].any(), quotient[2:].any() | quotient[:2].all()]
            flags = [Mux(straight, u.any(), least[0]),
                     Mux(straight, least[0] & ~(whole & (quotient == 1)), least[1]),
                     Mux(straight, least[1] & ~(whole & (quotient == 2)), least[2])]
            flags = [parts.wire(flag) for flag in flags]
            for flag, column in zip(flags, classes, strict=True):
                column.append(flag)
            excess = parts.wire((quotient - Mux(straight, 2 + whole, 3))[:8])
            beyond = beyond | (excess & flags[2].replicate(8))
        return [parts.wire(Cat(column)) for column in classes], beyond

    def _present(self, plane, has):
        """Which of the two groups of a line are in P0, by their values and whether they have flags."""
        parts = self._parts
        return parts.wire(Cat(plane[4 * g :][:4].any() | ~has[g] for g in range(2)))

    def _append(self, field, count, first, start, size):
        """A register to which ``count`` bits are appended in each step; with ``first`` it begins anew, at ``start``.
        Returns it and where it ends."""
        parts = self._parts
        whole, end = Signal(size, reset_less=True, name="section"), Signal(range(size + 1), reset_less=True, name="end")
        place = parts.wire(Mux(first, start, end)[: len(end)])
        fine = parts.wire((field << place[:3])[:15])
        placed = choose((place[3:] == j, Cat(C(0, 8 * j), fine)[:size]) for j in range(size // 8))
        parts.at(whole, Mux(first, 0, whole) | placed)
        parts.at(end, place + count)
        return whole, end
