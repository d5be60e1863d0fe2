"""A reader ends because its two beat planners agree: an argument in two proofs.

First, of a planner by itself: how many beats a place has follows from that place and from those before it in the
tensor. The harness counts them from the places alone, so it does not matter when these come, or when steps leave. The
two planners of a reader see the same places and settings, so, whichever is in front, they plan the same beats of each
place, and as many of the tensor. Besides, a beat joins only the one right before it.

Then, of a reader, of which that is assumed: when the one that asks is through, the other wants only what has been
planned and not taken; when the other is through, nothing like that is left, as never more are taken than planned, each
of which has to come from memory; and joins are as they should be. From this follows that something moves within some
willing cycles: a place, a planner's step, a burst, or a beat. A place has at most three beats and one step without, so
a tensor has a limited number of such moves, and a reader with willing neighbours is idle in the end. The first proof
knows nothing of readers, so the argument is not circular.

No tool finds by itself why. What relates the planners is a number: beats that one has planned and the other has not
taken are those under way and those of the burst that is open.
"""

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.lib import data

from actcodec.rtl.common.axi import BEAT, address_layout
from actcodec.rtl.offload.memory.beat_planner import BeatPlanner, step_layout
from actcodec.rtl.offload.memory.geometry import of_size
from actcodec.rtl.offload.memory.reader import Reader
from formal.catalogue import Proof
from formal.inside import Inside
from formal.memory import WIDTH, beats, constant, master, moves, spare, stored, tensor

__all__ = ["proofs"]

PLANNED = "a place has the beats that follow from it and from those before it"
JOINS = "a beat joins only the one right before it, in the same 256 bytes"
ENDS = "something moves within some willing cycles, until it is idle"
COUNTED = "beats that are planned and not taken are under way, or in the open burst"
INSIDE = "a planner has a place inside, or one to come, until the last one's last step"
SETTLES = "when nothing moves, buffers settle"
WORDS = 8  # most values of a place
PATIENCE = 3
# What a unit has besides values of 4 bytes, by how notes begin.
SIZES = {"": {}, "values of 4 or 2 bytes, ": {"halves": True}, "values of 4 bytes or 1, ": {"codes": True},
         "values of 4, 2 or 1 bytes, ": {"halves": True, "codes": True}}
SIZED = ("half", "byte")


def sized(unit):
    """The inputs of a unit that say which size values have, of those that there are."""
    return [getattr(unit, name) for name in SIZED if hasattr(unit, name)]


def plans(component, folder):
    """The harness for a planner."""
    names = ["entered__ready", "entered__valid", "decided__valid", "known", "cached", "line_0", "line_1"]
    h = Inside(component, folder, *names)
    unit, inner, m = h.ports, h.inner, h.m
    i, o, step, on = unit.i, unit.o, unit.o.p, inner["entered__ready"]
    for value in (unit.gather, unit.scaled, *sized(unit)):
        h.drive(value, h.rigid(1, value.name))
    size = of_size(unit, Const(4), Const(2), Const(1))  # of a value
    h.assume(~i.valid | ((i.p.words <= WORDS) & ((i.p.address & (size - 1)) == 0)))
    # Beats are counted in the unit's own pipeline, so that its registers can be compared.
    place, entered, decided = Signal.like(i.p, name="place"), Signal(name="entered"), Signal(name="decided")
    with m.If(i.ready):
        m.d.sync += [place.eq(i.p), entered.eq(i.valid)]
    index, line, slot = place.address[5:], place.channel[3:], place.slot
    some, straddles = place.words != 0, place.address[:5] + place.words * size > BEAT
    # What the unit remembers of the places before.
    known, cached = Signal(name="was_known"), Signal(2, name="was_cached")
    previous, lines = Signal.like(index, name="was_previous"), [Signal.like(line, name=f"was_{k}") for k in range(2)]
    hit = Mux(slot, cached[1] & (lines[1] == line), cached[0] & (lines[0] == line))
    needs, count = Signal(2, name="needs"), Signal(2, name="count")
    with m.If(entered & on):
        with m.If(some):
            m.d.sync += [known.eq(1), previous.eq(index + straddles)]
        for k in range(2):
            with m.If(slot == k):
                m.d.sync += [cached[k].eq(1), lines[k].eq(line)]
        with m.If(place.last):
            m.d.sync += [known.eq(0), cached.eq(0)]
    with m.If(on):
        m.d.sync += [decided.eq(entered), needs.eq(
            (unit.scaled & ~hit) + (unit.gather & some & ~(known & (index == previous))) + (unit.gather & straddles))]
    before = Signal.like(index, name="before")
    with m.If(moves(o)):
        m.d.sync += count.eq(Mux(step.final, 0, count + 1))
        with m.If(step.burst.beat):
            m.d.sync += before.eq(step.burst.index)
    h.check(PLANNED, ~o.valid | Mux(step.final, count + step.burst.beat == needs, step.burst.beat))
    h.check(PLANNED, (entered == inner["entered__valid"]) & (decided == inner["decided__valid"]))
    h.check(PLANNED, (known == inner["known"]) & (cached == inner["cached"]))
    for k in range(2):
        h.check(PLANNED, ~cached[k] | (lines[k] == inner[f"line_{k}"]))
    h.check(JOINS, ~o.valid | joined(step.burst, before))
    return h


def joined(step, before):
    """Whether a step's beat joins none but the one right before it."""
    return ~(step.beat & step.joins) | ((step.index == before + 1) & (step.index[:3] != 0))


def reads(component, folder):
    """The harness for a reader."""
    outstanding, stores = component.outstanding, component.memory == "shared"
    parts = ("ahead", "now", "bursts")
    settings = ["gather", "scaled", "table", *(name for name in SIZED if name in component.signature.members)]
    names = ["under_way", "comes", "taking", "sectors.full", "scale.full", "ar.full", "ar.spare",
             *(f"bursts.{name}" for name in ("closed", "length", "index")),
             *(f"{part}.o__{name}" for part in parts for name in ("valid", "ready", "payload")),
             *(f"{part}.{name}" for part in parts[:2] for name in ("entered__valid", *settings))]
    if stores:
        names += [f"arrived.{name}" for name in ("level", "valid", "fetched", "i__ready")]
    h, unit, inner = master(component, folder, *names)
    m, ar, r, under_way, taking = h.m, unit.axi.ar, unit.axi.r, inner["under_way"], inner["taking"]
    constant(h, unit, unit.gather, unit.scaled, unit.scales, *sized(unit))
    coming = [tensor(h, unit, places) for places in (unit.ahead, unit.now)]
    ahead, now, offers = (inner[f"{part}.o__valid"] for part in parts)
    steps, wants, asks = (inner[f"{part}.o__valid"] & inner[f"{part}.o__ready"] for part in parts)
    layout = step_layout(WIDTH, component.halves, component.codes)
    first, second = (data.View(layout, inner[f"{part}.o__payload"]).burst for part in parts[:2])
    burst = data.View(address_layout(WIDTH), inner["bursts.o__payload"])

    # Beats that memory owes; those of the open burst; those that are planned, and not taken.
    asked, waits, owed = (Signal(range(2 * outstanding), name=name) for name in ("asked", "waits", "owed"))
    asking, before = Signal(name="asking"), Signal.like(first.index, name="before")
    plans = steps & first.beat
    m.d.sync += [asking.eq(unit.start | (asking & ~unit.abort & ~(steps & first.last))),
                 asked.eq(asked + Mux(moves(ar), beats(ar.p), 0) - moves(r)),
                 waits.eq(Mux(unit.abort, 0, waits + plans - Mux(asks, beats(burst), 0))),
                 owed.eq(Mux(unit.abort, 0, owed + plans - (wants & second.beat)))]
    with m.If(plans):
        m.d.sync += before.eq(first.index)
    h.assume(~r.valid | (asked != 0))
    h.assume(~ahead | joined(first, before))
    h.assume(asking | (owed != 0) | ~(now & second.beat))
    h.assume(taking | (owed == 0))

    willing = Cat(unit.ahead.valid | ~coming[0], unit.now.valid | ~coming[1], unit.sectors.ready, unit.scale.ready,
                  ar.ready, r.valid | (asked == 0)).all()
    moved = Cat(~unit.busy, moves(unit.ahead), moves(unit.now), steps, wants, asks, moves(ar), moves(r),
                inner["comes"]).any()
    stuck = h.stuck(moved, willing, PATIENCE)

    h.jointly(ENDS, stuck <= PATIENCE)
    more, length = spare(inner, "ar", 3)
    buffered = stored(inner, "arrived") if stores else Const(0)
    for name in settings:  # with others, planners would not agree
        h.jointly(COUNTED, inner[f"ahead.{name}"] == inner[f"now.{name}"])
    h.jointly(COUNTED, unit.abort | (owed == under_way + waits))
    h.jointly(COUNTED, asked + Mux(ar.valid, beats(ar.p), 0) + Mux(more, length, 0) + buffered == under_way)
    h.jointly(COUNTED, (under_way <= outstanding) & (ar.valid | ~more))
    closed, size, index = (inner[f"bursts.{name}"] for name in ("closed", "length", "index"))
    h.jointly(COUNTED, (waits == 0) | ((waits == size + 1) & (before[:3] == index[:3] + size)))
    h.jointly(COUNTED, offers == ((waits != 0) & (closed | (ahead & first.beat & ~first.joins))))
    h.jointly(COUNTED, asking | (waits == 0) | closed)
    h.jointly(INSIDE, unit.busy == (asking | taking | (under_way != 0)))
    for part, to_come, under, valid, step in zip(parts[:2], coming, (asking, taking), (ahead, now), (first, second),
                                                 strict=True):
        behind = to_come | inner[f"{part}.entered__valid"]
        h.jointly(INSIDE, (under == (behind | valid)) & ~(valid & step.last & behind))
        h.jointly(SETTLES, (stuck == 0) | valid | ~behind)
    h.jointly(SETTLES, (stuck == 0) | ~(inner["sectors.full"] | inner["scale.full"] | ar.valid))
    if stores:
        level, fetched = inner["arrived.level"], inner["arrived.fetched"]
        h.jointly(SETTLES, (stuck == 0) | (level == 0) | fetched)
        h.jointly(SETTLES, (stuck < 2) | ~fetched | inner["arrived.valid"])
        h.jointly(COUNTED, inner["arrived.i__ready"] == (level != outstanding))
    return h


def proofs():
    every = [Proof("beat_planner", "plans", lambda folder, sizes=sizes: plans(BeatPlanner(WIDTH, **sizes), folder),
                   f"{note}{WIDTH} bits of address") for note, sizes in SIZES.items()]
    for note, sizes in SIZES.items():
        for memory in ("shared", "independent"):
            every.append(Proof("reader", "ends", lambda folder, memory=memory, sizes=sizes: reads(
                Reader(WIDTH, 16, memory, **sizes), folder),
                f"{note}{memory} memory, outstanding 16, {WIDTH} bits of address, {PATIENCE} willing cycles"))
    return every
