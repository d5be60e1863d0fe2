"""The queue: which descriptor of a ring is next, and what becomes of it."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.adders import halves
from actcodec.rtl.offload.control.registers import SIZES, line_layout
from actcodec.rtl.offload.queue.fetch import LINES, Fetch
from actcodec.rtl.offload.queue.report import WORDS, Report

__all__ = ["Queue"]

REST = 32  # cycles from a soft reset until all counters have come to rest


class Queue(wiring.Component):
    """Runs the descriptors of a ring in memory, from number ``tail`` to ``head``, one after the other.

    While a tensor is at work, the next descriptor is read and planned; once the tensor has ended, it is loaded into the
    registers, and what became of the tensor is written into its own descriptor. ``tail`` counts when memory has
    answered that. Of three descriptors, one is read or planned, one at work, one reported, at most.

    The ring stops after a soft reset, after an error if it is to, and when memory fails it: what has been read ahead
    is dropped, and comes again when it goes on. A tensor that is given up is reported, once all is at rest.

    Nothing of it waits for anything but memory and the accelerator: lines that were asked for are always taken, and a
    report stands whole when it is offered.

    Throughput: a descriptor in about 20 cycles, and memory's latency twice. Latency: 3 cycles from ``doorbell`` to the
    address of a descriptor, memory's, that of the last of ``lines`` and 2 from there to ``check``; from ``take`` to
    ``ready`` ``wait``. Buffering: ``lines``. Combinational paths: those of its parts, and ``free`` to ``take``.

    Source: this project's.

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 32 to 64.
    size : int
        Descriptors that a ring can have at most, a power of two, 2 to 32768.
    lines : tuple of int
        Which lines of 32 bytes of a descriptor count, 0 to 15, ascending.
    wait : int
        Cycles from ``take`` to ``ready``, more than there are ``lines``.

    Ports
    -----
    reads, writes : :class:`~actcodec.rtl.common.axi.Read`, :class:`~actcodec.rtl.common.axi.Write`
    ring : input
        Address of the ring; the low nine bits do not count. This and the next one stand while ``busy``.
    ring_size : input
        A power of two; 0 for no ring.
    head : input
        The number of the first descriptor that is not ready, modulo twice ``size``.
    doorbell : input
        Pulse: the ring goes on.
    stop_on_error : input
    tail : output
        The number of the first descriptor that is not reported.
    stopped, ring_failed : output
        Nothing begins until ``doorbell``; memory has answered with an error since the last one.
    busy : output
        Something is to be done, or under way.
    hosted : input
        There is a tensor that is none of the ring's. None is planned then.
    line : output, :data:`~actcodec.rtl.offload.control.registers.line_layout`
        A line of the next descriptor, as it comes.
    check, checked : output, input
        Pulses: all lines have come, so it can be planned; it is, ``done`` of a plan.
    free : input
        Registers and plan are not needed any more by the tensor before.
    take : output
        Pulse: the plan goes on to the next one, and its lines follow.
    load : output, :data:`~actcodec.rtl.offload.control.registers.line_layout`
        A line of the descriptor, for the registers.
    ready : output
        All of it is there.
    begin, notify : input
        Pulse, while ``ready``: the tensor starts; and with it, whether its end is to be an ``event``.
    end : input
        Pulse, while not ``reporting``: it has ended; its report stands from the cycle after until ``leaves``.
    words : input
        The report.
    fault : input
        With ``end``: the tensor has ended with an error.
    reporting, leaves : output
        A report is under way; in this cycle its last beat has left.
    given_up : output
        The next report is of a tensor that was given up.
    event, wrong : output
        Pulse: a tensor is reported that wants it, has an error or, but for ``abort``, was at work when the ring
        stopped; or memory has failed. An error is among these. A tensor that was given up has none.
    abort : input
        A soft reset: the ring stops. Held until ``quiet``, and then ``clear``.
    clear : input
        Pulse: all is at rest. If there was a tensor, it is reported from now on.
    quiet : output
        Memory owes nothing.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, size=256, lines=tuple(range(LINES)), wait=LINES + 4):
        if type(size) is not int or size not in SIZES[1:]:
            raise ValueError(f"size must be a power of two, 2 to 32768, not {size!r}")
        self._fetch, self._report = Fetch(address_width, lines), Report(address_width)
        if not isinstance(wait, int) or not len(lines) < wait < 64:
            raise ValueError(f"wait must be more than {len(lines)} cycles and less than 64, not {wait!r}")
        self.address_width, self.size, self.lines, self.wait = address_width, size, lines, wait
        number = size.bit_length()
        ports = {"ring": address_width, "ring_size": number, "head": number, "doorbell": 1, "stop_on_error": 1,
                 "hosted": 1, "checked": 1, "free": 1, "begin": 1, "end": 1, "words": WORDS, "notify": 1, "fault": 1,
                 "abort": 1, "clear": 1}
        super().__init__({
            "reads": Out(axi.Read(address_width)), "writes": Out(axi.Write(address_width)),
            **{name: In(width) for name, width in ports.items()},
            "tail": Out(number), "line": Out(line_layout), "load": Out(line_layout),
            **{name: Out(1) for name in ("stopped", "ring_failed", "busy", "check", "take", "ready", "reporting",
                                         "leaves", "given_up", "event", "wrong", "quiet")}})

    def elaborate(self, platform):
        m = Module()
        m.submodules.fetch, m.submodules.report = fetch, report = self._fetch, self._report
        wiring.connect(m, fetch.reads, wiring.flipped(self.reads))
        wiring.connect(m, report.writes, wiring.flipped(self.writes))
        going, present = Signal(), Signal()  # descriptors begin; a tensor of the ring is at work, or yet to be reported
        number = Signal.like(self.tail)  # of the next descriptor to read
        mine = Signal.like(report.index, reset_less=True)  # the descriptor of the tensor at work
        notify_current, notify, fault = Signal(), Signal(), Signal()  # of the tensor at work; of what is reported
        empty, unread = Signal(), Signal()  # nothing is read ahead; a descriptor cannot be read
        gone = Signal()  # a tensor was given up, and has no report yet
        place = (number & (self.ring_size - 1))[: len(number) - 1]
        # A cycle late, for speed: no host writes a register that soon after HEAD.
        behind = Signal()
        m.d.sync += behind.eq(self.head != self.tail)
        m.d.comb += [
            self.stopped.eq(~going),
            self.busy.eq((going & behind) | ~empty | present | report.busy),
            self.line.eq(fetch.line),
            self.reporting.eq(report.busy), self.leaves.eq(report.leaves),
            report.words.eq(self.words), report.index.eq(mine),
            fetch.index.eq(halves(m, self.ring[9:], place)),
            self.quiet.eq(~fetch.busy & ~report.busy & ~report.start),  # nobody clears what a report is made of
            self.wrong.eq(unread | (report.answered & (fault | report.failed))),
            # A host that has seen the ring stop waits for the tensor at work, whether or not that was to notify it.
            self.event.eq(self.wrong | (report.answered & (notify | ~(going | gone | self.abort)))),
        ]

        # ------------------------------------------------------------------------------------------ the next descriptor
        c = Module()
        m.submodules.sequence = ResetInserter(self.clear)(c)
        step = Signal(range(self.wait))
        loads = Signal()  # a line, which the memory shows already; it shows the next one in the next cycle
        m.d.comb += [
            fetch.chosen.eq(step + loads),
            self.load.valid.eq(loads & (step < len(self.lines))),
            self.load.place.eq(reduce(or_, (Mux(step == k, line, 0) for k, line in enumerate(self.lines)))),
            self.load.data.eq(fetch.data),
        ]
        with c.FSM():
            with c.State("empty"):
                c.d.comb += empty.eq(1)
                c.d.sync += step.eq(0)
                with c.If(going & ~self.hosted & ~self.abort & (number != self.head)):
                    c.next = "address"
            with c.State("address"):
                c.d.sync += step.eq(step + 1)
                with c.If(self.abort):
                    c.next = "empty"
                with c.Elif(step == 1):
                    c.d.comb += fetch.start.eq(1)
                    c.next = "read"
            with c.State("read"):
                c.d.sync += step.eq(0)
                with c.If(~fetch.busy):
                    c.next = "empty"
                    with c.If(fetch.failed):
                        c.d.comb += unread.eq(~self.abort)
                    with c.Elif(going):
                        c.d.comb += self.check.eq(1)
                        c.next = "plan"
            with c.State("plan"), c.If(self.checked):
                c.next = "planned"
            with c.State("planned"):
                with c.If(~going):
                    c.next = "empty"
                with c.Elif(self.free):
                    c.d.comb += self.take.eq(1)
                    c.next = "load"
            with c.State("load"):
                c.d.comb += loads.eq(1)
                c.d.sync += step.eq(step + 1)
                with c.If(step == self.wait - 2):
                    c.next = "loaded"
            with c.State("loaded"):
                c.d.comb += self.ready.eq(going & ~gone)
                with c.If(self.begin | ~going):
                    c.next = "empty"

        # -------------------------------------------------------------------------------------------------- the reports
        rest = Signal(range(REST))
        m.d.comb += report.start.eq(self.end | (gone & present & (rest == REST - 1)))
        with m.If(self.begin):
            m.d.sync += [present.eq(1), mine.eq(fetch.index), notify_current.eq(self.notify)]
        with m.If(report.start):
            m.d.sync += [present.eq(0), notify.eq(notify_current & ~gone), fault.eq(self.fault & ~gone)]
        m.d.comb += self.given_up.eq(gone)
        with m.If(gone):
            m.d.sync += rest.eq(rest + 1)
        with m.If(self.clear & present):
            m.d.sync += [gone.eq(1), rest.eq(0)]
        with m.Elif(report.answered):
            m.d.sync += gone.eq(0)

        # ------------------------------------------------------------------------------------------------ how far it is
        with m.If(report.answered):
            m.d.sync += self.tail.eq(self.tail + 1)
        with m.If(self.begin):
            m.d.sync += number.eq(number + 1)
        fails = unread | (report.answered & report.failed)
        with m.If(self.doorbell):
            m.d.sync += [going.eq((self.ring_size != 0) & ~self.abort), self.ring_failed.eq(0)]
        with m.If(fails | self.abort | (self.end & self.fault & self.stop_on_error)):
            m.d.sync += going.eq(0)
        with m.If(fails):
            m.d.sync += self.ring_failed.eq(1)
        return m
