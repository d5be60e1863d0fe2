"""Lanes with streams: whose turn it is, where it lies in a packet, and how many bytes a lane gets."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Mux, Signal

from actcodec.rtl.offload.wire.streams.stream_collector import StreamCollector
from actcodec.rtl.offload.wire.streams.stream_splitter import StreamSplitter
from actcodec.rtl.offload.wire.streams.turns import SLOTS, TURN, Turns
from formal.catalogue import Proof
from formal.dealing import follow_up
from formal.inside import Inside
from formal.marks import full

__all__ = ["proofs"]

ROUNDS = "in each round every lane whose stream goes on has one turn, in their order, and whoever can move does"
PLACES = "turns lie side by side in their order, none beyond the packet"
PACKED = "all turns leave, in full packets but the last one, which comes when all streams have ended"
KEPT = "each turn is where its place is, with its content"
SHARE = "no lane gets more bytes than its stream has, and all of them unless short; then its end, once"

PORTS = ("start", "used", "able", "ends", "slots", "next", "moves", "after", "whole", "open", "left")


def turns(cdus, folder):
    h = Inside(Turns(cdus), folder, "pending", "done", "spot")
    unit = h.ports
    h.assume((unit.slots & (unit.slots + 1)) == 0)
    model(h, unit, unit.at, *h.inner.values(), cdus)
    return h


def model(h, unit, at, pending, done, spot, cdus):
    """A model counts each lane's turns: one whose count is the round's number has its turn in that still before it. All
    outputs of ``unit`` follow, whose registers ``pending``, ``done`` and ``spot`` are the others.

    Adds both properties. Returns, as before this cycle, which streams go on, and the turns of the packet.
    """
    m, slots = h.m, sum(unit.slots)
    number, before = Signal(16, name="number"), Signal(range(SLOTS + 1), name="before")
    counts, open_ = [Signal(16, name=f"turns_{c}") for c in range(cdus)], Signal(cdus, name="goes_on")
    waits = Cat(open_[c] & (counts[c] == number) for c in range(cdus))
    moved, all_before = 0, 1
    for c in range(cdus):
        moves = unit.moves[c]
        h.check(ROUNDS, moves == (waits[c] & all_before & unit.able[c] & (before + moved < slots)))
        h.check(ROUNDS, ~open_[c] | waits[c] | (counts[c] == (number + 1)[:16]))
        h.check(PLACES, ~moves | (at[c] == (1 << (before + moved))[:SLOTS]))
        m.d.sync += counts[c].eq(counts[c] + moves)
        moved, all_before = moved + moves, all_before & (~waits[c] | moves)
    left = open_ & ~(unit.moves & unit.ends)
    h.check(ROUNDS, (unit.open == open_) & (unit.left == left))
    h.check(PLACES, (unit.after == before + moved) & (before <= SLOTS))
    h.check(PLACES, ~unit.moves.any() | (unit.after <= slots))
    h.check(PLACES, unit.whole == (unit.after == slots))
    # What makes it inductive: the unit's registers are the model's.
    h.check(ROUNDS, pending == waits)
    h.check(PLACES, (done == before) & (spot == (1 << before)[: SLOTS + 1]))
    follow_up(h, ROUNDS, PLACES)
    follow_up(h, PLACES, ROUNDS)
    m.d.sync += [open_.eq(left), number.eq(number + ~(left & waits & ~unit.moves).any()),
                 before.eq(Mux(unit.next, 0, before + moved))]
    with m.If(unit.start):
        m.d.sync += [open_.eq(unit.used), number.eq(0), before.eq(0), *(count.eq(0) for count in counts)]
    return open_, before


def inside(component, folder, *names):
    """A harness; the unit; what is inside it by name, also its signals ``names``; what :func:`model` gives."""
    cdus = component.cdus
    places = [f"turns.at__{c}" for c in range(cdus)]
    names = [*(f"turns.{name}" for name in (*PORTS, "pending", "done", "spot")), *places, *names]
    h = Inside(component, folder, *names)
    unit, seen = h.ports, h.inner
    h.near = "unit/w:turns.* unit/w:at_* unit/w:left_* unit/w:final_* %u %u %u %ci2"
    inner = SimpleNamespace(**{name: seen[f"turns.{name}"] for name in PORTS})
    return h, unit, seen, *model(h, inner, [seen[name] for name in places], seen["turns.pending"],
                                  seen["turns.done"], seen["turns.spot"], cdus)


def collector(cdus, folder):
    """An adversary marks a turn, whichever, and follows it: waiting beside its packet, in it, and away."""
    own = [f"{name}_{c}" for c in range(cdus) for name in ("at", "word")]
    h, unit, seen, open_, before = inside(StreamCollector(cdus), folder, "fills", "closes", "end", *own)
    m, o, fills, end = h.m, unit.o, seen["fills"], seen["end"]
    at, words, place = ([seen[f"{name}{c}"] for c in range(cdus)] for name in ("at_", "word_", "turns.at__"))
    moves, advance, leaves = seen["turns.moves"], ~o.valid | o.ready, o.valid & o.ready
    goes_on = open_.any()

    within = Signal(range(2 * SLOTS + cdus), name="within")  # turns
    packet = (o.p.count >> 3)[:5]
    m.d.sync += within.eq(within + sum(moves[c] for c in range(cdus)) - Mux(leaves, packet, 0))
    h.assume(~unit.start | (~goes_on & (within == 0) & unit.used.any()))
    here = Mux(fills, end, Mux(goes_on, before, 0))  # of the packet that is being put together
    h.check(PACKED, within == Mux(o.valid, packet, 0) + here)
    h.check(PACKED, ~o.valid | ((o.p.count[:3] == 0) & (packet != 0) & (packet <= SLOTS)))
    h.check(PACKED, ~o.valid | (o.p.last == (~goes_on & ~fills)) & (o.p.last | (packet == SLOTS)))
    h.check(PACKED, ~fills | ((seen["closes"] == ~goes_on) & (end != 0) & (end <= SLOTS)))
    h.check(PACKED, ~fills | ((before == Mux(end == SLOTS, 0, end)) & (~goes_on | (end == SLOTS))))
    follow_up(h, PACKED, PLACES)

    state, who, slot = Signal(2, name="state"), Signal(range(cdus), name="who"), Signal(4, name="slot")
    beside, packed = state == 1, state == 2
    content, first = Signal(8 * TURN, name="content"), Signal(range(SLOTS + 1), name="first")  # slot of those beside it
    lane, marks = h.free(range(cdus), "lane"), h.free(1, "marks")
    with m.If(advance):
        m.d.sync += first.eq(before)
    with m.If(unit.start):
        m.d.sync += first.eq(0)
    for c in range(cdus):
        with m.If(marks & (state == 0) & (lane == c) & moves[c]):
            m.d.sync += [state.eq(1), who.eq(c), slot.eq(sum(s * one for s, one in enumerate(place[c]))),
                         content.eq(unit.i[c].p.data)]
        h.check(KEPT, ~beside | (who != c) | ((at[c] == 1 << slot) & (words[c] == content)))
        h.check(KEPT, (at[c] == 0) | Cat((at[c] == 1 << s) & (first <= s) & (s < here) for s in range(SLOTS)).any())
        for b in range(c):
            h.check(KEPT, (at[b] & at[c]) == 0)
    with m.If(beside & advance):
        m.d.sync += state.eq(2)
    with m.If(packed & leaves):
        m.d.sync += state.eq(3)
    there = o.p.data.as_value().word_select(slot, 8 * TURN)
    h.check(KEPT, ~packed | (there == content))
    h.check(KEPT, ~beside | (who < cdus) & (first <= slot) & (slot < here))
    h.check(KEPT, ~packed | Mux(o.valid, slot < packet, (slot < first) & (here != 0)))
    h.check(KEPT, (here == 0) | (first <= here))
    follow_up(h, KEPT, PACKED)
    return h


def splitter(cdus, folder):
    own = [f"{name}_{c}" for c in range(cdus) for name in ("left", "tail", "final")]
    h, unit, seen, open_, _ = inside(StreamSplitter(cdus), folder, "owed", "ending", *own)
    m, running = h.m, unit.wants
    h.assume(~unit.start | ~unit.busy)
    h.assume(~unit.i.valid | (full(unit.i.p) & (unit.i.p.count <= SLOTS * TURN)))
    h.check(SHARE, running | seen["ending"] | ~open_.any() | unit.short)
    h.check(SHARE, ~(running & seen["ending"]))
    for c, o in enumerate(unit.o):
        left, tail, final = (seen[f"{name}_{c}"] for name in ("left", "tail", "final"))
        owed, goes_on = seen["owed"][c], open_[c]
        size, given, ended = Signal(32, name=f"size_{c}"), Signal(33, name=f"given_{c}"), Signal(
            name=f"ended_{c}", init=1)
        with m.If(o.valid & o.ready):
            m.d.sync += [given.eq(given + o.p.count), ended.eq(o.p.last)]
        with m.If(unit.start):
            m.d.sync += [size.eq(unit.lengths[c]), given.eq(0), ended.eq(~unit.used[c])]
        dealt, ends = given + Mux(o.valid, o.p.count, 0), o.valid & o.p.last
        h.check(SHARE, (dealt <= size) & (~o.valid | ~ended))
        h.check(SHARE, ~ends | unit.short | (dealt == size))
        h.check(SHARE, unit.busy | ended)
        # What makes it inductive.
        rest = Cat(tail, left)
        h.check(SHARE, owed == ~(ended | ends))
        h.check(SHARE, ~goes_on | ~running | ((rest != 0) & (rest + dealt == size) & (final == (rest <= TURN))))
        h.check(SHARE, ~goes_on | ~running | owed)
        h.check(SHARE, goes_on | ~owed | ((size == 0) & (dealt == 0)))
    follow_up(h, SHARE, ROUNDS)
    return h


def proofs():
    def proof(unit, build, cdus):
        return Proof(unit, "slots", lambda folder: build(cdus, folder), f"{cdus} lane{'s' * (cdus > 1)}")

    return [proof(unit, build, cdus)
            for unit, build in (("turns", turns), ("stream_collector", collector), ("stream_splitter", splitter))
            for cdus in (1, 3, 8)]
