"""The dock: where sectors wait, as they come or before they leave, while the bytes of their outliers go or come."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import LANES, finished, marked, sectors
from actcodec.rtl.common import vectors

__all__ = ["Dock"]


class Dock(wiring.Component):
    """One register of a sector for both directions, and the bits of outliers out of it, or into it::

        compress    sectors_i -> forth, to be divided;       outliers -> bytes_o
        decompress  sectors_o <- back, as it was multiplied; outliers <- bytes_i

    Compressing, it finds the outliers: infinities, NaN, and all that is 2047.5 s or more as a bit pattern. A sector
    that has some waits until their bytes have left, or have come, a byte of each a cycle, the least significant first.
    Words of outliers move down by a byte then, so that they mean nothing at ``forth``.

    Throughput: one sector a cycle; one in four cycles if it has outliers, or five when decompressing. Latency: 1 cycle,
    4 or 5 for a sector with outliers. Buffering: a sector. Combinational paths: ``forth.ready`` and ``bytes_o.ready``
    to ``sectors_i.ready``, ``bytes_o.ready`` to ``forth.valid``, ``sectors_o.ready`` to ``back.ready``.

    Source: COMET, sections 2.2 and 3.4; the dual quantisation of cuSZ.

    Ports
    -----
    decompress : input
        Direction. Constant from a cycle before the first sector comes until the last one has left.
    step : input, 16 bits
        s, a bfloat16 from 2^-125 to 2^112. Stands from a cycle before the first sector comes.
    sectors_i : stream of :data:`~actcodec.rtl.comet.payloads.sectors`
    forth : stream of :data:`~actcodec.rtl.comet.payloads.marked`
    back : stream of :data:`~actcodec.rtl.comet.payloads.finished`
    sectors_o : stream of :data:`~actcodec.rtl.common.vectors.sectors`
    mask : output
        Lanes with an outlier of the sector that waits.
    bytes_o : stream of eight bytes
        Compression: the next byte of each lane, four times for a sector that has outliers, before it is at ``forth``.
    take : output, bytes_i : input
        Decompression: the next byte of each lane is taken. They are there, for any lane, when the sector is.
    moves, count : output
        Pulse: a sector has no byte left to wait for and goes on, and how many values it has.
    """

    decompress: In(1)
    step: In(16)
    sectors_i: In(stream.Signature(sectors))
    forth: Out(stream.Signature(marked))
    back: In(stream.Signature(finished))
    sectors_o: Out(stream.Signature(vectors.sectors))
    mask: Out(LANES)
    bytes_o: Out(stream.Signature(data.ArrayLayout(8, LANES)))
    take: Out(1)
    bytes_i: In(data.ArrayLayout(8, LANES))
    moves: Out(1)
    count: Out(range(LANES + 1))

    def elaborate(self, platform):
        m = Module()
        # 2047.5 s is 4095 S / 2 * 2**E, and 4095 S has 20 significant bits, or 19 if S is 128.
        divisor, even = Cat(self.step[:7], Const(1, 1)), ~self.step[:7].any()
        product, limit = Signal(20), Signal(27, reset_less=True)
        m.d.comb += product.eq((divisor << 12) - divisor)
        m.d.sync += limit.eq(Cat(Mux(even, product << 1, product)[:19], (self.step[7:15] + 11 - even)[:8]))
        beyond = Cat(Value.cast(word[4:31]) >= limit for word in self.sectors_i.p.data)

        valid, waits, byte, sector = Signal(), Signal(), Signal(2), Signal(marked, reset_less=True)
        ends, passes = Signal(), Signal()  # the last byte passes; a byte does
        m.d.comb += [
            passes.eq(waits & (self.decompress | self.bytes_o.ready)), ends.eq(byte.all() & self.bytes_o.ready),
            self.forth.valid.eq(valid & (~waits | ends) & ~self.decompress),
            self.sectors_o.valid.eq(valid & ~waits & self.decompress),
            # Of each direction by itself: otherwise bidirectional neighbours would close a loop.
            self.sectors_i.ready.eq((~valid | (self.forth.ready & (~waits | ends))) & ~self.decompress),
            self.back.ready.eq((~valid | (self.sectors_o.ready & ~waits)) & self.decompress),
            self.bytes_o.valid.eq(waits & ~self.decompress), self.take.eq(waits & self.decompress),
            self.forth.p.eq(sector), self.mask.eq(sector.outliers), self.count.eq(sector.edges.count),
            self.sectors_o.p.data.eq(sector.data),
            self.sectors_o.p.count.eq(sector.edges.count), self.sectors_o.p.last.eq(sector.edges.last),
            self.moves.eq((self.forth.valid & self.forth.ready) | (self.sectors_o.valid & self.sectors_o.ready)),
        ]
        i, back, loads = self.sectors_i.p, self.back.p, self.sectors_i.ready | self.back.ready
        with m.If(passes):
            m.d.sync += [byte.eq(byte + 1), waits.eq(~byte.all())]
        with m.If(loads):
            m.d.sync += [
                valid.eq(Mux(self.decompress, self.back.valid, self.sectors_i.valid)),
                waits.eq(Mux(self.decompress, self.back.valid & back.outliers.any(),
                             self.sectors_i.valid & beyond.any())),
                sector.outliers.eq(Mux(self.decompress, back.outliers, beyond)),
                sector.edges.eq(i.edges), sector.edges.count.eq(Mux(self.decompress, back.count, i.edges.count)),
                sector.edges.last.eq(Mux(self.decompress, back.last, i.edges.last)),
            ]
        # Flip-flops alone say whether words move; compressing, not after the last byte, as the next sector may come.
        moving = waits & (self.decompress | ~byte.all())
        for k, word in enumerate(sector.data):
            m.d.comb += self.bytes_o.p[k].eq(word[:8])
            with m.If(loads | (moving & passes & sector.outliers[k])):
                m.d.sync += word.eq(Mux(moving, Cat(word[8:], self.bytes_i[k]),
                                        Mux(self.decompress, back.data[k], i.data[k])))
        return m
