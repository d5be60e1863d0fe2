"""AXI4 and order of the queue: what it owes to memory and to the descriptors of a ring."""

from amaranth.hdl import Mux, Signal

from actcodec.rtl.offload.queue.queue import Queue
from formal.catalogue import Proof
from formal.inside import Inside
from formal.memory import IDLE, LENGTH, beats, inductive, moves, stays
from formal.streams import HOLDS

__all__ = ["proofs"]

WIDTH, SIZE, LINES, WAIT = 32, 2, (0, 1, 3, 4, 7, 8, 10), 13
READ = LINES[-1] + 1
WHOLE = "a report stands whole when its address is offered, and waits for nothing but ready"
ASKED = "no more lines are asked for than a descriptor has, and each comes to its place"
ORDER = "each descriptor has one tensor at most, and one report, in the order of the ring"
NAMES = ("present", "gone", "number", "fetch.left", "fetch.half", "report.second")


def queue(folder):
    """The queue, and an accelerator that keeps to its docstring."""
    component = Queue(WIDTH, SIZE, LINES, WAIT)
    h = Inside(component, folder, *NAMES)
    unit, inner = h.ports, h.inner
    present, gone, second, left = (inner[name] for name in ("present", "gone", "report.second", "fetch.left"))
    ar, r, aw, w, b = unit.reads.ar, unit.reads.r, unit.writes.aw, unit.writes.w, unit.writes.b

    h.assume(~unit.begin | (unit.ready & ~present))
    h.assume(~unit.end | (present & ~unit.reporting & ~gone))
    h.assume(~unit.clear | (unit.abort & unit.quiet & ~unit.begin & ~unit.end))
    h.assume(~h.past(w.valid & ~unit.leaves) | (unit.words == h.past(unit.words)))
    asked, owed = Signal(range(READ + 2), name="asked"), Signal(name="owed")  # of lines; a report without an answer
    h.m.d.sync += [asked.eq(asked + Mux(moves(ar), beats(ar.p), 0) - moves(r)),
                   owed.eq((owed | moves(aw)) & ~moves(b))]
    sent = Signal(name="sent")  # all data of the report that has no answer
    h.m.d.sync += sent.eq((sent | unit.leaves) & ~moves(b))
    h.assume(~r.valid | (asked != 0))
    h.assume(~b.valid | (owed & sent))

    # That bursts are legal, and answers never wait, is constants of the unit: no fault could break it.
    for port in (ar, aw, w):
        stays(h, port)
    offered = Mux(ar.valid, beats(ar.p), 0)
    # The first of two addresses is followed by the second.
    later = Mux(ar.valid & ~inner["fetch.half"], READ - 8, 0)
    h.check(ASKED, asked + offered + later == left)
    h.check(ASKED, left <= READ)
    h.check(WHOLE, ~aw.valid | w.valid | sent)
    h.check(WHOLE, ~unit.reporting | aw.valid | owed)
    inductive(h, (WHOLE, HOLDS), ~(w.valid & sent) & (unit.reporting | (~aw.valid & ~w.valid & ~owed & ~sent)))
    inductive(h, (WHOLE, HOLDS), ~unit.reporting | ((w.valid ^ sent) & (aw.valid ^ owed)))
    h.check(LENGTH, ~w.valid | ((w.p.last == second) & (aw.p.length == 1)))
    inductive(h, (LENGTH,), w.valid | ~second)
    h.check(IDLE, ~unit.quiet | ((asked == 0) & ~ar.valid & ~aw.valid & ~w.valid & ~owed))
    inductive(h, (IDLE, ORDER, HOLDS), (asked + offered + later == left) & (left <= READ)
              & (unit.reporting | (~aw.valid & ~w.valid & ~owed & ~sent)))
    h.check(ORDER, ((inner["number"] - unit.tail)[: len(unit.tail)] == present + unit.reporting))
    inductive(h, (ORDER, HOLDS, WHOLE), ~gone | (present ^ unit.reporting))
    return h


def proofs():
    return [Proof("queue", "ring", queue, f"{SIZE} descriptors of {READ} lines, of which {len(LINES)} count, "
                                          f"{WIDTH} bits of address")]
