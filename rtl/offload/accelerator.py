"""The offload accelerator: several CDUs between memory and a DMA engine, under the control of a host."""

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from actcodec.rtl.common import axi, axil
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.offload.control import totals
from actcodec.rtl.offload.control.config import check_payload, config_layout, of_streams, with_halves
from actcodec.rtl.offload.control.limits import FORMATS
from actcodec.rtl.offload.control.register_map import ADDRESS_BITS, ErrorCode
from actcodec.rtl.offload.control.registers import Registers
from actcodec.rtl.offload.ends import Ends, end_ports
from actcodec.rtl.offload.kind import Kind
from actcodec.rtl.offload.lanes import Lanes
from actcodec.rtl.offload.memory.formats import codes_of, halves_of
from actcodec.rtl.offload.memory.reader import check_outstanding
from actcodec.rtl.offload.memory.tensor_plan import TensorPlan
from actcodec.rtl.offload.queue.plan_ahead import PlanAhead
from actcodec.rtl.offload.queues import TensorQueue
from actcodec.rtl.offload.scans import TensorScan
from actcodec.rtl.offload.wire.packets import collector as make_collector
from actcodec.rtl.offload.wire.packets import splitter as make_splitter
from actcodec.rtl.offload.wire.round_robin import PACKET, check_cdus

__all__ = ["Accelerator"]

SETTLE = 16  # cycles until all counters have added up


class Accelerator(wiring.Component):
    """JPEG-ACT's offload accelerator.

    Compressing, ``cdus`` lanes read a tensor from memory, each with its own port, and the collector sends what they
    make of it as one stream of packets; decompressing, the splitter takes that stream and the lanes write::

        memory <-> lane 0 (address generator, CDU) <-> collector -> m_axis
               <-> lane 1                          <-> splitter  <- s_axis
        host   <-> registers -> plan

    A host describes a tensor in the registers (docs/registers.md) and starts it. The plan turns the description into
    what each lane needs; the lanes run; the interrupt tells the end. Whatever goes wrong ends in an error code there,
    never in a hang: a stream that is short is completed with zeros, one that is too long is drained, a tensor with a
    memory error runs to its end. Nothing outside the tensor is ever written.

    Values in memory may have 16 bits, which lanes widen to float32 and round back; in the modes that move words, these
    are then of 16 bits. A sector still has 8 values, and so 16 bytes. Or they are int8, codes that SFPR units at the
    cache have made: a sector has 8 bytes, SFPR is passed by, and no scales are read; in modes that do not begin with
    SFPR, in those of DIVISION, whose offsets come with the scales, and in a scan, that is an error.

    The payload may also be in memory, behind a port of its own that takes the place of the stream, for all tensors or
    for those of which the host says so. One that does not fit its space ends in an error, with its length.

    The stream has a frame for each tensor, with ``tlast`` on its last beat. All beats have 128 bytes but the last one,
    whose ``tkeep`` shows its true length; bytes beyond are zero. At ``s_axis`` anything else is an error, as is a null
    beat before the last.

    A soft reset waits for memory: what was asked for is taken, bursts that were offered are completed without strobes.
    A frame that has begun at ``m_axis`` is ended by a null beat with ``tlast``; what is still to come of one that has
    begun at ``s_axis`` is dropped, also when the next tensor has been started. One that only waits is the next one's.

    Throughput: a sector a cycle in each lane, 8 cycles a block, as long as memory and the stream keep up; scales are
    read over the same ports. Latency: some 100 cycles from the start to the first read (170 with
    4 CDUs, 300 with 8), then memory's, then the CDU's; 20 from the last transfer to the interrupt.
    Buffering: that of its parts. Combinational paths: none from port to port but inside ``s_axis``, from ``tvalid`` and
    ``tlast`` to ``tready``; with more than 4 CDUs, or rows of more than 8 bytes, from ``tdata`` and ``tkeep``, too.

    Source: JPEG-ACT, section III-A, Figures 7, 8, 12 and 15.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.
    modes : tuple
        Those of the CDUs (see :func:`~actcodec.rtl.offload.control.config.check_modes`).
    codec : callable
        Makes a CDU, as a :class:`~actcodec.rtl.offload.lane.Lane` wants it.
    address_width : int
        Bits of a byte address, 32 to 64.
    outstanding : int
        Outstanding read beats of 32 bytes per lane, at least 8, and outstanding bursts of writes: full rate needs 16
        more than the cycles of memory's latency.
    memory : {"shared", "independent"}
        "shared": ports may lead to one slave or to several, in any way; each lane has a FIFO for all it has asked for,
        and stores a burst before it offers it. "independent": every port must have a slave of its own, or one that
        never lets a lane's data wait for another lane's (docs/integration.md); no FIFO, no store.
    formats : tuple of {"float32", "bfloat16", "float16", "int8"}
        What a value in memory can be; float32 always.
    payload : {"stream", "memory", "both"}
        Where payloads pass. "stream": the streams. "memory": a memory port of their own. "both": either, as a bit of
        MODE says.
    scan : bool
        Tensors can be scanned, for scales and statistics, and a table of k serves both directions.
    queue : int
        Descriptors that a ring in memory can have, a power of two, 2 to 32768, whose tensors are run one after the
        other; 0: there is no queue.
    **options
        Other parameters of ``codec``.

    Ports
    -----
    s_axil_* : AXI4-Lite slave
    m_axi_0_*, m_axi_1_*, ... : AXI4 masters of 256 bits, one for each lane
    m_axi_payload_* : AXI4 master of 256 bits, only with payloads in memory
    m_axi_queue_* : AXI4 master of 256 bits, only with a queue
    m_axis_*, s_axis_* : AXI4-Stream of 1024 bits, only with payloads in streams
    interrupt : output

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, cdus, modes, codec, address_width=40, outstanding=384, memory="shared", formats=("float32",),
                 payload="stream", scan=False, queue=0, **options):
        check_cdus(cdus)
        check_outstanding(outstanding)
        axi.check_memory(memory)
        check_payload(payload)
        self._registers = Registers(cdus, modes, address_width, formats, payload, scan, queue)
        self.cdus, self.address_width, self.outstanding = cdus, address_width, outstanding
        self.codec, self.memory, self.formats, self.options = codec, memory, tuple(formats), options
        self.halves, self.codes = halves_of(formats), codes_of(formats)
        self.host_modes = tuple(modes)  # those that the host selects from
        self.modes = with_halves(modes) if self.halves else self.host_modes
        self.payload, self.scan, self.queue = payload, bool(scan), queue
        memory = {}
        for lane in range(cdus):
            memory |= axi.ports(f"m_axi_{lane}_", address_width)
        super().__init__({
            **axil.ports("s_axil_", ADDRESS_BITS),
            **memory,
            **end_ports(payload, address_width),
            **(axi.ports("m_axi_queue_", address_width) if queue else {}),
            "interrupt": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.registers = registers = self._registers
        control, status = registers.control, registers.status
        clear = Signal()  # everything but the registers is to be as after reset
        segmented = any(mode.format.segmented for mode in self.modes)
        streams = bool(of_streams(self.modes))
        m.submodules.plan = plan = ResetInserter(clear)(
            (PlanAhead if self.queue else TensorPlan)(
                self.cdus, self.address_width, segmented, bool(self.halves), bool(self.codes)))
        m.submodules.collector = collector = ResetInserter(clear)(make_collector(self.cdus, self.modes))
        splitter = ResetInserter(clear)(make_splitter(self.cdus, self.modes))
        axil.connect(m, self, "s_axil_", registers)
        m.d.comb += self.interrupt.eq(registers.interrupt)
        ends = Ends(m, self, control, clear, collector.o, splitter, platform)
        leaves, comes, accept = ends.leaves, ends.comes, ends.accept

        # Codes are the host's; inside, a mode has its place among those that were built in.
        kind = Kind(self, control)
        mode = Signal(config_layout(self.modes)["mode"].shape)
        m.d.comb += mode.eq(choose((here, place) for place, here in enumerate(kind.modes)))
        launch, abort, unknown, scaled = Signal(), Signal(), Signal(), Signal()
        m.d.sync += [unknown.eq(~Cat(kind.modes).any()), scaled.eq(kind.scaled)]
        idle, works, ended = Signal(), Signal(), Signal()  # what the control is at
        queue = TensorQueue(m, self, registers, plan, clear, abort, works) if self.queue else None
        start = queue.start if queue else registers.start
        scan = TensorScan(m, self, control, plan, start, clear, abort) if self.scan else None
        decompress = Signal()  # a copy, as that of the registers goes to every lane
        planned = Kind(self, queue.ahead) if queue else kind  # of the tensor to be planned
        tables = planned.scaled if queue else scaled
        if scan:
            tables |= queue.scanned if queue else scan.wanted
        m.d.comb += [plan.descriptor[name].eq((queue.ahead if queue else control)[name])
                     for name in ("base", "rows", "width", "stride", "height", "channels", "scales")]
        m.d.comb += [
            plan.descriptor.tiled.eq(planned.any(lambda mode: mode.tiled)),
            plan.descriptor.scaled.eq(tables),
            collector.blocks.eq(plan.blocks),
            collector.start.eq(launch & ~decompress),
            splitter.blocks.eq(plan.blocks),
            splitter.start.eq(launch & decompress),
            *ends.driven(launch, decompress, abort),
        ]
        if segmented:
            m.d.comb += plan.descriptor.whole.eq(planned.any(lambda mode: mode.format.whole))
        if self.halves:
            m.d.comb += plan.descriptor.half.eq(planned.half)
        if self.codes:
            m.d.comb += plan.descriptor.byte.eq(planned.byte)
        m.d.sync += [decompress.eq(control.decompress), splitter.mode.eq(mode)]
        if streams:
            streamed = Signal()
            m.d.sync += streamed.eq(kind.any(lambda mode: mode.format.endless))
            m.d.comb += [collector.streamed.eq(streamed), splitter.streamed.eq(streamed)]
        if hasattr(splitter, "void"):
            m.d.comb += [splitter.sectors.eq(plan.geometry.tiles), splitter.stride.eq(plan.geometry.group.tile),
                         splitter.load.eq(plan.load), splitter.origin.eq(plan.origin.tile),
                         splitter.void.eq(plan.void), splitter.ending.eq(plan.ending)]

        # ------------------------------------------------------------------------------------------------- the lanes
        lane_mode = mode
        if queue:  # what lanes have counted may depend on it
            lane_mode = Signal.like(mode)
            with m.If(~queue.settles):
                m.d.sync += lane_mode.eq(mode)
        group = Lanes(m, platform, self, registers, plan, collector, splitter, lane_mode, launch, abort, clear, scan)
        lanes, used = group.lanes, group.used
        blocks = group.each(lambda lane: lane.malformed) if hasattr(lanes[0], "malformed") else []
        busy = Signal()
        m.d.sync += busy.eq(Cat([lane.busy for lane in lanes] + ends.busy).any())
        short, excess = splitter.short, splitter.excess
        if streams:
            m.d.comb += [collector.used.eq(used), splitter.used.eq(used)]
            short |= streamed & Cat(group.each(lambda lane: lane.cut)).any()
            excess |= streamed & Cat(group.each(lambda lane: lane.excess)).any()

        # All lanes have the same settings.
        impossible = plan.error | lanes[0].refused if hasattr(lanes[0], "refused") else plan.error
        for refused in [*ends.refused, *([queue.beyond] if queue else [])]:
            impossible |= refused
        if self.codes:
            passable = Signal()  # by, which SFPR is then
            m.d.sync += passable.eq(kind.any(lambda mode: mode.codes) & (~scan.wanted if scan else 1))
            impossible |= kind.byte & ~passable

        def failed(side):
            return Cat(group.each(lambda lane: lane.fault[side]) + ends.failed(side, decompress)).any()

        # ----------------------------------------------------------------------------------------------- the control
        # A cycle later than it is true, for speed: busy tells of lanes that started as late as abort rose.
        aborted = Signal()
        quiet = ends.quiet & queue.quiet if queue else ends.quiet
        m.d.sync += [aborted.eq(abort & ~clear), clear.eq(abort & aborted & ~busy & quiet & ~clear)]
        with m.If(registers.reset):
            m.d.sync += abort.eq(1)
        with m.Elif(clear):
            m.d.sync += abort.eq(0)

        c = Module()
        m.submodules.sequence = ResetInserter(clear)(c)
        sent, malformed = Signal(), Signal()
        settling = Signal(range(SETTLE))
        launched = Signal()  # what the lanes count is this tensor's
        receives = Signal()  # a tensor is being decompressed; a register, as all of the splitter depends on it
        transfer = Signal()  # to the sender
        offered, ready, size = Signal(), Signal(), Signal(range(PACKET + 1))  # to the splitter, in the cycle before
        c.d.comb += [
            transfer.eq(leaves.valid & leaves.ready),
            accept.eq(receives & ~abort),
            status.busy.eq(~idle | abort | queue.busy if queue else ~idle | abort),
            *([] if queue else [registers.done.eq(ended & ~abort)]),
        ]
        m.d.sync += [offered.eq(comes.valid), ready.eq(comes.ready), size.eq(comes.p.count)]
        with c.If(transfer & leaves.p.last):
            c.d.sync += sent.eq(1)
        for beat in ends.malformed:
            with c.If(beat):
                c.d.sync += malformed.eq(1)

        def begin():
            """The next tensor, from a state in which none is under way."""
            c.d.comb += queue.begins.eq(1) if queue else plan.start.eq(1)
            c.d.sync += [status.error.eq(ErrorCode.NONE), launched.eq(0)]
            if segmented:
                c.d.sync += status.clipped.eq(0)
            c.next = "plan"

        with c.FSM():
            with c.State("idle"):
                c.d.comb += idle.eq(1)
                c.d.sync += [sent.eq(0), malformed.eq(0)]
                with c.If(queue.starts if queue else registers.start):
                    begin()
            with c.State("plan"):
                c.d.comb += works.eq(1)
                with c.If(queue.planned if queue else plan.done):
                    c.next = "settle"
                    with c.If(unknown):
                        c.d.sync += status.error.eq(ErrorCode.MODE)
                    if self.halves or self.codes:
                        with c.Elif(~Cat(control.format == FORMATS.index(name) for name in self.formats).any()):
                            c.d.sync += status.error.eq(ErrorCode.FORMAT)
                    with c.Elif(impossible):
                        c.d.sync += status.error.eq(ErrorCode.DESCRIPTOR)
                    if scan:
                        with c.Elif(scan.wanted):
                            c.d.comb += scan.plan.start.eq(1)
                            c.next = "plan scan"
                    with c.Else():
                        c.next = "launch"
            if scan:
                scan.add_states(c, works, busy, status.error)
            with c.State("launch"):
                c.d.comb += [works.eq(1), launch.eq(~abort)]
                c.d.sync += receives.eq(control.decompress)
                c.next = "run"
            with c.State("run"):
                c.d.comb += works.eq(1)
                with c.If(busy):  # by now the lanes have cleared their counters
                    c.d.sync += launched.eq(1)
                with c.If(~busy & Mux(control.decompress, ~splitter.busy, sent)):
                    c.d.sync += receives.eq(0)
                    c.next = "settle"
                    if segmented:
                        c.d.sync += status.clipped.eq(Cat(group.each(lambda lane: lane.clipped)).any())
                    for happened, code in (  # the last one is the cause of the others
                            *ends.errors(decompress),
                            *((control.decompress & block, ErrorCode.BLOCK) for block in blocks),
                            (control.decompress & excess, ErrorCode.EXCESS),
                            (control.decompress & short, ErrorCode.SHORT),
                            *((malformed | beat, ErrorCode.BEAT) for beat in ends.malformed),
                            (failed("write"), ErrorCode.WRITE), (failed("read"), ErrorCode.READ)):
                        with c.If(happened):
                            c.d.sync += status.error.eq(code)
            if queue:
                queue.add_states(c, abort, begin, (sent, malformed))
            else:
                with c.State("settle"):
                    c.d.sync += settling.eq(settling + 1)
                    with c.If(settling == SETTLE - 1):
                        c.next = "end"
                with c.State("end"):
                    c.d.comb += ended.eq(1)
                    c.next = "idle"

        # ---------------------------------------------------------------------------------------------- the counters
        words = Signal(range(8 * self.cdus + 1))
        counted = words << 2 if not self.halves else Mux(kind.half, words << 1, words << 2)
        m.d.sync += words.eq(sum(lane.words for lane in lanes))
        counts = totals.count(m, registers, {
            "cycles": works,
            "tensor": Mux(kind.byte, words, counted) if self.codes else counted,
            "stream": Mux(transfer, leaves.p.count, 0) | Mux(offered & ready, size, 0),
            "stall_read": Cat(lane.waits.read for lane in lanes).any(),
            "stall_write": Cat(lane.waits.write for lane in lanes).any(),
            "stall_stream": (leaves.valid & ~transfer) | (accept & splitter.wants & ~comes.valid),
            **(scan.amounts if scan else {}),
        }, start)
        sums = {name: Signal(35, name=f"all_{name}") if scan and name == "nans" else getattr(status, name)
                for name in ("nans", "saturated")}
        there = used
        if queue:  # the plan of the next tensor may stand before all of this one is counted
            there = Signal(self.cdus)
            with m.If(launch):
                m.d.sync += there.eq(used)
        stand = (queue.holds, queue.at_once) if queue else ()
        if streams and not queue:  # what a lane shows of them is for the mode in the registers, which may be the next
            holds = Signal(name="sums_stand")
            m.d.sync += holds.eq((holds | ended) & ~start)
            stand = holds, -(-self.cdus // 2)  # SETTLE is long enough for turns of two steps
        totals.add_up(m, sums, lanes, there, launched, *stand)
        if scan:
            scan.report(status, counts, sums["nans"])
        if streams:
            totals.bins(m, registers, lanes, there, launched)
        if queue:
            queue.report(streamed if streams else None, launched)
        return m
