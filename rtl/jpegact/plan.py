"""The plan of a tensor: from its description to what each CDU has to know."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from rtl.jpegact.address import ROWS, SIZE, TILES, Advance, check_address_width, course, increment, position, share
from rtl.jpegact.turns import check_cdus

__all__ = ["Plan", "descriptor"]

DIGITS = 32  # steps of everything that is done bit by bit
BLOCKS = 32  # bits of the number of blocks


def descriptor(address_width):
    """A tensor in memory: ``rows`` of ``width`` float32 values, ``stride`` bytes from row to row, the first value at
    ``base``; ``height`` consecutive rows have one scale, then the next of ``channels`` is used, in turn. ``tiled``:
    blocks are 8x8 tiles."""
    return data.StructLayout({"base": address_width, "rows": 32, "width": 32, "stride": 32, "height": 32,
                              "channels": 32, "tiled": 1})


class Plan(wiring.Component):
    """Works out what the CDUs need of a tensor, and whether there can be such a tensor.

    Without multiplying or dividing: a counter walks the 32 sectors of the first group to find where the second one
    begins (or the eight rows of a row of tiles), products and the quotient come bit by bit, and as the distance from
    one group to the next is the same everywhere, the CDUs' first groups lie at its multiples, and so does the group
    that a CDU takes next.

    Throughput: one tensor at a time. Latency: 68 cycles, or up to 13 for each CDU and 36 if that is more; 3 for a
    description that makes no sense at first sight. Combinational paths: none.

    Source: JPEG-ACT, section III-C; section III-G for the order of groups.

    Parameters
    ----------
    cdus : int
        1 to 8.
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    start : input
        Pulse. ``descriptor`` stands from then on.
    descriptor : input, :func:`descriptor`
    done : output
        Pulse: from here on the other outputs mean something, until the next start.
    error : output
        There is no such tensor: a number that is zero or too large (rows of 31 bits, the others of 24, blocks of 32,
        the width in whole sectors and the blocks in whole groups), an address or stride that is no multiple of 4, a
        stride shorter than a row, an end beyond the address space, or tiles in less than 8 rows or columns.
    blocks : output
        All of them.
    layout : output
        As in :class:`~rtl.jpegact.config.Config`.
    course : output, :func:`~rtl.jpegact.address.course`
    shares : ``cdus`` outputs, :func:`~rtl.jpegact.address.share`
        CDUs without a block have no start that means anything.

    Raises
    ------
    ValueError
        If ``cdus`` or ``address_width`` is out of range.
    """

    def __init__(self, cdus=4, address_width=40):
        check_cdus(cdus)
        check_address_width(address_width)
        self.cdus, self.address_width = cdus, address_width
        super().__init__({
            "start": In(1), "descriptor": In(descriptor(address_width)), "done": Out(1), "error": Out(1),
            "blocks": Out(BLOCKS), "layout": Out(2), "course": Out(course(address_width)),
            "shares": Out(share(address_width)).array(cdus)})

    def elaborate(self, platform):
        m = Module()
        given, course = self.descriptor, self.course
        tiles, width = Signal(TILES), given.width[:SIZE]
        step = Signal(range(DIGITS))
        bands = Signal(ROWS)  # rows of tiles
        checked, place, placing = Signal(), Signal(), Signal()
        m.d.comb += [
            course.base.eq(given.base), course.rows.eq(given.rows), course.tiles.eq(tiles),
            course.stride.eq(given.stride), course.height.eq(given.height),
            self.layout.eq(Mux(tiles == 1, 0, Mux(tiles == 2, 1, 2))),
        ]
        m.d.sync += [
            tiles.eq((width + 7) >> 3), bands.eq((given.rows + 7) >> 3), course.tail.eq(((width - 1) & 7) + 1),
            course.top.eq(given.channels - 1),
            course.raster.eq(~given.tiled | (tiles == 1) | (tiles == 2) | (tiles == 4)),
            checked.eq(Cat(
                *(given[name] == 0 for name in ("rows", "width", "height", "channels")),
                *(given[name][SIZE:].any() for name in ("height", "channels")), given.width[SIZE:].any(),
                given.width[3:SIZE].all() & given.width[:3].any(),
                given.rows[ROWS:], given.base[:2], given.stride[:2], given.stride < (given.width[:SIZE] << 2),
                given.tiled & ((given.width[3:] == 0) | (given.rows[3:] == 0))).any()),
        ]

        # ------------------------------------------------------------------------ where groups lie, one after another
        m.submodules.advance = advance = Advance(self.address_width)
        walker = Signal(position(self.address_width))
        group = Signal(position(self.address_width))  # from one group to the one behind it
        turn = Signal(range(self.cdus + 1))
        at = Signal(position(self.address_width))
        m.d.comb += [advance.i.eq(at), advance.distance.eq(group), advance.course.eq(course)]
        walks, row_ends = Signal(), Signal()
        m.d.comb += row_ends.eq(~course.raster | (walker.tile + 1 == tiles))
        with m.If(walks):
            m.d.sync += walker.tile.eq(Mux(row_ends, 0, walker.tile + 1))
            with m.If(row_ends):
                m.d.sync += [walker.left.eq(walker.left - 1), walker.line.eq(walker.line + given.stride),
                             walker.height.eq(walker.height + 1)]
                with m.If(walker.height + 1 == given.height[:SIZE]):
                    m.d.sync += [walker.height.eq(0),
                                 walker.channel.eq(Mux(walker.channel == course.top, 0, walker.channel + 1))]
        one = given.height[:SIZE] == 1
        row = {"tile": 0, "left": -1, "height": ~one, "channel": one & (course.top != 0), "line": given.stride}
        m.d.comb += course.unit.eq(walker)
        with m.If(course.raster):
            m.d.comb += [course.unit[name].eq(value) for name, value in row.items()]
            m.d.comb += group.eq(walker)
        with m.Elif(tiles == 3):
            m.d.comb += [group.eq(walker), group.tile.eq(1)]
        with m.Else():
            m.d.comb += group.tile.eq(4)

        # ------------------------------------------------------------------------------ how many blocks, and how large
        # Both products begin with the highest bit of their first factor.
        sectors = Signal(BLOCKS + 4)  # or tiles
        end = Signal(self.address_width + 2)  # of the tensor
        large = Signal()
        factor, rows = Signal(DIGITS), Signal(DIGITS)
        blocks = Signal(BLOCKS + 1)
        groups, quotient, rest = Signal(BLOCKS - 2), Signal(BLOCKS - 2), Signal(range(2 * self.cdus))
        brought = Signal(range(2 * self.cdus))
        m.d.comb += [brought.eq(Cat(groups[-1], rest)), self.blocks.eq(blocks)]

        missing = (-blocks)[:2]  # blocks of the last group
        more, less = Signal(BLOCKS - 2), Signal(BLOCKS - 2)
        m.d.comb += [more.eq(increment(quotient)), less.eq(~increment(~quotient))]
        for c, mine in enumerate(self.shares):
            final = Mux(rest == 0, self.cdus - 1, rest - 1) == c  # the last group is this CDU's
            short = final & (missing != 0)
            whole = Mux(rest > c, Mux(short, quotient, more), Mux(short, less, quotient))
            m.d.sync += mine.blocks.eq(Cat(blocks[:2] & final.replicate(2), whole))

        with m.FSM():
            with m.State("idle"), m.If(self.start):
                m.next = "view"
            with m.State("view"):
                m.next = "check"
            with m.State("check"):
                m.d.sync += [step.eq(0), walker.eq(0), sectors.eq(0), end.eq(0), large.eq(0),
                             factor.eq(Mux(given.tiled, bands, given.rows)), rows.eq(given.rows - 1),
                             self.error.eq(checked)]
                m.next = "walk"
                with m.If(checked):
                    m.next = "end"
            with m.State("walk"):
                m.d.comb += walks.eq(course.raster | (step < 8))
                m.d.sync += [
                    step.eq(step + 1), factor.eq(factor << 1), rows.eq(rows << 1),
                    sectors.eq((sectors << 1) + Mux(factor[-1], tiles, 0)),
                    end.eq((end << 1) + Mux(rows[-1], given.stride, 0)),
                    large.eq(large | sectors[BLOCKS + 2:].any() | end[self.address_width:].any()),
                ]
                with m.If(step == DIGITS - 1):
                    m.d.comb += place.eq(1)
                    m.next = "base"
            with m.State("base"):
                m.d.sync += [end.eq(end + given.base), large.eq(large | end[self.address_width:].any()),
                             blocks.eq(Mux(given.tiled, sectors, Mux(sectors[:3] == 0, sectors[3:],
                                                                     increment(sectors[3:]))))]
                with m.If(Mux(given.tiled, sectors[BLOCKS:], sectors[BLOCKS + 3:]).any()):
                    m.d.sync += large.eq(1)
                m.next = "row"
            with m.State("row"):
                m.d.sync += [end.eq(end + (width << 2)), quotient.eq(0), rest.eq(0), step.eq(0),
                             groups.eq(Mux(missing == 0, blocks[2:], increment(blocks[2:]))),
                             large.eq(large | blocks[BLOCKS] | (blocks[2:BLOCKS].all() & (missing != 0)))]
                m.next = "divide"
            with m.State("divide"):
                m.d.sync += [step.eq(step + 1), groups.eq(groups << 1),
                             rest.eq(Mux(brought >= self.cdus, brought - self.cdus, brought)),
                             quotient.eq(Cat(brought >= self.cdus, quotient))]
                m.d.sync += self.error.eq(large | end[self.address_width + 1]
                                           | (end[self.address_width] & end[: self.address_width].any()))
                with m.If(step == len(groups) - 1):
                    m.next = "share"
            with m.State("share"):
                m.next = "end"
            with m.State("end"):
                m.d.comb += self.done.eq(~placing)
                with m.If(~placing):
                    m.next = "idle"

        # --------------------------------------------------------------------------- where the CDUs' first groups are
        with m.FSM():
            with m.State("idle"):
                m.d.sync += [turn.eq(0), at.eq(0)]
                with m.If(place):
                    m.next = "next"
            with m.State("next"):
                m.d.comb += [placing.eq(1), advance.start.eq(turn != self.cdus)]
                for c, mine in enumerate(self.shares):
                    with m.If(turn == c):
                        m.d.sync += mine.start.eq(at)
                m.d.sync += turn.eq(turn + 1)
                m.next = "advance"
                with m.If(turn == self.cdus):
                    m.d.sync += course.group.eq(at)
                    m.next = "idle"
            with m.State("advance"):
                m.d.comb += placing.eq(1)
                with m.If(advance.done):
                    m.d.sync += at.eq(advance.o)
                    m.next = "next"
        return m
