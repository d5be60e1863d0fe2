"""A writer ends because a beat that waits for the next one is in a burst that can leave without it.

A step of the planner goes to the burst that grows and to the FIFO of steps at once. So beats that are planned and not
emitted are counted in two ways: they are the one that is kept and those in the FIFO; and those of bursts that are
granted, without those that have left, and of the open burst. Two things follow. When no more bursts can be granted,
there are beats in the FIFO, and sectors move. And when none is granted, a beat that is kept is the first one of the
open burst; its window is over before the FIFO is full. So something moves within some willing cycles: a place, a
planner's step, a sector, a burst, a beat or a response. A tensor has a limited number of such moves, and a writer with
willing neighbours is idle in the end. They are willing if a sector comes for each place, and a response when memory has
all data of the bursts that were asked for.

Two things are assumed here that are proved of parts by themselves: words of a FIFO leave in their order, and a beat
joins only the one right before it.
"""

from amaranth.hdl import Array, Cat, Mux, Signal, signed
from amaranth.lib import data

from actcodec.rtl.offload.memory.beat_planner import step_layout
from actcodec.rtl.offload.memory.writer import DEPTH, GRANTED, STORED, WINDOW, Writer
from formal.beats import INSIDE, SETTLES, SIZES, joined, sized
from formal.catalogue import Proof
from formal.memory import WIDTH, beats, constant, master, moves, spare, stored, tensor

__all__ = ["proofs", "writes"]

ENDS = "something moves within some willing cycles, until it is idle"
EMITTED = "beats that are planned and not emitted are kept or in the FIFO of steps, and granted or in the open burst"
OPEN = "a burst that is open has been so for as many steps as the FIFO has from its first beat on"
OWED = "what memory owes, and is owed, is counted"
PATIENCE = 4
BURST = "bursts.$signal$1"  # there is an open burst; the number is Amaranth's, and of another signal nothing would hold


class Queue:
    """Words of some bits that a FIFO was given, the newest one first, of which as many as its level says are inside."""

    def __init__(self, h, name, depth, comes, word, level):
        self.words = [Signal(len(word), name=f"{name}_{k}") for k in range(depth)]
        self.level, self.next = level, Array([self.words[-1], *self.words])[level]
        with h.m.If(comes):
            h.m.d.sync += Cat(self.words).eq(Cat(word, *self.words)[:depth * len(word)])

    def total(self, count, level=None):
        """The sum of a number for each word that is inside."""
        return sum(Mux((self.level if level is None else level) > k, count(word), 0)
                   for k, word in enumerate(self.words))


def kept_in(component):
    """The signal that says whether a beat is kept: it has no name of its own, but Amaranth's number."""
    return f"$signal${59 + (component.memory == 'shared') + 2 * (component.halves + component.codes)}"


def writes(component, folder):
    """The harness for a writer."""
    outstanding, stores = component.outstanding, component.memory == "shared"
    names = ["under_way", "offered", "room", "writing", "closing", "count", kept_in(component), BURST, "aw.full",
             "aw.spare", "w.i__valid", "w.i__ready", "beats.entered__valid",
             *(f"{part}.o__{name}" for part in ("beats", "bursts") for name in ("valid", "ready", "payload")),
             *(f"bursts.{name}" for name in ("closed", "length", "index", "age")),
             *(f"{part}.{name}" for part in ("steps", "granted") for name in ("level", "r_data", "r_rdy", "r_en")),
             *(f"w.{name}" for name in (("level", "valid", "done", "fetched", "whole", "length") if stores else
                                        ("full", "spare")))]
    h, unit, inner = master(component, folder, *names, cut=("steps.r_data", "granted.r_data"))
    m, (aw, w, b), abort = h.m, (unit.axi.aw, unit.axi.w, unit.axi.b), unit.abort
    to_come = tensor(h, unit, unit.places)
    constant(h, unit, *sized(unit))
    kept, closing, count, works, emits = (inner[name] for name in (
        kept_in(component), "closing", "count", "steps.r_en", "w.i__valid"))
    planned = inner["beats.o__valid"]
    plans, grants = (inner[f"{part}.o__valid"] & inner[f"{part}.o__ready"] for part in ("beats", "bursts"))
    step = data.View(step_layout(WIDTH, component.halves, component.codes), inner["beats.o__payload"]).burst
    grown, (closed, length, index, age) = inner[BURST], (inner[f"bursts.{name}"] for name in (
        "closed", "length", "index", "age"))

    # FIFOs give what they were given: of steps whether they have a beat and are the last one, of bursts the length.
    steps = Queue(h, "step", DEPTH, plans, Cat(step.beat, step.last), inner["steps.level"])
    granted = Queue(h, "granted", GRANTED, grants, inner["bursts.o__payload"][WIDTH:WIDTH + 3], inner["granted.level"])
    head, burst = inner["steps.r_data"], inner["granted.r_data"]
    h.assume(~inner["steps.r_rdy"] | (Cat(head[0], head[-1]) == steps.next))
    h.assume(~inner["granted.r_rdy"] | ((burst[WIDTH:] if stores else burst) == granted.next))
    before = Signal.like(step.index, name="before")
    with m.If(plans & step.beat):
        m.d.sync += before.eq(step.index)
    h.assume(~planned | joined(step, before))

    # Places, steps and sectors to come; responses that memory owes, bursts that it has all of, beats of those it owes.
    asking, taking, gave_up = (Signal(name=name) for name in ("asking", "taking", "gave_up"))
    asked, complete, owed = Signal(range(2 * outstanding), name="asked"), Signal(signed(6), name="complete"), Signal(
        signed(8), name="owed")
    m.d.sync += [asking.eq(unit.start | (asking & ~abort & ~(plans & step.last))),
                 taking.eq(unit.start | (taking & ~abort & ~(works & head[-1]))), gave_up.eq(abort),
                 asked.eq(asked + moves(aw) - moves(b)), complete.eq(complete + (moves(w) & w.p.last) - moves(b)),
                 owed.eq(owed + Mux(moves(aw), beats(aw.p), 0) - moves(w))]
    h.assume(~b.valid | ((asked != 0) & (complete > 0)))

    willing = Cat(unit.places.valid | ~to_come, unit.sectors.valid | ~taking, aw.ready, w.ready,
                  b.valid | (asked == 0) | (owed > 0)).all()
    drops = inner["granted.r_rdy"] & inner["granted.r_en"]
    moved = Cat(~unit.busy, moves(unit.places), plans, works, grants, emits, drops, moves(aw), moves(w), moves(b)).any()
    stuck = h.stuck(moved, willing, PATIENCE)
    h.jointly(ENDS, stuck <= PATIENCE)

    # Beats in both ways. Who gives up forgets them, but the bursts that have begun; then it is as after reset.
    waits = Mux(grown, length + 1, 0)
    promised = granted.total(lambda length: length + 1)
    empty = Cat(kept, closing, steps.level, grown, asking, taking).any() == 0
    h.jointly(EMITTED, Mux(gave_up, empty, kept + steps.total(lambda word: word[0]) + count == promised + waits))
    h.jointly(EMITTED, ~gave_up | abort | (granted.level == 0))
    h.jointly(EMITTED, Mux(granted.level == 0, count == 0, count <= granted.next))
    h.jointly(EMITTED, (steps.level <= DEPTH) & (granted.level <= GRANTED))
    h.jointly(OPEN, ~grown | (before[:3] == index[:3] + length))
    h.jointly(OPEN, ~grown | closed | ((age != 0) & (age < WINDOW) & asking
                                       & (steps.total(lambda word: word[0], age) == waits)))
    # What is to come, or in the FIFO, ends with the last step.
    behind = to_come | inner["beats.entered__valid"]
    h.jointly(INSIDE, (asking == (behind | planned)) & ~(planned & step.last & behind))
    h.jointly(INSIDE, (taking == (asking | (steps.level != 0))) & (inner["writing"] == (taking | closing)))
    h.jointly(INSIDE, closing == (kept & ~taking))
    for k, word in enumerate(steps.words):
        h.jointly(INSIDE, (steps.level <= k) | (word[1] == (~asking if k == 0 else 0)))

    # Bursts at the port, offered or outstanding, and their beats.
    more, size = spare(inner, "aw", 3)
    bursts = asked + aw.valid + more
    visible = owed + Mux(aw.valid, beats(aw.p), 0) + Mux(more, size, 0)
    h.jointly(OWED, (bursts == inner["under_way"] + inner["offered"]) & (bursts <= outstanding) & (aw.valid | ~more))
    h.jointly(SETTLES, (stuck == 0) | planned | ~behind)
    h.jointly(SETTLES, (stuck == 0) | ((steps.level != 0) == inner["steps.r_rdy"]))
    h.jointly(SETTLES, (stuck == 0) | ~(aw.valid | inner["offered"]))
    if stores:
        level, fetched, valid, whole, done = (inner[f"w.{name}"] for name in (
            "level", "fetched", "valid", "whole", "done"))
        h.jointly(OWED, visible + count == stored(inner, "w"))
        h.jointly(OWED, (level == whole + done + count) & (inner["w.length"] == count) & (level <= STORED))
        h.jointly(OWED, ~inner["room"] | (inner["under_way"] <= outstanding - 2))
        h.jointly(OWED, inner["w.i__ready"] == (level != STORED))
        h.jointly(SETTLES, (stuck == 0) | (done == 0))
        h.jointly(SETTLES, (stuck < 2) | fetched | (whole == 0))
        h.jointly(SETTLES, (stuck < 3) | valid | ~fetched)
        h.jointly(SETTLES, (stuck < 2) | inner["room"] | (inner["under_way"] >= outstanding - 2))
    else:
        full = inner["w.full"]
        h.jointly(OWED, visible == w.valid + full + promised - count)
        h.jointly(OWED, (complete >= 0) & (
            bursts == complete + granted.level + (w.valid & w.p.last) + (full & inner["w.spare"][-1])))
        h.jointly(SETTLES, w.valid | ~full)
        h.jointly(SETTLES, (stuck == 0) | ~w.valid)
    return h


def proofs():
    return [Proof("writer", "ends", lambda folder, memory=memory, sizes=sizes: writes(
        Writer(WIDTH, 5, memory, **sizes), folder),
        f"{note}{memory} memory, outstanding 5, {WIDTH} bits of address, {PATIENCE} willing cycles")
        for note, sizes in SIZES.items() for memory in ("shared", "independent")]
