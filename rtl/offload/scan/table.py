"""Where a lane's scales lie in the table."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.adders import digitwise
from actcodec.rtl.common.vectors import place_layout
from actcodec.rtl.offload.memory.geometry import SIZE, check_address_width
from actcodec.rtl.offload.scan.walk import LANES

__all__ = ["Table"]


class Table(wiring.Component):
    """Gives a writer the places of the scales of a lane's channels, each a sector of one word.

    They come without waiting for scales, as a writer forms bursts ahead of its data. It puts together what lies in one
    beat, and leaves the words of other lanes alone.

    Throughput: a place in 3 cycles. Latency: 3 cycles from ``start``. Buffering: a place. Combinational paths: none.

    Source: this project.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    start : input
        Pulse that starts a tensor, while none is under way.
    address : input
        Of the scale of the lane's first channel, at ``start``.
    channels : input
        From that one to the last, at ``start``; at least one.
    lanes : input
        From one of its channels to the next, 1 to 8. Stands from ``start`` until the last place.
    o : stream of :func:`~actcodec.rtl.common.vectors.place_layout`

    Raises
    ------
    ValueError
        If ``address_width`` is out of range.
    """

    def __init__(self, address_width=40):
        check_address_width(address_width)
        self.address_width = address_width
        super().__init__({"start": In(1), "address": In(address_width), "channels": In(SIZE), "lanes": In(LANES),
                          "o": Out(stream.Signature(place_layout(address_width)))})

    def elaborate(self, platform):
        m = Module()
        address, left = Signal(self.address_width, reset_less=True), Signal(SIZE, reset_less=True)
        valid, waits = Signal(), Signal(2)  # waits: for the carry of the next address
        step = Cat(Const(0, 2), self.lanes, Const(0, self.address_width - 2 - len(self.lanes)))
        following = digitwise(m, address, step, -(-self.address_width // 2))
        o = self.o
        m.d.comb += [o.valid.eq(valid), o.p.address.eq(address), o.p.words.eq(1), o.p.last.eq(left <= self.lanes)]
        moves = valid & o.ready
        m.d.sync += [waits.eq(waits << 1), valid.eq(valid & ~o.ready | waits[1])]
        with m.If(moves):
            m.d.sync += [address.eq(following), left.eq(left - self.lanes), waits.eq(~o.p.last)]
        with m.If(self.start):
            m.d.sync += [address.eq(self.address), left.eq(self.channels), waits.eq(1)]
        return m
