"""A scan without the rest of the accelerator: its plan, and lanes that are readers and writers and no more."""

from amaranth.hdl import Cat, ClockDomain, ClockSignal, DomainRenamer, Module, ResetSignal, Shape, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.offload.memory.reader import Reader
from actcodec.rtl.offload.memory.writer import Writer
from actcodec.rtl.offload.scan.plan import ScanPlan, shape_layout
from actcodec.rtl.offload.scan.scan import Scan


class Scanner(wiring.Component):
    """``start`` begins a tensor; ``busy`` falls when it has ended. ``abort`` gives it up and is held until then;
    ``clear`` follows. Statistics are those of lanes, in turn; counts add up."""

    def __init__(self, lanes, address_width=40, outstanding=64, memory="shared"):
        self.lanes, self.address_width, self.outstanding, self.memory = lanes, address_width, outstanding, memory
        ports = {}
        for k in range(lanes):
            ports |= axi.ports(f"m_axi_{k}_", address_width)
        super().__init__({
            "start": In(1), "abort": In(1), "clear": In(1),
            **{f"shape_{name}": In(Shape.cast(shape)) for name, shape in shape_layout(address_width).members.items()},
            "scales": In(address_width), "busy": Out(1), "planned": Out(1), "error": Out(1), "fault": Out(2),
            "minimum": Out(32 * lanes), "maximum": Out(32 * lanes), "zeros": Out(32), "nans": Out(32), **ports})

    def elaborate(self, platform):
        m = Module()
        # A reset that netlists in the place of units have, too.
        m.domains.cleared = cleared = ClockDomain(local=True)
        m.d.comb += [cleared.clk.eq(ClockSignal()), cleared.rst.eq(ResetSignal() | self.clear)]
        inside = DomainRenamer("cleared")
        m.submodules.plan = plan = inside(ScanPlan(self.address_width, self.lanes))
        begun, used = Signal(), Signal(self.lanes)
        m.d.comb += [plan.shape[name].eq(getattr(self, f"shape_{name}")) for name in plan.shape.shape().members]
        m.d.comb += [plan.start.eq(self.start), self.planned.eq(plan.done), self.error.eq(plan.error)]
        zeros, nans, busy, faults = [], [], [], []
        for k in range(self.lanes):
            m.submodules[f"scan_{k}"] = scan = inside(Scan(self.address_width))
            memory = self.address_width, self.outstanding, self.memory
            m.submodules[f"reader_{k}"] = reader = Reader(*memory, counts=True)
            m.submodules[f"writer_{k}"] = writer = Writer(*memory)
            axi.connect(m, self, f"m_axi_{k}_", reader.axi, writer.axi)
            m.d.comb += used[k].eq(self.shape_channels > k)
            m.d.comb += [scan.origin.eq(plan.origin), scan.route.eq(plan.route),
                         scan.scales.eq(self.scales), scan.lane.eq(k), reader.gather.eq(1),
                         reader.abort.eq(self.abort), writer.abort.eq(self.abort),
                         *(unit.start.eq(plan.launch[k] & ~self.abort) for unit in (scan, reader, writer))]
            wiring.connect(m, scan.ahead, reader.ahead)
            wiring.connect(m, scan.now, reader.now)
            wiring.connect(m, reader.sectors, scan.sectors)
            wiring.connect(m, scan.places, writer.places)
            wiring.connect(m, scan.words, writer.sectors)
            m.d.comb += [self.minimum.word_select(k, 32).eq(scan.minimum),
                         self.maximum.word_select(k, 32).eq(scan.maximum)]
            zeros.append(scan.zeros)
            nans.append(scan.nans)
            busy += [reader.busy, writer.busy]
            faults += [Cat(reader.error, writer.error) & used[k].replicate(2)]
        with m.If(self.start | self.clear):
            m.d.sync += [self.zeros.eq(0), self.nans.eq(0), begun.eq(self.start)]
        with m.Else():
            m.d.sync += [self.zeros.eq(self.zeros + sum(zeros)), self.nans.eq(self.nans + sum(nans))]
        with m.If(plan.done | self.abort):
            m.d.sync += begun.eq(0)
        m.d.comb += [self.busy.eq(begun | Cat(busy).any()),
                     self.fault.eq(Cat(Cat(fault[side] for fault in faults).any() for side in range(2)))]
        return m

