"""Nibble planes with 2-bit width codes: a block code in place of ZVC, in both directions."""

from amaranth.hdl import C, Cat, Module, Mux, Signal

from actcodec.rtl.common.onehot_shift import Digits, choose, window
from actcodec.rtl.jpegact.bits import LANES, Coder, Parts, fold, unfold

__all__ = ["Nibble"]

TABLE = 81  # bits
RAW = 64  # length of a raw block
GROUPS = 2  # of four values, that a line has
# The store: 8 lines, of which blocks that decompress can leave the first 7 waiting, and 2 in front of the shifters.
LINES, WAITING = 8, 7


class Nibble(Coder):
    """Compresses blocks of 64 values into 1 to 65 bytes each, and back.

    A line of 8 values is two groups; the table has four widths for each group, and 2 bits of the block say which one
    it has. A plane of bits of a group is a nibble; a group of width w is w nibbles. In front of them are the length,
    which alone tells where the next block begins, and the codes. ``golden/jpegact/nibble.py`` has the format.

    All moves in steps, one for each line that comes in. Compressing, lines wait in the store until the sum of widths
    and so the length is known. Decompressing, rows wait there until the pointer comes to them, as a FIFO that shifts
    when one comes in, whose end is where the first one is that has not been read. In both directions the line that
    leaves is the one with two less than the number of the line that enters, modulo 8, so that control has one phase:

        compress    i -> largest value of both groups -> codes, widths -> sum, length
                    i -> store of 10 lines -------------------> planes -> chunks
        decompress  rows -> store -> two words -> 16 nibbles -> planes -> o

    Throughput: one line a cycle in both directions, 8 cycles a block, whatever the data. Latency: 11 cycles from the
    first line in to its chunk, 4 from the first row to its line. Buffering: 10 lines and one at the output; a block
    waits until the lines of the next one come, unless its last one carries ``last``. Combinational paths:
    ``chunks.ready`` to ``i.ready``, ``o.ready`` to ``rows.ready``.

    Ports
    -----
    Those of :class:`~actcodec.rtl.jpegact.bits.Coder`; chunks have 0 to 13 bytes, the first of a block with length and
    codes in front. ``table``: base of group g in bits 5g + 2 : 5g, its family in 5g + 4 : 5g + 3, and in bit 80 whether
    values are unsigned bytes.
    """

    def __init__(self):
        # Rows begin at phase 7, as they take a step less to the codes than lines.
        super().__init__(TABLE, compress=LINES + 2, decompress=3, opens=7)

    def elaborate(self, platform):
        m = Module()
        source, empty = self.rows, self.empty
        decompress, straight = self.decompress, self.table[TABLE - 1]
        phase, step, inside, leaves = self._steps(m)
        self._parts = Parts(m, step)
        first, final = phase[2], phase[1]  # the line that leaves is that of its block
        opens = phase[7]  # a block's first row enters

        # ------------------------------------------------------------------------------------------- codes and widths
        # Of the line that will be next to leave, and compressing also of the one that has come a step ago.
        entry = Signal(10, reset_less=True)
        with m.If(step):
            m.d.sync += entry.eq(choose((phase[k], self.table[10 * k :][:10]) for k in range(LANES)))
        bases, families = [entry[5 * g :][:3] for g in range(GROUPS)], [entry[5 * g + 3 :][:2] for g in range(GROUPS)]
        widths = [self._widths(base, family) for base, family in zip(bases, families, strict=True)]

        u = self._parts.wires([fold(self.i.p.data[k], straight) for k in range(LANES)], 8)
        largest = [Signal(8, reset_less=True, name=f"largest_{g}") for g in range(GROUPS)]
        width_codes = [Signal(2, reset_less=True, name=f"width_code_{g}") for g in range(GROUPS)]
        group_widths = [Signal(4, reset_less=True, name=f"group_width_{g}") for g in range(GROUPS)]
        unfit, some = Signal(reset_less=True), Signal(reset_less=True)
        fits = []
        for g in range(GROUPS):
            code, width, fit = self._code(largest[g], bases[g], families[g], widths[g])
            fits.append(fit)
            with m.If(step):
                m.d.sync += [largest[g].eq(u[4 * g] | u[4 * g + 1] | u[4 * g + 2] | u[4 * g + 3]),
                             width_codes[g].eq(code), group_widths[g].eq(width)]
        with m.If(step):
            m.d.sync += [unfit.eq(~Cat(fits).all()), some.eq(Cat(largest).any())]

        # --------------------------------------------------------------------------------------------------- the store
        store = [Signal(64, reset_less=True, name=f"store_{k}") for k in range(LINES)]
        cur, nxt = Signal(64, reset_less=True), Signal(64, reset_less=True)
        waiting = Signal(WAITING + 1, reset_less=True)  # one-hot: words in the store that have not been read
        length, left = Signal(8, reset_less=True), Signal(8, reset_less=True)
        now, pushes, pulls, passes = Signal(8), Signal(), Signal(), Signal()
        m.d.comb += [
            now.eq(Mux(opens, source.p.mask, left) & (~empty).replicate(8)),
            pushes.eq(step & (~decompress | opens | phase[0] | now.any())),
            pulls.eq(step & (~decompress | final | passes)),
        ]
        byte_mask = Cat((now[3:].any() | (now[:3] > k)).replicate(8) for k in range(8))
        with m.If(pushes):
            m.d.sync += store[0].eq(Mux(decompress, source.p.data.as_value() & byte_mask, Cat(u)))
            m.d.sync += [store[k].eq(store[k - 1]) for k in range(1, LINES)]
        ahead = choose((waiting[k], store[k - 1]) for k in range(1, WAITING + 1))
        with m.If(pulls):
            m.d.sync += [nxt.eq(Mux(decompress, ahead, store[LINES - 1])),
                         cur.eq(Mux(decompress & final, store[1], nxt))]
        with m.If(step):
            m.d.sync += left.eq(Cat(now[:3], Mux(now[3:].any(), now[3:] - 1, 0)) & now[3:].any().replicate(8))
            with m.If(opens):
                m.d.sync += length.eq(now)
            with m.If(phase[0]):  # the block's second row enters, and will be read in the next step
                m.d.sync += waiting.eq(1 << 1)
            with m.Elif(pushes & ~pulls):
                m.d.sync += waiting.eq(waiting << 1)
            with m.Elif(pulls & ~pushes):
                m.d.sync += waiting.eq(Cat(waiting[0] | waiting[1], waiting[2:]))
            with m.If(opens):  # the row of the next block is not to be read in place of one that this block lacks
                m.d.sync += waiting[1].eq(0)

        # ---------------------------------------------------------------------------------- first pass: sums of a block
        # The sum of widths, so that without its lowest bit it is the length; or its complement, counted down.
        total = Signal(9, reset_less=True)
        n = Signal(range(17), reset_less=True)
        codes = Signal(32, reset_less=True)
        misfit, any_ = Signal(reset_less=True), Signal(reset_less=True)
        raw, zero = Signal(reset_less=True), Signal(reset_less=True)  # the block is raw, or empty
        is_raw, is_zero = Signal(), Signal()
        down = Cat(C(1, 1), ~length) + Mux(raw | zero, 0, 8)
        m.d.comb += [is_raw.eq((misfit | total[7]) & any_), is_zero.eq(~any_)]
        with m.If(step):
            m.d.sync += [
                total.eq(Mux(first, Mux(decompress, down[:9], 9), total)
                         + Mux(decompress, n, group_widths[0] + group_widths[1])),
                misfit.eq((misfit & ~first) | unfit),
                any_.eq((any_ & ~first) | some),
                codes.eq(Mux(decompress & phase[0], store[0][:32], Cat(codes[4:], *width_codes))),
            ]
            with m.If(Mux(decompress, phase[0], first)):
                m.d.sync += [raw.eq(Mux(decompress, length == RAW, is_raw)),
                             zero.eq(Mux(decompress, length == 0, is_zero))]
            with m.Elif(~decompress & phase[0]):  # of the block that begins to leave nothing is known yet
                m.d.sync += [raw.eq(0), zero.eq(0)]

        # ------------------------------------------------------------------------- widths of the line that leaves next
        now_raw, now_zero = Signal(), Signal()
        m.d.comb += [now_raw.eq(raw | (~decompress & first & is_raw)),
                     now_zero.eq(zero | (~decompress & first & is_zero))]
        w = []
        for g in range(GROUPS):
            code = Mux(decompress, codes[:4], codes[4:8])[2 * g :][:2]
            width = Mux(code[1], Mux(code[0], widths[g][3], widths[g][2]), Mux(code[0], widths[g][1], widths[g][0]))
            plain = now_raw | now_zero
            w += self._parts.wires([Cat(width[:3] & ~plain.replicate(3), (width[3] & ~now_zero) | now_raw)], 4)
        # Nibbles up to the line, modulo 2, and with it.
        odd, before, after, count = Signal(reset_less=True), Signal(), Signal(), Signal(5)
        m.d.comb += [
            count.eq(w[0] + w[1]),
            before.eq(odd & ~final & ~(first & (is_raw | is_zero))),
            after.eq(before ^ count[0]),
        ]
        one_hot = [Signal(9, reset_less=True, name=f"one_hot_{g}") for g in range(GROUPS)]
        below = [Signal(8, reset_less=True, name=f"below_{g}") for g in range(GROUPS)]  # planes that a group has
        # The plane of a group, or what is left over from the line before, that is to wait for the next line.
        over = [Signal(8, reset_less=True, name=f"over_{g}") for g in range(GROUPS)]
        behind, inserts, size = Signal(reset_less=True), Signal(reset_less=True), Signal(4, reset_less=True)
        ends, waits = phase[0], Signal()
        m.d.comb += waits.eq(after & ~ends)
        with m.If(step):
            m.d.sync += [odd.eq(after), behind.eq(before), inserts.eq(before & (count.any() | ends)), n.eq(count),
                         size.eq((count + before + ends) >> 1)]
            for g in range(GROUPS):
                m.d.sync += [one_hot[g].eq(Cat(w[g] == k for k in range(9))),
                             below[g].eq(Cat(w[g] > k for k in range(8)))]
            m.d.sync += [over[1].eq(Cat((w[1] == k + 1) & waits for k in range(8))),
                         over[0].eq(Cat((w[0] == k + 1) & (w[1] == 0) & waits for k in range(8)))]

        # -------------------------------------------------------------------------------- second pass: planes to chunks
        planes = [[Cat(cur[8 * (4 * g + k) + j] for k in range(4)) for j in range(8)] for g in range(GROUPS)]
        stay = [self._parts.wires([plane & (~over[g][j]).replicate(4) for j, plane in enumerate(planes[g])], 4)
                for g in range(GROUPS)]
        rest = Signal(4, reset_less=True)
        with m.If(step & n.any()):
            m.d.sync += rest.eq(choose((over[g][j], planes[g][j]) for g in range(GROUPS) for j in range(8)))
        line = self._parts.wires([(stay[0][k] if k < 8 else 0) | choose(
            (one_hot[0][j], stay[1][k - j]) for j in range(9) if 0 <= k - j < 8) for k in range(16)], 4)
        # The first chunk has length and codes in front, or a length alone; others may have a nibble that was left over.
        coded, plain, even, uneven = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [coded.eq(first & ~is_raw & ~is_zero), plain.eq(first & (is_raw | is_zero)),
                     even.eq(~first & ~behind), uneven.eq(~first & behind)]
        head = Cat(total[1:7] & coded.replicate(6), is_raw, C(0, 1))
        packed = []
        for k in range(26):
            pairs = [(even, line[k])] if k < 16 else []
            pairs += [(uneven, line[k - 1])] if 0 < k < 17 else [(uneven & inserts, rest)] if k == 0 else []
            pairs += [(plain, planes[(k - 2) // 8][(k - 2) % 8])] if 2 <= k < 18 else []
            pairs += [(coded, line[k - 10])] if k >= 10 else [(coded, codes[4 * (k - 2) :][:4])] if k >= 2 else []
            packed.append(choose(pairs) | (head.word_select(k, 4) & first.replicate(4) if k < 2 else 0))

        # ---------------------------------------------------------------------------------------------- words to planes
        offset = Digits([2, 2], 16, "offset", init=None)
        place = Signal(4, reset_less=True)
        moved = Signal(5)
        m.d.comb += [moved.eq(place + n), passes.eq(moved[4])]
        with m.If(step):
            target = Mux(final, Cat(C(0, 3), ~raw), moved[:4])
            m.d.sync += [place.eq(target), *offset.eq(target)]
        nibbles = window(m, [Cat(cur, nxt).word_select(k, 4) for k in range(32)], offset[:], 17)
        upper = self._parts.wires([choose((one_hot[0][j], nibbles[j + k]) for j in range(9)) for k in range(9)], 4)
        groups = [[nibbles[k] & below[0][k].replicate(4) for k in range(8)],
                  [upper[k] & below[1][k].replicate(4) for k in range(8)]]
        opened = Cat(Cat(groups[g][j][k] for j in range(8)) for g in range(GROUPS) for k in range(4))

        # -------------------------------------------------------------------------------------------------- the output
        result = Signal(8 * 13, reset_less=True)
        number = Signal(4, reset_less=True)
        with m.If(step):
            m.d.sync += [result.eq(Mux(decompress, opened, Cat(packed))),
                         number.eq(Mux(first, Mux(coded, size + 5, Mux(is_raw, 9, 1)), size))]
        m.d.comb += [self.chunks.p.data.as_value().eq(result), self.chunks.p.count.eq(number)]
        m.d.comb += [self.o.p.data[k].eq(unfold(result.word_select(k, 8), straight)) for k in range(LANES)]

        # What a block turns out to be is known a cycle after its last line: the complement of 0 or 1 should be left.
        closing, pad = Signal(), Signal(reset_less=True)
        m.d.sync += closing.eq(step & final & leaves & decompress)
        with m.If(step):
            m.d.sync += pad.eq(choose((one_hot[1][j], upper[j]) for j in range(9)).any())
        with m.If(closing):
            m.d.sync += [self.faults.length.eq(self.faults.length | ~total[1:].all()),
                         self.faults.padding.eq(self.faults.padding | (pad & ~total[0]))]
        with m.If(step & decompress & phase[0] & inside[0]):
            m.d.sync += self.faults.header.eq(self.faults.header | (length[2:] == 0) & (length != 0)
                                              | length[7] | (length[6] & length[:6].any()))
        with m.If(self.start):
            m.d.sync += self.faults.eq(0)
        return m

    def _widths(self, base, family):
        """The four widths of a group."""
        one, two, three, four = self._parts.wires([Mux(base + k > 8, 8, base + k) for k in range(1, 5)], 4)
        upper = family[1]
        return self._parts.wires([Mux(upper, 0, base), Mux(upper, base, one), Mux(upper, one, two),
                            Mux(family == 1, four, Mux(family == 3, two, three))], 4)

    def _code(self, largest, base, family, widths):
        """The code of a group, its width, and whether that is enough; from the OR of its values."""
        exceeds, = self._parts.wires([Cat(largest[k:].any() for k in range(8))], 8)  # bit k: k bits are not enough
        beyond, = self._parts.wires([exceeds >> base], 8)  # the same for base + k
        upper = family[1]
        one, two, three = self._parts.wires([Mux(upper, exceeds[0], beyond[0]), Mux(upper, beyond[0], beyond[1]),
                                       Mux(upper, beyond[1], beyond[2])], 1)
        none = Mux(family == 1, beyond[4], Mux(family == 3, beyond[2], beyond[3]))
        width = Mux(three, widths[3], Mux(two, widths[2], Mux(one, widths[1], widths[0])))
        return Cat((one & ~two) | three, two), width, ~none
