"""SSDC, sparse storage and dense compute: a dense tensor to the three arrays of the narrow CSR."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import compaction
from actcodec.rtl.common.gearbox import Join
from actcodec.rtl.common.packer import Packer, chunk_layout
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import sectors

__all__ = ["SsdcEncode"]


class SsdcEncode(wiring.Component):
    """Takes a tensor as a flat array, in rows of 256 values, and gives its non-zero values in order, the column of each
    (a byte), and for each row how many it has (two bytes, little endian). The last row may be shorter.

    Zero is +0.0 and -0.0; all else is kept bit for bit.

    Throughput: one sector a cycle, while no output is stalled; the last values and columns of a tensor take one more
    cycle where they fill more than a word. Latency: 3 cycles from a sector to the values and the row count that it
    completes a word of, 4 to the columns. Buffering: two sectors, a word of each output, and a part of a word of
    values (32 bytes) and of columns (8 bytes). Outputs may be stalled independently; one that waits soon stops the
    others. Combinational paths: the outputs' ``ready`` to ``i.ready``.

    Source: Gist, section III-A, "Sparse Storage and Dense Compute"; section IV-A, the Narrow Value Optimization.

    Ports
    -----
    i : stream of ``sectors``
    values : stream of ``sectors``
        Full ones, but the last of a tensor; a single empty one if there is no value. It can feed DPR.
    columns, counts : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32
        Full words, but the last of a tensor; a single empty one if there is no column, or no row. Should the array of
        counts end with a full word and the tensor with an empty sector, an empty word ends that array.
    """

    i: In(stream.Signature(sectors))
    values: Out(stream.Signature(sectors))
    columns: Out(stream.Signature(chunk_layout(32)))
    counts: Out(stream.Signature(chunk_layout(32)))

    def elaborate(self, platform):
        m = Module()
        m.submodules.values = values = Packer(4, 32, 32)
        m.submodules.columns = columns = Packer(1, 8, 8)
        m.submodules.join_columns = join_columns = Join(8)
        m.submodules.counts = counts = Join(2)
        wiring.connect(m, columns.o, join_columns.i)
        wiring.connect(m, join_columns.o, wiring.flipped(self.columns))
        wiring.connect(m, counts.o, wiring.flipped(self.counts))
        m.d.comb += [
            self.values.valid.eq(values.o.valid),
            values.o.ready.eq(self.values.ready),
            self.values.p.data.as_value().eq(values.o.p.data.as_value()),
            self.values.p.count.eq(values.o.p.count >> 2),
            self.values.p.last.eq(values.o.p.last),
        ]

        joint = stream.Signature(1).create()
        pipe = Pipeline(m, self.i, joint)

        # Values that are zero must be without their sign as well: closing gaps merges words by OR.
        i, sector = self.i.p, Signal(5)
        with m.If(self.i.valid & pipe.advance):
            m.d.sync += sector.eq(Mux(i.last, 0, sector + 1))
        nonzero, ends = Signal(8), Signal()
        m.d.comb += [
            nonzero.eq(Cat(word[:31].any() for word in i.data)),
            # A tensor may end with an empty sector, which makes no row.
            ends.eq(sector.all() | (i.last & (sector.any() | i.count.any()))),
        ]
        words = [Cat(word[:31], word[31] & nonzero[k]) for k, word in enumerate(i.data)]
        staged = pipe.stage(*words, *compaction.zeros(m, nonzero), nonzero, sum(nonzero), sector, ends, i.last,
                            self.i.valid)
        words, zeros, (nonzero, count, sector, ends, last, valid) = staged[:8], staged[8:16], staged[16:]

        # With each word travel its lane and the fact that it is one.
        tagged = [Cat(word, Const(k, 3) & nonzero[k].replicate(3), nonzero[k]) for k, word in enumerate(words)]
        closed = compaction.close(m, tagged, compaction.moves(m, zeros))
        before, total = Signal(range(257)), Signal(range(257))  # values of the row up to here
        m.d.comb += total.eq(Mux(sector == 0, 0, before) + count)
        with m.If(pipe.advance & valid):
            m.d.sync += before.eq(total)
        *closed, count, total, sector, ends, last = pipe.stage(*closed, count, total, sector, ends, last)
        pipe.finish()

        m.d.comb += [
            values.i.p.data.as_value().eq(Cat(word[:32] for word in closed)),
            values.i.p.count.eq(count << 2),
            columns.i.p.data.as_value().eq(
                Cat(Cat(word[32:35], sector & word[35].replicate(5)) for word in closed)),
            columns.i.p.count.eq(count),
            counts.i.p.data.as_value().eq(total),
            counts.i.p.count.eq(ends << 1),
        ]
        # Each branch takes the beat when it can; the pipeline moves on once all have.
        done = []
        for branch, enable in ((values, 1), (columns, 1), (counts, ends | last)):
            had, goes = Signal(), Signal()
            m.d.comb += [
                branch.i.p.last.eq(last),
                branch.i.valid.eq(joint.valid & enable & ~had),
                goes.eq(branch.i.ready | had | ~enable if branch is counts else branch.i.ready | had),
            ]
            m.d.sync += had.eq(joint.valid & goes & ~joint.ready)
            done.append(goes)
        m.d.comb += joint.ready.eq(Cat(done).all())
        return m
