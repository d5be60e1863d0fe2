"""The plan of a tensor: from its description to what each CDU has to know."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.offload.address import FAR, ROWS, SIZE, check_address_width, course, distance
from actcodec.rtl.offload.round_robin import check_cdus

__all__ = ["TensorPlan", "descriptor"]

DIGITS = 32  # steps of everything that is done bit by bit
BLOCKS = 32  # bits of the number of blocks
HALF = BLOCKS // 2


def descriptor(address_width):
    """A tensor in memory: ``rows`` of ``width`` float32 values, ``stride`` bytes from row to row, the first value at
    ``base``; ``height`` consecutive rows have one scale, then the next of ``channels`` is used, in turn, from the table
    at ``scales`` if ``scaled``. ``tiled``: blocks are 8x8 tiles."""
    return data.StructLayout({"base": address_width, "rows": 32, "width": 32, "stride": 32, "height": 32,
                              "channels": 32, "scales": address_width, "tiled": 1, "scaled": 1})


def _later(m, number, addend):
    """The sum of numbers that stand, its lower half in the next cycle and its upper one, with the carry, in another."""
    half = len(number) // 2
    low, high = Signal(half + 1), Signal(len(number) - half)
    m.d.sync += [low.eq(number[:half] + addend[:half]), high.eq(number[half:] + addend[half:] + low[half])]
    return Cat(low[:half], high)


class TensorPlan(wiring.Component):
    """Works out what the CDUs need of a tensor, and whether there can be such a tensor.

    Without multiplying or dividing: a counter walks the sectors of the CDUs' first groups, row by row, and so comes by
    where these begin, and by the distance from a CDU's group to its next one, which is the same everywhere. Products
    and the quotient come bit by bit, both products from one adder.

    Throughput: one tensor at a time. Latency: 73 cycles, or, if that is more, 4 and 33 for each CDU; where groups
    go on in the next row of tiles, 13 and 5 for each CDU and 8 for each row of tiles that ends in their first groups.
    3 for a description that makes no sense at first sight. Combinational paths: none.

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
        stride shorter than a row, tiles in less than 8 rows or columns, scales at no multiple of 32, or an end beyond
        the address space, of the tensor or of the last 32 bytes of scales.
    blocks : output
        All of them.
    layout : output
        As in :class:`~actcodec.rtl.offload.config.Config`.
    course : output, :func:`~actcodec.rtl.offload.address.course`
    shares : ``cdus`` outputs of 32 bits
        Blocks of each CDU.
    origin : output, :func:`~actcodec.rtl.offload.address.distance`
        From the tensor's first sector to a CDU's, in the cycle in which that one's bit of ``load`` is set; comes before
        ``done``, also to CDUs without a block.
    load : output, ``cdus`` bits
        Pulses.

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
            "shares": Out(BLOCKS).array(cdus), "origin": Out(distance(address_width)), "load": Out(cdus)})

    def elaborate(self, platform):
        m = Module()
        given, course = self.descriptor, self.course
        width = given.width[:SIZE]
        tiles, last_tile = (_later(m, width, Const(addend, SIZE))[3:] for addend in (7, -1))
        bands = _later(m, given.rows, Const(7, 32))[3:]  # rows of tiles
        few = Signal(4)  # tiles, if the width is below 64
        checked, begin, walked = Signal(), Signal(), Signal()
        m.d.comb += [
            few.eq((width[:6] + 7) >> 3),
            course.base.eq(given.base), course.rows.eq(given.rows), course.tiles.eq(tiles),
            course.top.eq(_later(m, given.channels[:SIZE], Const(-1, SIZE))),
            course.stride.eq(given.stride), course.height.eq(given.height),
            self.layout.eq(Mux(tiles == 1, 0, Mux(tiles == 2, 1, 2))),
        ]
        m.d.sync += [
            course.tail.eq(((width - 1) & 7) + 1),
            course.raster.eq(~given.tiled | (~width[6:].any() & ((few == 1) | (few == 2) | (few == 4)))),
            checked.eq(Cat(
                *(given[name] == 0 for name in ("rows", "width", "height", "channels")),
                *(given[name][SIZE:].any() for name in ("height", "channels")), given.width[SIZE:].any(),
                given.width[3:SIZE].all() & given.width[:3].any(),
                given.rows[ROWS:], given.base[:2], given.stride[:2], given.stride < (given.width[:SIZE] << 2),
                given.tiled & ((given.width[3:] == 0) | (given.rows[3:] == 0)),
                given.scaled & given.scales[:5].any()).any()),
        ]
        self._walk(m, last_tile, begin, walked)

        # ------------------------------------------------------------------------------ how many blocks, and how large
        # A product is what has been added up, over what is left of the first factor.
        product, step, ending = Signal(2 * DIGITS), Signal(range(DIGITS)), Signal()  # ending: of the tensor's end
        total, factor = Signal(DIGITS + 1), Signal(DIGITS)
        end = product[: self.address_width]
        blocks, large = Signal(BLOCKS), Signal()
        groups, carry = Signal(BLOCKS - 2), Signal()  # whole ones; carry into the upper half
        rest, quotient = Signal(range(2 * self.cdus)), Signal(BLOCKS - 2)  # over what is left of the groups
        brought, fits, missing = Signal(range(2 * self.cdus)), Signal(), Signal(2)
        m.d.comb += [
            total.eq(product[DIGITS:] + Mux(product[0], factor, 0)),
            self.blocks.eq(blocks),
            missing.eq(-blocks),  # of the last group
            brought.eq(Cat(quotient[-1], rest)),
            fits.eq(brought >= self.cdus),
            groups.eq(Cat((blocks[2:HALF] + (missing != 0))[: HALF - 2], (blocks[HALF:] + carry)[:HALF])),
        ]
        m.d.sync += carry.eq(blocks[2:HALF].all() & (missing != 0))
        # The end comes in two halves.
        half = self.address_width // 2
        late, over, beyond = Signal(), Signal(), Signal()
        addend, low = Signal(self.address_width), Signal(half + 1)
        high = Signal(self.address_width - half + 1)
        m.d.comb += [
            addend.eq(Mux(late, width << 2, given.base)),
            low.eq(end[:half] + addend[:half]),
            high.eq((Cat(1, end[half:]) + Cat(over, addend[half:]))[1:]),
        ]
        m.d.sync += over.eq(low[half])
        # The last 32 bytes of scales begin in the address space, or else behind it: only the carry is wanted, and late.
        wraps = Signal()
        m.d.sync += wraps.eq((given.scales[5 : SIZE + 2] + course.top[3:])[-1])

        # What one or some get in place of the quotient: one less if nothing is left, or else one more; in halves, too.
        other, even, beyond_half = Signal(BLOCKS - 2), Signal(), Signal()
        lower, one = Signal(HALF), Cat(1, even.replicate(BLOCKS - 3))
        m.d.comb += lower.eq(quotient[: HALF - 1] + one[: HALF - 1])
        m.d.sync += [even.eq(rest == 0), beyond_half.eq(lower[-1]), other.eq(Cat(
            lower[:-1], (quotient[HALF - 1 :] + one[HALF - 1 :] + beyond_half)[: BLOCKS - 1 - HALF]))]
        for c, mine in enumerate(self.shares):
            final = Mux(rest == 0, self.cdus - 1, rest - 1) == c  # the last group is this CDU's
            short = final & (missing != 0)
            m.d.sync += mine.eq(Cat(blocks[:2] & final.replicate(2),
                                    Mux(Mux(even, short, (rest > c) & ~short), other, quotient)))

        with m.FSM():
            with m.State("idle"), m.If(self.start):
                m.next = "view"
            with m.State("view"):
                m.next = "check"
            with m.State("check"):
                m.d.sync += [step.eq(0), ending.eq(0), large.eq(0), late.eq(0), beyond.eq(0), self.error.eq(checked),
                             # Sectors fill up their last block.
                             factor.eq(tiles), product.eq(Mux(given.tiled, bands, Cat(given.rows, Const(7, DIGITS))))]
                m.d.comb += begin.eq(~checked)
                m.next = "multiply"
                with m.If(checked):
                    m.next = "end"
            with m.State("multiply"):
                m.d.sync += [step.eq(step + 1), product.eq(Cat(product[1:DIGITS], total))]
                with m.If(ending):
                    with m.If(step == 1):
                        m.d.sync += [quotient.eq(groups), rest.eq(0),
                                     large.eq(large | (blocks[2:].all() & (missing != 0)))]
                    with m.Elif(step != 0):
                        m.d.sync += [rest.eq(Mux(fits, brought - self.cdus, brought)),
                                     quotient.eq(Cat(fits, quotient))]
                with m.If(step == DIGITS - 1):
                    m.next = "blocks"
                    with m.If(ending):
                        m.next = "low"
            with m.State("blocks"):
                m.d.sync += [
                    blocks.eq(Mux(given.tiled, product, product[3:])),
                    large.eq(Mux(given.tiled, product[BLOCKS:], product[BLOCKS + 3 :]).any()),
                    product.eq(given.rows - 1), factor.eq(given.stride), ending.eq(1),
                ]
                m.next = "multiply"
            with m.State("low"):
                m.d.sync += large.eq(large | (~late & product[self.address_width :].any()))
                m.next = "high"
            with m.State("high"):
                # What begins beyond ends beyond; what ends there may just touch it.
                m.d.sync += [end.eq(Cat(low[:half], high)), beyond.eq(high[-1]), late.eq(1)]
                m.d.sync += large.eq(large | beyond)
                m.next = "low"
                with m.If(late):
                    m.next = "judge"
            with m.State("judge"):
                m.d.sync += self.error.eq(large | (beyond & end.any())
                                          | (given.scaled & wraps & given.scales[SIZE + 2 :].all()))
                m.next = "end"
            with m.State("end"), m.If(walked):
                m.d.comb += self.done.eq(1)
                m.next = "idle"
        return m

    def _walk(self, m, last_tile, begin, walked):
        """Walks the CDUs' first groups: ``origin``, ``load``, ``course.group`` and ``course.unit``."""
        given, course = self.descriptor, self.course
        walker, turn = Signal(distance(self.address_width)), Signal(range(self.cdus + 1))
        sector, row = Signal(5), Signal(3)
        row_ends, next_row, channel_ends = Signal(), Signal(), Signal()
        last_height, high = Signal(FAR), Signal()  # high: more than what is walked
        # A line's upper half follows a cycle later, as ``load`` does.
        half = self.address_width // 2
        low, over, follows = Signal(half + 1), Signal(), Signal()
        height, channel = (Signal(4, name=f"unit_{name}") for name in ("height", "channel"))  # of a row of tiles
        m.d.comb += [
            self.origin.eq(walker), course.group.eq(walker),
            row_ends.eq(walker.tile == last_tile),
            channel_ends.eq((walker.height == last_height) & ~high),
            low.eq(walker.line[:half] + given.stride[:half]),
        ]
        m.d.sync += [over.eq(low[half]), follows.eq(next_row), last_height.eq(given.height[:FAR] - 1),
                     high.eq(given.height[FAR:SIZE].any())]
        with m.If(follows):
            m.d.sync += walker.line[half:].eq(walker.line[half:] + given.stride[half:] + over)
        with m.If(next_row):
            m.d.sync += [walker.left.eq(walker.left - 1), walker.line[:half].eq(low),
                         walker.height.eq(Mux(channel_ends, 0, walker.height + 1))]
            with m.If(channel_ends):
                m.d.sync += walker.channel.eq(Mux(walker.channel == course.top, 0, walker.channel + 1))
        one = given.height[:SIZE] == 1
        m.d.comb += course.unit.left.eq(Mux(course.raster, -1, -8))
        with m.If(course.raster):
            m.d.sync += [course.unit.height.eq(~one),
                         course.unit.channel.eq(one & (course.top != 0)), course.unit.line.eq(given.stride)]
        with m.Else():
            m.d.sync += [course.unit.height.eq(height),
                         course.unit.channel.eq(channel), course.unit.line.eq(given.stride << 3)]

        m.d.sync += self.load.eq(0)
        with m.FSM(name="walk"):
            with m.State("idle"):
                m.d.comb += walked.eq(1)
                m.d.sync += [sector.eq(0), row.eq(0), turn.eq(0)]
                with m.If(begin):
                    m.d.sync += walker.eq(0)
                    m.next = "group"
                    with m.If(~course.raster):
                        m.next = "unit"
            with m.State("unit"):
                m.d.comb += next_row.eq(1)
                m.d.sync += row.eq(row + 1)
                with m.If(row == 7):
                    m.next = "measured"
            with m.State("measured"):
                m.d.sync += [walker.eq(0), height.eq(walker.height), channel.eq(walker.channel)]
                m.next = "group"
            with m.State("group"):
                m.d.sync += [turn.eq(turn + 1), self.load.eq(Cat(turn == c for c in range(self.cdus)))]
                m.next = "sector"
                with m.If(turn == self.cdus):
                    m.next = "idle"
            with m.State("sector"):
                m.d.sync += [sector.eq(sector + 1), walker.tile.eq(Mux(row_ends, 0, walker.tile + 1))]
                m.d.comb += next_row.eq(row_ends & course.raster)
                with m.If(row_ends & ~course.raster):
                    m.next = "rows"
                with m.Elif(Mux(course.raster, sector.all(), sector[:2].all())):
                    m.next = "group"
            with m.State("rows"):
                m.d.comb += next_row.eq(1)
                m.d.sync += row.eq(row + 1)
                with m.If(row == 7):
                    m.next = "sector"
                    with m.If(sector[:2] == 0):
                        m.next = "group"
