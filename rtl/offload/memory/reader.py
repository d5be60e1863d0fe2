"""From places to sectors: the side of a CDU that reads memory."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.bursts import LIMIT, Bursts
from actcodec.rtl.common.fifo import Fifo
from actcodec.rtl.common.pipeline import Register
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.common.vectors import sectors as counted
from actcodec.rtl.offload.memory.beat_planner import BeatPlanner, finer_bits, masks, rotate
from actcodec.rtl.offload.memory.geometry import of_size

__all__ = ["Reader", "check_outstanding"]


def check_outstanding(outstanding):
    """Raises ValueError unless as many beats are enough for a burst."""
    if not isinstance(outstanding, int) or outstanding < LIMIT:
        raise ValueError(f"outstanding must be at least {LIMIT} beats, not {outstanding!r}")


class Reader(wiring.Component):
    """Reads the sectors of a tensor, and their scales, over AXI4.

    The places of the sectors come twice, as two streams with the same content. ``ahead`` runs as far in front as reads
    may be outstanding and asks for beats; ``now`` takes the beats that arrive apart again. Both make the same
    decisions (:class:`~actcodec.rtl.offload.memory.beat_planner.BeatPlanner`), so a counter is all that has to be kept
    of the reads under way.

    A beat that was read stays until the next one replaces it, so a sector that begins in it and ends in the next is
    put together from both and rotated to lane 0. Words that a sector does not have are zero.

    Where memory is shared, what was asked for must not wait at its port for a sector to leave, as that may take what
    other masters wait for behind it. So there is a FIFO for as many beats as may be under way, and ``r.ready`` is
    always 1.

    Throughput: one beat, and one sector, a cycle: a sector takes as many cycles as it needs new beats, at least one.
    Latency: 4 cycles, for LUTs 5, from the place that ends a burst to its ``ar``, 1 from a beat to its sector, and the
    FIFO's 3.
    Buffering: the last beat, two lines of scales, two sectors and two scales at the outputs (so that each may be two
    ahead of the other; with ``delayed`` three sectors), two bursts, and the FIFO. Combinational paths: none with the
    FIFO. Without, ``r.valid`` to ``now.ready``, ``abort`` to ``r.ready``, which otherwise comes from registers, over a
    few gates.

    Source: JPEG-ACT, section III-C, Figures 7 and 8.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 12 to 64.
    outstanding : int
        Most beats asked for and not yet here, at least 8: full rate needs 16 more than the cycles of latency. With
        shared memory also the depth of the FIFO.
    memory : {"shared", "independent"}
        "shared": several masters may have one slave; a FIFO has space for each requested beat. "independent": no other
        master's data ever holds up this one's (docs/integration.md); no FIFO.
    halves, codes : bool
        There is ``half``; there is ``byte``.
    counts : bool
        Sectors tell how many values they have.
    delayed : bool
        A sector comes a cycle later, for what takes a cycle over its scale.

    Ports
    -----
    ahead, now : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
        The same places; those of a tensor come after its ``start`` and end with ``last``.
    sectors : stream of 8 words, or, with ``counts``, of :data:`~actcodec.rtl.common.vectors.sectors`
        With ``gather``. With ``half``, eight values of 2 bytes in the low 128 bits, with ``byte`` eight of 1 in the low
        64; what is above means nothing.
        ``last`` is the place's ``slot``, of which nothing else has need without scales.
    scale : stream of words
        With ``scaled``, one for each sector, padding too.
    axi : :class:`~actcodec.rtl.common.axi.Read`
    gather, scaled : input
        What is read: sectors, scales, both, or nothing. Constant while ``busy``.
    scales : input
        Address of the table of scales, a multiple of 32. Constant while ``busy``.
    half : input
        Values have 2 bytes, at addresses that are a multiple of 2: a beat has two sectors. Constant while ``busy``.
    byte : input
        Values have one byte, at any address: a beat has four sectors. Likewise.
    start : input
        A pulse in front of each tensor, while not ``busy``.
    abort : input
        Give up: no more bursts begin, and beats under way are dropped. Held until ``busy`` falls; then the unit is as
        after reset.
    busy : output
        From ``start`` until the last step is done and all beats are here; sectors may still wait at the outputs.
    error : output
        A response was not OKAY; stands until the next ``start``.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, outstanding=384, memory="shared", halves=False, counts=False, codes=False,
                 delayed=False):
        check_outstanding(outstanding)
        axi.check_memory(memory)
        self.address_width, self.outstanding, self.memory = address_width, outstanding, memory
        self.halves, self.counts, self.codes, self.delayed = bool(halves), bool(counts), bool(codes), bool(delayed)
        self._sector = counted if counts else data.ArrayLayout(32, 8)
        self._ahead, self._now = (BeatPlanner(address_width, halves, codes) for _ in range(2))
        self._bursts = Bursts(address_width)
        super().__init__({
            "ahead": In(stream.Signature(place_layout(address_width))),
            "now": In(stream.Signature(place_layout(address_width))),
            "sectors": Out(stream.Signature(self._sector)),
            "scale": Out(stream.Signature(32)),
            "axi": Out(axi.Read(address_width)),
            "gather": In(1),
            "scaled": In(1),
            "scales": In(address_width),
            "start": In(1),
            "abort": In(1),
            "busy": Out(1),
            "error": Out(1),
            **({"half": In(1)} if halves else {}),
            **({"byte": In(1)} if codes else {}),
        })

    def elaborate(self, platform):
        m = Module()
        ahead, now, bursts = self._ahead, self._now, self._bursts
        sectors, scale = Skid(self._sector), Skid(32)
        units, entry = {"ahead": ahead, "now": now, "bursts": bursts, "sectors": sectors, "scale": scale}, sectors
        if self.delayed:  # before the skid buffer, whose ready comes early
            units["delay"] = entry = Register(self._sector)
            wiring.connect(m, entry.o, sectors.i)
        ahead_o, now_o = ahead.o, now.o
        if target(platform) == "lut":  # a decision takes as long as what becomes of it
            units |= {f"{name}_skid": Skid(planner.o.p.shape()) for name, planner in (("ahead", ahead), ("now", now))}
            wiring.connect(m, ahead.o, units["ahead_skid"].i)
            wiring.connect(m, now.o, units["now_skid"].i)
            ahead_o, now_o = units["ahead_skid"].o, units["now_skid"].o
        for name, unit in units.items():
            m.submodules[name] = ResetInserter(self.abort)(unit)
        m.submodules.ar = ar = Skid(axi.address_layout(self.address_width))  # what is offered here is never withdrawn
        for unit, places in ((ahead, self.ahead), (now, self.now)):
            wiring.connect(m, wiring.flipped(places), unit.i)
            m.d.comb += [unit.scaled.eq(self.scaled), unit.gather.eq(self.gather), unit.table.eq(self.scales[5:])]
            if self.halves:
                m.d.comb += unit.half.eq(self.half)
            if self.codes:
                m.d.comb += unit.byte.eq(self.byte)
        wiring.connect(m, sectors.o, wiring.flipped(self.sectors))
        wiring.connect(m, scale.o, wiring.flipped(self.scale))
        wiring.connect(m, ar.o, wiring.flipped(self.axi.ar))

        r = self.axi.r
        beat, failed = r.p.data, r.p.resp != 0
        if self.memory == "shared":
            m.submodules.arrived = fifo = Fifo(data.StructLayout({"beat": len(beat), "failed": 1}), self.outstanding)
            # There is room for all that was asked for: `under_way` counts what has not left the FIFO.
            m.d.comb += [fifo.i.p.eq(Cat(beat, failed)), fifo.i.valid.eq(r.valid), r.ready.eq(1)]
            r, beat, failed = fifo.o, fifo.o.p.beat, fifo.o.p.failed

        # Asking.
        under_way = Signal(range(self.outstanding + 1))
        room, asks, comes = Signal(), Signal(), Signal()
        m.d.comb += [
            room.eq(under_way <= self.outstanding - LIMIT),
            bursts.i.p.eq(ahead_o.p.burst),
            # Nothing joins a line of scales, and the next beat may be thousands of steps away.
            bursts.i.p.last.eq(ahead_o.p.burst.last | ahead_o.p.scale),
            bursts.i.valid.eq(ahead_o.valid),
            ahead_o.ready.eq(bursts.i.ready),
            ar.i.p.eq(bursts.o.p),
            ar.i.valid.eq(bursts.o.valid & room),
            bursts.o.ready.eq(ar.i.ready & room),
            asks.eq(ar.i.valid & ar.i.ready),
            comes.eq(r.valid & r.ready),
        ]
        m.d.sync += under_way.eq(under_way + Mux(asks, bursts.o.p.length + 1, 0) - comes)

        # Taking apart.
        work = now_o.p
        ready, moves = Signal(), Signal()
        m.d.comb += [
            ready.eq(~work.final | (entry.i.ready & scale.i.ready)),
            now_o.ready.eq(ready & (~work.burst.beat | r.valid)),
            moves.eq(now_o.valid & now_o.ready),
            r.ready.eq((now_o.valid & work.burst.beat & ready) | self.abort),
            entry.i.valid.eq(moves & work.final & self.gather),
            scale.i.valid.eq(moves & work.final & self.scaled),
        ]
        finer = finer_bits(self.halves, self.codes)
        count = 8 << finer  # words of a beat
        bits = len(beat) // count
        arrived = [Signal(bits, name=f"arrived_{k}") for k in range(count)]
        m.d.comb += Cat(arrived).eq(beat)
        previous = [Signal(bits, reset_less=True, name=f"previous_{k}") for k in range(count)]
        lines = [[Signal(32, reset_less=True, name=f"line_{slot}_{k}") for k in range(8)] for slot in range(2)]
        with m.If(moves & work.burst.beat & ~work.scale):
            m.d.sync += Cat(previous).eq(beat)
        for slot in range(2):
            with m.If(moves & work.scale & (work.slot == slot)):
                m.d.sync += Cat(lines[slot]).eq(beat)

        # A sector of two beats has its first one from before, one of a single beat either has it or gets it now.
        first, second = masks(m, work)
        new = Signal(count)
        m.d.comb += new.eq(Mux(work.second, second, first & work.burst.beat.replicate(count)))
        old = Signal(count)
        m.d.comb += old.eq(first & (work.second | ~work.burst.beat).replicate(count))
        merged = [Signal(bits, name=f"merged_{k}") for k in range(count)]
        m.d.comb += [merged[k].eq((arrived[k] & new[k].replicate(bits)) | (previous[k] & old[k].replicate(bits)))
                     for k in range(count)]
        values = (entry.i.p.data if self.counts else entry.i.p).as_value()
        if self.counts:
            number = (work.end - work.offset)[: max(5, 4 + finer)]
            if finer:
                number = of_size(self, number >> finer, number >> finer - 1 if finer > 1 else number, number)
            m.d.comb += [entry.i.p.count.eq(number), entry.i.p.last.eq(work.slot)]
        if finer:  # by words of 4 bytes, and then by 2 bytes, which only sectors of 16 bytes can need, and by one
            words = [Cat(merged[k << finer : k + 1 << finer]) for k in range(8)]
            rotated = Cat(rotate(m, words, work.offset[finer:]))
            for bit in reversed(range(finer)):
                step = bits << bit
                size = 8 * step if self.halves or not bit else 9 * bits  # of which a shift by one byte is to come
                rotated = Cat(Mux(work.offset[bit], rotated[step : size + step], rotated[:size]), rotated[size:])
            m.d.comb += values.eq(rotated)
        else:
            m.d.comb += values.eq(Cat(rotate(m, merged, work.offset)))
        words = Signal(data.ArrayLayout(32, 16))
        m.d.comb += [words.as_value().eq(Cat(lines)), scale.i.p.eq(words[Cat(work.word, work.slot)])]

        # The first of the two streams may have steps without a beat left when the second is through.
        asking, taking = Signal(), Signal()
        m.d.comb += self.busy.eq(asking | taking | (under_way != 0))
        with m.If(self.start):
            m.d.sync += [Cat(asking, taking).eq(3), self.error.eq(0)]
        with m.Else():
            with m.If(ahead_o.valid & ahead_o.ready & ahead_o.p.burst.last):
                m.d.sync += asking.eq(0)
            with m.If(moves & work.burst.last):
                m.d.sync += taking.eq(0)
        with m.If(comes & failed):
            m.d.sync += self.error.eq(1)
        with m.If(self.abort):
            m.d.sync += Cat(asking, taking).eq(0)
        return m
