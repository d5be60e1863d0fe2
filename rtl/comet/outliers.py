"""The way of outliers around prediction: their bits as bytes, from sectors to the lanes of rounds or back."""

from itertools import pairwise

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import LANES
from actcodec.rtl.comet.rounds import turned

__all__ = ["DEPTH", "Outliers"]

DEPTH = 8  # bytes of a lane: two values


class Outliers(wiring.Component):
    """Keeps the bytes of outliers for each lane of the rounds while their symbols are predicted.

    A sector's lane k is lane (k + n) mod 8 of the rounds, where n are the values of all sectors before. What lies
    between the sectors and the rounds has 12 bits for a value and not 44; outliers are rare, and their four raw steps
    take as long as moving their four bytes through eight lanes of a byte each.

    Two values a lane are needed, and enough: up to seven values wait for the rest of their round, and a sector that
    completes it may bring one more for the same lane.

    Throughput: a byte of each lane a cycle at both sides. Latency: one cycle. Buffering: 8 bytes a lane. Combinational
    paths: from ``pops``, or from the mask of ``sector_o``'s taker, to nothing; from the number of values that have
    passed to the bytes shown.

    Source: COMET, section 3.4 (cuSZ's outliers, which it stores by their index).

    Ports
    -----
    decompress : input
        Direction.
    clear : input
        Pulse before a tensor: nothing is kept, no value has passed.
    moves, count : input
        Pulse: a sector of that many values has passed.
    mask : input
        Lanes with an outlier of the sector that passes next.
    sector_i : stream of eight bytes
        Compression: bytes of these outliers.
    bytes_o : output, pops : input
        Compression: the oldest byte of each lane of the rounds, and which of them are taken. There have to be some.
    bytes_i, pushes : input, room : output
        Decompression: bytes of the lanes of the rounds, and whether there is room in all lanes for one more.
    take : input, sector_o : output
        Decompression: the oldest bytes of these outliers; they are taken.
    """

    decompress: In(1)
    clear: In(1)
    moves: In(1)
    count: In(range(LANES + 1))
    mask: In(LANES)
    sector_i: In(stream.Signature(data.ArrayLayout(8, LANES)))
    bytes_o: Out(data.ArrayLayout(8, LANES))
    pops: In(LANES)
    bytes_i: In(data.ArrayLayout(8, LANES))
    pushes: In(LANES)
    room: Out(1)
    take: In(1)
    sector_o: Out(data.ArrayLayout(8, LANES))

    def elaborate(self, platform):
        m = Module()
        passed, back = Signal(3), Signal(3)  # values, modulo 8
        m.d.comb += back.eq(Mux(self.decompress, -passed, passed))
        with m.If(self.clear):
            m.d.sync += passed.eq(0)
        with m.Elif(self.moves):
            m.d.sync += passed.eq(passed + self.count)

        # One shifter for both directions: sectors to rounds, or rounds to sectors.
        sector, heads = self.sector_i.p, [Signal(8, name=f"head_{k}") for k in range(LANES)]
        shown = turned(m, [Mux(self.decompress, head, byte) for head, byte in zip(heads, sector, strict=True)],
                       back)
        mask = Cat(turned(m, list(self.mask), passed))
        m.d.comb += [word.eq(byte) for word, byte in zip(self.sector_o, shown, strict=True)]

        full = Signal(LANES)
        m.d.comb += [self.room.eq(~full.any()), self.sector_i.ready.eq(self.room)]
        pushes = Mux(self.decompress, self.pushes, mask & (self.sector_i.valid & self.room).replicate(LANES))
        pops = Mux(self.decompress, mask & self.take.replicate(LANES), self.pops)
        for k, head in enumerate(heads):
            # The newest byte is the first one. Only how many there are says where the oldest is.
            entries = [Signal(8, reset_less=True, name=f"byte_{k}_{place}") for place in range(DEPTH)]
            level = Signal(DEPTH + 1, init=1, reset_less=True, name=f"level_{k}")  # one hot
            m.d.comb += [self.bytes_o[k].eq(head), full[k].eq(level[DEPTH])]
            head_terms = [one.replicate(8) & byte for one, byte in zip(level[1:], entries, strict=True)]
            while len(head_terms) > 1:
                head_terms = [a | b for a, b in zip(head_terms[::2], head_terms[1::2], strict=True)]
            m.d.comb += head.eq(head_terms[0])
            with m.If(pushes[k]):
                m.d.sync += [entries[0].eq(Mux(self.decompress, self.bytes_i[k], shown[k])),
                             *(after.eq(before) for before, after in pairwise(entries))]
            with m.If(self.clear | (pushes[k] ^ pops[k])):
                m.d.sync += level.eq(Mux(self.clear, 1, Mux(pushes[k], level << 1, level >> 1)))
        return m
