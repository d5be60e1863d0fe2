"""The order in which a lane scans a tensor: all of a channel, image by image, then the next channel."""

from functools import reduce
from operator import or_

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.offload.memory.geometry import ROW_BITS, SIZE, TILES, check_address_width
from actcodec.rtl.offload.wire.round_robin import MAX_CDUS

__all__ = ["LANES", "ChannelWalk", "route_layout", "start_layout"]


LANES = range(MAX_CDUS + 1)


def route_layout(address_width, halves=False):
    """What all lanes know of a tensor that is scanned: a row has ``tiles`` sectors, of which the last one has ``tail``
    values, a channel ``height`` rows in each of ``images``; each of ``lanes`` has every ``lanes``-th channel. ``half``,
    only with ``halves``: values have 2 bytes, in place of 4.

    The others are distances in bytes, from the last sector of one to the first of the next: to a ``row``, to the same
    channel's ``plane`` in the next image, and to the lane's next ``channel``.
    """
    return data.StructLayout({"tiles": TILES, "tail": 4, "height": SIZE, "images": ROW_BITS, "lanes": LANES,
                              "row": address_width, "plane": address_width, "channel": address_width}
                             | ({"half": 1} if halves else {}))


def start_layout(address_width):
    """Where a lane begins: the ``address`` of its first channel, and the ``channels`` from that one to the last."""
    return data.StructLayout({"address": address_width, "channels": SIZE})


class ChannelWalk(wiring.Component):
    """Gives the places of the sectors of a lane's channels, channel by channel.

    One address adds up distances, and counters say which. It is added in two halves, the upper one a cycle later, so
    that every place may be in another row.

    Throughput: a place per cycle. Latency: 3 cycles from ``start``. Buffering: two places. Combinational path:
    ``o.ready`` to the unit's enable, none to outputs.

    Source: this project.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    halves : bool
        There is ``route.half``.

    Ports
    -----
    start : input
        Pulse that starts a tensor, while none is under way.
    route : input, :func:`route_layout`
        Stands from ``start`` until the last place.
    origin : input, :func:`start_layout`
        At ``start``; with at least one channel.
    o : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
        ``slot`` is set on the last sector of a channel, ``last`` on the last one of all. ``channel`` means nothing.

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40, halves=False):
        check_address_width(address_width)
        self.address_width, self.halves = address_width, bool(halves)
        super().__init__({"start": In(1), "route": In(route_layout(address_width, halves)),
                          "origin": In(start_layout(address_width)),
                          "o": Out(stream.Signature(place_layout(address_width)))})

    def elaborate(self, platform):
        m = Module()
        route, origin, o = self.route, self.origin, self.o
        split = self.address_width // 2

        # The counters, each of what is left with the present one, and how its place is reached from the one before.
        tile, row, image, channel = (Signal(width, reset_less=True, name=name) for name, width in (
            ("tile", TILES), ("row", SIZE), ("image", ROW_BITS), ("channel", SIZE)))
        runs, advance, row_ends, plane_ends, channel_ends, ends = (Signal(name=name) for name in (
            "runs", "advance", "row_ends", "plane_ends", "channel_ends", "ends"))
        ways = {name: Signal(name=f"by_{name}") for name in ("tile", "row", "plane", "channel")}  # none for the first
        m.d.comb += [
            advance.eq(~o.valid | o.ready),
            row_ends.eq(tile == 1),
            plane_ends.eq(row_ends & (row == 1)),
            channel_ends.eq(plane_ends & (image == 1)),
            ends.eq(channel_ends & (channel <= route.lanes)),
        ]
        with m.If(self.start):
            m.d.sync += [runs.eq(1), tile.eq(route.tiles), row.eq(route.height), image.eq(route.images),
                         channel.eq(origin.channels), *(way.eq(0) for way in ways.values())]
        with m.Elif(advance & runs):
            m.d.sync += [runs.eq(~ends), tile.eq(Mux(row_ends, route.tiles, tile - 1)),
                         ways["tile"].eq(~row_ends), ways["row"].eq(row_ends & ~plane_ends),
                         ways["plane"].eq(plane_ends & ~channel_ends), ways["channel"].eq(channel_ends)]
            with m.If(row_ends):
                m.d.sync += row.eq(Mux(plane_ends, route.height, row - 1))
            with m.If(plane_ends):
                m.d.sync += image.eq(Mux(channel_ends, route.images, image - 1))
            with m.If(channel_ends):
                m.d.sync += channel.eq(channel - route.lanes)

        # The lower half of the address, and then the upper one.
        sector = Cat(C(0, 4), route.half, ~route.half) if self.halves else Cat(C(0, 5), 1)
        distances = {name: sector if name == "tile" else route[name] for name in ways}
        half = [Signal(width, reset_less=True, name=name)
                for name, width in (("low", split), ("high", self.address_width - split))]
        below, carry = Signal.like(half[0], name="below"), Signal(reset_less=True)
        later = {name: Signal(name=f"{name}_later") for name in ways}
        about, place = (Signal(6, reset_less=True, name=name) for name in ("about", "place"))
        valid = Signal(2)

        def plus(part, ways, part_of, carry=0):
            """Half an address and what is added to it."""
            addend = reduce(or_, (Mux(way, distances[name][part_of], 0) for name, way in ways.items()))
            return (Cat(1, part) + Cat(carry, addend[: len(part)]))[1:]

        total = plus(half[0], ways, slice(split))
        with m.If(self.start):
            m.d.sync += Cat(half).eq(origin.address)
        with m.If(advance):
            m.d.sync += [valid[0].eq(runs), valid[1].eq(valid[0])]
            with m.If(runs):
                m.d.sync += [half[0].eq(total), carry.eq(total[split]), *(later[name].eq(ways[name]) for name in ways),
                             about.eq(Cat(Mux(row_ends, route.tail, 8)[:4], channel_ends, ends))]
            with m.If(valid[0]):
                m.d.sync += [half[1].eq(plus(half[1], later, slice(split, self.address_width), carry)),
                             below.eq(half[0]), place.eq(about)]
        m.d.comb += [o.valid.eq(valid[1]), o.p.address.eq(Cat(below, half[1])), o.p.words.eq(place[:4]),
                     o.p.slot.eq(place[4]), o.p.last.eq(place[5])]
        return m
