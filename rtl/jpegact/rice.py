"""Golomb-Rice codes in planes: a block code in place of ZVC, in both directions."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact import rice_decode, rice_encode
from actcodec.rtl.jpegact.bits import Coder, Parts, fold
from actcodec.rtl.jpegact.rice_decode import LINES, RAW
from actcodec.rtl.jpegact.rice_encode import classes, merged

__all__ = ["Rice"]

FIELDS = data.StructLayout({"k": data.ArrayLayout(3, 15), "flags": 5, "e": data.ArrayLayout(3, 4), "straight": 1,
                            "none": 1})
TABLE = FIELDS.size  # bits
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
    those after it come, unless its last one carries ``last``. Combinational paths: ``chunks.ready`` to ``i.ready``,
    ``o.ready`` to ``rows.ready``.

    Ports
    -----
    Those of :class:`~actcodec.rtl.jpegact.bits.Coder`. In a block whose length is wrong, mantissas that lie far in
    front of where its sections may end can be zero. ``table``: k in bits 44:0, three each, flags in 49:45 (0 to 16), e
    in 61:50, three each, ascending, and in bit 62 whether values are unsigned bytes. Compressing, no sum of a k, but
    the first, and of the last e may be above 8. The unit relies on all of this; a CDU's control refuses other tables.
    """

    def __init__(self):
        # Row r comes with phase r + 2, so that both directions look up the same k.
        super().__init__(TABLE, COMPRESS, DECOMPRESS, opens=2)

    def elaborate(self, platform):
        """A block passes twice: its planes cannot be written before e is known, and e needs every class. So lines move
        through the store at one per step, a first pass finds classes, the smallest e and the length at its entry, and a
        second pass a block behind it makes fields, in the same number of steps, so that both are busy with different
        blocks. Phases are one-hot and belong to the lines, not to a state machine: when something moves, all of it
        moves by a line."""

        m = Module()
        source, empty = self.rows, self.empty
        decompress, table = self.decompress, data.View(FIELDS, self.table)
        k, flags, e, straight = table.k, table.flags, table.e, table.straight

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
        left, now, more, push = Signal(7, reset_less=True), Signal(7), Signal(), Signal()
        header = parts.wire(source.p.mask & (~empty).replicate(8))
        m.d.comb += [
            more.eq(left.any() & ~empty),  # after a block's first row
            now.eq(Mux(beat[0], Mux(header[:6] == RAW, 64, header[:6]), left) & (~empty).replicate(7)),
            push.eq(~decompress | ~(beat[6] | beat[7]) | more),  # in a step
        ]
        valid_bytes = Signal(8, reset_less=True)  # bytes of the row that came last
        u = Cat(fold(self.i.p.data[lane], straight) for lane in range(8))
        with m.If(step & push):
            m.d.sync += [
                store[0].eq(Mux(decompress, source.p.data.as_value(), u)),
                valid_bytes.eq(Cat(now[3:].any() | (now[:3] > j) | ~decompress for j in range(8))),
                store[1].eq(store[0] & Cat(one.replicate(8) for one in valid_bytes)),
                *(store[j].eq(store[j - 1]) for j in range(2, LINES)),
            ]
        parts.at(left, Cat(now[:3], Mux(now[3:].any(), now[3:] - 1, 0)) & now[3:].any().replicate(7))
        # First bytes go with their blocks.
        older, oldest = Signal(8, reset_less=True), Signal(6, reset_less=True)
        parts.at(byte, header, beat[0])
        parts.at(older, byte, beat[0])
        parts.at(oldest, older[:6], beat[7])

        # What compressing and decompressing keep for themselves, in the same registers: what becomes of them is below.
        rows = [Signal(size, reset_less=True, name=f"rows_{j}") for j, size in enumerate((80, 144, 256))]
        lines, pair_fields, fields = (Signal(64, reset_less=True, name=name) for name in ("lines", "halves", "fields"))

        # ----------------------------------------------------------------------- first pass: classes, counts, e, length
        line_classes, over_bits = classes(parts, store[0], late_k, straight)
        masked = [kk & (~straight | store[0].word_select(lane, 8).any()).replicate(3) for lane, kk in enumerate(late_k)]
        # Whether classes are at least 1, 2 and 3, by lanes: of the line that has come, and of those before.
        flow = [[Signal(8, reset_less=True, name=f"class_{c}_{j}") for c in range(3)] for j in range(7)]
        decoded = [Signal(8, name=f"decoded_{c}") for c in range(3)]
        for c in range(3):
            parts.at(flow[0][c], Mux(decompress, decoded[c], line_classes[c]))
            for j in range(1, 7):
                parts.at(flow[j][c], flow[j - 1][c])
        lows = [parts.register(parts.sum(masked[4 * j :][:4]), 5) for j in range(2)]
        some, over = parts.register(store[0].any(), 1), parts.register(over_bits, 8)

        def flags_of(line):
            return [flagged[2 * line], flagged[2 * line + 1]]

        has = Signal(2, reset_less=True)  # of the line at the second step
        parts.at(has, line_of(flags_of, 7))
        ones = [parts.ones(flow[0][c]) for c in range(3)]
        present = self._present(flow[0][0], has)
        bits = [parts.register(lows[0] + lows[1], 6),
                parts.register(ones[0] + ones[1] + (parts.ones(present) << 2), 5)]
        opening = phase[3]
        length = rice_encode.Length(parts, flags, e, k[0], decompress, opening)
        length.add(bits, parts.register(ones[2], 4), parts.register(Cat(over.bit_select(one, 1) for one in e), 4),
                   parts.register(some, 1), parts.register(flow[0][2][0], 1))

        more_bits = Signal(3, reset_less=True)
        parts.at(more_bits, Mux(decompress, choose((older[6:] == j, e[j]) for j in range(4)), length.e),
                 Mux(decompress, beat[1], opening))
        size = Signal(6, reset_less=True)
        raw, zero, raw_out, plain_out = (Signal(reset_less=True, name=name)
                                         for name in ("raw", "zero", "raw_out", "plain_out"))
        parts.at(size, length.size, phase[4])
        decides = Mux(decompress, beat[2], phase[4])
        parts.at(raw, Mux(decompress, older[:6] == RAW, length.raw), decides)
        parts.at(zero, Mux(decompress, older[:6] == 0, length.empty), decides)
        passes = Mux(decompress, beat[6], phase[7])
        parts.at(raw_out, raw, passes)
        parts.at(plain_out, raw | zero, passes)

        # ------------------------------------------------------------------------------------------- widths, mantissas
        escaping = flow[6][2]
        for _ in range(SECOND - 7):  # class j of the flow is that of line j + 1 of the store
            escaping = parts.register(escaping, 8)
        escaped = parts.register(escaping, 8)
        widths = []
        for lane in range(8):
            is_escape = Mux(decompress, flow[1][2][lane], escaping[lane])
            is_some_u = Mux(decompress, flow[1][0][lane], store[SECOND].word_select(lane, 8).any())
            wide = parts.wire(early_k[lane] + more_bits)
            width = Mux(is_escape, Mux(wide[3], 8, wide), early_k[lane])
            width = Mux(straight & ~is_some_u, 0, width)
            widths.append(parts.register(width[:4], 4))
        now_k = parts.register(early, 24)
        final = [parts.wire(Mux(raw, 8, Mux(zero, 0, width))) for width in widths]
        sizes = [parts.register(one, 4) for one in final]
        pair_sizes = [parts.wire(sizes[2 * j] + sizes[2 * j + 1]) for j in range(4)]
        half_sizes = [parts.register(pair_sizes[2 * j] + pair_sizes[2 * j + 1], 6) for j in range(2)]
        line_size = parts.wire((half_sizes[0] + half_sizes[1])[:7])
        line_sizes = [parts.register(line_size, 7)]
        line_sizes += [parts.register(line_sizes[0], 7)]
        line_sizes += [parts.register(line_sizes[1], 7)]

        # ------------------------------------------------------------------------------------------- compressing
        mantissas = rice_encode.mantissas(parts, store[SECOND + 1], escaped,
                                          [now_k.word_select(lane, 3) for lane in range(8)], straight, raw, final)
        quarters = [merged(parts, fields[16 * j :][:8], fields[16 * j + 8 :][:8], sizes[2 * j]) for j in range(4)]
        halves = Cat(merged(parts, quarters[2 * j], quarters[2 * j + 1], pair_sizes[2 * j]) for j in range(2))
        joined = merged(parts, pair_fields[:32], pair_fields[32:], half_sizes[0])
        ahead = Signal(2, reset_less=True)
        parts.at(ahead, line_of(flags_of, 2))
        sections, section0, ends = rice_encode.planes(parts, (rows[0], rows[1][:128]), flow,
                                                      self._present(flow[5][0], ahead), phase, flags)
        field, coded = rows[2][128:], ~plain_out
        chunk_field, packed, packed_count = rice_encode.chunks(
            parts, phase, rice_encode.first_byte(raw_out, size, length.which, coded), coded, ~(raw | zero),
            (section0, rows[1]), ends, (lines, rows[2][:64], rows[2][64:128]), line_sizes, line_size, field)

        # ----------------------------------------------------------------------------------------------- decompressing
        loads, begin_of_mantissas, heads = rice_decode.planes(parts, store, beat, flags, flagged, decoded, rows)
        next_line, next_halves, next_fields = rice_decode.mantissas(parts, SimpleNamespace(
            step=step, beat=beat, inside=inside, decompress=decompress, store=store, push=push, faults=self.faults,
        ), SimpleNamespace(
            more=more, older=older, oldest=oldest, raw=raw, zero=zero, plain_out=plain_out, widths=widths, sizes=sizes,
            pair_sizes=pair_sizes, half_sizes=half_sizes,
        ), begin_of_mantissas, heads, lines, pair_fields)

        # ----------------------------------------------------------------------------------- registers of both, output
        own = (*sections, Cat(lines, rows[2][:64], chunk_field))
        for register, one, (other, row) in zip(rows, own, loads, strict=True):
            due = Signal(reset_less=True, name=f"due_{row}")  # in each step, or decompressing when that row enters
            parts.at(due, ~decompress | beat[row - 1])
            with m.If(self.start):
                m.d.sync += due.eq(~decompress)
            parts.at(register, Mux(decompress, other, one), due)
        parts.at(lines, Mux(decompress, next_line, joined))
        parts.at(pair_fields, Mux(decompress, next_halves, halves))
        parts.at(fields, Mux(decompress, next_fields, mantissas))

        out, count_out = Signal(128, reset_less=True), Signal(5, reset_less=True)
        restored = rice_decode.values(parts, flow[6], fields, late_k, straight, plain_out, raw_out)
        parts.at(out, Mux(decompress, restored, packed))
        parts.at(count_out, packed_count)
        m.d.comb += [self.chunks.p.data.as_value().eq(out), self.chunks.p.count.eq(count_out)]
        m.d.comb += [self.o.p.data[lane].eq(out.word_select(lane, 8)) for lane in range(8)]

        with m.If(step & decompress & beat[1] & inside[0]):
            plain_byte = (byte[:6] == 0) | (byte[:6] == RAW)
            m.d.sync += self.faults.header.eq(self.faults.header | (plain_byte & byte[6:].any()))
        with m.If(self.start):
            m.d.sync += self.faults.eq(0)
        return m

    def _present(self, plane, has):
        """Which of the two groups of a line are in P0, by their values and whether they have flags."""
        parts = self._parts
        return parts.wire(Cat(plane[4 * g :][:4].any() | ~has[g] for g in range(2)))
