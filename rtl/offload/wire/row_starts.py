"""Where the rows of a tensor begin in the blocks of a CDU. Its bench is the splitter's."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.offload.memory.geometry import FAR, NEAR, TILES, near

__all__ = ["RowStarts", "segment_begins"]


class RowStarts(wiring.Component):
    """Which sectors of a CDU's next block begin a row of the tensor, where blocks are eight sectors in memory's order.

    Sectors to the end of the row are counted in six bits inside a group. Where the next group begins is found
    meanwhile, with one adder: less the stride, plus the sectors of a row if nothing is left.

    Throughput: a block in four cycles; a CDU takes eight for one. Latency: ``starts`` of the first block stands five
    cycles after ``load``. Combinational paths: none.

    Ports
    -----
    sectors : input
        Of a row. Stands from ``load`` to the last ``next``.
    load, origin : input
        Pulse that begins a tensor: in front of the CDU's first sector are ``origin`` others, modulo ``sectors``.
    start : input
        Pulse, five cycles after ``load`` or later.
    stride : input
        Sectors from one of the CDU's groups to its next one, modulo ``sectors``. Stands from ``start`` to the last
        ``next``.
    next : input
        Pulse: the block is the one behind.
    starts : output
        Bit k: a row begins with sector k. Bit 0 is always set, as a block begins there.
    """

    sectors: In(TILES)
    load: In(1)
    origin: In(FAR)
    start: In(1)
    stride: In(FAR)
    next: In(1)
    starts: Out(8)

    def elaborate(self, platform):
        m = Module()
        sectors = self.sectors
        begin, block = Signal(3), Signal(2, reset_less=True)  # the cycles after ``load``; in the group
        turns, moves, moved, short = (Signal(name=name) for name in ("turns", "moves", "moved", "short"))
        first = Signal(signed(TILES + 1), reset_less=True)  # sectors of the row from the next group's first one on
        left = Signal(NEAR, reset_less=True)  # from this block's first one on
        m.d.sync += [begin.eq(Cat(self.load, begin)), moved.eq(moves | self.load), short.eq(moved & (first <= 0))]
        m.d.comb += [turns.eq(self.next & (block == 3)), moves.eq(self.start | turns)]
        term = Signal(TILES + 1)
        m.d.comb += term.eq(Mux(short, sectors, ~Cat(self.stride, Const(0, TILES + 1 - FAR))))
        with m.If(self.load):
            m.d.sync += first.eq(-self.origin)
        with m.Elif(moves | short):
            m.d.sync += first.eq(first + term + ~short)

        few = Signal(4)  # a block's sectors, modulo those of a row
        period = [sectors == k for k in range(8)]
        m.d.comb += few.eq(Cat(Cat(period[k] for k in range(1, 8) if 8 % k >> bit & 1).any() for bit in range(3))
                           | Mux(sectors > 8, 8, 0))
        rest = Signal(signed(NEAR + 1))
        m.d.comb += rest.eq(left - few)
        with m.If(begin[2] | turns):
            m.d.sync += [left.eq(near(first[:TILES])), block.eq(0)]
        with m.Elif(self.next):
            m.d.sync += [left.eq(Mux(rest > 0, rest, rest + near(sectors))), block.eq(block + 1)]

        starts = [Const(1, 1)]
        for k in range(1, 8):
            starts.append((left == k) | Cat(period[by] & starts[k - by] for by in range(1, k)).any())
        m.d.sync += self.starts.eq(Cat(starts))
        return m


def segment_begins(m, splitter, mode, turns):
    """In the module ``m`` of a :class:`~actcodec.rtl.offload.wire.splitter.Splitter`, a bit for each row of the block
    whose turn it is: a segment begins there."""
    if not splitter.sizes.segments:
        return Const(1, 8)
    starts = []
    for c in range(splitter.sizes.cdus):
        m.submodules[f"row_starts_{c}"] = row_starts = RowStarts()
        m.d.comb += [
            row_starts.sectors.eq(splitter.sectors), row_starts.stride.eq(splitter.stride),
            row_starts.load.eq(splitter.load[c]), row_starts.origin.eq(splitter.origin),
            row_starts.start.eq(splitter.start), row_starts.next.eq(turns.next & turns.turn[c]),
        ]
        starts.append(row_starts.starts)
    last = turns.ends & (turns.turn & splitter.ending).any()
    exists = Cat((splitter.void + k)[3:] == 0 for k in range(8)) | (~last).replicate(8)
    rows, begins = choose(zip(turns.turn, starts, strict=True)) & exists, Signal(8, name="begins")
    m.d.comb += begins.eq(Mux(mode(lambda mode: mode.format.kind == "segments"), rows, 1))
    return begins
