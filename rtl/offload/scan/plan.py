"""The plan of a scan: from a tensor's description to what the lanes' walks have to know."""

from contextlib import contextmanager

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.adders import digitwise
from actcodec.rtl.offload.memory.geometry import ROW_BITS, SIZE, TILES, check_address_width
from actcodec.rtl.offload.scan.walk import LANES, route_layout, start_layout

__all__ = ["ScanPlan", "shape_layout"]


def shape_layout(address_width, halves=False):
    """A tensor as the plan of a scan wants it: as in :func:`~actcodec.rtl.offload.memory.tensor_plan.descriptor_layout`
    and :func:`~actcodec.rtl.offload.memory.geometry.geometry_layout`."""
    return data.StructLayout({"base": address_width, "rows": ROW_BITS, "tiles": TILES, "tail": 4, "stride": 32,
                              "height": SIZE, "channels": SIZE} | ({"half": 1} if halves else {}))


class ScanPlan(wiring.Component):
    """Works out the distances of a scan, the number of images, and where each lane begins.

    Without a multiplier or divider: products and the quotient come bit by bit, from one adder, which then makes the
    distances from them. A sum has two cycles. All addresses are modulo the address space.

    Throughput: one tensor at a time. Latency: 81 cycles, 4 for each lane, and 2 for each bit of the number of rows, of
    a channel's height, and, twice, of the number of channels: 157 with one lane for 64 channels of 56 rows in 16
    images. Combinational paths: none.

    Source: this project.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    lanes : int
        1 to 8.
    halves : bool
        There are ``shape.half`` and ``route.half``.

    Ports
    -----
    start : input
        Pulse, not before ``done`` of the tensor before. ``shape`` stands from then on, to the next one; a tensor for
        which :class:`~actcodec.rtl.offload.memory.tensor_plan.TensorPlan` has no error.
    shape : input, :func:`shape_layout`
    done : output
        Pulse: from here on the other outputs mean something, until the next start.
    error : output
        The rows are no whole images: no multiple of height times channels. Then the other outputs mean nothing.
    route : output, :func:`~actcodec.rtl.offload.scan.walk.route_layout`
    origin : output, :func:`~actcodec.rtl.offload.scan.walk.start_layout`
        Of the lane whose bit of ``launch`` is set.
    launch : output, ``lanes`` bits
        Pulses, one for each lane that has a channel, in the cycles before ``done``; none with an error. By then the
        other outputs mean something.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, lanes=1, halves=False):
        check_address_width(address_width)
        if type(lanes) is not int or lanes not in LANES[1:]:
            raise ValueError(f"lanes must be 1 to {LANES[-1]}, not {lanes!r}")
        self.address_width, self.lanes, self.halves = address_width, lanes, bool(halves)
        super().__init__({"start": In(1), "shape": In(shape_layout(address_width, halves)), "done": Out(1),
                          "error": Out(1), "route": Out(route_layout(address_width, halves)),
                          "origin": Out(start_layout(address_width)), "launch": Out(lanes)})

    def elaborate(self, platform):
        m = Module()
        shape, route = self.shape, self.route
        width = max(self.address_width, 2 * SIZE)  # of the largest exact product, height times channels

        total, factor = Signal(width), Signal(width)
        count = Signal(ROW_BITS)  # a factor from its low end, or a dividend from its high end
        pitch = Signal(self.address_width)  # from a channel to the next one
        step = Signal(range(ROW_BITS))
        # Registers, as every bit of the adder waits for them.
        divides = Signal()
        subtracts = Signal()
        first, result = Signal(width), Signal(width + 1)
        adds, second = Signal(), Signal()  # a sum is under way; this is its second cycle
        m.d.comb += [
            first.eq(Mux(divides, Cat(count[-1], total), total)),
            result.eq(digitwise(m, first, factor ^ subtracts.replicate(width), -(-width // 2), subtracts)),
            route.tiles.eq(shape.tiles), route.tail.eq(shape.tail), route.height.eq(shape.height),
            route.images.eq(count), route.lanes.eq(self.lanes), self.origin.address.eq(total),
        ]
        # Bytes of a row, but for the last sector; long there when they are used.
        before = digitwise(m, shape.tiles, Const(-1, TILES), -(-TILES // 2))[:TILES] << 5
        if self.halves:
            before = Mux(shape.half, before >> 1, before)
            m.d.comb += route.half.eq(shape.half)
        m.d.sync += [second.eq(adds & ~second), self.launch.eq(0)]

        @contextmanager
        def added():
            """What is done when the sum is there."""
            m.d.comb += adds.eq(1)
            with m.If(second):
                yield

        rows, channels = shape.rows, shape.channels
        left = self.origin.channels

        def product(one, other):
            m.d.sync += [total.eq(0), factor.eq(one), count.eq(other)]

        def multiply(name, following):
            """A state that multiplies, and what follows it."""
            with m.State(name):
                with m.If(count == 0):
                    m.next = following
                with m.Else(), added():
                    m.d.sync += [factor.eq(factor << 1), count.eq(count >> 1)]
                    with m.If(count[0]):
                        m.d.sync += total.eq(result)

        with m.FSM():
            with m.State("idle"), m.If(self.start):
                product(shape.stride, shape.height)
                m.next = "pitch"
            multiply("pitch", "pitch is there")
            with m.State("pitch is there"):
                m.d.sync += pitch.eq(total)
                product(total, channels)
                m.next = "image"
            multiply("image", "image is there")
            with m.State("image is there"):
                m.d.sync += route.plane.eq(total)
                product(shape.stride, rows)
                m.next = "end"
            multiply("end", "end is there")
            with m.State("end is there"):
                m.d.sync += route.channel.eq(total)
                product(shape.height, channels)
                m.next = "rows"
            multiply("rows", "rows are there")
            with m.State("rows are there"):
                product(total, rows)
                m.d.sync += [step.eq(0), divides.eq(1), subtracts.eq(1)]
                m.next = "images"
            with m.State("images"):
                fits = result[width]
                with added():
                    m.d.sync += [step.eq(step + 1), total.eq(Mux(fits, result, first)), count.eq(Cat(fits, count))]
                    with m.If(step == ROW_BITS - 1):
                        m.next = "row"
            with m.State("row"):
                m.d.sync += [self.error.eq(total.any()), total.eq(shape.stride),
                             factor.eq(before), step.eq(0), divides.eq(0)]
                m.next = "to row"
            with m.State("to row"), added():
                m.d.sync += [total.eq(result), route.row.eq(result), factor.eq(route.plane), subtracts.eq(0)]
                m.next = "to image"
            with m.State("to image"), added():
                m.d.sync += [total.eq(result), factor.eq(pitch), subtracts.eq(1)]
                m.next = "to plane"
            with m.State("to plane"), added():
                m.d.sync += [total.eq(result), route.plane.eq(result), factor.eq(route.channel)]
                m.next = "back"
            with m.State("back"), added():
                m.d.sync += [total.eq(result), factor.eq(pitch), subtracts.eq(0)]
                m.next = "to channel"
            with m.State("to channel"), added():
                m.d.sync += [total.eq(result), step.eq(step + 1)]
                with m.If(step == self.lanes - 1):
                    m.next = "base"
            with m.State("base"):
                m.d.sync += [route.channel.eq(total), total.eq(shape.base), left.eq(channels), step.eq(0)]
                m.next = "lanes"
            with m.State("lanes"):
                with m.If(~second):  # so that lanes have it from registers, and the origin still stands
                    m.d.sync += self.launch.eq(Cat((step == k) & (left != 0) & ~self.error for k in range(self.lanes)))
                with added():
                    m.d.sync += [total.eq(result), left.eq(left - (left != 0)), step.eq(step + 1)]
                    with m.If(step == self.lanes - 1):
                        m.next = "done"
            with m.State("done"):
                m.d.comb += self.done.eq(1)
                m.next = "idle"
        return m
