"""SSDC, sparse storage and dense compute: the three arrays of the narrow CSR to the dense tensor."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction
from actcodec.rtl.common.gearbox import Split
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.unpacker import Unpacker
from actcodec.rtl.common.vectors import sectors

__all__ = ["Error", "SsdcDecode"]

# What was wrong with a tensor's arrays: a row counts more values than it has room for; columns do not ascend or lie
# beyond their row's end; an array ended early; an array went on behind what the length or the counts ask for.
Error = data.StructLayout({"count": 1, "column": 1, "short": 1, "excess": 1})

# A column, whether there is one, and whether it is not greater than the one before.
entry = data.StructLayout({"column": 8, "exists": 1, "falls": 1})


class SsdcDecode(wiring.Component):
    """Takes the arrays that :class:`~actcodec.rtl.gist.ssdc_encode.SsdcEncode` gives and restores the tensor. A zero is
    +0.0.

    A window of two pieces of eight columns moves along their array. The columns of a sector always lie in it, since
    they are eight at most and the first piece leaves with its last column. So a sector's mask is found by comparing all
    of the window with the sector's number, without a shifter, and tells how many values are next and where they go.

    Throughput: one sector a cycle within a tensor, and 7 cycles between two. Latency: 6 cycles from the length to the
    first sector, if the arrays are there.
    Buffering: 16 columns, a row's count, three sectors of values, a mask and a sector. Words of columns and counts wait
    at their ports until all of them is used, so no array may have to come far ahead of the others. Combinational paths:
    ``columns`` and ``counts`` to their ``ready``, ``o.ready`` to all of these; the sector at ``o`` is a shifter away
    from registers.

    Whatever the arrays are, all sectors come, and all three are taken up to their ``last``. From the sector on in which
    a count or the columns are found to be wrong or missing all is zero: that of the first such column, or one before
    it. A value that is missing is zero.

    Source: Gist, section III-A, "Sparse Storage and Dense Compute"; section IV-A, the Narrow Value Optimization.

    Ports
    -----
    length : stream of 32 bits
        Values of the tensor; taken once the tensor before is done with. 0 gives one empty sector.
    values : stream of ``sectors``
        Full ones, but the last of a tensor.
    columns, counts : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32
        Full words, but the last of a tensor.
    o : stream of ``sectors``
    error : output, :data:`Error`
        Complete when ``length.ready`` rises, until the next length is taken. ``excess`` only tells of tensors whose
        counts and columns were good.
    """

    length: In(stream.Signature(32))
    values: In(stream.Signature(sectors))
    columns: In(stream.Signature(chunk_layout(32)))
    counts: In(stream.Signature(chunk_layout(32)))
    o: Out(stream.Signature(sectors))
    error: Out(Error)

    def elaborate(self, platform):
        """Columns are a list, sectors are wanted dense. The trick is a sliding window of 16 entries, two pieces of 8,
        that contains all entries of a sector wherever they begin. Each cycle compares the upper five bits of all 16
        columns with the sector's number, and makes a mask of the lower three; the matching entries are done with
        (``pending``), and when the first piece is used up (``match[7]``), the second takes its place. Order is checked
        between neighbours when a piece arrives (``falls``), so no comparison of columns is in the loop. A mask is
        judged a cycle after it was found, and only then takes its values from the unpacker: one that is wrong, and all
        after it, take none."""

        m = Module()
        m.submodules.values = values = Unpacker(4, 32, 32)
        m.submodules.columns = columns = Split(8)
        m.submodules.counts = counts = Split(2)
        wiring.connect(m, wiring.flipped(self.columns), columns.i)
        wiring.connect(m, wiring.flipped(self.counts), counts.i)
        m.d.comb += [
            values.i.valid.eq(self.values.valid),
            self.values.ready.eq(values.i.ready),
            values.i.p.data.as_value().eq(self.values.p.data.as_value()),
            values.i.p.count.eq(self.values.p.count << 2),
            values.i.p.last.eq(self.values.p.last),
        ]

        busy = Signal()  # from a length to the end of all arrays
        giving = Signal()  # sectors are to come
        corrupt = Signal()  # counts and columns can no longer be trusted
        unjudged = Signal()  # the last mask is still to be judged
        drop, advance, go = Signal(), Signal(), Signal()
        m.d.comb += drop.eq(corrupt | ~(giving | unjudged))

        # Rows and sectors. A row is open once its count has come.
        opened, sector = Signal(), Signal(5)
        behind = Signal(24, reset_less=True)  # full rows to be opened
        partial = Signal(reset_less=True)  # and one that is not full
        next_last, row_last = Signal(), Signal()  # whether the next row, and this one, is the last; the former lags
        end = Signal(8, reset_less=True)  # last column of the last row
        size = Signal(range(9), reset_less=True)  # values of the last sector
        final, opens = Signal(), Signal()
        m.d.comb += final.eq(row_last & (sector == end[3:]))

        # The next row's count.
        counted, counts_closed, wants_count = Signal(), Signal(), Signal()
        count = Signal(range(512), reset_less=True)
        large, whole, some = (Signal(reset_less=True, name=name) for name in ("large", "whole", "some"))
        bad_count, no_count = Signal(reset_less=True), Signal(reset_less=True)  # of this row
        number = counts.o.p.data.as_value()
        m.d.comb += [
            opens.eq(giving & (counted | corrupt) & (~opened | (go & sector.all() & ~final))),
            wants_count.eq(busy & (~counted | opens | drop)),
            counts.o.ready.eq(wants_count & ~counts_closed),
        ]
        with m.If(opens):
            m.d.sync += [counted.eq(0), no_count.eq(~whole),
                         bad_count.eq(whole & (large | (next_last & (count > end + 1))))]
        with m.If(wants_count & (counts_closed | counts.o.valid)):
            m.d.sync += [
                counted.eq(1), count.eq(number), large.eq(number[9:].any() | (number[8] & number[:8].any())),
                whole.eq(~counts_closed & counts.o.p.count[1]),
                some.eq(~counts_closed & counts.o.p.count.any()),
                counts_closed.eq(counts_closed | counts.o.p.last),
            ]

        # The window of columns. Behind the end of the array come pieces without any.
        window = [Signal(entry, reset_less=True, name=f"entry_{k}") for k in range(16)]
        here, there = Signal(), Signal()  # its pieces have come
        columns_closed, wants_piece, leaves, moves = Signal(), Signal(), Signal(), Signal()
        piece = columns.o.p
        m.d.comb += [
            moves.eq(~here | leaves),
            wants_piece.eq(busy & (~there | moves | drop)),
            columns.o.ready.eq(wants_piece & ~columns_closed),
        ]
        with m.If(moves):
            m.d.sync += [here.eq(there), there.eq(0)]
            m.d.sync += [window[k].eq(window[k + 8]) for k in range(8)]
        with m.If(wants_piece & (columns_closed | columns.o.valid)):
            m.d.sync += [there.eq(1), columns_closed.eq(columns_closed | piece.last)]
            before = window[15].column
            for k, new in enumerate(window[8:]):
                exists = ~columns_closed & (k < piece.count)
                m.d.sync += [new.column.eq(piece.data[k]), new.exists.eq(exists),
                             new.falls.eq(exists & (piece.data[k] <= before))]
                before = piece.data[k]

        # The entries of the row that are to come, and of them those of the sector.
        pending = Signal(8)  # of the first piece; of the second, all are
        stop = Signal(range(512))  # the entry after the row
        below, row, match = Signal(16), Signal(16), Signal(16)
        m.d.comb += [
            below.eq(Cat(stop[4:].any() | (stop[:4] > k) for k in range(16))),
            row.eq(below & Cat(pending, Const(0xFF, 8))),
            match.eq(Cat(row[k] & (one.column[3:] == sector) for k, one in enumerate(window))),
            leaves.eq(go & match[7]),
        ]
        grown = Signal.like(stop)
        m.d.comb += grown.eq(Mux(opens, (stop + count)[:9], stop))
        m.d.sync += stop.eq(Cat(grown[:3], Mux(leaves, grown[3:] - 1, grown[3:])))
        with m.If(go):
            m.d.sync += pending.eq(Mux(match[7], ~match[8:], pending & ~match[:8]))

        # All columns of the row that the window has are looked at, so that those before the sector cannot be in the
        # way. Only that which is next need not ascend: it is the row's first, or was in the second piece before.
        mask, exists, unordered, missing, further = Signal(8), Signal(16), Signal(), Signal(), Signal()
        m.d.comb += [
            mask.eq(Cat(Cat(match[k] & (one.column[:3] == lane) for k, one in enumerate(window)).any()
                        for lane in range(8))),
            unordered.eq(Cat(row[k] & window[k].falls & (pending[k - 1] if k < 8 else 1) for k in range(1, 16)).any()
                         | (final & (row & exists & ~match).any())),
            exists.eq(Cat(one.exists for one in window)),
            missing.eq((row & ~exists).any()),
            further.eq((exists & ~below).any()),
            go.eq(giving & opened & advance & (corrupt | (here & there))),
        ]

        # The next mask, as a candidate, and its flaws.
        candidate, flaws = Signal(8, reset_less=True), Signal(Error, reset_less=True)
        candidate_last, bounded = Signal(reset_less=True), Signal(reset_less=True)
        good_row = ~(bad_count | no_count)
        with m.If(advance):
            m.d.sync += [
                unjudged.eq(go), candidate.eq(mask), candidate_last.eq(final), flaws.count.eq(bad_count),
                flaws.column.eq(good_row & unordered), flaws.short.eq(no_count | (good_row & missing)),
                flaws.excess.eq(final & further), bounded.eq(final & good_row),
            ]
        inside, spills, bad = Signal(8), Signal(), Signal()
        m.d.comb += [
            inside.eq(Cat(size > lane for lane in range(8))),
            spills.eq(bounded & (candidate & ~inside).any()),
            bad.eq(flaws.count | flaws.column | flaws.short | spills),
        ]

        # The mask that takes its values next. Behind the last one, a probe takes a value that should not be there.
        full, asks, probe = Signal(), Signal(), Signal(reset_less=True)
        chosen, wrong = Signal(8, reset_less=True), Signal()
        take, chosen_size = Signal(range(9), reset_less=True), Signal(range(9), reset_less=True)
        chosen_last, passes = Signal(reset_less=True), Signal()
        m.d.comb += [
            passes.eq(values.o.valid & values.o.ready),
            advance.eq(~full | passes),
            wrong.eq(corrupt | bad | ~unjudged),
            values.take.eq(take << 2),
            values.next.eq(passes & probe),
        ]
        with m.If(advance):
            m.d.sync += [
                full.eq(unjudged | asks), asks.eq(unjudged & candidate_last), probe.eq(asks),
                chosen.eq(Mux(wrong, 0, candidate)),
                take.eq(Mux(wrong, 0, sum(candidate)) | asks), chosen_size.eq(Mux(candidate_last, size, 8)),
                chosen_last.eq(candidate_last),
            ]

        # The sector that is being opened.
        words = Signal(256, reset_less=True)
        nonzero, one, two, four = (Signal(8, reset_less=True, name=name) for name in ("nonzero", "one", "two", "four"))
        o_size, o_last, free = Signal(range(9), reset_less=True), Signal(reset_less=True), Signal()
        m.d.comb += [free.eq(~self.o.valid | self.o.ready), values.o.ready.eq(full & free)]
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(passes & ~probe), words.eq(values.o.p.data.as_value()), nonzero.eq(chosen),
                Cat(one, two, four).eq(Cat(compaction.moves(m, compaction.zeros(m, chosen)))),
                o_size.eq(chosen_size), o_last.eq(chosen_last),
            ]
        spread = compaction.reopen(m, [words.word_select(k, 32) for k in range(8)], [one, two, four])
        m.d.comb += [self.o.p.data[k].eq(Mux(nonzero[k], spread[k], 0)) for k in range(8)]
        m.d.comb += [self.o.p.count.eq(o_size), self.o.p.last.eq(o_last)]

        # From one tensor to the next.
        done = ~(giving | unjudged | asks | full | values.discarding) & columns_closed & counts_closed
        judges, errors = Signal(), Signal(Error)
        short = values.o.p.short
        m.d.comb += [
            self.length.ready.eq(~busy),
            judges.eq(unjudged & advance & ~corrupt),
            errors.count.eq(judges & flaws.count),
            errors.column.eq(judges & (flaws.column | spills)),
            errors.short.eq((judges & flaws.short) | (passes & ~probe & short)),
            errors.excess.eq((judges & flaws.excess & ~bad)
                             | (~corrupt & ((passes & probe & ~short)
                                            | (busy & ~(giving | unjudged) & counted & some)))),
        ]
        m.d.sync += [
            next_last.eq(~behind[1:].any() & (behind[0] ^ partial)),
            self.error.eq(self.error.as_value() | errors.as_value()),
            corrupt.eq(corrupt | (judges & bad)),
        ]
        with m.If(go):
            m.d.sync += [sector.eq(sector + 1), giving.eq(~final)]
            with m.If(sector.all()):
                m.d.sync += opened.eq(0)
        with m.If(opens):
            m.d.sync += [opened.eq(1), row_last.eq(next_last), behind.eq(behind - 1)]
        with m.If(busy & done):
            m.d.sync += busy.eq(0)
        with m.If(self.length.valid & ~busy):
            length = self.length.p
            some_values = length.any()
            m.d.sync += [
                busy.eq(1), giving.eq(1), corrupt.eq(0), self.error.eq(0), counted.eq(0), counts_closed.eq(0),
                here.eq(0), there.eq(0), columns_closed.eq(0), pending.eq(0xFF), stop.eq(0), sector.eq(0),
                # Without values there is no row to wait for.
                opened.eq(~some_values), row_last.eq(~some_values), Cat(bad_count, no_count).eq(0),
                end.eq(Mux(some_values, length[:8] - 1, 0)), behind.eq(length[8:]), partial.eq(length[:8].any()),
                size.eq(Cat(length[:3], some_values & ~length[:3].any())),
            ]
        return m
