"""From sectors to memory: the side of a CDU that writes."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.bursts import LIMIT, Bursts
from actcodec.rtl.common.fifo import Fifo
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.offload.memory.beat_planner import BeatPlanner, finer_bits, masks, rotate

__all__ = ["Writer"]

DEPTH = 16  # steps for which bursts can be formed before the sectors are here
WINDOW = 12  # of them a burst may have; the others keep sectors moving until it has left
GRANTED = 4  # bursts that are complete but for their data
STORED = 2 * LIMIT  # beats, of a burst that leaves and one that comes
UNCOUNTED = 2  # bursts that may have been offered since those under way were compared with the limit


def _work_layout(finer):
    return data.StructLayout({"beat": 1, "final": 1, "second": 1, "offset": 3 + finer, "end": 4 + finer, "last": 1})


def _beat_layout(count):
    """A beat of ``count`` words."""
    return data.StructLayout({"data": data.ArrayLayout(8 * axi.BEAT // count, count), "strobe": count, "last": 1})


class Writer(wiring.Component):
    """Writes the sectors of a tensor over AXI4.

    Each sector goes to its place: rotated to the words of the beats that it touches, and merged with what the sectors
    before have left of the same beat, so that a beat is written once if the sectors that touch it follow each other.
    Only the bytes that sectors have are written, by strobes.

    Places run ahead of the sectors by up to 16 steps, for LUTs 18, in which bursts are formed; what each step does with
    the data waits in a FIFO. Where memory is shared, an address that was taken keeps other masters' data waiting until
    those of its burst have come. So these are stored first: ``aw`` is offered when the last beat of its burst is there,
    and all of them then leave without waiting for anything but ``w.ready``. Otherwise data come once their burst stands
    in line at ``aw``. They never wait for it to be taken.

    Throughput: one beat, and one sector, a cycle: a sector takes as many cycles as it begins new beats, at least one.
    Latency: a beat is complete with the sector that begins the next one, or a cycle after the last sector of the
    tensor. Until then it waits. It leaves 1 cycle later, or, stored, 4 after the last beat of its burst and 3 after the
    burst's ``aw``. Without a store, ``aw`` comes 4 cycles, for LUTs 5, after the place that ends a burst. Buffering: a
    beat, two beats or a store of two of the longest bursts, six bursts, 16 or 18 steps. Combinational paths: none;
    ``sectors.ready`` comes from registers, over a few gates.

    Source: JPEG-ACT, section III-C, Figures 7 and 8.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 12 to 64.
    outstanding : int
        Most bursts without a response, at least 3. Full rate needs as many as beats, if every beat is a burst, pass in
        the latency of memory.
    memory : {"shared", "independent"}
        "shared": several masters may have one slave; a burst is stored before it is offered. "independent": no other
        master's data ever holds up this one's (docs/integration.md); no store.
    halves, codes : bool
        There is ``half``; there is ``byte``.

    Ports
    -----
    places : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
        Those of a tensor come after its ``start`` and end with ``last``.
    sectors : stream of 8 words
        One for each place, padding too. With ``half``, eight values of 2 bytes in the low 128 bits, with ``byte`` eight
        of 1 in the low 64, whatever is above.
    axi : :class:`~actcodec.rtl.common.axi.Write`
    half : input
        Values have 2 bytes, at addresses that are a multiple of 2: a beat has two sectors. Constant while ``busy``.
    byte : input
        Values have one byte, at any address: a beat has four sectors. Likewise.
    start : input
        A pulse in front of each tensor, while not ``busy``.
    abort : input
        Give up: no more bursts begin, and those that have get their beats without strobes. Held until ``busy``
        falls; then the unit is as after reset.
    busy : output
        From ``start`` until the last response.
    error : output
        A response was not OKAY; stands until the next ``start``.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, outstanding=384, memory="shared", halves=False, codes=False):
        if not isinstance(outstanding, int) or outstanding < UNCOUNTED + 1:
            raise ValueError(f"outstanding must be at least {UNCOUNTED + 1} bursts, not {outstanding!r}")
        axi.check_memory(memory)
        self.address_width, self.outstanding, self.memory = address_width, outstanding, memory
        self.halves, self.codes = bool(halves), bool(codes)
        self._beats, self._bursts = BeatPlanner(address_width, halves, codes), Bursts(address_width, window=WINDOW)
        super().__init__({
            "places": In(stream.Signature(place_layout(address_width))),
            "sectors": In(stream.Signature(data.ArrayLayout(32, 8))),
            "axi": Out(axi.Write(address_width)),
            "start": In(1),
            "abort": In(1),
            "busy": Out(1),
            "error": Out(1),
            **({"half": In(1)} if halves else {}),
            **({"byte": In(1)} if codes else {}),
        })

    def elaborate(self, platform):
        m = Module()
        beats, bursts = self._beats, self._bursts
        finer = finer_bits(self.halves, self.codes)
        count = 8 << finer  # words of a beat
        bits = 8 * axi.BEAT // count
        work_layout, beat_layout = _work_layout(finer), _beat_layout(count)
        steps = SyncFIFOBuffered(width=work_layout.size, depth=DEPTH)
        units, planned = {"beats": beats, "bursts": bursts, "steps": steps}, beats.o
        if target(platform) == "lut":  # a decision takes as long as what becomes of it
            units["planned"] = skid = Skid(planned.p.shape())
            wiring.connect(m, beats.o, skid.i)
            planned = skid.o
        for name, unit in units.items():
            m.submodules[name] = ResetInserter(self.abort)(unit)
        # What is here was promised to memory, or is on offer, or (granted) may be.
        stores, burst = self.memory == "shared", axi.address_layout(self.address_width)
        m.submodules.granted = granted = SyncFIFO(width=burst.size if stores else (LIMIT - 1).bit_length(),
                                                  depth=GRANTED)
        m.submodules.aw = aw = Skid(burst)
        m.submodules.w = w = Fifo(beat_layout, STORED, packets=True) if stores else Skid(beat_layout)
        wiring.connect(m, wiring.flipped(self.places), beats.i)
        wiring.connect(m, aw.o, wiring.flipped(self.axi.aw))
        if self.halves:
            m.d.comb += beats.half.eq(self.half)
        if self.codes:
            m.d.comb += beats.byte.eq(self.byte)

        # Bursts, and what is to be done for them.
        step, entry = planned.p, Signal(work_layout)
        room, offers, offered, answers = (Signal(name=name) for name in ("room", "offers", "offered", "answers"))
        moves, able = Signal(), Signal()  # a beat leaves; nothing but itself is needed for that
        under_way = Signal(range(self.outstanding + 1))
        m.d.comb += [
            beats.gather.eq(1),
            entry.eq(Cat(step.burst.beat, step.final, step.second, step.offset, step.end, step.burst.last)),
            steps.w_data.eq(entry),
            steps.w_en.eq(planned.valid & bursts.i.ready),
            bursts.i.p.eq(step.burst),
            bursts.i.valid.eq(planned.valid & steps.w_rdy),
            planned.ready.eq(bursts.i.ready & steps.w_rdy),
            offers.eq(aw.i.valid & aw.i.ready),
            self.axi.b.ready.eq(1),
            answers.eq(self.axi.b.valid),
        ]
        last = w.i.p.last
        if stores:  # the last beat brings its burst to aw; which one that is would be known too late to be asked here
            m.d.sync += room.eq(under_way < self.outstanding - UNCOUNTED)
            m.d.comb += [
                granted.w_data.eq(bursts.o.p), granted.w_en.eq(bursts.o.valid),
                bursts.o.ready.eq(granted.w_rdy),
                aw.i.p.eq(granted.r_data), aw.i.valid.eq(moves & last),
                able.eq(granted.r_rdy & w.i.ready & aw.i.ready & room),
            ]
        else:
            m.d.comb += [
                room.eq((under_way != self.outstanding) & ~(offered & (under_way == self.outstanding - 1))),
                granted.w_data.eq(bursts.o.p.length), granted.w_en.eq(offers),
                bursts.o.ready.eq(aw.i.ready & room & granted.w_rdy),
                aw.i.p.eq(bursts.o.p), aw.i.valid.eq(bursts.o.valid & room & granted.w_rdy),
                able.eq(granted.r_rdy & w.i.ready),
            ]
        # A burst counts one cycle after it has been offered, since that is decided late.
        m.d.sync += [offered.eq(offers), under_way.eq(under_way + offered - answers)]

        # Data. A beat stays open until the next one begins, or the tensor has ended (closing).
        work = data.View(work_layout, steps.r_data)
        partial = [Signal(bits, reset_less=True, name=f"partial_{k}") for k in range(count)]
        strobe = Signal(count, reset_less=True)
        open_, closing = Signal(), Signal()
        ready, works, emits, begun = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            ready.eq(steps.r_rdy & ~closing & ~(work.beat & open_ & ~able)),
            self.sectors.ready.eq(ready & work.final),
            works.eq(ready & self.sectors.valid),
            steps.r_en.eq(works),
            emits.eq(closing | (steps.r_rdy & work.beat & open_ & self.sectors.valid)),
            w.i.valid.eq(moves),
            moves.eq(able & Mux(self.abort, begun, emits)),
        ]
        first, second = masks(m, work)
        splits = work.final & work.second & ~closing  # what is kept gets its end, and the next beat its beginning
        completed, stored = Signal(count), Signal(count)
        m.d.comb += [completed.eq(first & splits.replicate(count)), stored.eq(Mux(splits, second, first))]
        sector = [Signal(32, name=f"sector_{k}") for k in range(8)]
        m.d.comb += Cat(sector).eq(self.sectors.p)
        if finer:  # by one byte, by 2 bytes, which only sectors of 16 bytes can need beside such, and by words of 4
            words = Cat(sector)
            for bit in range(finer):
                step = bits << bit
                size = 8 * step if self.halves or not bit else 9 * bits  # of which a shift by one byte has one
                words = Cat(Mux(work.offset[bit], Cat(words[:step], words[:size]), words[: size + step]),
                            words[size + step :])
            words = Cat(rotate(m, [words.word_select(k, 32) for k in range(8)], (-work.offset[finer:])[:3]))
            rotated = [words.word_select(k, bits) for k in range(count)]
        else:
            rotated = rotate(m, sector, (-work.offset)[:3])
        with m.If(works):
            m.d.sync += strobe.eq(stored | Mux(work.beat, 0, strobe))
            m.d.sync += [open_.eq(open_ | work.beat), closing.eq(work.last & (open_ | work.beat))]
            for k in range(count):
                with m.If(stored[k]):
                    m.d.sync += partial[k].eq(rotated[k])
        with m.If(closing & moves):
            m.d.sync += [open_.eq(0), closing.eq(0)]
        with m.If(self.abort):
            m.d.sync += [open_.eq(0), closing.eq(0)]

        left = Signal(range(LIMIT), name="count")  # beats of the burst that have left
        m.d.comb += [
            # Giving up, what was offered has to get its beats, and a burst of which some are stored gets the others.
            begun.eq(left != 0 if stores else 1),
            granted.r_en.eq((moves & last) | (self.abort & ~begun)),
            last.eq(left == data.View(burst, granted.r_data).length if stores else left == granted.r_data),
            w.i.p.strobe.eq((strobe | completed) & (~self.abort).replicate(count)),
            self.axi.w.valid.eq(w.o.valid),
            w.o.ready.eq(self.axi.w.ready),
            self.axi.w.p.data.eq(w.o.p.data.as_value()),
            self.axi.w.p.strobe.eq(Cat(bit.replicate(bits // 8) for bit in w.o.p.strobe)),
            self.axi.w.p.last.eq(w.o.p.last),
        ]
        m.d.comb += [w.i.p.data[k].eq(Mux(completed[k], rotated[k], partial[k])) for k in range(count)]
        with m.If(moves):
            m.d.sync += left.eq(Mux(last, 0, left + 1))

        writing = Signal()
        m.d.comb += self.busy.eq(writing | offered | (under_way != 0) | (granted.r_rdy if stores else 0))
        with m.If(self.start):
            m.d.sync += [writing.eq(1), self.error.eq(0)]
        with m.Elif((works & work.last & ~work.beat & ~open_) | (closing & moves) | self.abort):
            m.d.sync += writing.eq(0)
        with m.If(answers & (self.axi.b.p.resp != 0)):
            m.d.sync += self.error.eq(1)
        return m
