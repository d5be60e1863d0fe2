"""Where the next group of a CDU begins. Its bench is that of address.py."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import adders
from actcodec.rtl.offload.memory.geometry import (
    NEAR,
    ROW_BITS,
    SIZE,
    distance_layout,
    geometry_layout,
    near,
    of_size,
    position_layout,
)

__all__ = ["NextGroup", "group_layout"]

# A cycle of the two adders: whose turn it is; what is added, and to what; where the result goes.
_control = data.StructLayout({name: 1 for name in (
    "total", "from_tile", "from_height", "from_channel", "plus_tile", "plus_height", "plus_channel", "plus_unit_height",
    "plus_unit_channel", "less_tile", "less_height", "less_channel", "back", "back_tile", "back_height", "back_channel",
    "one", "carry", "works", "to_tile", "to_height", "to_channel", "room", "until", "second_until",
    "to_following", "to_left", "by_group", "by_group_rows", "by_unit", "by_unit_rows", "by_base", "by_rows", "by_tile",
    "by_stride", "line", "left", "second_line", "following")})


def group_layout(address_width):
    """A group of ``size`` tiles, as the address generator begins it; ``final`` is the last one.

    ``room``: sectors to the end of the row. Of its first part and of its second, in the next row of tiles: rows to the
    end of the channel, ``until``, and the ``channel``. ``left``: rows to the end of the tensor. ``address`` of its
    first sector; ``following``, that of the first part's second row; ``second``, that of the second part.
    """
    return data.StructLayout({
        "final": 1, "size": 3, "room": NEAR, "until": data.ArrayLayout(NEAR, 2), "left": NEAR,
        "channel": data.ArrayLayout(SIZE, 2), "address": address_width, "following": address_width,
        "second": address_width})


class NextGroup(wiring.Component):
    """Finds where each group of a CDU begins, and its part in the next row of tiles, in steps of three cycles.

    One adder takes tiles, heights and channels: the sum, less the modulus, and that again if it was too much. The other
    one takes addresses and rows, in three digits.

    Throughput: a group in 28 cycles at most. Latency: 19 cycles from ``start``. Buffering: the start of a group.
    Combinational path: the adder of addresses to ``o.p.address``; none from ports.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    halves, codes : bool
        ``geometry`` has ``half``, and ``byte``.

    Ports
    -----
    load, origin, start, blocks, geometry : input
        As those of :class:`~actcodec.rtl.offload.memory.address.AddressGenerator`.
    o : stream of :func:`group_layout`
    """

    def __init__(self, address_width, halves=False, codes=False):
        self.address_width = address_width
        super().__init__({"load": In(1), "origin": In(distance_layout(address_width)), "start": In(1),
                          "blocks": In(32), "geometry": In(geometry_layout(address_width, halves, codes)),
                          "o": Out(stream.Signature(group_layout(address_width)))})

    def elaborate(self, platform):
        """Dividing a position by tiles, height and channels is avoided by adding distances that are already reduced, so
        that one conditional subtraction suffices. It takes one adder three cycles: sum; less the modulus; plus the
        modulus again if that was negative, or plus zero. The state machine names what is being advanced, ``phase``
        (one-hot) which of the three cycles it is, and ``modular`` the control bits of all of them. All of these control
        bits are registered (``decided``, then ``do``), so that the adder's operands are selected directly by
        flip-flops. Addresses are added beside it, by a second adder in the same three cycles."""

        m = Module()
        geometry, o = self.geometry, self.o.p
        group, unit = geometry.group, geometry.unit

        at = Signal(position_layout(self.address_width), reset_less=True)
        room = Signal(NEAR, reset_less=True, name="start_room")  # sectors to the end of the row
        # Rows to the end of the channel, of the group's first part and of its second; that one's line, and the address
        # of the first one's second row.
        untils = [Signal(NEAR, reset_less=True, name=f"start_until_{k}") for k in range(2)]
        line, following = (Signal(self.address_width, reset_less=True, name=f"start_{name}")
                           for name in ("line", "following"))
        groups, size = Signal(30, reset_less=True), Signal(3)  # full groups to come; tiles of the next one
        tiles = Signal(2, reset_less=True)  # of the last group, 0 for four
        final = Signal()  # the next group is the last one
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
        moduli = {"tile": geometry.tiles, "height": geometry.height, "channel": geometry.top}
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
        # To a sector from the start of its row, in bytes.
        along = of_size(geometry, at.tile << 5, at.tile << 4, at.tile << 3)
        base, addend, address_sum = (Signal(self.address_width, name=name) for name in ("base", "addend", "sum"))
        m.d.comb += [
            base.eq(Mux(do.to_following, following, Mux(do.to_left, at.left, at.line))),
            addend.eq(either((do.by_group, group.line), (do.by_group_rows, group.left), (do.by_unit, unit.line),
                             (do.by_unit_rows, unit.left), (do.by_base, geometry.base), (do.by_rows, geometry.rows),
                             (do.by_tile, along), (do.by_stride, geometry.stride))),
        ]
        # The carry chain of an address would be the longest path by far.
        m.d.comb += address_sum.eq(adders.digitwise(m, base, addend, -(-self.address_width // 3), carry=0))
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
                    decided.by_tile.eq(~geometry.raster), decided.following.eq(last),
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
                m.d.comb += [decided.by_tile.eq(1), self.o.valid.eq(1)]
                m.d.sync += phase.eq(1)
                with m.If(self.o.valid & self.o.ready):
                    m.d.sync += groups.eq(groups - 1)
                    m.next = "tile"
                    with m.If(final):
                        m.next = "idle"

        m.d.comb += [
            o.final.eq(final), o.size.eq(size), o.room.eq(room), o.until[0].eq(untils[0]), o.until[1].eq(untils[1]),
            o.left.eq(Mux(at.left < 0, 0, near(at.left[:ROW_BITS]))),
            o.channel[0].eq(at.channel), o.channel[1].eq(total), o.address.eq(address_sum), o.following.eq(following),
            o.second.eq(line),
        ]
        return m
