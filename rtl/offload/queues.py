"""How the queue of descriptors is part of an accelerator."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Mux, Signal, Value
from amaranth.lib import data

from actcodec.rtl.common import axi
from actcodec.rtl.offload.control.register_map import BITS, DESCRIPTOR, REPORT, ErrorCode
from actcodec.rtl.offload.control.registers import ADDRESSES, LINE, described
from actcodec.rtl.offload.queue.queue import Queue
from actcodec.rtl.offload.queue.report import WORDS

__all__ = ["TensorQueue", "lines_of"]

ROWS = 3  # cycles more from the last lane's load to a start, in which the splitter finds where rows of segments begin
# What the plan of a tensor looks at.
AHEAD = ("mode", "decompress", "scan", "format", "rows", "width", "stride", "height", "channels", "base", "scales")
LENGTHS = REPORT["lengths_out"][0]  # from this bit on reports are of two kinds
STATUS = next(bits.address for bits in BITS if bits.name == "error")


def _place(bits):
    """The line of a piece of a value in a descriptor, and its lowest bit there."""
    line, byte = divmod(bits.address - DESCRIPTOR.start, LINE)
    return line, 8 * byte + bits.low


def lines_of(widths):
    """Lines of a descriptor that count with registers of these widths, ascending."""
    return tuple(sorted({_place(bits)[0] for bits in BITS if described(bits) and bits.part < widths[bits.name]}))


class TensorQueue:
    """Adds to the module ``m`` of an ``accelerator`` its queue, and what the tensors of a ring and of the host have in
    common. It is no component, as its states are among those of the accelerator's control.

    ``plan`` is a :class:`~actcodec.rtl.offload.queue.plan_ahead.PlanAhead`, ``clear`` and ``abort`` are the
    accelerator's, ``works`` says that registers and plan are in use.

    Attributes
    ----------
    ahead : Signal
        Of the tensor that is to be planned: those registers that a plan is made of.
    starts, begins : Signal
        A tensor can begin; driven by the control: it does, in this cycle.
    start, quiet, busy : Signal
        A tensor starts; memory owes the queue nothing; there is something to be done.
    scanned : Value
        The tensor that is to be planned is to be scanned.
    settles, holds : Signal
        Counters come to rest; they have, until another tensor starts.
    at_once : int
        Lanes whose counters are added in a cycle.
    planned : Value
        The plan of the tensor stands, its registers do, and it is known which are illegal.
    beyond : Signal
        An address of its descriptor has bits that registers have not.
    """

    def __init__(self, m, accelerator, registers, plan, clear, abort, works):
        self._m, self._registers = m, registers
        control, status, cdus = registers.control, registers.status, accelerator.cdus
        lines, rows = lines_of(registers.widths), ROWS * any(mode.format.segmented for mode in accelerator.modes)
        m.submodules.queue = self._queue = queue = Queue(
            accelerator.address_width, accelerator.queue, lines, max(len(lines) + 2, cdus + rows))
        axi.connect(m, accelerator, "m_axi_queue_", queue.reads, queue.writes)
        members = control.shape().members
        self.ahead = Signal(data.StructLayout({name: members[name] for name in AHEAD if name in members}), name="ahead")
        self.beyond, self.starts, self.begins = (Signal(name=name) for name in ("beyond", "can_start", "begins"))
        self.start, self.quiet, self.busy = self.begins, queue.quiet, queue.busy
        self.scanned = (self.ahead.scan & ~self.ahead.decompress) if "scan" in members else Const(0, 1)
        self.settles, self.holds = Signal(name="settles"), Signal(name="sums_stand")
        m.d.sync += self.holds.eq((self.holds | queue.end) & ~self.begins)
        self._hosted, self._ended = Signal(name="hosted"), Signal(name="tensor_ended")
        # Counters take 5 cycles, and sums over all lanes a turn after that in which the last one has come to rest: so a
        # turn has two steps at most.
        self._rest, self.at_once = 5, -(-cdus // 2)
        self._settling = Signal(range(self._rest), name="settling")
        self._catch(m, accelerator.address_width, plan.take)

        begun, late = Signal(name="host_begins"), Signal(range(cdus + rows + 2), name="since_plan")
        m.d.sync += begun.eq(registers.start)
        with m.If(registers.start):
            m.d.sync += [self.ahead.eq(Cat(Value.cast(control[name]) for name in self.ahead.shape().members)),
                         self._hosted.eq(1)]
        with m.Elif(self._ended | clear):
            m.d.sync += self._hosted.eq(0)
        with m.If(registers.start | clear):
            m.d.sync += late.eq(0)
        with m.Elif(plan.done):
            m.d.sync += late.eq(1)
        with m.Elif((late != 0) & (late != cdus + rows + 1)):
            m.d.sync += late.eq(late + 1)
        self.planned = ~self._hosted | (late == cdus + rows + 1)
        m.d.comb += [
            plan.start.eq(begun | queue.check),
            plan.take.eq(queue.take | (self._hosted & plan.done)),
            plan.present.eq(Cat(control[name] for name in plan.present.shape().members)),
            self.starts.eq(registers.start | queue.ready),
            *(getattr(queue, name).eq(control[name]) for name in ("ring", "ring_size", "head", "stop_on_error",
                                                                  "notify")),
            queue.doorbell.eq(registers.doorbell), queue.hosted.eq(self._hosted | registers.start),
            queue.checked.eq(plan.done), queue.free.eq(~works & ~self._hosted & ~abort),
            queue.begin.eq(self.begins & ~registers.start),
            queue.fault.eq(status.error != ErrorCode.NONE),
            queue.abort.eq(abort), queue.clear.eq(clear),
            registers.line.eq(queue.load),
            registers.done.eq((self._ended | queue.event) & ~abort),
            registers.fault.eq(Mux(queue.event, queue.wrong, queue.fault)),
            *(getattr(status, name).eq(getattr(queue, name)) for name in ("tail", "stopped", "ring_failed")),
        ]

    def _catch(self, m, address_width, take):
        """Takes from lines what the plan is made of, and looks at bits that registers have not."""
        queue, line, ahead = self._queue, self._queue.line, self.ahead
        control = self._registers.control.shape().members
        next_beyond, odd = Signal(name="next_beyond"), {0: []}
        for bits in (bits for bits in BITS if described(bits) and bits.name in control):
            place, low = _place(bits)
            if bits.name in ahead.shape().members:
                piece = Value.cast(ahead[bits.name])[bits.part : bits.part + bits.width]
                with m.If(line.valid & (line.place == place)):
                    m.d.sync += piece.eq(line.data[low : low + bits.width])
            if bits.name in ADDRESSES and bits.part + bits.width > address_width:
                odd.setdefault(place, []).append(line.data[low + address_width - bits.part : low + bits.width])
        for place, excess in odd.items():
            with m.If(line.valid & (line.place == place)):
                m.d.sync += next_beyond.eq(Cat(*excess, Const(0) if place == 0 else next_beyond).any())
        with m.If(take):
            m.d.sync += self.beyond.eq(next_beyond & queue.take)

    def add_states(self, c, abort, again, flags):
        """The states of the control from the one in which all comes to rest; none is left during a soft reset, as what
        a report is made of goes with it. ``again()`` has the next tensor of a ring begin after the one before, of which
        ``flags`` tell."""
        queue, settling, hosted = self._queue, self._settling, self._hosted
        with c.State("settle"):
            c.d.comb += self.settles.eq(1)
            with c.If(settling != self._rest - 1):
                c.d.sync += settling.eq(settling + 1)
            with c.Elif(~queue.reporting & ~abort):
                c.d.comb += queue.end.eq(~hosted)
                c.next = "end"
        with c.State("end"):
            c.d.sync += settling.eq(0)
            with c.If(hosted):
                c.d.comb += self._ended.eq(1)
                c.next = "idle"
            with c.Elif(queue.leaves):
                c.next = "idle"
                with c.If(queue.ready):
                    c.d.sync += [flag.eq(0) for flag in flags]
                    again()

    def report(self, streamed, launched):
        """Drives the report from the registers that a host would look at. ``streamed``: the present tensor has
        streams, as far as registers tell; what they tell when it begins counts, and that it is ``launched``."""
        m, queue, status, control = self._m, self._queue, self._registers.status, self._registers.control
        there = status.shape().members
        error = Mux(queue.given_up, ErrorCode.ABORTED, status.error)
        fixed = {"busy": Const(0, 1), "done": Const(1, 1), "error": error} | (
            {} if "clipped" in there else {"clipped": Const(0, 1)})
        values = {name: status[name] for name in REPORT if name in there} | {
            "status": _word({bits: fixed.get(bits.name, status[bits.name] if bits.name in there else None)
                             for bits in BITS if bits.address == STATUS}), "number": status.tail}
        words = [Value.cast(values[name])[:width] << low if name in values else Const(0, 1)
                 for name, (low, width) in REPORT.items() if name != "lengths_out"]
        common = reduce(or_, words)[:WORDS]
        if streamed is None:
            m.d.comb += queue.words.eq(common)
            return
        lengthy = Signal(name="has_lengths")
        with m.If(self.begins):
            m.d.sync += lengthy.eq(streamed & ~control.decompress
                                   & ~(control.scan & control.scan_only if "scan" in control.shape().members else 0))
        lengths, own = Value.cast(status.lengths_out), Signal(name="has_lengths_of_its_own")
        m.d.sync += own.eq(lengthy & launched)
        m.d.comb += queue.words.eq(Cat(common[:LENGTHS], Mux(own, lengths, common[LENGTHS:])))


def _word(pieces):
    """A word of the map that has these pieces."""
    return reduce(or_, (value << bits.low for bits, value in pieces.items()))
