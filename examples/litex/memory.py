"""A RAM on AXI4: a beat per cycle in each direction. On a board, LiteDRAM stands in its place."""

from litex.gen import READ_FIRST, If, LiteXModule, Memory, Signal, log2_int
from litex.soc.interconnect.axi import RESP_DECERR, AXIInterface


class Ram(LiteXModule):
    """``bytes`` of memory from the address ``origin`` on, a multiple of ``bytes``; ``axi`` is its slave port, of 256
    bits. INCR bursts of whole beats; reads and writes pass each other. A burst elsewhere is answered with DECERR.
    """

    def __init__(self, origin, bytes, width=256):
        self.axi = axi = AXIInterface(data_width=width, address_width=32)
        low, high = log2_int(width // 8), log2_int(bytes)
        memory = Memory(width, bytes * 8 // width)
        reads = memory.get_port(has_re=True, mode=READ_FIRST)
        writes = memory.get_port(write_capable=True, we_granularity=8, mode=READ_FIRST)
        self.specials += memory, reads, writes

        def bad(address):
            return address[high:] != origin >> high

        # Reads: a beat leaves memory while the one before it waits or goes.
        active, place, left, failed, moves = Signal(), Signal(high - low), Signal(8), Signal(), Signal()
        self.comb += [
            moves.eq(~axi.r.valid | axi.r.ready),
            axi.ar.ready.eq(~active | (moves & (left == 0))),
            reads.adr.eq(place), reads.re.eq(moves),
            axi.r.data.eq(reads.dat_r),
        ]
        self.sync += [
            If(moves,
                axi.r.valid.eq(active), axi.r.last.eq(left == 0), axi.r.resp.eq(failed * RESP_DECERR),
                If(active, place.eq(place + 1), left.eq(left - 1), If(left == 0, active.eq(0)))),
            If(axi.ar.valid & axi.ar.ready,
                active.eq(1), place.eq(axi.ar.addr[low:high]), left.eq(axi.ar.len), failed.eq(bad(axi.ar.addr))),
        ]

        # Writes: the answer leaves after the last beat.
        busy, row, wrong = Signal(), Signal(high - low), Signal()
        ends = Signal()
        self.comb += [
            axi.w.ready.eq(busy & (~axi.b.valid | axi.b.ready)),
            ends.eq(axi.w.valid & axi.w.ready & axi.w.last),
            axi.aw.ready.eq(~busy | ends),
            writes.adr.eq(row), writes.dat_w.eq(axi.w.data),
            If(axi.w.valid & axi.w.ready & ~wrong, writes.we.eq(axi.w.strb)),
        ]
        self.sync += [
            If(axi.b.ready, axi.b.valid.eq(0)),
            If(ends, busy.eq(0), axi.b.valid.eq(1), axi.b.resp.eq(wrong * RESP_DECERR)),
            If(axi.w.valid & axi.w.ready, row.eq(row + 1)),
            If(axi.aw.valid & axi.aw.ready,
                busy.eq(1), row.eq(axi.aw.addr[low:high]), wrong.eq(bad(axi.aw.addr))),
        ]
