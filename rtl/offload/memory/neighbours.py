"""Which neighbours a sector has, among those that pass with it. Its bench is that of address.py."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Neighbours"]


class Neighbours(wiring.Component):
    """Follows a walk's steps, and tells whether there are neighbours.

    In tiles, a value has one on the left unless it is the first of its row or of the group's part of that row, and one
    above unless its row is the first of a tile or of a channel. In memory's order the group is one row, and nothing is
    above it; but where rows end with padding, the first value of a row has none on the left. So no neighbour is in
    another group, and that on the left is always in lane 7 of the sector before.

    Throughput: a step a cycle. Latency, buffering: none. Combinational paths: ``tiled`` to ``above``.

    Source: COMET, section 3.4 (Lorenzo prediction); where it ends is this project's.

    Ports
    -----
    tiled, ragged : input
        Blocks are tiles; rows are no whole sectors. They stand while there are steps.
    begin, wide : input
        A group begins in the next cycle; how many sectors a row of it has, less one.
    moves : input
        The sector that is there leaves in this cycle.
    turns, spans, ends : input
        With ``moves``: the last sector of this part of the row; there is another part, of which the next row follows;
        and the row is the last one of its channel.
    left, above, tile : output
        As :data:`~actcodec.rtl.common.vectors.edges` has them.
    """

    tiled: In(1)
    ragged: In(1)
    begin: In(1)
    wide: In(2)
    moves: In(1)
    turns: In(1)
    spans: In(1)
    ends: In(1)
    left: Out(1)
    above: Out(1)
    tile: Out(2)

    def elaborate(self, platform):
        m = Module()
        most, line = Signal(2, reset_less=True), Signal(3, reset_less=True)  # sectors of a row, less one; row of a tile
        starts = Signal(reset_less=True)  # a part of a row; in memory's order, what has nothing on its left
        # The row under way, or that of the other part, is the first one of a channel.
        here, other = Signal(reset_less=True), Signal(reset_less=True)
        m.d.comb += [self.left.eq(~starts), self.above.eq(self.tiled & (line != 0) & ~here)]
        with m.If(self.moves):
            m.d.sync += [starts.eq(self.turns & (self.tiled | self.ragged)), self.tile.eq(self.tile + 1)]
            with m.If(self.tile == most):
                m.d.sync += [self.tile.eq(0), line.eq(line + 1)]
            with m.If(self.turns):
                m.d.sync += [here.eq(Mux(self.spans, other, self.ends)), other.eq(self.ends)]
        with m.If(self.begin):
            m.d.sync += [most.eq(self.wide), self.tile.eq(0), line.eq(0), starts.eq(1)]
        return m
