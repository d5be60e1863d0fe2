"""The 8x8 transpose buffer between two passes of the DCT, and in front of ZVC."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import vectors_layout

__all__ = ["Transpose"]


class Transpose(wiring.Component):
    """Takes blocks as eight vectors of eight values and gives them back transposed (or as they came).

    The buffer is one array of 64 cells that shifts either down or to the left. While a block leaves in one direction,
    the next one enters behind it in the same direction and will leave in the other: one array is enough for a vector
    in and a vector out in every cycle, and no cell needs an address.

    Since a block is pushed out by the one that follows, a block waits until the next one comes, unless its last
    vector carries ``last``: then the buffer empties itself, and ``o.p.last`` marks the last vector.

    Throughput: one vector a cycle. Latency: 8 cycles. Buffering: 64 values, never two copies. Combinational paths:
    ``i.valid`` to ``o.valid``, ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-D, Figure 13 ("transposed and processed again").

    Parameters
    ----------
    width : int
        Bits of a value, at least 1.
    transposes : bool
        Without it, the buffer only ever shifts down (a block store of half the multiplexers) and ``straight`` has no
        effect.

    Ports
    -----
    i, o : stream of :func:`vectors_layout`
    straight : input
        Gives blocks back as they came. May change only while the buffer is empty.
    nonzero : output, 64 bits
        While ``o.valid`` and the first vector of a block is at ``o``: which values of the block are not zero, in the
        order in which they will leave.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, width, transposes=True):
        if not isinstance(width, int) or width < 1:
            raise ValueError(f"width must be a positive number of bits, not {width!r}")
        self.width = width
        self.transposes = bool(transposes)
        payload = vectors_layout(signed(width))
        super().__init__(
            {
                "i": In(stream.Signature(payload)),
                "o": Out(stream.Signature(payload)),
                "straight": In(1),
                "nonzero": Out(64),
            }
        )

    def elaborate(self, platform):
        m = Module()

        # cells[a][b]: shifting down moves a vector towards row 7, shifting left moves it towards column 0. A vector
        # that enters at the top has its element k in column k; one that enters at the right has it in row 7 - k.
        # For LUTs, a value brings a bit that says whether it is not zero: cheaper than an OR for each cell.
        lut = target(platform) == "lut"
        cells = [[Signal(signed(self.width + lut), reset_less=True, name=f"cell_{a}_{b}") for b in range(8)]
                 for a in range(8)]
        enters = [Cat(value, value.any()).as_signed() if lut else value for value in self.i.p.data]
        left = Signal()  # the direction of this block
        down = Signal(init=1)  # its complement, for the output: the cells alone are load enough
        count = Signal(3)  # vectors of the incoming block that are in
        occupied = Signal()  # a whole block is stored in front of them
        flush = Signal()  # it was the last one: nothing will come to push it out

        step = Signal()
        m.d.comb += [
            self.o.valid.eq(occupied & (self.i.valid | flush)),
            self.i.ready.eq(~occupied | (self.o.ready & ~flush)),
            step.eq(Mux(occupied, self.o.valid & self.o.ready, self.i.valid)),
            self.o.p.last.eq(flush & (count == 7)),
        ]
        with m.If(step):
            m.d.sync += count.eq(count + 1)
            for a in range(8):
                for b in range(8):
                    above = cells[a - 1][b] if a else enters[b]
                    right = cells[a][b + 1] if b < 7 else enters[7 - a]
                    m.d.sync += cells[a][b].eq(Mux(left, right, above) if self.transposes else above)
            with m.If(count == 7):
                m.d.sync += [occupied.eq(~(occupied & flush)), flush.eq(~flush & self.i.p.last)]
                if self.transposes:
                    m.d.sync += [left.eq(left ^ ~self.straight), down.eq(left ^ self.straight)]

        for k in range(8):
            m.d.comb += self.o.p.data[k].eq(
                Mux(down, cells[7][k], cells[7 - k][0]) if self.transposes else cells[7][k])
        some = [[Signal(name=f"some_{a}_{b}") for b in range(8)] for a in range(8)]
        for a in range(8):
            for b in range(8):
                m.d.comb += some[a][b].eq(cells[a][b][-1] if lut else cells[a][b].any())
                k = 8 * (7 - a) + b
                m.d.comb += self.nonzero[k].eq(Mux(left, some[7 - b][7 - a], some[a][b]) if self.transposes
                                               else some[a][b])
        return m
