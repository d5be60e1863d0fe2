"""RLE and RLD with any number of coders go on while their neighbours are willing, and so end, whatever the data is.

An argument by assumption and guarantee. Of one coder it is proved that it goes on whenever its turns come, but that it
may wait for its turn to leave: compressing with any block, as a long one needs what coders share; decompressing with a
complete one. Without a block, it has room (``formal/rle.py``, ``formal/rld.py``). Then it is proved that
:class:`~actcodec.rtl.jpegact.runlength.RunLength` gives its coders turns of that kind, and that the one whose turn it
is to leave has a block, or none is inside: both turns go around in the same order, so blocks are spread evenly. With D
blocks inside, the coder k places after the one that leaves next has ceil((D - k) / n) of them, and the next block goes
to the coder D places after it, modulo n. So one coder never waits for its turn; what the others do does not matter. The
last line or chunk of the last block is marked as the last one: its coder tells that no other block of its own is
inside, and that the tensor's last one was its own.
"""

from dataclasses import dataclass
from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Const, Mux, Signal

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact.rld import SLOTS
from actcodec.rtl.jpegact.runlength import MOST, RunLength
from formal.catalogue import Proof
from formal.inside import Inside

__all__ = ["COMPRESS", "DECOMPRESS", "GOES_ON", "KNOWN", "LAST", "MOVES", "SPREAD", "TURNS", "Turns", "Way", "deals",
           "proofs"]

GOES_ON = "a coder with a block goes on, or waits for its turn"
KNOWN = "a complete block has all of its lines, and tells whether it is the last one; an empty coder has room"
TURNS = "coders have turns, one block after the other"
SPREAD = "blocks are spread evenly among coders, from the one whose turn it is to leave"
LAST = "what is marked as the last is that of the last block"
MOVES = "a line comes, a symbol is coded, or a line leaves, until the last one has"

# What has no name of its own has the number that Amaranth gives it. Of another signal nothing here would hold.
PORTS = {"slot": "slot$10", "ends": "ends$65"} | {name: name for name in (
    "start", "decompress", "turn", "phase", "room", "enters", "more", "last", "mine", "done", "vacant", "leaving",
    "leaves", "closing")}  # of a coder that is part of a unit


@dataclass(frozen=True)
class Way:
    """A direction: streams in and out, and the other one's; willing cycles that are enough; blocks that a coder may
    have inside."""

    i: str
    o: str
    idle: str
    patience: int
    most: int


# Compressing: one block leaves, seven stages may each hold the end of another, one arrives, and the first line of the
# next may be here already. Decompressing: one block leaves, one is complete, one waits.
COMPRESS = Way("i", "chunks", "rows", 13, 10)
DECOMPRESS = Way("rows", "o", "i", 8, 3)


class Turns:
    """A coder's turns: what it is given, and what it makes of that.

    Parameters
    ----------
    h : Harness
    name : str
    way : Way
    coder
        Its ports.
    offered, free, step
        A line is offered to the coder whose turn it is; one may leave; this coder picks or decodes a symbol. What is
        called a line is a row or chunk where it is compressed.

    Attributes
    ----------
    assumed, guaranteed : list
        Conditions of what it is given, and of what follows: how long it may stand still, and what else is known. What
        is guaranteed in a cycle is about registers, or follows from such that say whose turn it is; so neither can be
        the first to fail.
    opens, left
        A block's first line comes; its last one leaves.
    inside, closed
        Blocks between the two; the last line that came was the tensor's last one, or none has come at all.
    row, final
        Which line of a block comes next; whether the complete block is the tensor's last one.
    stuck
        Willing cycles since it last went on.
    """

    def __init__(self, h, name, way, coder, offered, free, step):
        decompress = way is DECOMPRESS

        def register(bits, what, init=0):
            return Signal(bits, name=f"{name}_{what}", init=init)

        row, line, inside = register(3, "row"), register(3, "line"), register(range(way.most + 2), "inside")
        done, final, longer, closed = (register(1, what, what == "closed") for what in (
            "done", "final", "longer", "closed"))
        enters, leaves = offered & coder.turn & coder.room, free & coder.mine & coder.done
        opens, left = enters & (row == 0), leaves & (line == 7)
        h.m.d.sync += [row.eq(row + enters), line.eq(line + leaves), inside.eq(inside + opens - left),
                       done.eq(coder.ends | (done & ~left)), final.eq(Mux(coder.ends, coder.closing, final)),
                       longer.eq((row == 0) | coder.more), closed.eq(closed | (enters & coder.last))]
        with h.m.If(coder.start):
            h.m.d.sync += [row.eq(0), line.eq(0), inside.eq(0), done.eq(0), closed.eq(0)]
        slot = Cat(Cat(row == r for r in range(s, 8, SLOTS)).any() for s in range(SLOTS))
        self.assumed = [
            coder.decompress == decompress, ~coder.start | (inside == 0),
            coder.enters == enters, coder.leaves == leaves, coder.done == done,
            coder.turn | (row == 0), coder.mine | (line == 0),
            ~coder.turn | ((coder.phase == 1 << row) & (coder.slot == slot)),
            # A block that has no more bytes gets none.
            Const(not decompress) | ~coder.turn | (row == 0) | ~coder.more | longer,
            ~coder.mine | (coder.leaving == 1 << line), coder.vacant == Mux(coder.mine, ((1 << line) - 1)[:7], 0),
            ~enters | (~closed & (~coder.last | (row == 7)))]
        waits = (inside == 0) | ((done | (not decompress)) & ~coder.mine)
        self.stuck = h.stuck(coder.start | enters | leaves | step | waits, (offered | (row == 0)) & free, way.patience)
        self.guaranteed = [
            self.stuck <= way.patience, (inside <= way.most) & (~done | (inside > (row != 0))),
            ~done | (final == (closed & (inside == 1))), (inside != 0) | closed | ~coder.turn | coder.room]
        self.opens, self.left, self.inside, self.closed, self.row, self.final = opens, left, inside, closed, row, final

    def require(self, check):
        """Requires what it guarantees, by a method of the harness."""
        goes, *known = self.guaranteed
        check(GOES_ON, goes)
        for condition in known:
            check(KNOWN, condition)


def deals(coders, way, folder):
    """The harness for the turns of coders that guarantee so much."""
    each = [f"coder_{k}." for k in range(coders)]
    h = Inside(RunLength(coders), folder, "final", *(one + name for one in each for name in PORTS.values()),
               cut=[one + PORTS[port] for one in each for port in ("room", "ends", "closing")], absent=("coder_*.*",))
    unit, m, inner = h.ports, h.m, h.inner
    i, o, start, steps = getattr(unit, way.i), getattr(unit, way.o), unit.start, h.free(coders, "steps")
    turns = [Turns(h, f"turns_{k}", way, SimpleNamespace(**{port: inner[one + name] for port, name in PORTS.items()}),
                   i.valid, ~o.valid | o.ready, steps[k]) for k, one in enumerate(each)]
    comes, goes = i.valid & i.ready, o.valid & o.ready
    row, under, over, owed = (Signal(bits, name=name) for bits, name in (
        (3, "row"), (1, "under"), (1, "over"), (1, "owed")))
    # Each coder has so many blocks, and this many coders, from the one whose turn it is to leave, have one more.
    each_has, more = Signal(range(way.most + 2), name="each_has"), Signal(range(max(coders, 2)), name="more")
    inside = (each_has != 0) | (more != 0)
    newest = Mux(more == 0, coders - 1, more - 1)  # turns from the coder that leaves to that of the newest block
    opens, left = (Cat(bits).any() for bits in zip(*((one.opens, one.left) for one in turns), strict=True))
    with m.If(opens & ~left):
        m.d.sync += [more.eq(Mux(more == coders - 1, 0, more + 1)), each_has.eq(each_has + (more == coders - 1))]
    with m.Elif(left & ~opens):
        m.d.sync += [more.eq(newest), each_has.eq(each_has - (more == 0))]
    m.d.sync += [row.eq(row + comes), under.eq(start | (under & ~(comes & i.p.last))),
                 over.eq(~start & (over | (comes & i.p.last))),
                 owed.eq((comes & i.p.last) | (owed & ~(goes & o.p.last)))]
    h.assume((unit.decompress == (way is DECOMPRESS)) & ~getattr(unit, way.idle).valid & ~(start & (under | owed)))
    h.assume(~i.valid | (under & (~i.p.last | (row == 7))))
    for path, one, final in zip(each, turns, inner["final"], strict=True):
        for condition in one.guaranteed:
            h.assume(condition)
        for condition in (*one.assumed, (one.row == row) | ~inner[f"{path}turn"],
                          (one.final == final) | ~inner[f"{path}done"]):
            h.jointly(TURNS, condition)

    turn, mine = (Cat(inner[one + name] for one in each) for name in ("turn", "mine"))
    h.jointly(SPREAD, Cat(mine == 1 << k for k in range(coders)).any())
    h.jointly(SPREAD, turn == Array(mine.rotate_left(k) for k in range(coders))[Mux(row == 0, more, newest)])
    h.jointly(SPREAD, ((row == 0) | (under & inside)) & (more < coders))
    h.jointly(LAST, ~(over & under) & (over | under | ~inside))
    h.jointly(LAST, owed == (over & (inside | o.valid)))
    h.jointly(LAST, ~o.valid | (o.p.last == (over & ~inside)))
    for k in range(coders):
        behind = [turns[(first + k) % coders] for first in range(coders)]
        count, closed = (choose(zip(mine, values, strict=True)) for values in (
            [one.inside for one in behind], [one.closed for one in behind]))
        h.jointly(SPREAD, count == each_has + (k < more))
        h.jointly(LAST, Mux(inside, closed == (over & (newest == k)), ~(closed & under)))
    moved = Cat(start, comes, goes, steps, ~(under | owed), *(inner[f"{one}leaves"] for one in each))
    stuck = h.stuck(moved.any(), (i.valid | ~under) & o.ready, way.patience)
    h.jointly(MOVES, stuck <= choose((mine[k], one.stuck) for k, one in enumerate(turns)))
    h.jointly(MOVES, stuck <= way.patience)
    return h


def proofs():
    return [Proof("rle", "ends", lambda folder, way=way, coders=coders: deals(coders, way, folder),
                  f"{way.i} to {way.o}, coders {coders}, {way.patience} willing cycles, such turns")
            for way in (COMPRESS, DECOMPRESS) for coders in range(1, MOST + 1)]
