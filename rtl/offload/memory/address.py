"""The address generator: where the sectors of a tensor lie, in the order in which one CDU takes them."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.vectors import edges as layout
from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.offload.memory.geometry import NEAR, SIZE, check_address_width, distance_layout, geometry_layout, near
from actcodec.rtl.offload.memory.neighbours import Neighbours
from actcodec.rtl.offload.memory.next_group import NextGroup

__all__ = ["AddressGenerator"]


class AddressGenerator(wiring.Component):
    """Gives the places of one CDU's sectors.

    Inside a group, everything is counted: sectors to the end of the row, rows to the end of the channel and of the
    tensor; addresses move on by 32 bytes in a row (16 if values have 2, 8 if one), and from row to row by the stride. A
    group that goes on in the next row of tiles has two rows under way, which take turns.

    Where the next group begins, :class:`~actcodec.rtl.offload.memory.next_group.NextGroup` finds meanwhile: a group
    takes 32 cycles, that 28 at most.

    Throughput: a place a cycle. Latency: 20 cycles from ``start``. Buffering: the start of a group. Combinational
    paths: none.

    Source: JPEG-ACT, section III-C, Figure 12.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    edges : bool
        There are ``tiled`` and ``edges``.
    halves, codes : bool
        ``geometry`` has ``half``, and ``byte``.

    Ports
    -----
    load : input
        Pulse that comes before ``start`` and while there is no tensor: ``origin`` is that of the next one.
    origin : input, :func:`~actcodec.rtl.offload.memory.geometry.distance_layout`
        From the tensor's first sector to the first one of this CDU.
    start : input
        Pulse that starts a tensor; only when the one before has ended. The other inputs stand until the next one.
    blocks : input
        Of this CDU, at least one.
    geometry : input, :func:`~actcodec.rtl.offload.memory.geometry.geometry_layout`
    o : stream of :func:`~actcodec.rtl.common.vectors.place_layout`
        Eight sectors a block, ``last`` on the last one. Places in the padding have no words, and an address that means
        nothing. Slot 1 are the sectors in the second row of tiles of a group.
    tiled : input
        Blocks are tiles. Stands as ``geometry``.
    edges : output, :data:`~actcodec.rtl.common.vectors.edges`
        Goes with ``o``.

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40, edges=False, halves=False, codes=False):
        check_address_width(address_width)
        self.address_width, self._edges, self.halves, self.codes = address_width, bool(edges), bool(halves), bool(codes)
        super().__init__({
            "load": In(1), "origin": In(distance_layout(address_width)), "start": In(1), "blocks": In(32),
            "geometry": In(geometry_layout(address_width, halves, codes)),
            "o": Out(stream.Signature(place_layout(address_width))),
            **({"tiled": In(1), "edges": Out(layout)} if edges else {})})

    def elaborate(self, platform):
        m = Module()
        geometry, o = self.geometry, self.o.p
        m.submodules.next_group = next_group = NextGroup(self.address_width, self.halves, self.codes)
        m.d.comb += [getattr(next_group, name).eq(getattr(self, name))
                     for name in ("load", "origin", "start", "blocks", "geometry")]
        group = next_group.o.p

        sector, last_sector = Signal(5, reset_less=True), Signal(5, reset_less=True)
        ending, ends, moves = Signal(reset_less=True), Signal(), Signal()  # this is the last group; its last sector
        begin = Signal()
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
        # By 32 bytes, or by 16: then every second time; or by 8.
        bit, carry = (address[4] ^ geometry.half, address[4] | ~geometry.half) if self.halves else (address[4], 1)
        low = address[:4]
        if self.codes:
            eighth = geometry.byte & address[3]  # a carry
            low, bit = Cat(address[:3], address[3] ^ geometry.byte), bit ^ eighth
            carry = Mux(geometry.byte, address[4] & eighth, carry)
        m.d.comb += [
            self.o.valid.eq(valid),
            o.slot.eq(slot),
            o.address.eq(address),
            o.channel.eq(current.channel),
            o.words.eq(Mux(current.left == 0, 0, Mux(here == 1, geometry.tail, 8))),
            o.last.eq(ending & ends),
            ends.eq(sector == last_sector),
            moves.eq(valid & self.o.ready),
            next_group.o.ready.eq(~valid | (moves & ends)),
            begin.eq(next_group.o.valid & next_group.o.ready),
            spans.eq(second != 0),
            turns.eq(Mux(geometry.raster, here, within) == 1),
            channel_ends.eq(current.until == 1),
            pointer.eq(Mux(across_next, other_address, next_address)),
            beyond.eq(pointer + geometry.stride),
            below.until.eq(Mux(channel_ends, near(geometry.height), current.until - 1)),
            below.left.eq(current.left - (current.left != 0)),
            below.channel.eq(Mux(channel_ends, Mux(current.channel == geometry.top, 0, (current.channel + 1)[:SIZE]),
                                     current.channel)),
        ]
        with m.If(moves):
            m.d.sync += [sector.eq(sector + 1), within.eq(within - 1), here.eq(here - 1),
                         address.eq(Cat(low, bit, (address[5:] + carry)[: self.address_width - 5])),
                         valid.eq(~ends)]
            with m.If(turns):
                m.d.sync += [current.eq(Mux(spans, other, below)), other.eq(below), address.eq(pointer),
                             slot.eq(across_next), across_next.eq(spans & ~across_next),
                             within.eq(Mux(across_next, second, first)),
                             here.eq(Mux(geometry.raster | across_next, near(geometry.tiles), first_room))]
                with m.If(across_next):
                    m.d.sync += other_address.eq(beyond)
                with m.Else():
                    m.d.sync += next_address.eq(beyond)
        with m.If(begin):
            size, room, left = group.size, group.room, group.left
            across = Mux(room < size, room, size)[:3]
            m.d.sync += [
                valid.eq(1), sector.eq(0), last_sector.eq((size << 3) - 1), ending.eq(group.final), slot.eq(0),
                address.eq(group.address), here.eq(room), first_room.eq(room), first.eq(across), within.eq(across),
                second.eq(Mux(geometry.raster, 0, size - across)), across_next.eq(~geometry.raster & (room < size)),
                next_address.eq(group.following), other_address.eq(group.second),
                current.until.eq(group.until[0]), current.left.eq(left), current.channel.eq(group.channel[0]),
                # Eight rows further on.
                other.until.eq(group.until[1]), other.left.eq(Mux(left[3:] == 0, 0, Cat(left[:3], left[3:] - 1))),
                other.channel.eq(group.channel[1]),
            ]
        if self._edges:
            m.submodules.neighbours = neighbours = Neighbours()
            m.d.comb += [
                neighbours.tiled.eq(self.tiled), neighbours.ragged.eq(~geometry.tail[3]),
                neighbours.begin.eq(begin), neighbours.moves.eq(moves),
                neighbours.wide.eq(Mux(geometry.raster, geometry.tiles[:3], group.size) - 1),
                neighbours.turns.eq(turns), neighbours.spans.eq(spans), neighbours.ends.eq(channel_ends),
                self.edges.count.eq(o.words), self.edges.left.eq(neighbours.left),
                self.edges.above.eq(neighbours.above), self.edges.tile.eq(neighbours.tile), self.edges.last.eq(o.last),
            ]
        return m
