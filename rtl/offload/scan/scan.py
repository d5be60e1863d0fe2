"""A lane's share of a scan, between the lane's reader and its writer."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.vectors import place_layout, sectors
from actcodec.rtl.offload.memory.geometry import check_address_width
from actcodec.rtl.offload.scan.scale import Scale
from actcodec.rtl.offload.scan.statistics import Statistics
from actcodec.rtl.offload.scan.table import Table
from actcodec.rtl.offload.scan.walk import ChannelWalk, route_layout, start_layout

__all__ = ["Scan"]


class Scan(wiring.Component):
    """Finds the scales of a lane's channels and puts them into the table, and what their values are like::

        walk -> reader (ar)
        walk -> reader (r) -> statistics -> scale -> writer <- table

    The walk is there twice, as is that of a lane (docs/architecture.md). All channels of a lane pass one after the
    other, so there is one maximum and no memory for those of others.

    Throughput: a sector per cycle, and a channel in 12 cycles. Latency: 3 cycles from ``start`` to the first places, 15
    from a channel's last sector to its scale at ``words``. Buffering: that of its parts. Combinational paths: none from
    ``sectors`` to outputs; inside, ``ready`` of a stream to the enable of its unit.

    Source: this project; JPEG-ACT, section III-B, for the scales.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    halves : bool
        There is ``route.half``.

    Ports
    -----
    start : input
        Pulse that starts a tensor of which the lane has a channel. ``route`` stands from then on.
    origin : input, :func:`~actcodec.rtl.offload.scan.walk.start_layout`
        At ``start``: where this lane begins.
    route : input, :func:`~actcodec.rtl.offload.scan.walk.route_layout`
    scales : input
        Address of the table, a multiple of 32, at ``start``.
    lane : input, 3 bits
        Which one this is, from 0 on; its first channel's number. At ``start``.
    ahead, now : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
        The same places, for a reader.
    sectors : stream of :data:`~actcodec.rtl.common.vectors.sectors`
        What it has read, ``last`` on the last sector of a channel.
    places : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
        For a writer: those of the lane's scales.
    words : stream of 8 words
        A scale in the first one.
    minimum, maximum, zeros, nans : output
        As :class:`~actcodec.rtl.offload.scan.statistics.Statistics` has them.

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40, halves=False):
        check_address_width(address_width)
        self.address_width, self.halves = address_width, bool(halves)
        places = stream.Signature(place_layout(address_width))
        super().__init__({
            "start": In(1), "origin": In(start_layout(address_width)),
            "route": In(route_layout(address_width, halves)), "scales": In(address_width), "lane": In(3),
            "ahead": Out(places), "now": Out(places), "sectors": In(stream.Signature(sectors)),
            "places": Out(places), "words": Out(stream.Signature(data.ArrayLayout(32, 8))),
            "minimum": Out(32), "maximum": Out(32), "zeros": Out(range(9)), "nans": Out(range(9))})

    def elaborate(self, platform):
        m = Module()
        for name in ("ahead", "now"):
            m.submodules[name] = walk = ChannelWalk(self.address_width, self.halves)
            m.d.comb += [walk.start.eq(self.start), walk.route.eq(self.route), walk.origin.eq(self.origin)]
            wiring.connect(m, walk.o, wiring.flipped(getattr(self, name)))
        m.submodules.statistics = statistics = Statistics()
        m.submodules.scale = scale = Scale()
        m.submodules.table = table = Table(self.address_width)
        wiring.connect(m, wiring.flipped(self.sectors), statistics.i)
        wiring.connect(m, statistics.o, scale.i)
        wiring.connect(m, table.o, wiring.flipped(self.places))
        m.d.comb += [
            self.words.valid.eq(scale.o.valid), self.words.p[0].eq(Cat(Const(0, 16), scale.o.p)),
            scale.o.ready.eq(self.words.ready),
            statistics.clear.eq(self.start), table.start.eq(self.start), table.channels.eq(self.origin.channels),
            table.lanes.eq(self.route.lanes),
            table.address.eq(Cat(self.scales[:2], self.lane, self.scales[5:])),
            *(getattr(self, name).eq(getattr(statistics, name)) for name in ("minimum", "maximum", "zeros", "nans")),
        ]
        return m
