"""Average pooling: the LFC of every segment, and the base that is stored of it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.division.config import Config
from actcodec.rtl.division.segments import Place

__all__ = ["Average", "base", "rows"]

DEPTH = 7  # bases in the queue; the one behind them waits where it was made
SUM = 14  # bits of 64 values


# A segment's base, and what its rows' codes need to know: how many they are, less 1; whether the last one (tiled: all)
# is narrow; whether they are void rows and no segment.
base = data.StructLayout({"base": signed(8), "index": 3, "narrow": 1, "void": 1})
rows = data.StructLayout({"data": data.ArrayLayout(signed(8), 8), "delta": signed(8), "last": 1})


class Average(wiring.Component):
    """Adds up the values of each segment while they pass on to the alignment buffer, and gives its base behind them.

    The sum is over the segment's front, a power of two of values, so that the mean is a shift: of a narrow sector the
    first 2^c lanes, which stand for the others as well; of a flat segment the first 2^a sectors, 64 values if each
    counts 2^(3 - a) times. Tiles that pass row by row have a sum each, in a ring. The base is the mean, half up, and
    ``delta``, clamped.

    Eight places for bases are needed, and enough, to never stop for good. The alignment buffer passes on a block once
    its last row has entered here. So the bases of a complete block leave with its rows, whatever comes after them, and
    in the end only those of the block that is under way wait. A segment lies in one block, and may be a single row (a
    row of the view of a sector or less; all void rows count as one): at most seven wait while a row is missing, and
    that row brings the eighth. Of tiles, up to four are under way, with a base each.

    Throughput: a row a cycle; if each row is a segment, whose base has its place for 12 cycles, eight rows in 12.
    Latency: a cycle from ``i`` to ``o``; 4 from a segment's last row to its base. Buffering: a row and eight bases;
    whatever comes next waits until one of them has left. Combinational paths: ``o.ready`` to ``i.ready``.

    Source: DIVISION, section 4.1, equations 6 and 7, Figure 5.

    Parameters
    ----------
    minimum : bool
        There is hardware for ``config.minimum``.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
    ready, place, next
        Those of :class:`~actcodec.rtl.division.segments.Segments`, whose rows are these.
    i : stream of :data:`rows`
        In the order of sectors, padding of 0; ``delta`` is that of the row's plane.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        The same rows.
    bases : stream of :data:`base`
        One of each segment, in the order in which they end, and one for void rows.
    """

    def __init__(self, minimum=True):
        self.minimum = bool(minimum)
        super().__init__({
            "config": In(Config), "ready": In(1), "place": In(Place), "next": Out(1),
            "i": In(stream.Signature(rows)), "o": Out(stream.Signature(vectors_layout(signed(8)))),
            "bases": Out(stream.Signature(base)),
        })

    def elaborate(self, platform):
        m = Module()
        config, place = self.config, self.place
        minimum = config.minimum & config.lfc if self.minimum else Const(0, 1)

        # A row that ends a segment needs a place for its base: in the queue, or the last one in front of it.
        waiting, full = Signal(range(DEPTH + 2)), Signal()
        pop = self.bases.valid & self.bases.ready
        grows = self.next & place.ends
        with m.If(grows ^ pop):
            m.d.sync += [waiting.eq(Mux(pop, waiting - 1, waiting + 1)), full.eq(~pop & (waiting == DEPTH))]

        # A row, and where it is: which of its values count is known too late to add them up in the same cycle.
        row, here, entered, passes = Signal(rows, reset_less=True), Signal(Place, reset_less=True), Signal(), Signal()
        absent = Signal(8, reset_less=True)
        m.d.comb += [
            self.i.ready.eq((~entered | self.o.ready) & self.ready & ~full),
            self.next.eq(self.i.valid & self.i.ready),
            self.o.valid.eq(entered), self.o.p.data.eq(row.data), self.o.p.last.eq(row.last),
            passes.eq(entered & self.o.ready),
        ]
        with m.If(self.next | passes):
            m.d.sync += entered.eq(self.next)
        with m.If(self.next):
            m.d.sync += [row.eq(self.i.p), here.eq(place),
                         absent.eq(Cat(place.narrow & (config.tail <= k) if k else 0 for k in range(8)))]

        # -------------------------------------------------------------------------------------- eight lanes to two
        values = list(row.data)
        sums = []
        for k in range(0, 8, 2):
            one, other = values[k], values[k + 1]
            if k == 0:
                other = Mux(absent[1], one, other)
            total = Signal(signed(9), name=f"sum_{k}")
            m.d.comb += total.eq(one + other)
            sums.append(total)
        halves = [Signal(signed(10), name=f"half_{k}") for k in range(2)]
        m.d.comb += [
            halves[0].eq(sums[0] + Mux(absent[3], sums[0], sums[1])),
            halves[1].eq(Mux(here.narrow, halves[0], sums[2] + sums[3])),
        ]
        low, high = (Signal(signed(10), reset_less=True, name=name) for name in ("low", "high"))
        if self.minimum:
            smallest = [self._least(m, values[k:][:4], absent[k:][:4]) for k in (0, 4)]
        valid = Signal()
        stage = Signal(Place, reset_less=True)
        counted = Signal(reset_less=True)  # flat: a narrow sector counts only if it is all of its segment
        delta = Signal(signed(8), reset_less=True)
        m.d.sync += valid.eq(passes)
        with m.If(passes):
            m.d.sync += [
                low.eq(Mux(minimum, smallest[0], halves[0]) if self.minimum else halves[0]),
                high.eq(Mux(minimum, smallest[1], halves[1]) if self.minimum else halves[1]),
                stage.eq(here), delta.eq(row.delta),
                counted.eq(config.tiled | ~here.narrow | here.begins),
            ]

        # ------------------------------------------------------------------------------- two and the rows before to one
        sums = [Signal(signed(SUM), reset_less=True, name=f"acc_{k}") for k in range(4)]
        before, after = Signal(signed(SUM)), Signal(signed(SUM))
        m.d.comb += [
            before.eq(choose((stage.turn == k, acc) for k, acc in enumerate(sums))),
            after.eq(Mux(stage.begins, 0, before) + low + high),
        ]
        if self.minimum:
            least, lowest = Signal(signed(8)), Signal(signed(8))
            earlier = before[SUM - 8 :].as_signed()
            m.d.comb += [
                lowest.eq(Mux(low < high, low, high)),
                least.eq(Mux(~stage.begins & (earlier < low) & (earlier < high), earlier, lowest)),
            ]
            after = Mux(minimum, Cat(Const(0, SUM - 8), least), after)[:SUM]
        with m.If(valid):
            m.d.sync += Cat(sums).eq(Cat(after, *sums[:-1]))

        ends, segment, offset = Signal(), Signal(base, reset_less=True), Signal(signed(8), reset_less=True)
        powers = [Signal(reset_less=True, name=f"power_{k}") for k in range(4)]  # so many sectors: 1, 2, 4, 8
        blocked = self._queue(m, ends, segment, pop)
        m.d.sync += ends.eq((valid & stage.ends) | (ends & blocked))  # nothing comes while it is blocked
        with m.If(valid):
            m.d.sync += [segment.index.eq(stage.index), segment.narrow.eq(stage.narrow), segment.void.eq(stage.void),
                         offset.eq(delta)]
            m.d.sync += [power.eq((stage.index == (1 << k) - 1) & counted & (minimum == 0) if k < 3 else
                                  ((stage.index == 7) & counted) | minimum) for k, power in enumerate(powers)]

        # ----------------------------------------------------------------------------------- the mean, and the base
        last_total, total = Signal(SUM, reset_less=True), Signal(SUM)
        some = Cat(powers).any()
        m.d.comb += total.eq(choose([*((power, (sums[0] << 3 - k)[:SUM]) for k, power in enumerate(powers)),
                                     (~some, last_total)]) & config.lfc.replicate(SUM))
        m.d.sync += last_total.eq(total)
        result, clamped = Signal(signed(9)), Signal(signed(8))
        m.d.comb += [
            result.eq(total[6:].as_signed() + offset + total[5]),
            clamped.eq(Mux(result[8] ^ result[7], Cat((~result[8]).replicate(7), result[8]), result[:8])),
            segment.base.eq(clamped),
        ]
        return m

    @staticmethod
    def _least(m, values, absent):
        """The least of four lanes, without those that are not there: all are compared with all at once."""
        lanes = [Signal(signed(8), name="lane") for _ in values]
        m.d.comb += [lane.eq(Cat(value[:7] | void.replicate(7), value[7] & ~void))
                     for lane, value, void in zip(lanes, values, absent, strict=True)]
        below = {}  # of two equal ones, the first counts
        for k, one in enumerate(lanes):
            for j, other in enumerate(lanes[k + 1 :], k + 1):
                less = Signal(name="less")
                m.d.comb += less.eq(other < one)
                below[j, k], below[k, j] = less, ~less
        return choose((Cat(below[k, j] for j in range(4) if j != k).all(), lane)
                      for k, lane in enumerate(lanes)).as_signed()

    def _queue(self, m, push, payload, pop):
        """Bases that wait. Whatever comes goes to all places that are free, of which the first one then counts. Returns
        whether there is none, nor will be one in the next cycle."""
        valid = [Const(1, 1), *(Signal(name=f"waits_{k}") for k in range(DEPTH)), Const(0, 1)]
        queue = [*(Signal(base, reset_less=True, name=f"queue_{k}") for k in range(DEPTH)), payload]
        for k in range(DEPTH):
            before, here, behind = valid[k : k + 3]
            with m.If(pop | ~here):
                m.d.sync += queue[k].eq(Mux(behind, queue[k + 1], payload))
            m.d.sync += here.eq(Mux(pop, behind | (push & here), here | (push & before)))
        m.d.comb += [self.bases.valid.eq(valid[1]), self.bases.p.eq(queue[0])]
        return valid[DEPTH] & ~pop
