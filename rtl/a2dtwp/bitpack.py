"""Bitpack: the most significant bits of each value, packed into sectors."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.a2dtwp.pieces import SECTOR, Phases, check_widths, values_layout
from actcodec.rtl.common.packer import chunk_layout

__all__ = ["Bitpack"]


class Bitpack(wiring.Component):
    """Keeps the top bits of each value and packs them, the first value in the least significant bits.

    Values of 8, 16, 24 and 32 bits stand back to back, those of 10 bits three to a word of 32 bits with two zeros on
    top. With the default widths, RoundTo is 8 bits times ``width`` + 1, and the bytes of a value are in the order of
    memory, little endian.

    Every value has its place in the sector from the start, but for those of 24 bits, which may have it in the next one:
    no barrel shifter, and one register, the output's, that fills up in one to four cycles.

    Throughput: one sector of values a cycle; of 24 bits, a tensor whose last values end beyond a sector takes one more.
    Latency: one cycle from the values that fill a sector to that sector. Buffering: a sector, and 16 bytes if there are
    24 bits. Combinational path: ``o.ready`` to ``i.ready``.

    Source: A2DTWP, section III, Bitpack; Gist, section III-A, for three values of 10 bits in a word.

    Parameters
    ----------
    widths : tuple of int
        Bits that a value can be cut to: of 8, 10, 16, 24 and 32.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.a2dtwp.pieces.values_layout` of the largest width
        8 of them in all beats but the last of a tensor, which may have any number; values beyond it are zero.
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32 bytes
        Sectors of the packed array. The last one may be partial; a tensor of no values gives one of no bytes, and so
        does a last beat of no values after a full sector.
    width : input
        Index of the width in ``widths``, constant while any value is inside. Beyond them it means the last one.

    Raises
    ------
    ValueError
        If ``widths`` are not legal.
    """

    def __init__(self, widths=(8, 16, 24, 32)):
        self.widths = check_widths(widths)
        super().__init__({
            "i": In(stream.Signature(values_layout(max(self.widths)))),
            "o": Out(stream.Signature(chunk_layout(32))),
            "width": In(range(max(len(self.widths), 2))),
        })

    def elaborate(self, platform):
        m = Module()
        i = self.i.p
        pieces = Phases(m, self.widths, self.width)
        room = SECTOR + max(piece.beyond for _, piece in pieces)

        o = Signal(chunk_layout(32), reset_less=True)
        carry = Signal(room - SECTOR, reset_less=True)  # what goes beyond the sector
        closing = Signal()  # the last piece is in, and what went beyond must leave
        left = Signal(range((room - SECTOR) // 8 + 1), reset_less=True)  # bytes of that
        free, taking = Signal(), Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(free & ~closing),
            taking.eq(self.i.valid & ~closing),
            self.o.p.eq(o),
        ]

        def image(piece):
            bits = [Const(0, 1)] * room
            for lane in range(8):
                first = piece.bit(lane)
                bits[first : first + piece.width] = i.data[lane][-piece.width :]
            return Cat(bits)

        placed, end, over = Signal(room), Signal(6), Signal()
        m.d.comb += [
            placed.eq(pieces.select(image)),
            end.eq(pieces.select(lambda piece: piece.end(i.count))),
            over.eq(pieces.any(lambda piece: piece.beyond) & (end > SECTOR // 8)),
        ]
        follows = pieces.any(lambda piece: piece.start and not piece.sector)  # others came into this sector before
        carried = pieces.any(lambda piece: piece.sector)  # the one before went beyond its sector
        with m.If(free):
            m.d.sync += self.o.valid.eq(closing | (taking & (i.last | pieces.any(lambda piece: piece.fills))))
            with m.If(taking | closing):
                m.d.sync += [
                    o.data.as_value().eq(Mux(closing, 0, placed) | Mux(closing | carried, carry, 0)
                                         | Mux(follows & ~closing, o.data.as_value(), 0)),
                    o.count.eq(Mux(closing, left, Mux(over, SECTOR // 8, end))),
                    o.last.eq(closing | (i.last & ~over)),
                    closing.eq(taking & i.last & over),
                    carry.eq(placed[SECTOR:]),
                    left.eq(end),
                    pieces.advance(restart=i.last | closing),
                ]
        return m
