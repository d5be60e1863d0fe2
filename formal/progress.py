"""A unit of a lane goes on while its neighbours are willing, and so ends: liveness, as a property of safety.

Neighbours are willing in a cycle in which they offer all that the unit may wait for and take all that it offers. How
often they are, and when, is up to an adversary; so are the number of beats, what is in them, and where tensors end.
Whatever that is, within a bounded number of willing cycles the unit takes its next input, or, behind the last one, has
given its last output.
"""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.hdl import Cat, Mux, Signal, Value

from actcodec.rtl.comet.book import LENGTHS, Book
from actcodec.rtl.comet.payloads import LANES
from actcodec.rtl.offload.memory.tensor_plan import TensorPlan
from actcodec.units import UNITS
from formal.catalogue import Proof
from formal.harness import Harness
from formal.inside import Inside
from formal.marks import full
from formal.streams import walk
from formal.unpacking import adds_up

__all__ = ["DECODES", "DONE", "ENDS", "MOVES", "SYMBOLS", "WALKS", "Way", "book", "decodes", "ends", "moves", "plans",
           "proofs", "walks"]

ENDS = "it takes its next input, or has given its last output"
MOVES = "until its last output has gone, a beat comes or goes"
WALKS = "until the last place has gone, there is a next one"
SYMBOLS = "a book that is not refused has two symbols or more"
DECODES = "a round leaves, or there is none left to be decoded"
DONE = "it is done in time, whatever the descriptor"
WARM = 3  # cycles in which settings stand before a tensor begins


@dataclass(frozen=True)
class Way:
    """A way through a unit: its streams, the fields that are true on a tensor's last beat in them, and how many willing
    cycles are enough."""

    unit: str
    i: str
    o: str
    patience: int
    last: tuple[str, str] = ("edges.last", "edges.last")
    offers: tuple[str, ...] = ()  # other streams that come in
    takes: tuple[str, ...] = ()  # other streams that go out
    idle: tuple[str, ...] = ()  # streams of the other direction, on which nothing comes
    settings: tuple[str, ...] = ()  # inputs that stand
    decompress: int | None = None
    starts: bool = False  # there is a pulse `start` before each tensor, when the one before has left
    blocks: bool = False  # a tensor has eight beats for each block
    legal: Callable = lambda unit: ()  # of the unit: what its neighbours owe it besides
    options: tuple = ()


def coding(unit):
    """What Huffman coding is owed: the beat behind a tensor has zeros that are no outliers, and U is not 0, as no book
    of fewer than two symbols is complete (see :func:`book`). With U = 0 zeros were escapes, and the end had two steps.
    """
    p = unit.rounds_i.p
    empty = ~(Value.cast(p.data).any() | p.outliers.any())
    return ~unit.start, ~unit.rounds_i.valid | ~p.end | empty, unit.book.escape != 0


WAYS = (
    Way("dock", "sectors_i", "forth", 5, takes=("bytes_o",), idle=("back",), settings=("step",), decompress=0),
    Way("dock", "back", "sectors_o", 5, ("last", "last"), idle=("sectors_i",), settings=("step",), decompress=1),
    Way("prequantise", "i", "o", 12, settings=("step",)),
    Way("lorenzo", "differences_i", "differences_o", 2, idle=("sums_i",), decompress=0),
    Way("lorenzo", "sums_i", "sums_o", 3, idle=("differences_i",), decompress=1),
    Way("rounds", "sectors_i", "rounds_o", 4, ("edges.last", "end"), idle=("rounds_i", "walk"), decompress=0),
    Way("rounds", "walk", "sectors_o", 3, ("last", "edges.last"), ("rounds_i",), idle=("sectors_i",), decompress=1),
    Way("huffman", "rounds_i", "steps_o", 12, ("end", "end"), idle=("bytes_i",), settings=("book",), decompress=0,
        legal=coding, options=(("bounds", {ENDS: 30}), ("depth", 40))),
    Way("places", "i", "o", 9, ("last", "last"), starts=True),
    Way("reconstruct", "i", "o", 3, ("edges.last", "last"), settings=("step",)),
    Way("div", "i", "o", 9, ("last", "last"), settings=("decompress", "table")),
    Way("steps", "i", "o", 9, ("last", "last"), settings=("decompress", "table", "dead_zone")),
    *(Way(unit, i, o, patience, ("last", "last"), idle=idle, settings=settings, decompress=decompress,
          starts=unit != "zvc", blocks=True)
      for unit, settings, *ways in (("zvc", ("straight",), 12, 12), ("nibble", ("table",), 14, 8),
                                    ("rice", ("table",), 24, 24))
      for decompress, (i, o, idle, patience) in enumerate((("i", "chunks", ("rows",), ways[0]),
                                                           ("rows", "o", ("i",), ways[1])))),
    Way("beat_planner", "i", "o", 6, ("last", "burst.last"), settings=("scaled", "gather", "table")),
)


def _field(payload, path):
    for name in path.split("."):
        payload = getattr(payload, name)
    return payload


def ends(component, way):
    """The harness for the property."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    i, o = getattr(unit, way.i), getattr(unit, way.o)
    if way.decompress is not None:
        h.assume(unit.decompress == way.decompress)
    for name in way.settings:
        value = Value.cast(getattr(unit, name))
        h.assume(value == h.rigid(len(value), f"rigid_{name}"))
    for name in way.idle:
        h.assume(~getattr(unit, name).valid)
    comes, goes = i.valid & i.ready, o.valid & o.ready
    first, last = _field(i.p, way.last[0]), _field(o.p, way.last[1])
    for condition in way.legal(unit):
        h.assume(condition)
    edges = getattr(i.p, "edges", i.p)
    if "count" in edges.shape().members:
        h.assume(edges.count <= 8)
    if way.blocks:
        row = Signal(3, name="row")
        m.d.sync += row.eq(row + comes)
        h.assume(~i.valid | ~first | (row == 7))
    # Tensors follow one another, until one is the last.
    closing, owed, warm = Signal(name="closing"), Signal(4, name="owed"), Signal(range(WARM + 1), name="warm")
    h.assume(~i.valid | (~closing & (warm == WARM)))
    m.d.sync += [closing.eq(closing | (comes & first & h.free(1, "closes"))),
                 owed.eq(owed + (comes & first) - (goes & last)), warm.eq(warm + (warm != WARM))]
    if way.starts:
        coming = Signal(name="coming")
        m.d.sync += coming.eq(unit.start | (coming & ~(comes & first)))
        h.assume((~i.valid | coming) & ~(unit.start & (coming | (owed != 0))))
    willing = Cat(i.valid | closing, o.ready, *(getattr(unit, name).valid for name in way.offers),
                  *(getattr(unit, name).ready for name in way.takes)).all()
    h.check(ENDS, h.stuck(comes | (closing & (owed == 0)), willing, way.patience) <= way.patience)
    return h


def moves(component, patience):
    """The harness for a unit that counts a tensor's beats itself: until its last output has gone, whatever its number
    of blocks, a beat comes or goes within so many willing cycles."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    i, o = unit.i, unit.o
    under, was = Signal(name="under"), Signal(name="was")
    goes = o.valid & o.ready
    m.d.sync += [under.eq(unit.start | (under & ~(goes & o.p.last))), was.eq(unit.start | under)]
    for name in ("decompress", "layout", "blocks"):
        value = Value.cast(getattr(unit, name))
        h.assume(~was | (value == h.past(value)))
    h.assume(~(unit.start & under) & (unit.blocks != 0) & (unit.layout != 3) & ((unit.layout != 1) | ~unit.blocks[0]))
    h.check(MOVES, h.stuck(~under | (i.valid & i.ready) | goes, i.valid & o.ready, patience) <= patience)
    return h


def walks(component, patience):
    """The harness for the address generator: until the last place has gone, the next one is there in so many cycles."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    walk(h, unit)
    under, waits = Signal(name="under"), Signal(range(patience + 2), name="waits")
    m.d.sync += [under.eq(unit.start | (under & ~(unit.o.valid & unit.o.ready & unit.o.p.last))), waits.eq(0)]
    with m.If(under & ~unit.o.valid):
        m.d.sync += waits.eq(waits + (waits <= patience))
    h.check(WALKS, waits <= patience)
    return h


def decodes(component, patience, folder):
    """The harness for Huffman coding on the way back: bits are any, so what lanes hold is cut off."""
    names = ["step", *(f"unpacker.{name}" for name in ("stored", "closed", "known", "place_0", "place_2"))]
    h = Inside(component, folder, *names, cut=[f"held_{lane}" for lane in range(LANES)])
    unit, inner, m = h.ports, h.inner, h.m
    step, stored, done, known, *digits = inner.values()
    i, o, closed = unit.bytes_i, unit.rounds_o, Signal(name="closed")  # the stream's last beat is in
    m.d.sync += closed.eq(~unit.next & (closed | (i.valid & i.ready & i.p.last & ~unit.discarding)))
    h.assume(unit.decompress & ~unit.rounds_i.valid & (~i.valid | (~closed & full(i.p))))
    h.assume(~(unit.start & (unit.busy | unit.discarding)) & ~(unit.next & (unit.start | unit.busy)))
    willing = (i.valid | closed) & o.ready & unit.room & (unit.some | unit.ended)
    h.check(DECODES, h.stuck(~unit.busy | (o.valid & o.ready), willing, patience) <= patience)
    # What makes it easy: one step at a time; and what the unpacker knows of its bytes.
    h.check(DECODES, step.any() & ((step & (step - 1)) == 0))
    h.check(DECODES, (done == closed) & adds_up(stored, known, closed, digits, 8))
    return h


def book(component):
    """The harness for a code book: what is refused, and what not."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    h.drive(unit.counts, h.rigid(len(Value.cast(unit.counts)), "rigid_counts"))
    under = Signal(LENGTHS + 1, name="under")
    m.d.sync += under.eq(Cat(unit.start, under))
    h.assume(~(unit.start & under.any()))
    h.check(SYMBOLS, ~unit.done | unit.bad | (unit.tables.escape != 0))
    return h


def plans(component, patience):
    """The harness for the plan of a tensor, whether there can be such a tensor or not."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    under, was = Signal(name="under"), Signal(name="was")
    waits = Signal(range(patience + 2), name="waits")
    m.d.sync += [under.eq(unit.start | (under & ~unit.done)), was.eq(unit.start | was),
                 waits.eq(Mux(under & ~unit.done, waits + (waits <= patience), 0))]
    descriptor = Value.cast(unit.descriptor)
    h.assume(~(unit.start & under) & (~was | unit.start | (descriptor == h.past(descriptor))))
    h.check(DONE, waits <= patience)
    return h


def proofs():
    every = []
    for way in WAYS:
        note = f"{way.i} to {way.o}, {way.patience} willing cycles"
        every.append(Proof(way.unit, "ends", lambda _, way=way: ends(UNITS[way.unit].build(), way), note,
                           dict(way.options)))
    every.append(Proof("huffman", "ends", lambda folder: decodes(UNITS["huffman"].build(), 12, folder),
                       "bytes_i to rounds_o, 12 willing cycles"))
    every.append(Proof("book", "legal", lambda _: book(Book()), options={"depth": 20}))
    for cdus, patience in ((1, 73), (2, 87)):
        every.append(Proof("tensor_plan", "ends", lambda _, cdus=cdus, patience=patience: plans(
            TensorPlan(cdus, 32), patience), f"{cdus} CDU{'s' * (cdus > 1)}, 32 bits, {patience} cycles",
            {"bounds": {DONE: patience + 17}, "depth": patience + 17}))
    every.append(Proof("align", "ends", lambda _: moves(UNITS["align"].build(), 6), "6 willing cycles", {"depth": 50}))
    every.append(Proof("address_generator", "ends", lambda _: walks(UNITS["address_generator"].build(edges=True), 28),
                       "edges, 28 cycles", {"depth": 50}))
    return every
