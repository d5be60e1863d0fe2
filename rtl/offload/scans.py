"""How the scan of a tensor is part of a lane, and of an accelerator."""

from amaranth.hdl import Cat, Mux, ResetInserter, Signal
from amaranth.lib import data, wiring

from actcodec.rtl.common.stream_mux import StreamMux
from actcodec.rtl.offload.control import totals
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.rtl.offload.scan.plan import ScanPlan
from actcodec.rtl.offload.scan.reciprocal import Reciprocal
from actcodec.rtl.offload.scan.scan import Scan

__all__ = ["LaneScan", "TensorScan", "statistics_layout"]

# Of a lane: what Statistics has of the channels that passed, and of the last sector.
statistics_layout = data.StructLayout({"minimum": 32, "maximum": 32, "zeros": range(9), "nans": range(9)})


class LaneScan:
    """Adds to the module ``m`` of a ``lane`` its share of a scan, which has reader and writer while ``scanning``.

    It is no component, as it shares the lane's reader and writer with the CDU and its walks.

    Attributes
    ----------
    scanning : Signal
        The tensor is scanned: from the cycle after ``lane.scan_start`` to that of ``lane.start``.
    sinks : dict of streams of places
        Those of reader and writer, for the address generators: "ahead", "now", "behind".
    """

    def __init__(self, m, lane, reader, writer):
        self._m, self._lane = m, lane
        m.submodules.scan = self._scan = scan = Scan(lane.address_width, bool(lane.halves))
        self.scanning = Signal(name="scanning")
        with m.If(lane.start | lane.scan_start):
            m.d.sync += self.scanning.eq(lane.scan_start)
        m.d.comb += [scan.start.eq(lane.scan_start), scan.origin.eq(lane.scan_origin), scan.route.eq(lane.scan_route),
                     scan.scales.eq(lane.scales), scan.lane.eq(lane.number),
                     *(lane.statistics[name].eq(getattr(scan, name)) for name in statistics_layout.members)]
        mux = StreamMux(m)
        self.sinks = {}
        for name, source, sink in (("ahead", scan.ahead, reader.ahead), ("now", scan.now, reader.now),
                                   ("behind", scan.places, writer.places)):
            self.sinks[name] = walk = sink.signature.create(path=[f"walk_{name}"])
            for when, one in ((~self.scanning, walk), (self.scanning, source)):
                mux.link(when, one, sink, **{field: one.p[field] for field in sink.p.shape().members})
        mux.finish()

    def read(self, sectors, cdu):
        """The sectors of the reader go to the CDU's stream, or to the scan."""
        m, scanning, scan = self._m, self.scanning, self._scan
        m.d.comb += [cdu.p.eq(sectors.p.data), scan.sectors.p.eq(sectors.p),
                     cdu.valid.eq(sectors.valid & ~scanning), scan.sectors.valid.eq(sectors.valid & scanning),
                     sectors.ready.eq(Mux(scanning, scan.sectors.ready, cdu.ready))]

    def write(self, cdu, sectors):
        """The sectors of the CDU's stream, or scales, go to the writer. Of these only the first word counts. A CDU has
        nothing to give while a tensor is scanned, so its readiness, the end of a long path, need not ask."""
        m, scanning, words = self._m, self.scanning, self._scan.words
        m.d.comb += [sectors.p.eq(cdu.p), sectors.p[0].eq(Mux(scanning, words.p[0], cdu.p[0])),
                     sectors.valid.eq(Mux(scanning, words.valid, cdu.valid)),
                     words.ready.eq(sectors.ready & scanning), cdu.ready.eq(sectors.ready)]

    def scale(self, scale):
        """The words of the table for the CDU: of k, r to decompress with."""
        m, lane = self._m, self._lane
        m.submodules.reciprocal = reciprocal = Reciprocal()
        wiring.connect(m, scale, reciprocal.i)
        m.d.sync += reciprocal.plain.eq(~(lane.reciprocal & lane.tensor.decompress))
        return reciprocal.o


class TensorScan:
    """Adds to the module ``m`` of an ``accelerator`` the plan of a scan and what its lanes have in common.

    It is no component, as its states are among those of the accelerator's control. ``tensor`` is the plan of the
    tensor, ``start`` the host's, ``clear`` and ``abort`` are the accelerator's.

    Attributes
    ----------
    wanted : Signal
        The tensor is to be scanned.
    """

    def __init__(self, m, accelerator, control, tensor, start, clear, abort):
        self._m, self._control, self._abort = m, control, abort
        self.wanted = Signal(name="scan_wanted")
        m.d.comb += self.wanted.eq(control.scan & ~control.decompress)
        m.submodules.scan_plan = self.plan = plan = ResetInserter(clear)(
            ScanPlan(accelerator.address_width, accelerator.cdus, bool(accelerator.halves)))
        members = plan.shape.shape().members
        m.d.comb += [plan.shape[name].eq((tensor.geometry if name in ("tiles", "tail", "half") else control)[name])
                     for name in members]
        self._used = Signal(accelerator.cdus, name="scan_used")  # has a channel of this tensor
        m.d.sync += self._used.eq(Mux(start | clear, 0, self._used | plan.launch))
        self._lanes = []

    def add(self, lane):
        """Connects the next lane."""
        number, plan, control = len(self._lanes), self.plan, self._control
        self._lanes.append(lane)
        self._m.d.comb += [lane.scan_start.eq(plan.launch[number] & ~self._abort), lane.scan_origin.eq(plan.origin),
                           lane.scan_route.eq(plan.route), lane.number.eq(number),
                           lane.reciprocal.eq(control.reciprocal)]

    def add_states(self, c, works, busy, error):
        """The states of the control from the one that plans the scan on; they end in "launch" or in "settle"."""
        with c.State("plan scan"):
            c.d.comb += works.eq(1)
            with c.If(self.plan.done):
                c.next = "scan"
                with c.If(self.plan.error):
                    c.d.sync += error.eq(ErrorCode.DESCRIPTOR)
                    c.next = "settle"
        with c.State("scan"):  # which busy tells of from here on
            c.d.comb += works.eq(1)
            with c.If(~busy):
                c.next = "launch"
                with c.If(self._control.scan_only):
                    c.next = "settle"
                for side, code in (("write", ErrorCode.WRITE), ("read", ErrorCode.READ)):
                    with c.If(Cat(self._used[k] & lane.fault[side] for k, lane in enumerate(self._lanes)).any()):
                        c.d.sync += error.eq(code)
                        c.next = "settle"

    @property
    def amounts(self):
        """What the lanes count in a cycle, by names that no register has but "zeros"."""
        return {name: sum(lane.statistics[statistic] for lane in self._lanes)
                for name, statistic in (("zeros", "zeros"), ("scan_nans", "nans"))}

    def report(self, status, counts, nans):
        """Drives what ``status`` has of a scan, from the sums of the :attr:`amounts`; ``nans`` are those that the
        codecs have counted."""
        self._m.d.comb += status.nans.eq(Mux(self._used[0], counts["scan_nans"], nans))
        totals.extremes(self._m, status, self._lanes, self._used)
