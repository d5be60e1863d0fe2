"""Where each CDU's first group begins, and how far it is to the next one. Its bench is that of the plan."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.adders import digitwise
from actcodec.rtl.offload.memory.geometry import FAR, SIZE, TILES, distance_layout

__all__ = ["FirstGroups"]


class FirstGroups(wiring.Component):
    """Walks the sectors of the CDUs' first groups, row by row, and so comes by where these begin, and by the distance
    from a CDU's group to its next one, which is the same everywhere.

    Throughput: one tensor at a time. Latency: 33 cycles for each CDU; where groups go on in the next row of tiles, 9
    and 5 for each CDU and 8 for each row of tiles that ends in them. Combinational paths: none.

    Source: JPEG-ACT, section III-C; section III-G for the order of groups.

    Parameters
    ----------
    cdus : int
        1 to 8.
    address_width : int
        Bits of a byte address, 32 to 64.

    Ports
    -----
    raster, top, stride, height : input
        As in :func:`~actcodec.rtl.offload.memory.geometry.geometry_layout`. These and the next one stand while not
        ``idle``.
    last_tile : input
        Sectors of a row, less one.
    start : input
        Pulse, while ``idle``.
    idle : output
        ``group`` and ``unit`` mean something, until the next start.
    group, unit : output
        As in the tensor's geometry.
    origin, load : output
        As those of :class:`~actcodec.rtl.offload.memory.tensor_plan.TensorPlan`.
    """

    def __init__(self, cdus, address_width):
        self.cdus, self.address_width = cdus, address_width
        distance = distance_layout(address_width)
        super().__init__({
            "raster": In(1), "top": In(SIZE), "stride": In(32), "height": In(SIZE), "last_tile": In(TILES),
            "start": In(1), "idle": Out(1), "group": Out(distance), "unit": Out(distance), "origin": Out(distance),
            "load": Out(cdus)})

    def elaborate(self, platform):
        m = Module()
        walker, turn = Signal(distance_layout(self.address_width)), Signal(range(self.cdus + 1))
        sector, row = Signal(5), Signal(3)
        row_ends, next_row, channel_ends = Signal(), Signal(), Signal()
        last_height, high = Signal(FAR), Signal()  # high: more than what is walked
        follows = Signal()
        # The carry of a line goes no further than half of it in a cycle: its upper half follows, as ``load`` does.
        half = -(-self.address_width // 2)
        line = digitwise(m, walker.line, self.stride, half)
        height, channel = (Signal(4, name=f"unit_{name}") for name in ("height", "channel"))  # of a row of tiles
        m.d.comb += [
            self.origin.eq(walker), self.group.eq(walker),
            row_ends.eq(walker.tile == self.last_tile),
            channel_ends.eq((walker.height == last_height) & ~high),
        ]
        m.d.sync += [follows.eq(next_row), last_height.eq(self.height[:FAR] - 1),
                     high.eq(self.height[FAR:].any())]
        with m.If(follows):
            m.d.sync += walker.line[half:].eq(line[half:])
        with m.If(next_row):
            m.d.sync += [walker.left.eq(walker.left - 1), walker.line[:half].eq(line[:half]),
                         walker.height.eq(Mux(channel_ends, 0, walker.height + 1))]
            with m.If(channel_ends):
                m.d.sync += walker.channel.eq(Mux(walker.channel == self.top, 0, walker.channel + 1))
        one = self.height == 1
        m.d.comb += self.unit.left.eq(Mux(self.raster, -1, -8))
        with m.If(self.raster):
            m.d.sync += [self.unit.height.eq(~one),
                         self.unit.channel.eq(one & (self.top != 0)), self.unit.line.eq(self.stride)]
        with m.Else():
            m.d.sync += [self.unit.height.eq(height),
                         self.unit.channel.eq(channel), self.unit.line.eq(self.stride << 3)]

        m.d.sync += self.load.eq(0)
        with m.FSM(name="walk"):
            with m.State("idle"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += [sector.eq(0), row.eq(0), turn.eq(0)]
                with m.If(self.start):
                    m.d.sync += walker.eq(0)
                    m.next = "group"
                    with m.If(~self.raster):
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
                m.d.comb += next_row.eq(row_ends & self.raster)
                with m.If(row_ends & ~self.raster):
                    m.next = "rows"
                with m.Elif(Mux(self.raster, sector.all(), sector[:2].all())):
                    m.next = "group"
            with m.State("rows"):
                m.d.comb += next_row.eq(1)
                m.d.sync += row.eq(row + 1)
                with m.If(row == 7):
                    m.next = "sector"
                    with m.If(sector[:2] == 0):
                        m.next = "group"
        return m
