"""The splitter of streams: packets dealt out to lanes without blocks, turn by turn."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.offload.wire.round_robin import PACKET, check_cdus
from actcodec.rtl.offload.wire.streams.stream_collector import LENGTH
from actcodec.rtl.offload.wire.streams.turns import SLOTS, TURN, Turns

__all__ = ["StreamSplitter"]


class StreamSplitter(wiring.Component):
    """Gives each lane 8 bytes in turn until it has as many as its stream is long: the reverse of
    :class:`~actcodec.rtl.offload.wire.streams.stream_collector.StreamCollector`.

    Every lane's stream ends with ``last``, whatever comes: where packets end too soon, with what there is of it.

    Throughput: 8 bytes a cycle for each lane, except where a packet ends within a round of turns. Latency: 1 cycle.
    Buffering: a turn of each lane. Combinational paths: ``i`` and ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-G, Figure 15b, with bytes in place of blocks.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 128 bytes
        All full but the last one.
    o : ``cdus`` streams of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8 bytes
        Full beats, but the last one of each, which may have no bytes.
    used : input
        Lanes that have a stream, at least one; in the cycle of ``start``.
    lengths : input, of 32 bits
        Of the stream of each lane, in bytes; in the cycle of ``start``.
    start : input
        Pulse that starts a tensor, while not ``busy``.
    busy : output
        Bytes are still to be given, or packets to be taken.
    wants : output
        The packets have not ended: a cycle in which ``i`` has nothing is a cycle of waiting for them.
    short : output
        They ended before all streams had theirs; until ``start``.
    excess : output
        They went on after that; until ``start``. The rest is taken and dropped. A last packet without bytes does not
        count.

    Raises
    ------
    ValueError
        If ``cdus`` is out of range.
    """

    def __init__(self, cdus):
        check_cdus(cdus)
        self.cdus = cdus
        flags = {"busy": Out(1), "wants": Out(1), "short": Out(1), "excess": Out(1)}
        super().__init__({
            "i": In(stream.Signature(chunk_layout(PACKET))),
            "o": Out(stream.Signature(chunk_layout(TURN))).array(cdus),
            "used": In(cdus),
            "lengths": In(LENGTH).array(cdus),
            "start": In(1),
            **flags,
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.turns = turns = Turns(self.cdus)
        running = Signal()
        ending = Signal()  # then what is owed follows
        owed = Signal(self.cdus)  # lanes that have not got their last beat
        size, rest = Signal(range(PACKET + 1)), Signal(3)  # bytes of the packet; of its last turn, 0 if that is full
        cut = Signal(SLOTS)  # the slot of that turn, unless it is full
        m.d.comb += [
            size.eq(Mux(self.i.p.last, self.i.p.count, PACKET)), rest.eq(size[:3]),
            turns.start.eq(self.start),
            turns.used.eq(self.used & Cat(length.any() for length in self.lengths)),
            turns.slots.eq(Cat(self.i.valid & running & (~self.i.p.last | (self.i.p.count > TURN * s))
                               for s in range(SLOTS))),
            cut.eq(Cat((size[3:] == s) & rest.any() for s in range(SLOTS))),
            turns.next.eq(self.i.valid & self.i.ready),
        ]
        slots = [self.i.p.data.as_value().word_select(s, 8 * TURN) for s in range(SLOTS)]
        valid = []
        for c, o in enumerate(self.o):
            left = Signal(LENGTH - 3, reset_less=True, name=f"left_{c}")  # full turns
            tail = Signal(3, reset_less=True, name=f"tail_{c}")  # bytes of one more, unless there is none
            final = Signal(reset_less=True, name=f"final_{c}")
            free, moves, lacks = Signal(name=f"free_{c}"), turns.moves[c], Signal(name=f"lacks_{c}")
            beat, word = Signal.like(o.p, reset_less=True, name=f"beat_{c}"), Signal(8 * TURN, name=f"word_{c}")
            quota, short = Signal(4, name=f"quota_{c}"), Signal(name=f"short_{c}")  # its turn has less than a turn
            sent = [(quota > k) & ~(short & (rest <= k)) for k in range(TURN)]  # which bytes
            offered = Signal(name=f"offered_{c}")
            valid.append(offered)
            m.d.comb += [
                free.eq(~offered | o.ready), o.valid.eq(offered), o.p.eq(beat),
                turns.able[c].eq(free),
                quota.eq(Mux(final & tail.any(), tail, TURN)),
                short.eq((turns.at[c] & cut).any()), lacks.eq(short & (rest < quota)),
                # A turn that lacks something is the last packet's last one: whether the lane goes on no longer matters.
                turns.ends[c].eq(final),
                word.eq(choose(zip(turns.at[c], slots, strict=True))),
            ]
            none = self.lengths[c][:3] == 0
            one = tail == 0
            with m.If(self.start):
                m.d.sync += [Cat(tail, left).eq(self.lengths[c]), final.eq(self.lengths[c][3:] == none)]
            with m.Elif(moves):
                m.d.sync += [left.eq(left - 1), final.eq((left[2:] == 0) & (left[:2] == Cat(~one, one)))]
            with m.If(free):
                m.d.sync += offered.eq(moves | (ending & owed[c]))
                # If it does not move, this is an end without bytes, or nothing.
                m.d.sync += [beat.data.eq(Cat(word.word_select(k, 8) & (one & ~ending).replicate(8)
                                              for k, one in enumerate(sent))),
                             beat.count.eq(Mux(ending, 0, Mux(lacks, rest, quota))),
                             beat.last.eq(ending | final | lacks)]
                with m.If(ending | (moves & (final | lacks))):
                    m.d.sync += owed[c].eq(0)
            with m.If(moves & lacks):
                m.d.sync += self.short.eq(1)
        m.d.comb += [
            self.busy.eq(running | ending | owed.any() | Cat(valid).any()),
            self.wants.eq(running),
        ]
        # What follows on the last turn tells whether the packets go on: they may end in one without bytes.
        closed = Signal()  # the streams were done before
        m.d.comb += [
            closed.eq(~turns.open.any()),
            self.i.ready.eq(running & self.i.valid & (closed | turns.whole)),
        ]
        with m.If(running & self.i.valid & closed & ~turns.whole):
            m.d.sync += self.excess.eq(1)
        with m.If(self.i.valid & self.i.ready & self.i.p.last):
            m.d.sync += [running.eq(0), ending.eq(1)]
        with m.If(ending & ~closed):
            m.d.sync += self.short.eq(1)
        with m.If(ending & ~owed.any()):
            m.d.sync += ending.eq(0)
        with m.If(self.start):
            m.d.sync += [running.eq(1), owed.eq(self.used), self.short.eq(0), self.excess.eq(0)]
        return m
