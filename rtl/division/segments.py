"""Segments: which rows of a unit's blocks begin and end one, and which are narrow or void."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.division.config import TILES, Config

__all__ = ["Place", "Segments"]

NEAR = 6  # bits of what is counted within a group: it has 32 sectors, so 63 is as good as anything beyond


class Place(data.Struct):
    """Where a row of a block is."""

    begins: 1  # a segment; void rows begin none
    ends: 1  # a segment, or the void rows
    narrow: 1  # it has the last values of a row of the view, and fewer than eight
    void: 1  # it lies after the end of the tensor
    index: 3  # rows of the segment in front of it
    turn: 2  # tiles that take turns with this one, row by row
    last: 1  # of the tensor


def _near(value):
    """A number as a count within a group."""
    return Mux(value[NEAR:].any(), (1 << NEAR) - 1, value[:NEAR])


class Segments(wiring.Component):
    """Counts the rows of a unit's blocks: by tile and row in the group, and by sectors to the end of the view's row.

    A segment is a tile, or in the flat order what of a block lies in one row of the view. How many sectors the view's
    row still has where the next group begins is found meanwhile, with one adder: less the stride, plus T if nothing is
    left. Inside a group it is counted in six bits.

    Throughput: a row a cycle. Latency: the first row four cycles after ``start``. Combinational paths: none; ``place``
    is a few gates away from registers.

    Source: DIVISION, section 4.1 and appendix D.

    Ports
    -----
    config : input, :class:`~actcodec.rtl.division.config.Config`
        Stands until the tensor is through.
    layout : input, 2 bits
        The order in which rows pass: that of ``config`` at the side of sectors, 0 in the flat order and at the side of
        tiles.
    start : input
        Pulse.
    ready : output
        There is a row that has not passed yet.
    place : output, :class:`Place`
        Its place.
    next : input
        Pulse: it passes; only when ``ready``.
    """

    config: In(Config)
    layout: In(2)
    start: In(1)
    ready: Out(1)
    place: Out(Place)
    next: In(1)

    def elaborate(self, platform):
        m = Module()
        config, place, layout = self.config, self.place, self.layout
        begin = Signal(3)  # the first cycles of a tensor
        turns, moved = Signal(), Signal()  # another group begins, and did a cycle ago
        m.d.sync += [begin.eq(Cat(self.start, begin)), moved.eq(turns)]

        # ------------------------------------------------------------------------------- row and tile in the group
        row, tile = Signal(3, reset_less=True), Signal(2, reset_less=True)
        groups = Signal(30, reset_less=True)  # whole ones after this one
        next_final, final = Signal(reset_less=True), Signal(reset_less=True)  # the next one, this one is the last
        final_tile, limit = Signal(2), Signal(2)
        ends, across, bottom = Signal(), Signal(), Signal()
        m.d.comb += [
            final_tile.eq(config.blocks[:2] - 1),
            limit.eq(final_tile | (~final).replicate(2)),
            across.eq((tile != limit) & (layout[1] | (layout[0] & ~tile[0]))),  # another tile has this row
            bottom.eq(row == 7),
            ends.eq((tile == limit) & bottom),
            turns.eq(begin[2] | (self.next & ends)),
        ]
        m.d.sync += next_final.eq((groups[1:] == 0) & (groups[0] == (config.blocks[:2] == 0)))
        with m.If(self.start):
            m.d.sync += [groups.eq(config.blocks[2:]), row.eq(0), tile.eq(0)]
        with m.Elif(turns):
            m.d.sync += [groups.eq(groups - 1), final.eq(next_final), row.eq(0), tile.eq(0)]
        with m.Elif(self.next):
            m.d.sync += row.eq(row + ~across)
            with m.If(across | bottom):
                m.d.sync += tile.eq(tile + 1)
            with m.Else():  # back to the first tile of those that take turns
                m.d.sync += tile.eq(tile & Cat(~layout.any(), ~layout[1]))
        with m.If(begin[2]):
            m.d.sync += self.ready.eq(1)
        with m.Elif(self.next & place.last):
            m.d.sync += self.ready.eq(0)

        # ----------------------------------------------------------------- sectors to the end of the view's row, 1 to T
        first = Signal(signed(TILES + 1), reset_less=True)  # from the next group's first one on
        left = Signal(NEAR, reset_less=True)  # from this one on
        short, more, term, ahead = Signal(), Signal(), Signal(TILES + 1), Signal.like(first)
        m.d.comb += [
            more.eq(begin[0] | short),
            term.eq(Mux(more, config.sectors, Mux(begin[1], ~Cat(config.phase, 0), ~Cat(config.stride, 0)))),
            ahead.eq(first + term + ~more),
        ]
        m.d.sync += short.eq(moved & (first <= 0))
        with m.If(self.start):
            m.d.sync += first.eq(0)
        with m.Elif(more | begin[1] | turns):
            m.d.sync += first.eq(ahead)
        column, border = Signal(), Signal()  # a sector of the view's row is entered; it is the last
        m.d.comb += [column.eq(~config.tiled | (row == 0)), border.eq(left == 1)]
        with m.If(turns):
            m.d.sync += left.eq(_near(first))
        with m.Elif(self.next & column):
            m.d.sync += left.eq(Mux(border, _near(config.sectors), left - 1))

        narrow = Signal(4, reset_less=True)  # of the rows before, the last one first
        index = Signal(3, reset_less=True)
        with m.If(self.next):
            m.d.sync += narrow.eq(Cat(place.narrow, narrow))
        with m.If(self.start | self.next):
            m.d.sync += index.eq(Mux(self.start | place.ends, 0, index + 1))
        end = Signal()
        m.d.comb += [
            place.void.eq(~config.tiled & final & (tile == final_tile) & (row + config.void)[3]),
            place.index.eq(Mux(config.tiled, row, index)),
            place.begins.eq((place.index == 0) & ~place.void),
            place.ends.eq(bottom | (~config.tiled & border & ~place.void)),
            place.turn.eq(Mux(layout[1], limit, layout)),
            place.narrow.eq(Mux(column, border, narrow.bit_select(place.turn, 1)) & ~config.tail[3]),
            end.eq(final & (tile == final_tile) & bottom),
            place.last.eq(end),
        ]
        return m
