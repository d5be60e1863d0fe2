"""The collector of streams: what lanes without blocks make, as one stream of packets."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.counter import Counter
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.offload.wire.round_robin import PACKET, check_cdus
from actcodec.rtl.offload.wire.streams.turns import SLOTS, TURN, Turns

__all__ = ["LENGTH", "StreamCollector"]

LENGTH = 32  # bits of the length of a lane's stream


class StreamCollector(wiring.Component):
    """Takes 8 bytes of each lane in turn, and sends them in packets. The last turn of a lane is filled up with zeros;
    from then on the lane is left out.

    A turn lies in one of 16 places of a packet, so nothing has to be shifted: a place takes the lane whose turn it is.

    Throughput: 8 bytes a cycle of each lane, except where a packet ends within a round of turns. Latency: 2 cycles from
    the turn that completes a packet to it. Buffering: a turn of each lane and a packet. Combinational paths:
    ``o.ready`` and ``i.valid`` of lanes to ``i.ready`` of others.

    Source: JPEG-ACT, section III-G, Figure 15a, with bytes in place of blocks.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.

    Ports
    -----
    i : ``cdus`` streams of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8 bytes
        Full beats, but the last one of each.
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 128 bytes
        All full but the last one of the tensor.
    used : input
        Lanes that have a stream, at least one; in the cycle of ``start``.
    start : input
        Pulse that starts a tensor; only when all of the one before has left.
    lengths : output, of 32 bits
        Of the stream of each lane, in bytes; right some cycles after its end, until ``start``.

    Raises
    ------
    ValueError
        If ``cdus`` is out of range.
    """

    def __init__(self, cdus):
        check_cdus(cdus)
        self.cdus = cdus
        super().__init__({
            "i": In(stream.Signature(chunk_layout(TURN))).array(cdus),
            "o": Out(stream.Signature(chunk_layout(PACKET))),
            "used": In(cdus),
            "start": In(1),
            "lengths": Out(LENGTH).array(cdus),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.turns = turns = Turns(self.cdus)
        advance, full = Signal(), Signal()
        fills = Signal()  # with what is to be written, the packet ends
        closes = Signal(reset_less=True)  # the tensor as well
        end = Signal(range(SLOTS + 1), reset_less=True)
        packet = Signal(chunk_layout(PACKET), reset_less=True)
        m.d.comb += [
            advance.eq(~full | self.o.ready),
            turns.start.eq(self.start), turns.used.eq(self.used), turns.slots.eq(~0),
            turns.able.eq(Cat(i.valid & advance for i in self.i)),
            turns.ends.eq(Cat(i.p.last for i in self.i)),
            turns.next.eq(turns.whole),
        ]
        at, words = [], []
        for c, i in enumerate(self.i):
            place, word = Signal(SLOTS, name=f"at_{c}"), Signal(8 * TURN, reset_less=True, name=f"word_{c}")
            m.submodules[f"length_{c}"] = length = Counter(len(i.p.count), LENGTH)
            m.d.comb += [i.ready.eq(turns.moves[c]), length.clear.eq(self.start), self.lengths[c].eq(length.value),
                         length.amount.eq(Mux(turns.moves[c], i.p.count, 0))]
            with m.If(advance):
                m.d.sync += [place.eq(Mux(turns.moves[c], turns.at[c], 0)), word.eq(i.p.data)]
            at.append(place)
            words.append(word)

        with m.If(advance):
            last = turns.moves.any() & ~turns.left.any()
            m.d.sync += [fills.eq(turns.whole | last), closes.eq(last), end.eq(turns.after),
                         full.eq(fills), packet.last.eq(closes), packet.count.eq(end << 3)]
        m.d.comb += [self.o.valid.eq(full), self.o.p.eq(packet)]
        for s in range(SLOTS):
            written = Cat(place[s] for place in at)
            with m.If(advance & (written.any() | (closes & fills & (end <= s)))):
                m.d.sync += packet.data.as_value().word_select(s, 8 * TURN).eq(
                    choose(zip(written, words, strict=True)))
        return m
