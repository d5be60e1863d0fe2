"""What a sector's place means for a memory of 32-byte beats."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.bursts import LIMIT, beat_layout
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.offload.memory.geometry import of_size

__all__ = ["BeatPlanner", "finer_bits", "masks", "rotate", "step_layout"]


def step_layout(address_width, halves=False, codes=False):
    """A cycle's work on a sector, with at most one beat (:func:`~actcodec.rtl.common.bursts.beat_layout`).

    ``scale`` marks the beat of a line of scales. The ``final`` step of a sector comes last; without it, another beat of
    the sector follows. In it ``second`` says that the sector goes on in a second beat, which is then the one of this
    step. The sector has the words from ``offset`` up to ``end``, counted from the start of its first beat: words of 4
    bytes, or of 2 with ``halves``, or of 1 with ``codes``. Its scale is ``word`` of the line in ``slot``.
    """
    finer = finer_bits(halves, codes)
    return data.StructLayout({"burst": beat_layout(address_width), "scale": 1, "final": 1, "second": 1,
                              "offset": 3 + finer, "end": 4 + finer, "slot": 1, "word": 3})


def finer_bits(halves, codes):
    """How many more bits than one of 4 bytes it takes to number the words of a beat."""
    return 2 if codes else int(bool(halves))


def masks(m, work):
    """Which words of its first beat, and of its second, a sector has."""
    count = 1 << len(work.offset)
    first, second = Signal(count), Signal(count)
    m.d.comb += [
        first.eq(Cat((work.offset <= k) & (work.end > k) for k in range(count))),
        second.eq(Cat(work.end > k for k in range(count, 2 * count))),
    ]
    return first, second


def rotate(m, words, by):
    """Eight words moved down by ``by``, in a circle."""
    for bit in range(3):
        moved = [Signal.like(word, name=f"moved_{1 << bit}") for word in words]
        m.d.comb += [moved[k].eq(Mux(by[bit], words[(k + (1 << bit)) % 8], words[k])) for k in range(8)]
        words = moved
    return words


class BeatPlanner(wiring.Component):
    """Decides beat by beat what memory has to do for each sector.

    A sector touches the beat of its first word, and the one of its last word if that is another. A beat that is the
    same as the last one touched before is left out, so consecutive rows of any width move each beat once. Lines of
    scales (8 words, a beat) are kept in two slots; a line that is not the one in its slot has a beat of its own, in
    front of the sector.

    The same places always give the same steps, so that two units that see the same places need not tell each other
    what was decided.

    Throughput: one step a cycle; a sector takes one for each beat, and one if it has none or none but a line of
    scales. Latency: 2 cycles. Buffering: 2 places. Combinational paths: ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-C.

    Parameters
    ----------
    address_width : int
        Bits of a byte address.
    halves, codes : bool
        There is ``half``; there is ``byte``.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
    o : stream of :func:`step_layout`
    scaled, gather : input
        Whether lines of scales, and the sectors themselves, are touched. Constant during a tensor.
    table : input
        Address over 32 of the table of scales. Constant during a tensor.
    half : input
        Values have 2 bytes, so that a beat has two sectors; otherwise 4. Constant during a tensor.
    byte : input
        They have one, so that it has four. Likewise.
    """

    def __init__(self, address_width=40, halves=False, codes=False):
        self.address_width, self.halves, self.codes = address_width, bool(halves), bool(codes)
        super().__init__({
            "i": In(stream.Signature(place_layout(address_width))),
            "o": Out(stream.Signature(step_layout(address_width, halves, codes))),
            "scaled": In(1),
            "gather": In(1),
            "table": In(address_width - 5),
            **({"half": In(1)} if halves else {}),
            **({"byte": In(1)} if codes else {}),
        })

    def elaborate(self, platform):
        m = Module()
        i, o = self.i.p, self.o.p
        low = LIMIT.bit_length() - 1  # bits of a beat's place among those that may be one burst
        entered, decided = (stream.Signature(0).create(path=[name]) for name in ("entered", "decided"))

        # Sums first: the beat after the first one, and where the sector ends.
        pipe = Pipeline(m, self.i, entered)
        index = i.address[5:]
        width = len(index)
        finer = finer_bits(self.halves, self.codes)
        start, words = i.address[2 - finer : 5], i.words
        if finer:
            words = of_size(self, words << finer, words << finer - 1 if finer > 1 else words, words)
        offset, end, some, line, word, slot, last, index, following = pipe.stage(
            start, (start + words)[: len(o.end)], i.words != 0, i.channel[3:], i.channel[:3], i.slot, i.last,
            index, (index + 1)[:width])
        pipe.finish()

        # Then what the sectors before have left behind.
        straddles = end > (1 << len(o.offset))
        previous, known = Signal(width, reset_less=True), Signal()
        lines = [Signal.like(line, reset_less=True, name=f"line_{k}") for k in range(2)]
        cached = Signal(2)
        with m.If(entered.valid & entered.ready):
            with m.If(some):
                m.d.sync += [previous.eq(Mux(straddles, following, index)), known.eq(1)]
            for k in range(2):
                with m.If(slot == k):
                    m.d.sync += [lines[k].eq(line), cached[k].eq(1)]
            with m.If(last):
                m.d.sync += [known.eq(0), cached.eq(0)]
        near, missing = Signal(), Signal()
        m.d.comb += [
            near.eq(known & (index[low:] == previous[low:])),
            missing.eq(~Mux(slot, cached[1] & (line == lines[1]), cached[0] & (line == lines[0]))),
        ]
        pipe = Pipeline(m, entered, decided)
        fetch, begins, second, joins, index, following, line, *about = pipe.stage(
            self.scaled & missing,
            self.gather & some & ~(near & (index[:low] == previous[:low])),
            self.gather & straddles,
            near & (index[:low] == previous[:low] + 1),
            index, following, (self.table + line)[:width],
            offset, end, slot, word, last)
        pipe.finish()
        offset, end, slot, word, last = about

        # Then beat by beat. What follows a line of scales does not join what was in front of it.
        fetched, begun, interrupted = Signal(), Signal(), Signal()
        scale, final, moved = Signal(), Signal(), Signal()
        burst = Signal.like(o.burst)
        m.d.comb += [
            scale.eq(fetch & ~fetched),
            final.eq(~scale & ~(begins & second & ~begun)),
            burst.beat.eq(~final | begins | second),
            burst.last.eq(final & last),
            o.as_value().eq(Cat(burst, scale, final, second, offset, end, slot, word)),
            self.o.valid.eq(decided.valid),
            decided.ready.eq(self.o.ready & final),
            moved.eq(self.o.valid & self.o.ready),
        ]
        with m.If(scale):
            m.d.comb += burst.index.eq(line)
        with m.Elif(final & second):
            m.d.comb += [burst.index.eq(following), burst.joins.eq(~index[:low].all() & ~interrupted)]
        with m.Else():
            m.d.comb += [burst.index.eq(index), burst.joins.eq(joins & ~interrupted)]
        with m.If(moved):
            m.d.sync += [fetched.eq(~final), begun.eq(~final & ~scale)]
            with m.If(burst.beat):
                m.d.sync += interrupted.eq(scale)
        return m
