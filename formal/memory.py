"""AXI4: what reader, writer and the payload's port owe to memory, and count on."""

from amaranth.hdl import Cat, Const, Mux, Signal, signed

from actcodec.rtl.common.bursts import LIMIT
from actcodec.rtl.offload.memory import payload
from actcodec.rtl.offload.memory.reader import Reader
from actcodec.rtl.offload.memory.writer import GRANTED, STORED, Writer
from formal.catalogue import Proof
from formal.inside import Inside
from formal.marks import ORDER, ROOM, Beat, drains, follow
from formal.streams import HOLDS, Port, held

__all__ = ["proofs"]

WIDTH = 12  # of an address: a page
LEGAL = "1 to 8 whole beats that do not cross 4 KiB"
LIMITED = "under way, or on offer, never more than outstanding"
IDLE = "not busy is nothing under way"
FORMED = "every burst comes to the port once, in order"
TAKEN = "whatever was asked for is taken at once, and has its place"
STORED_FIRST = "an address comes when all of its data is there, which then waits for nothing but ready"
LENGTH = "a burst has as many beats as its address says, the last one marked"


def master(component, folder, *names, cut=()):
    """A harness, the unit with its signals ``names`` as outputs, and these by name; cuts are those of ``Inside``."""
    h = Inside(component, folder, *names, cut=cut)
    unit, inner = h.ports, h.inner
    h.assume(unit.abort | ~h.past(unit.abort & unit.busy))
    h.assume(~(unit.start & (unit.busy | unit.abort)))
    return h, unit, inner


def tensor(h, unit, places):
    """Places follow the start of a tensor, up to the last one. Returns whether more will come."""
    open_ = Signal(name="open")
    h.m.d.sync += open_.eq(unit.start | (open_ & ~unit.abort & ~(moves(places) & places.p.last)))
    h.assume(open_ | ~places.valid)
    h.assume(held(h, Port("", False, places.valid, places.ready, places.p.as_value())))
    return open_


def constant(h, unit, *settings):
    """These inputs are constant while the unit is busy."""
    settings = Cat(settings)
    h.assume(~h.past(unit.start | unit.busy) | (settings == h.past(settings)))


def moves(port):
    return port.valid & port.ready


def beats(burst):
    return burst.length[:LIMIT.bit_length() - 1] + 1


def legal(h, valid, length, at):
    """What holds of an address, each time that it is valid."""
    h.check(LEGAL, ~valid | ((length < LIMIT) & (at[:5] == 0) & (at[5:12] + length < 128)))


def stays(h, port):
    h.check(HOLDS, held(h, Port("", True, port.valid, port.ready, port.p.as_value())))


def spare(inner, name, lengths):
    """Of a skid buffer for addresses: whether there is a second one, and its beats."""
    return inner[f"{name}.full"], inner[f"{name}.spare"][-8:][:lengths] + 1


def inductive(h, names, condition):
    """Adds what follows from the same, and without which it would not follow from the cycle before."""
    for name in names:
        if name in h.checks:
            h.check(name, condition)


def stored(inner, name):
    """Beats in a FIFO and behind its memory."""
    return inner[f"{name}.level"] + inner[f"{name}.fetched"] + inner[f"{name}.valid"]


def offers_whole(h, port, inner, name, begun, depth, behind=None, also=None):
    """A burst's address comes when all of its data is in the FIFO ``name`` of packets, which holds ``depth`` beats and
    besides only the beats ``begun`` of the next burst. ``behind``: whether there is a burst whose address is not yet
    seen, and its beats; ``also``: what else is true."""
    aw, w = port.aw, port.w
    owed = Signal(signed(8), name="owed")  # beats of bursts that are, or were, on offer and that have not left
    h.m.d.sync += owed.eq(owed + Mux(moves(aw), beats(aw.p), 0) - moves(w))
    visible = owed + Mux(aw.valid, beats(aw.p), 0)
    drains(h, (visible > 0) & ~w.valid, 3, STORED_FIRST)
    level = inner[f"{name}.level"]
    there = stored(inner, name)
    h.check(STORED_FIRST, there == visible + begun if behind is None else
            (there == visible + Mux(*behind, 0) + begun) & also)
    h.check(STORED_FIRST, (level == inner[f"{name}.whole"] + inner[f"{name}.done"] + inner[f"{name}.length"])
            & (inner[f"{name}.length"] == begun) & (level <= depth))


def reads(memory, outstanding, folder):
    stores = memory == "shared"
    names = ["under_way", "ar.full", "ar.spare"]
    if stores:
        names += [f"arrived.{name}" for name in ("level", "valid", "fetched", "i__ready")]
    h, unit, inner = master(Reader(WIDTH, outstanding, memory), folder, *names)
    h.near = "unit/o:axi__ar__* unit/o:*busy %u %ci4"
    ar, r = unit.axi.ar, unit.axi.r
    for places in (unit.ahead, unit.now):
        tensor(h, unit, places)
    constant(h, unit, unit.gather, unit.scaled, unit.scales)
    asked = Signal(range(2 * outstanding), name="asked")
    h.m.d.sync += asked.eq(asked + Mux(moves(ar), beats(ar.p), 0) - moves(r))
    h.assume(~r.valid | (asked != 0))
    legal(h, ar.valid, ar.p.length, ar.p.address)
    stays(h, ar)

    more, length = spare(inner, "ar", 3)
    offered = Mux(ar.valid, beats(ar.p), 0) + Mux(more, length, 0)
    kept = stored(inner, "arrived") if stores else Const(0)
    h.check(LIMITED, asked + offered <= outstanding)
    h.check(IDLE, unit.busy | ((asked == 0) & ~ar.valid))
    if stores:
        h.check(TAKEN, r.ready & ((asked == 0) | inner["arrived.i__ready"]))
        inductive(h, (LIMITED, IDLE, TAKEN), inner["arrived.i__ready"] == (inner["arrived.level"] != outstanding))
    # The unit's own count is that of all beats, wherever they are.
    inductive(h, (LIMITED, IDLE, TAKEN), (asked + offered + kept == inner["under_way"])
              & (inner["under_way"] <= outstanding) & (ar.valid | ~more))
    return h


def writes(memory, outstanding, folder):
    stores = memory == "shared"
    names = ["under_way", "count", "offered", *(f"w.i__{name}" for name in ("valid", "ready", "payload")),
             *(f"bursts.o__{name}" for name in ("valid", "ready", "payload")),
             *(f"aw.{name}" for name in ("full", "spare", "i__valid", "i__ready", "i__payload"))]
    if stores:
        names += [f"w.{name}" for name in ("level", "valid", "done", "fetched", "whole", "length")]
    h, unit, inner = master(Writer(WIDTH, outstanding, memory), folder, *names)
    aw, w, b = unit.axi.aw, unit.axi.w, unit.axi.b
    tensor(h, unit, unit.places)
    asked = Signal(range(2 * outstanding + 2), name="asked")
    whole = Signal(signed(6), name="whole")  # bursts that memory has all of: its data may come first
    h.m.d.sync += [asked.eq(asked + moves(aw) - moves(b)), whole.eq(whole + (moves(w) & w.p.last) - moves(b))]
    h.assume(~b.valid | ((asked != 0) & (whole > 0)))
    stays(h, aw)
    stays(h, w)

    more, length = spare(inner, "aw", 3)
    offers = inner["aw.i__valid"] & inner["aw.i__ready"]
    offered = inner["offered"]
    count = asked + aw.valid + more
    h.check(LIMITED, asked + aw.valid <= outstanding)
    h.check(IDLE, unit.busy | ((asked == 0) & ~aw.valid))
    inductive(h, (LIMITED, IDLE), (count == inner["under_way"] + offered) & (count <= outstanding) & (aw.valid | ~more))

    # As bursts are formed, and enter the buffer of addresses, and beats that of data. These are proved by themselves.
    formed, valid = inner["bursts.o__payload"], inner["bursts.o__valid"]
    legal(h, valid, formed[WIDTH:], formed[:WIDTH])
    formed, burst = (Cat(one[5:WIDTH], one[WIDTH:][:3]) for one in (formed, inner["aw.i__payload"]))
    enters = inner["w.i__valid"] & inner["w.i__ready"] & inner["w.i__payload"][-1]
    for name, comes, leaves, room, forgets in (
            (FORMED, (valid & inner["bursts.o__ready"] & ~unit.abort, formed), (offers & ~unit.abort, burst),
             GRANTED if stores else 0, unit.abort),
            (LENGTH, (offers, burst[-3:]), (enters, inner["count"]), 0 if stores else GRANTED, 0)):
        follow(h, *(Beat(event, [item], Const(1), Const(0)) for event, item in (comes, leaves)), room, forgets)
        h.checks[name] = h.checks.pop(ORDER) + h.checks.pop(ROOM)
    if stores:
        offers_whole(h, unit.axi, inner, "w", inner["count"], STORED, (more, length), aw.valid | ~more)
    return h


def carries(decompress, outstanding, folder):
    """The payload's port in one direction."""
    names = ["under_way", "first", "index", "room", "open_", "stores", "offered"]
    names += [f"arrived.{name}" for name in ("level", "valid", "fetched", "i__ready")]
    names += [f"stored.{name}" for name in ("level", "valid", "done", "fetched", "whole", "length",
                                              "i__payload")]
    h, unit, inner = master(payload.Payload(WIDTH, outstanding), folder, *names)
    h.assume(unit.decompress == decompress)
    constant(h, unit, unit.size[:5])
    h.assume(held(h, Port("", False, unit.i.valid, unit.i.ready, unit.i.p.as_value())))
    ar, r, aw, w, b = unit.reads.ar, unit.reads.r, unit.writes.aw, unit.writes.w, unit.writes.b
    at = inner["index"][:3] - inner["first"]  # the beat's place in its burst
    walk = ~unit.busy | (inner["first"] <= inner["index"][:3])
    asked = Signal(range(2 * outstanding + 2), name="asked")
    if decompress:
        h.m.d.sync += asked.eq(asked + Mux(moves(ar), beats(ar.p), 0) - moves(r))
        h.assume(~r.valid | (asked != 0))
        h.assume(~b.valid)
        channel, offered, kept = ar, Mux(ar.valid, beats(ar.p), 0), stored(inner, "arrived")
        h.check("writes nothing", ~aw.valid & ~w.valid)
        inductive(h, ("writes nothing",), (stored(inner, "stored") == 0) & ~inner["open_"])
    else:
        whole = Signal(signed(6), name="whole")  # bursts that memory has all of
        h.m.d.sync += [asked.eq(asked + moves(aw) - moves(b)), whole.eq(whole + (moves(w) & w.p.last) - moves(b))]
        h.assume(~b.valid | ((asked != 0) & (whole > 0)))
        h.assume(~r.valid)
        channel, offered, kept = aw, aw.valid, Const(0)
        stays(h, w)
        h.check("reads nothing", ~ar.valid)
        begun = Signal(4, name="begun")
        h.m.d.sync += begun.eq(Mux(inner["stores"], Mux(inner["stored.i__payload"][-1], 0, begun + 1), begun))
        h.check(LENGTH, ~inner["stores"] | (begun == at[:3]))
        inductive(h, (LENGTH,), walk & (begun == Mux(inner["open_"], at[:3], 0)) & (begun < LIMIT)
                  & (inner["open_"] == (begun != 0)))
        offers_whole(h, unit.writes, inner, "stored", begun, payload.STORED, (inner["offered"], beats(aw.p)),
                     ~(inner["offered"] & aw.valid))
        inductive(h, (STORED_FIRST,), begun < LIMIT)
    legal(h, channel.valid, channel.p.length, channel.p.address)
    inductive(h, (LEGAL,), walk)
    stays(h, channel)
    h.check(LIMITED, asked + offered <= outstanding)
    h.check(IDLE, unit.busy | ((asked == 0) & ~channel.valid))
    if decompress:
        h.check(TAKEN, r.ready & ((asked == 0) | inner["arrived.i__ready"]))
        inductive(h, (LIMITED, IDLE, TAKEN), inner["arrived.i__ready"] == (inner["arrived.level"] != outstanding))
    inductive(h, (LIMITED, IDLE, TAKEN), (asked + offered + kept == inner["under_way"])
              & (inner["under_way"] <= outstanding)
              & (~inner["room"] | channel.valid | (inner["under_way"] <= outstanding - LIMIT))
              & (~inner["offered"] | (~channel.valid & (inner["under_way"] <= outstanding - LIMIT))))
    return h


def proofs():
    every = [Proof("payload", "axi", lambda folder, way=way: carries(way, 16, folder),
                   f"{('writes', 'reads')[way]}, outstanding 16, {WIDTH} bits of address") for way in (0, 1)]
    return every + [
        Proof(unit, "axi", lambda folder, build=build, memory=memory, size=size: build(memory, size, folder),
              f"{memory} memory, outstanding {size}, {WIDTH} bits of address")
        for unit, build, size in (("reader", reads, 16), ("writer", writes, 5)) for memory in ("shared", "independent")]
