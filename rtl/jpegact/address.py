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


class Advance(wiring.Component):
    """Adds a distance to a position.

    Step by step, so that no step has more than one addition: the sums; what has gone over ``tiles`` and ``height``;
    the carry into ``channel``; what has gone over that. Where ``tile`` has carried, the same again with a ``unit``.

    Throughput: a position in 5 cycles, or 9 where ``tile`` carries. Combinational paths: none.

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
        super().__init__({"start": In(1), "i": In(where), "distance": In(where), "course": In(course(address_width)),
                          "done": Out(1), "o": Out(where)})

    def elaborate(self, platform):
        m = Module()
        o, course = self.o, self.course
        tile, height, channel = Signal(TILES + 1), Signal(SIZE + 1), Signal(SIZE + 1)  # before they are reduced
        carry, wrapped = Signal(), Signal()
        over = height - course.height, channel - course.top - 1

        def add(i, distance):
            m.d.sync += [o[name].eq(i[name] + distance[name]) for name in ("left", "line")]
            m.d.sync += [height.eq(i.height + distance.height), channel.eq(i.channel + distance.channel)]

        with m.FSM():
            with m.State("idle"), m.If(self.start):
                add(self.i, self.distance)
                m.d.sync += [tile.eq(self.i.tile + self.distance.tile), wrapped.eq(0)]
                m.next = "reduce"
            with m.State("reduce"):
                m.d.sync += [carry.eq(over[0] >= 0), o.height.eq(Mux(over[0] >= 0, over[0], height))]
                excess = tile - course.tiles
                with m.If(~wrapped):
                    m.d.sync += [wrapped.eq(excess >= 0), o.tile.eq(Mux(excess >= 0, excess, tile))]
                    m.d.sync += tile.eq(0)
                with m.Else():
                    m.d.sync += wrapped.eq(0)
                m.next = "carry"
            with m.State("carry"):
                m.d.sync += channel.eq(channel + carry)
                m.next = "channel"
            with m.State("channel"):
                m.d.sync += o.channel.eq(Mux(over[1] >= 0, over[1], channel))
                m.next = "end"
            with m.State("end"):
                m.next = "idle"
                with m.If(wrapped):
                    add(o, course.unit)
                    m.next = "reduce"
                with m.Else():
                    m.d.comb += self.done.eq(1)
        return m


class Walk(wiring.Component):
    """Gives the places of one CDU's sectors.

    Inside a group, everything is counted: sectors to the end of the row, rows to the end of the channel and of the
    tensor; addresses move on by 32 bytes in a row, and from row to row by the stride. The start of the next group, and
    of the part of it that lies in the next row of tiles, are found meanwhile (:class:`Advance`): a group takes 32
    cycles, its preparation some 20.

    Throughput: a place a cycle. Latency: 8 cycles from ``start``. Buffering: the start of a group. Combinational
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
        at = Signal(position(self.address_width), reset_less=True)
        address, following, other = (Signal(self.address_width, reset_less=True, name=f"start_{name}")
                                     for name in ("address", "following", "other"))
        room = Signal(NEAR, reset_less=True, name="start_room")
        # Of the first part of the group and of the second: rows to the end of the channel and of the tensor, channel.
        starts = [(Signal(NEAR, reset_less=True, name=f"start_until_{k}"),
                   Signal(NEAR, reset_less=True, name=f"start_left_{k}"),
                   Signal(SIZE, reset_less=True, name=f"start_channel_{k}")) for k in range(2)]
        groups, size = Signal(30, reset_less=True), Signal(3)  # groups to come; tiles of the next one
        tiles = Signal(2, reset_less=True)  # of the last group, 0 for four
        final, prepared, begin = Signal(), Signal(), Signal()
        m.d.comb += [
            advance.course.eq(course),
            advance.i.eq(at),
            final.eq(groups == 1),
            size.eq(Mux(final & (tiles != 0), tiles, 4)),
        ]

        def note(k, where):
            until, left, channel = starts[k]
            m.d.sync += [until.eq(near((course.height - where.height)[:SIZE])), channel.eq(where.channel),
                         left.eq(Mux(where.left < 0, 0, near(where.left[:ROWS])))]

        with m.FSM():
            with m.State("idle"):
                m.d.sync += [at.eq(self.share.start), groups.eq((self.share.blocks + 3) >> 2),
                             tiles.eq(self.share.blocks[:2])]
                with m.If(self.start):
                    m.next = "origin"
            with m.State("origin"):
                m.d.sync += [at.left.eq(at.left + course.rows), at.line.eq(at.line + course.base)]
                m.next = "first"
            with m.State("first"):
                m.d.sync += [address.eq(at.line + (at.tile << 5)), room.eq(near((course.tiles - at.tile)[:TILES]))]
                note(0, at)
                m.d.comb += [advance.distance.eq(course.unit), advance.start.eq(1)]
                m.next = "second"
            with m.State("second"):
                m.d.comb += advance.distance.eq(course.unit)
                m.d.sync += following.eq(Mux(course.raster, at.line, address) + course.stride)
                with m.If(advance.done):
                    note(1, advance.o)
                    m.d.sync += [other.eq(advance.o.line), prepared.eq(1)]
                    m.next = "wait"
            with m.State("wait"):
                m.d.comb += advance.distance.eq(course.group)
                with m.If(begin):
                    m.d.sync += [prepared.eq(0), groups.eq(groups - 1)]
                    m.d.comb += advance.start.eq(~final)
                    m.next = "advance"
                    with m.If(final):
                        m.next = "idle"
            with m.State("advance"):
                m.d.comb += advance.distance.eq(course.group)
                with m.If(advance.done):
                    m.d.sync += at.eq(advance.o)
                    m.next = "first"

        # ------------------------------------------------------------------------------------------- the group
        sector, last_sector = Signal(5, reset_less=True), Signal(5, reset_less=True)
        ending, ends, moves = Signal(reset_less=True), Signal(), Signal()  # this is the last group; its last sector
        slot = o.slot
        next_address, other_address = (Signal(self.address_width, reset_less=True, name=f"{name}_address")
                                       for name in ("next", "other"))
        here, first_room = Signal(NEAR, reset_less=True), Signal(NEAR, reset_less=True)
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
                         o_address.eq(o_address + 32), valid.eq(~ends)]
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
                o_address.eq(address), next_address.eq(following), other_address.eq(other), here.eq(room),
                first_room.eq(room), first.eq(across), second.eq(size - across), within.eq(across),
            ]
            m.d.sync += [Cat(part).eq(Cat(start)) for part, start in zip(parts, starts, strict=True)]
        return m
