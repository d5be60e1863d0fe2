"""The address generator: where the sectors of a tensor lie, in the order in which one CDU takes them."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.vectors import place

__all__ = ["FAR", "ROWS", "SIZE", "TILES", "AddressGenerator", "check_address_width", "course", "distance"]

SIZE = 24  # bits of a width, of a channel's height, of the number of channels
TILES = SIZE - 3  # bits of the number of sectors in a row
ROWS = 31  # bits of the number of rows
FAR = 9  # bits of what is counted over the groups of all CDUs: 256 sectors
NEAR = 6  # bits of what is counted in a group: it has 32 sectors, so 63 is as good as anything beyond


def check_address_width(address_width):
    """Raises ValueError unless ``address_width`` is 32 to 64."""
    if not isinstance(address_width, int) or not 32 <= address_width <= 64:
        raise ValueError(f"address_width must be 32 to 64 bits, not {address_width!r}")


def position(address_width):
    """Where a sector is: ``tile`` in its row; rows ``left``, from this one to the end of the tensor (none or less in
    the padding); the row's place in its ``channel``, ``height``; the address of the row's first value, ``line``."""
    return data.StructLayout({"tile": TILES, "left": signed(ROWS + 1), "height": SIZE, "channel": SIZE,
                              "line": address_width})


def distance(address_width):
    """What is added to a position, with carries from ``tile`` and ``height``. Not more than 256 sectors; rows count
    negative."""
    return data.StructLayout({"tile": FAR, "left": signed(FAR + 1), "height": FAR, "channel": FAR,
                              "line": address_width})


def course(address_width):
    """What all CDUs know of a tensor.

    ``raster``: the sectors of a group follow each other in memory's order. Otherwise a group is four tiles of a row of
    tiles, as far as it goes, and of the next one, and they pass row by row. ``tiles`` are the sectors of a row, of
    which the last one has ``tail`` values; ``top`` is the highest channel. ``group`` is the distance from one of a
    CDU's groups to its next one, ``unit`` that of the rows (or rows of tiles) that a carry from ``tile`` stands for.
    """
    return data.StructLayout({
        "raster": 1, "base": address_width, "rows": ROWS, "tiles": TILES, "tail": 4, "stride": 32, "height": SIZE,
        "top": SIZE, "group": distance(address_width), "unit": distance(address_width)})


def near(value):
    """A number as a count within a group: all that is beyond 63 is 63."""
    high = (1 << NEAR) - 1
    return Mux(value[NEAR:].any(), high, value[:NEAR])


# A cycle of a Walk's two adders: whose turn it is; what is added, and to what; where the result goes.
_control = data.StructLayout({name: 1 for name in (
    "total", "from_tile", "from_height", "from_channel", "plus_tile", "plus_height", "plus_channel", "plus_unit_height",
    "plus_unit_channel", "less_tile", "less_height", "less_channel", "back", "back_tile", "back_height", "back_channel",
    "one", "carry", "works", "to_tile", "to_height", "to_channel", "room", "until", "second_until",
    "to_following", "to_left", "by_group", "by_group_rows", "by_unit", "by_unit_rows", "by_base", "by_rows", "by_tile",
    "by_stride", "line", "left", "second_line", "following")})


class AddressGenerator(wiring.Component):
    """Gives the places of one CDU's sectors.

    Inside a group, everything is counted: sectors to the end of the row, rows to the end of the channel and of the
    tensor; addresses move on by 32 bytes in a row, and from row to row by the stride. A group that goes on in the next
    row of tiles has two rows under way, which take turns.

    Where the next group begins, and its part in the next row of tiles, is found meanwhile, in steps of three cycles.
    One adder takes tiles, heights and channels: the sum, less the modulus, and that again if it was too much. The other
    one takes addresses and rows, in three digits. A group takes 32 cycles, its preparation 28 at most.

    Throughput: a place a cycle. Latency: 20 cycles from ``start``. Buffering: the start of a group. Combinational
    paths: none.

    Source: JPEG-ACT, section III-C, Figure 12.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    load : input
        Pulse that comes before ``start`` and while there is no tensor: ``origin`` is that of the next one.
    origin : input, :func:`distance`
        From the tensor's first sector to the first one of this CDU.
    start : input
        Pulse that starts a tensor; only when the one before has ended. The other inputs stand until the next one.
    blocks : input
        Of this CDU, at least one.
    course : input, :func:`course`
    o : stream of :func:`~actcodec.rtl.common.vectors.place`
        Eight sectors a block, ``last`` on the last one. Places in the padding have no words, and an address that means
        nothing. Slot 1 are the sectors in the second row of tiles of a group.

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40):
        check_address_width(address_width)
        self.address_width = address_width
        super().__init__({"load": In(1), "origin": In(distance(address_width)), "start": In(1), "blocks": In(32),
                          "course": In(course(address_width)), "o": Out(stream.Signature(place(address_width)))})

    def elaborate(self, platform):
        m = Module()
        course, o = self.course, self.o.payload
        group, unit = course.group, course.unit

        # -------------------------------------------------------------------------- the start of the next group
        at = Signal(position(self.address_width), reset_less=True)
        room = Signal(NEAR, reset_less=True, name="start_room")  # sectors to the end of the row
        # Rows to the end of the channel, of the group's first part and of its second; that one's line, and the address
        # of the first one's second row.
        untils = [Signal(NEAR, reset_less=True, name=f"start_until_{k}") for k in range(2)]
        line, following = (Signal(self.address_width, reset_less=True, name=f"start_{name}")
                           for name in ("line", "following"))
        groups, size = Signal(30, reset_less=True), Signal(3)  # full groups to come; tiles of the next one
        tiles = Signal(2, reset_less=True)  # of the last group, 0 for four
        final, prepared, begin = Signal(), Signal(), Signal()
        phase = Signal(3)  # cycles of a step
        m.d.comb += size.eq(Mux(final & tiles.any(), tiles, 4))
        m.d.sync += final.eq(~groups[1:].any() & (groups[0] ^ tiles.any()))

        # What is to be done in a cycle is decided in the one before.
        decided, do = Signal(_control), Signal(_control)
        m.d.sync += do.eq(decided)

        def either(*choices):
            """The value whose bit is set; no more than one is."""
            return reduce(or_, (Mux(bit, value, 0) for bit, value in choices))

        # Tiles, heights and channels: the sum, less the modulus, and that again if it was too much.
        total = Signal(signed(SIZE + 2), reset_less=True)
        part, result = Signal(SIZE + 1), Signal(signed(SIZE + 2))
        term = Signal(SIZE + 2, reset_less=True)  # chosen in the cycle before, too
        one, short = Signal(), Signal()
        carry, wrapped = Signal(reset_less=True), Signal(reset_less=True)  # from height; from tile
        moduli = {"tile": course.tiles, "height": course.height, "channel": course.top}
        distances = {"tile": group.tile, "height": group.height, "channel": group.channel,
                     "unit_height": unit.height, "unit_channel": unit.channel}
        m.d.comb += [
            part.eq(either((do.total, total), *((do[f"from_{name}"], at[name]) for name in moduli))),
            short.eq(total[-1]),
            # The modulus of channels is less by one than they are.
            one.eq(do.one | (do.carry & carry) | (do.back_channel & short)),
            result.eq((Cat(1, part) + Cat(one, Mux(do.back & ~short, 0, term)))[1:]),
        ]
        m.d.sync += term.eq(either(
            *((decided[f"plus_{name}"], value) for name, value in distances.items()),
            *((decided[f"less_{name}"], Cat(~value, Const(-1, SIZE + 2 - len(value))))
              for name, value in moduli.items()),
            *((decided[f"back_{name}"], value) for name, value in moduli.items())))
        rest = near(~total[:SIZE])  # to the modulus, a cycle after it has been taken from something
        with m.If(do.works):
            m.d.sync += total.eq(result)
        with m.If(do.back_tile):
            m.d.sync += wrapped.eq(~short)
        with m.If(do.back_height):
            m.d.sync += carry.eq(~short)
        for name in moduli:
            with m.If(do[f"to_{name}"]):
                m.d.sync += at[name].eq(result)
        for count, bit in ((room, do.room), (untils[0], do.until), (untils[1], do.second_until)):
            with m.If(bit):
                m.d.sync += count.eq(rest)

        # Addresses and rows, digit by digit.
        base, addend, address_sum = (Signal(self.address_width, name=name) for name in ("base", "addend", "sum"))
        m.d.comb += [
            base.eq(Mux(do.to_following, following, Mux(do.to_left, at.left, at.line))),
            addend.eq(either((do.by_group, group.line), (do.by_group_rows, group.left), (do.by_unit, unit.line),
                             (do.by_unit_rows, unit.left), (do.by_base, course.base), (do.by_rows, course.rows),
                             (do.by_tile, at.tile << 5), (do.by_stride, course.stride))),
        ]
        bit, digit = 0, -(-self.address_width // 3)
        for low in range(0, self.address_width, digit):
            high = min(low + digit, self.address_width)
            one_digit, over = Signal(high - low + 1, name=f"digit_{low}"), Signal(reset_less=True, name=f"over_{low}")
            m.d.comb += [one_digit.eq((Cat(1, base[low:high]) + Cat(bit, addend[low:high]))[1:]),
                         address_sum[low:high].eq(one_digit)]
            m.d.sync += over.eq(one_digit[-1])
            bit = over
        for value, bit in ((at.line, do.line), (at.left, do.left), (line, do.second_line), (following, do.following)):
            with m.If(bit):
                m.d.sync += value.eq(address_sum)

        def modular(name, stores=1, by=""):
            m.d.comb += [
                decided.works.eq(1), decided[f"from_{name}"].eq(phase[0]), decided.total.eq(~phase[0]),
                decided[f"plus_{by}{name}"].eq(phase[0]), decided[f"less_{name}"].eq(phase[1]),
                decided.back.eq(phase[2]), decided[f"back_{name}"].eq(phase[2]),
                decided[f"to_{name}"].eq(phase[2] & stores),
                decided.carry.eq(phase[0] & (name == "channel")), decided.one.eq(phase[1] & (name != "channel"))]

        opening = Signal()  # the base and all rows are to be added, in place of a unit
        last = phase[2]
        m.d.sync += phase.eq(phase.rotate_left(1))
        with m.FSM():
            with m.State("idle"):
                m.d.sync += [opening.eq(1), phase.eq(1), groups.eq(self.blocks[2:]), tiles.eq(self.blocks[:2])]
                with m.If(self.load):
                    m.d.sync += [at[name].eq(self.origin[name]) for name in self.origin.shape().members]
                with m.If(self.start):
                    m.next = "unit height"
            with m.State("tile"):
                modular("tile")
                m.d.comb += [decided.by_group.eq(1), decided.line.eq(last)]
                with m.If(last):
                    m.next = "height"
            with m.State("height"):
                modular("height")
                m.d.comb += [decided.to_left.eq(1), decided.by_group_rows.eq(1), decided.left.eq(last)]
                with m.If(last):
                    m.next = "channel"
            with m.State("channel"):
                modular("channel")
                with m.If(last):
                    m.next = "second height"
                    with m.If(wrapped):
                        m.next = "unit height"
            with m.State("unit height"):
                modular("height", ~opening, "unit_")
                m.d.comb += [decided.by_unit.eq(~opening), decided.by_base.eq(opening),
                             decided.line.eq(last)]
                with m.If(last):
                    m.next = "unit channel"
            with m.State("unit channel"):
                modular("channel", ~opening, "unit_")
                m.d.comb += [decided.by_unit_rows.eq(~opening), decided.by_rows.eq(opening),
                             decided.to_left.eq(1), decided.left.eq(last)]
                with m.If(last):
                    m.d.sync += opening.eq(0)
                    m.next = "second height"
            with m.State("second height"):
                modular("height", 0, "unit_")
                m.d.comb += [decided.by_unit.eq(1), decided.second_line.eq(last)]
                with m.If(last):
                    m.next = "until"
            with m.State("until"):
                m.d.comb += [
                    decided.works.eq(1), decided.total.eq(phase[0]), decided.from_height.eq(phase[1]),
                    decided.from_tile.eq(last), decided.less_height.eq(~last), decided.less_tile.eq(last),
                    decided.second_until.eq(phase[1]), decided.until.eq(last),
                    decided.by_tile.eq(~course.raster), decided.following.eq(last),
                ]
                with m.If(last):
                    m.next = "second channel"
            with m.State("second channel"):
                modular("channel", 0, "unit_")
                m.d.comb += [decided.room.eq(phase[0]),
                             decided.to_following.eq(1), decided.by_stride.eq(1), decided.following.eq(last)]
                with m.If(last):
                    m.next = "address"
            with m.State("address"):
                m.d.comb += decided.by_tile.eq(1)
                with m.If(last):
                    m.next = "wait"
            with m.State("wait"):
                # The sum is the address of the group.
                m.d.comb += [decided.by_tile.eq(1), prepared.eq(1)]
                m.d.sync += phase.eq(1)
                with m.If(begin):
                    m.d.sync += groups.eq(groups - 1)
                    m.next = "tile"
                    with m.If(final):
                        m.next = "idle"

        # ------------------------------------------------------------------------------------------- the group
        sector, last_sector = Signal(5, reset_less=True), Signal(5, reset_less=True)
        ending, ends, moves = Signal(reset_less=True), Signal(), Signal()  # this is the last group; its last sector
        valid, slot = Signal(), Signal(reset_less=True)
        address = Signal(self.address_width, reset_less=True)
        here, first_room = Signal(NEAR, reset_less=True), Signal(NEAR, reset_less=True)
        # In a row: sectors of the first part (up to 4) and of the second, and those that are left of this part.
        first, second, within = (Signal(3, reset_less=True, name=name) for name in ("first", "second", "within"))
        # Where the next rows of the two parts begin.
        next_address, other_address = (Signal(self.address_width, reset_less=True, name=f"{name}_address")
                                       for name in ("next", "other"))
        # The row under way, that of the other part, if there is one, and what comes next in the same part: rows to the
        # end of the channel and of the tensor.
        row = data.StructLayout({"until": NEAR, "left": NEAR, "channel": SIZE})
        current, other = (Signal(row, reset_less=True, name=name) for name in ("current", "other"))
        below = Signal(row, name="row_below")
        spans, turns, channel_ends = Signal(), Signal(), Signal()
        across_next = Signal(reset_less=True)  # the next row is the second part's
        pointer, beyond = (Signal(self.address_width, name=name) for name in ("pointer", "beyond"))
        m.d.comb += [
            self.o.valid.eq(valid),
            o.slot.eq(slot),
            o.address.eq(address),
            o.channel.eq(current.channel),
            o.words.eq(Mux(current.left == 0, 0, Mux(here == 1, course.tail, 8))),
            o.last.eq(ending & ends),
            ends.eq(sector == last_sector),
            moves.eq(valid & self.o.ready),
            begin.eq(prepared & (~valid | (moves & ends))),
            spans.eq(second != 0),
            turns.eq(Mux(course.raster, here, within) == 1),
            channel_ends.eq(current.until == 1),
            pointer.eq(Mux(across_next, other_address, next_address)),
            beyond.eq(pointer + course.stride),
            below.until.eq(Mux(channel_ends, near(course.height), current.until - 1)),
            below.left.eq(current.left - (current.left != 0)),
            below.channel.eq(Mux(channel_ends, Mux(current.channel == course.top, 0, (current.channel + 1)[:SIZE]),
                                     current.channel)),
        ]
        with m.If(moves):
            m.d.sync += [sector.eq(sector + 1), within.eq(within - 1), here.eq(here - 1),
                         address.eq(Cat(address[:5], (address[5:] + 1)[: self.address_width - 5])), valid.eq(~ends)]
            with m.If(turns):
                m.d.sync += [current.eq(Mux(spans, other, below)), other.eq(below), address.eq(pointer),
                             slot.eq(across_next), across_next.eq(spans & ~across_next),
                             within.eq(Mux(across_next, second, first)),
                             here.eq(Mux(course.raster | across_next, near(course.tiles), first_room))]
                with m.If(across_next):
                    m.d.sync += other_address.eq(beyond)
                with m.Else():
                    m.d.sync += next_address.eq(beyond)
        left = Signal(NEAR)
        m.d.comb += left.eq(Mux(at.left < 0, 0, near(at.left[:ROWS])))
        with m.If(begin):
            across = Mux(room < size, room, size)[:3]
            m.d.sync += [
                valid.eq(1), sector.eq(0), last_sector.eq((size << 3) - 1), ending.eq(final), slot.eq(0),
                address.eq(address_sum), here.eq(room), first_room.eq(room), first.eq(across), within.eq(across),
                second.eq(Mux(course.raster, 0, size - across)), across_next.eq(~course.raster & (room < size)),
                next_address.eq(following), other_address.eq(line),
                current.until.eq(untils[0]), current.left.eq(left), current.channel.eq(at.channel),
                # Eight rows further on.
                other.until.eq(untils[1]),
                other.left.eq(Mux(left[3:] == 0, 0, Cat(left[:3], left[3:] - 1))), other.channel.eq(total),
            ]
        return m
