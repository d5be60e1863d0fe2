"""The address generator: where the sectors of a tensor lie, in the order in which one CDU takes them."""

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.vectors import place

__all__ = ["ROWS", "SIZE", "TILES", "Advance", "Walk", "check_address_width", "course", "position", "share"]

SIZE = 24  # bits of a width, of a channel's height, of the number of channels
TILES = SIZE - 3  # bits of the number of sectors in a row
ROWS = 31  # bits of the number of rows
NEAR = 6  # bits of what is counted in a group: it has 32 sectors, so 63 is as good as anything beyond


def check_address_width(address_width):
    """Raises ValueError unless ``address_width`` is 32 to 64."""
    if not isinstance(address_width, int) or not 32 <= address_width <= 64:
        raise ValueError(f"address_width must be 32 to 64 bits, not {address_width!r}")


def position(address_width):
    """Where a sector is: ``tile`` in its row; rows ``left``, from this one to the end of the tensor (none or less in
    the padding); the row's place in its ``channel``, ``height``; the address of the row's first value, ``line``.

    Positions add up, with carries from ``tile`` and ``height``, so that they stand for distances as well: rows count
    negative, ``line`` counts from the tensor's base.
    """
    return data.StructLayout({"tile": TILES, "left": signed(ROWS + 1), "height": SIZE, "channel": SIZE,
                              "line": address_width})


def share(address_width):
    """What one CDU has of a tensor: the distance of its first sector from the tensor's, and its number of blocks."""
    return data.StructLayout({"start": position(address_width), "blocks": 32})


def course(address_width):
    """What all CDUs know of a tensor.

    ``raster``: the sectors of a group follow each other in memory's order. Otherwise a group is four tiles of a row of
    tiles, as far as it goes, and of the next one, and they pass row by row. ``tiles`` are the sectors of a row, of
    which the last one has ``tail`` values; ``top`` is the highest channel. ``group`` is the distance from one of a
    CDU's groups to its next one, ``unit`` that of the rows (or rows of tiles) that a carry from ``tile`` stands for.
    """
    return data.StructLayout({
        "raster": 1, "base": address_width, "rows": ROWS, "tiles": TILES, "tail": 4, "stride": 32, "height": SIZE,
        "top": SIZE, "group": position(address_width), "unit": position(address_width)})


def near(value):
    """A number as a count within a group: all that is beyond 63 is 63."""
    high = (1 << NEAR) - 1
    return Mux(value[NEAR:].any(), high, value[:NEAR])


def increment(value):
    """``value`` + 1, wrapping around. Its carries are ANDs of all bits below, not chains from bit to bit."""
    return Cat((value[k : k + 6] + value[:k].all())[: len(value[k : k + 6])] for k in range(0, len(value), 6))


class Advance(wiring.Component):
    """Adds a distance to a position.

    Step by step, so that no step has more than one addition: the sums; what has gone over ``tiles`` and ``height``,
    and back if nothing has; the carry into ``channel``; what has gone over that, and back. Where ``tile`` has carried,
    the same again with a ``unit``.

    Throughput: a position in 7 cycles, or 13 where ``tile`` carries. Combinational paths: none.

    Source: JPEG-ACT, section III-C.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    start : input
        Pulse. The other inputs stand from then until ``done``.
    i, distance : input, :func:`position`
    single : input
        Add a ``unit`` in place of ``distance``.
    course : input, :func:`course`
    done : output
        Pulse: ``o`` is the sum, and stays so.
    o : output, :func:`position`

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40):
        check_address_width(address_width)
        where = position(address_width)
        super().__init__({"start": In(1), "i": In(where), "distance": In(where), "single": In(1),
                          "course": In(course(address_width)), "done": Out(1), "o": Out(where)})

    def elaborate(self, platform):
        m = Module()
        o, course = self.o, self.course
        tile, height, channel = Signal(TILES + 1), Signal(SIZE + 1), Signal(SIZE + 1)  # before they are reduced
        carry, short = Signal(), Signal()  # from height; channel has not gone over the highest one
        wrapped, again = Signal(), Signal()  # tile has carried; this is what that comes to

        by_unit = Signal()
        adds, i, distance = Signal(), Signal.like(o), Signal.like(o)
        m.d.comb += [i.eq(self.i), distance.eq(self.distance)]
        with m.If(wrapped):
            m.d.comb += i.eq(o)
        with m.If(by_unit):
            m.d.comb += distance.eq(course.unit)
        with m.If(adds):
            m.d.sync += [o[name].eq(i[name] + distance[name]) for name in ("left", "line")]
            m.d.sync += [height.eq(i.height + distance.height), channel.eq(i.channel + distance.channel),
                         tile.eq(i.tile + distance.tile), again.eq(wrapped)]

        with m.FSM():
            with m.State("idle"), m.If(self.start):
                m.d.sync += by_unit.eq(self.single)
                m.next = "add"
            with m.State("add"):
                m.d.comb += adds.eq(1)
                m.next = "reduce"
            with m.State("reduce"):
                over, excess = height - course.height, tile - course.tiles
                m.d.sync += [carry.eq(over >= 0), o.height.eq(over), wrapped.eq((excess >= 0) & ~again)]
                with m.If(~again):
                    m.d.sync += o.tile.eq(excess)
                m.next = "carry"
            with m.State("carry"):
                m.d.sync += channel.eq(channel + carry)
                with m.If(~carry):
                    m.d.sync += o.height.eq(height)
                with m.If(~wrapped & ~again):
                    m.d.sync += o.tile.eq(tile)
                m.next = "channel"
            with m.State("channel"):
                over = channel + Cat(~course.top, 1)  # less top and one
                m.d.sync += [short.eq(~over[SIZE + 1]), o.channel.eq(over)]
                m.next = "restore"
            with m.State("restore"):
                with m.If(short):
                    m.d.sync += o.channel.eq(channel)
                m.next = "end"
            with m.State("end"):
                m.next = "idle"
                with m.If(wrapped):
                    m.d.sync += by_unit.eq(1)
                    m.next = "add"
                with m.Else():
                    m.d.comb += self.done.eq(1)
        return m


class Walk(wiring.Component):
    """Gives the places of one CDU's sectors.

    Inside a group, everything is counted: sectors to the end of the row, rows to the end of the channel and of the
    tensor; addresses move on by 32 bytes in a row, and from row to row by the stride. The start of the next group, and
    of the part of it that lies in the next row of tiles, are found meanwhile (:class:`Advance`): a group takes 32
    cycles, its preparation 23 at most.

    Throughput: a place a cycle. Latency: 11 cycles from ``start``. Buffering: the start of a group. Combinational
    paths: none.

    Source: JPEG-ACT, section III-C, Figure 12.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    start : input
        Pulse that starts a tensor; only when the one before has ended. The other inputs stand until the next one.
    share : input, :func:`share`
        At least one block.
    course : input, :func:`course`
    o : stream of :func:`~rtl.common.vectors.place`
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
        super().__init__({"start": In(1), "share": In(share(address_width)), "course": In(course(address_width)),
                          "o": Out(stream.Signature(place(address_width)))})

    def elaborate(self, platform):
        m = Module()
        course, o = self.course, self.o.payload
        m.submodules.advance = advance = Advance(self.address_width)

        # -------------------------------------------------------------------------- the start of the next group
        # Of its first part, ``at`` and ``address``; of its second part, what ``advance`` comes to.
        at = Signal(position(self.address_width), reset_less=True)
        address, following = (Signal(self.address_width, reset_less=True, name=f"start_{name}")
                              for name in ("address", "following"))  # of the group; of its next row
        room = Signal(NEAR, reset_less=True, name="start_room")  # sectors to the end of the row
        # Rows to the end of the channel.
        untils = [Signal(NEAR, reset_less=True, name=f"start_until_{k}") for k in range(2)]
        groups, size = Signal(30, reset_less=True), Signal(3)  # groups to come; tiles of the next one
        tiles = Signal(2, reset_less=True)  # of the last group, 0 for four
        final, prepared, begin = Signal(), Signal(), Signal()
        # One adder and one subtractor do everything here, one after the other.
        # What is added to: the line, or the address of the group. What is: the base, the tile, or the stride.
        to_line, opening, placing = Signal(), Signal(), Signal()
        augend, addend, total = (Signal(self.address_width, name=name) for name in ("augend", "addend", "total"))
        whole, part, rest, near_rest = Signal(SIZE), Signal(SIZE), Signal(SIZE, reset_less=True), Signal(NEAR)
        m.d.comb += [
            advance.course.eq(course),
            advance.i.eq(at),
            advance.distance.eq(course.group),
            advance.single.eq(~prepared),
            final.eq(groups == 1),
            size.eq(Mux(final & (tiles != 0), tiles, 4)),
            augend.eq(Mux(to_line, at.line, address)),
            addend.eq(Mux(opening, course.base, Mux(placing, at.tile << 5, course.stride))),
            total.eq(augend + addend),
            whole.eq(course.height), part.eq(at.height), near_rest.eq(near(rest)),
        ]
        m.d.sync += rest.eq(whole - part)

        with m.FSM():
            with m.State("idle"):
                m.d.sync += [opening.eq(1), to_line.eq(1), at.eq(self.share.start),
                             groups.eq((self.share.blocks + 3) >> 2), tiles.eq(self.share.blocks[:2])]
                with m.If(self.start):
                    m.next = "origin"
            with m.State("origin"):
                m.d.sync += [opening.eq(0), placing.eq(1), at.left.eq(at.left + course.rows), at.line.eq(total)]
                m.next = "address"
            with m.State("address"):
                m.d.comb += [whole.eq(course.tiles), part.eq(at.tile), advance.start.eq(1)]
                m.d.sync += [placing.eq(0), to_line.eq(course.raster), address.eq(total)]
                m.next = "following"
            with m.State("following"):
                m.d.sync += [following.eq(total), room.eq(near_rest)]
                m.next = "until"
            with m.State("until"):
                m.d.sync += untils[0].eq(near_rest)
                m.next = "second"
            with m.State("second"):
                m.d.comb += part.eq(advance.o.height)
                with m.If(advance.done):
                    m.next = "prepared"
            with m.State("prepared"):
                m.d.sync += [untils[1].eq(near_rest), prepared.eq(1)]
                m.next = "wait"
            with m.State("wait"), m.If(begin):
                m.d.sync += [prepared.eq(0), groups.eq(groups - 1)]
                m.d.comb += advance.start.eq(~final)
                m.next = "advance"
                with m.If(final):
                    m.next = "idle"
            with m.State("advance"), m.If(advance.done):
                m.d.sync += [placing.eq(1), to_line.eq(1), at.eq(advance.o)]
                m.next = "address"

        # ------------------------------------------------------------------------------------------- the group
        sector, last_sector = Signal(5, reset_less=True), Signal(5, reset_less=True)
        ending, ends, moves = Signal(reset_less=True), Signal(), Signal()  # this is the last group; its last sector
        slot = o.slot
        next_address, other_address = (Signal(self.address_width, reset_less=True, name=f"{name}_address")
                                       for name in ("next", "other"))
        here, first_room = Signal(NEAR, reset_less=True), Signal(NEAR, reset_less=True)
        # Of the first part of the group and of the second: rows to the end of the channel and of the tensor, channel.
        parts = [(Signal(NEAR, reset_less=True, name=f"until_{k}"), Signal(NEAR, reset_less=True, name=f"left_{k}"),
                  Signal(SIZE, reset_less=True, name=f"channel_{k}")) for k in range(2)]
        # In a row: sectors of the first part (up to 4) and of the second, and those that are left of this part.
        first, second, within = (Signal(3, reset_less=True, name=name) for name in ("first", "second", "within"))
        valid, o_slot = Signal(), Signal(reset_less=True)
        o_address = Signal(self.address_width, reset_less=True)
        m.d.comb += [
            self.o.valid.eq(valid),
            slot.eq(o_slot),
            o.address.eq(o_address),
            o.channel.eq(Mux(o_slot, parts[1][2], parts[0][2])),
            o.words.eq(Mux(Mux(o_slot, parts[1][1], parts[0][1]) == 0, 0, Mux(here == 1, course.tail, 8))),
            o.last.eq(ending & ends),
            ends.eq(sector == last_sector),
            moves.eq(valid & self.o.ready),
            begin.eq(prepared & (~valid | (moves & ends))),
        ]
        crosses, drops = Signal(), Signal()  # to the second part of the row; to the next row
        m.d.comb += [
            crosses.eq(~course.raster & ~o_slot & (within == 1) & (second != 0)),
            drops.eq(Mux(course.raster, here == 1, (within == 1) & ~crosses)),
        ]
        with m.If(moves):
            m.d.sync += [sector.eq(sector + 1), within.eq(within - 1), here.eq(here - 1),
                         o_address.eq(Cat(o_address[:5], increment(o_address[5:]))), valid.eq(~ends)]
            with m.If(crosses):
                m.d.sync += [o_address.eq(other_address), here.eq(near(course.tiles)), within.eq(second), o_slot.eq(1)]
            with m.If(drops):
                m.d.sync += [o_address.eq(next_address), next_address.eq(next_address + course.stride),
                             other_address.eq(other_address + course.stride), within.eq(first), o_slot.eq(0),
                             here.eq(Mux(course.raster, near(course.tiles), first_room))]
                for until, left, channel in parts:
                    m.d.sync += [until.eq(until - 1), left.eq(left - (left != 0))]
                    with m.If(until == 1):
                        m.d.sync += [until.eq(near(course.height)),
                                     channel.eq(Mux(channel == course.top, 0, channel + 1))]
        with m.If(begin):
            across = Mux(room < size, room, size)[:3]
            m.d.sync += [
                valid.eq(1), sector.eq(0), last_sector.eq((size << 3) - 1), ending.eq(final), o_slot.eq(0),
                o_address.eq(address), next_address.eq(following), other_address.eq(advance.o.line), here.eq(room),
                first_room.eq(room), first.eq(across), second.eq(size - across), within.eq(across),
            ]
            for (until, left, channel), start_until, where in zip(parts, untils, (at, advance.o), strict=True):
                m.d.sync += [until.eq(start_until), channel.eq(where.channel),
                             left.eq(Mux(where.left < 0, 0, near(where.left[:ROWS])))]
        return m
