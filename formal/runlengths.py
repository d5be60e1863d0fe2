"""RLD goes on while its neighbours are willing, whatever the bytes are, and so ends, also with several coders.

Codes, and places and faults that follow from them, are anything in any cycle. One thing has to be known of them: the
64th symbol of a block completes it, and by then the block before has left. For no symbol takes less than a place, so
that a block of 64 has none without a value, and its first value in the last line to leave waits until that has left.
This is proved of one coder, and assumed of each.

The rest is an argument by assumption and guarantee. A coder with a block goes on, except that one that is complete
waits for its turn to leave; without a block, it has room. This is proved of one coder, whenever its turns come. Then it
is proved that :class:`~actcodec.rtl.jpegact.runlength.RunLength` gives its coders turns of that kind, and that the one
whose turn it is to leave has a block, or none is inside: both turns go around in the same order, so blocks are spread
evenly. With D blocks inside, the coder k places after the one that leaves next has ceil((D - k) / n) of them, and the
next block goes to the coder D places after it, modulo n. So one coder never waits for its turn; what the others do does
not matter. The last line of the last block is marked as the last one: its coder tells that no other block of its own
is inside, and that the tensor's last row was its own.
"""

from types import SimpleNamespace

from amaranth.hdl import Array, Cat, Mux, Signal

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.jpegact.rld import SLOTS
from actcodec.rtl.jpegact.runlength import RunLength
from actcodec.rtl.jpegact.runlength_coder import Coder
from actcodec.rtl.jpegact.zigzag import ZIGZAG
from formal.catalogue import Proof
from formal.inside import Inside

__all__ = ["COMPLETES", "DECODES", "GOES_ON", "KNOWN", "LAST", "SPREAD", "TURNS", "completes", "deals", "goes_on",
           "proofs"]

COMPLETES = "the 64th symbol completes its block, when the one before has left"
GOES_ON = "a coder with a block goes on, or its block is complete and waits for its turn"
KNOWN = "a complete block has all of its rows, and tells whether it is the last one; an empty coder has room"
TURNS = "coders have turns, one block after the other"
SPREAD = "blocks are spread evenly among coders, from the one whose turn it is to leave"
LAST = "the last line is that of the last block"
DECODES = "a row comes, a symbol is decoded, or a line leaves, until the last one has"
PATIENCE = 8  # willing cycles
MOST = 3  # blocks in a coder: one leaves, one is complete, one waits

# What has no name of its own has the number that Amaranth gives it. Of another signal nothing here would hold.
STEP, VALID, COMPLETE, GOOD, WHERE, OWN = "$signal", "$signal$99", "$signal$96", "$signal$94", "$signal$85", "own$116"
PORTS = {"slot": "slot$10", "ends": "ends$65"} | {name: name for name in (
    "start", "decompress", "turn", "phase", "room", "enters", "more", "last", "mine", "done", "vacant", "leaving",
    "leaves", "closing")}  # of a coder that is part of a unit
CUT = ("over", "looked_up", "left", "taken")  # what follows from codes


def completes(folder):
    """The harness for one coder, whatever comes and leaves."""
    component = Coder()
    names = [f"decoder.{name}" for name in ("number", "idle", "final", "ready", "write", "column", "ends", VALID,
                                            COMPLETE, WHERE, OWN)]
    h = Inside(component, folder, *names, cut=[f"decoder.{name}" for name in CUT])
    unit, inner = h.ports, h.inner
    number, idle, final, ready, write, column, ends, valid, complete, where, own = inner.values()
    h.assume(unit.decompress)
    done, last_line = Signal(name="done"), min(p for p, (_, line) in enumerate(ZIGZAG) if line == 7)
    h.m.d.sync += done.eq(~unit.start & (unit.ends | (done & ~h.free(1, "leaves"))))
    h.drive(unit.done, done)
    h.check(COMPLETES, ~(valid & final) | (complete & (where == 63) & ~done))
    h.check(COMPLETES, Mux(idle, number == 0, where + valid >= number))
    h.check(COMPLETES, idle | ~ends | (number <= 2))  # that is the end of the block before
    # While no symbol has taken more than one place, the block is not in its last line, or waits with the first value
    # of that.
    waits = (where == last_line + 1) & ready & write & (column == 1 << 7) & ~own
    h.check(COMPLETES, idle | ~done | (where + valid > number) | (where <= last_line) | waits)
    return h


class Turns:
    """A coder's turns: what it is given, and what it makes of that.

    Parameters
    ----------
    h : Harness
    name : str
    coder
        Its ports.
    offered, free, step
        A row is offered to the coder whose turn it is; a line may leave; this coder decodes a symbol.

    Attributes
    ----------
    assumed, guaranteed : list
        Conditions of what it is given, and of what follows: how long it may stand still, and what else is known. What
        is guaranteed in a cycle is about registers, or follows from such that say whose turn it is; so neither can be
        the first to fail.
    opens, left
        A block's first row comes; its last line leaves.
    inside, closed
        Blocks between the two; the last row that came was the tensor's last one, or none has come at all.
    stuck
        Willing cycles since it last went on.
    """

    def __init__(self, h, name, coder, offered, free, step):
        def register(bits, what, init=0):
            return Signal(bits, name=f"{name}_{what}", init=init)

        row, line, inside = register(3, "row"), register(3, "line"), register(3, "inside")
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
            coder.decompress, ~coder.start | (inside == 0), coder.enters == enters, coder.leaves == leaves,
            coder.done == done, coder.turn | (row == 0), coder.mine | (line == 0),
            ~coder.turn | ((coder.phase == 1 << row) & (coder.slot == slot)),
            ~coder.turn | (row == 0) | ~coder.more | longer,  # a block that has no more bytes gets none
            ~coder.mine | (coder.leaving == 1 << line), coder.vacant == Mux(coder.mine, ((1 << line) - 1)[:7], 0),
            ~enters | (~closed & (~coder.last | (row == 7)))]
        waits = (inside == 0) | (done & ~coder.mine)
        self.stuck = h.stuck(coder.start | enters | leaves | step | waits, (offered | (row == 0)) & free, PATIENCE)
        self.guaranteed = [
            self.stuck <= PATIENCE, (inside <= MOST) & (~done | (inside > (row != 0))),
            ~done | (final == (closed & (inside == 1))), (inside != 0) | closed | ~coder.turn | coder.room]
        self.opens, self.left, self.inside, self.closed = opens, left, inside, closed


def goes_on(folder):
    """The harness for a coder, whenever its turns come."""
    cut = [*(f"decoder.{name}" for name in (*CUT, COMPLETE, GOOD, "column", "number")),
           *(f"encoder.{name}" for name in ("ready", "store", "line_of", "closing", "word", "pick", "value"))]
    h = Inside(Coder(), folder, *(f"decoder.{name}" for name in ("final", STEP, VALID, COMPLETE)), cut=cut)
    final, step, valid, complete = h.inner.values()
    turns = Turns(h, "turns", h.ports, h.free(1, "offered"), h.free(1, "free"), step)
    for condition in (*turns.assumed, ~(valid & final) | (complete & ~h.ports.done)):
        h.assume(condition)
    goes, *known = turns.guaranteed
    h.check(GOES_ON, goes)
    for condition in known:
        h.check(KNOWN, condition)
    return h


def deals(coders, folder):
    """The harness for the turns of coders that guarantee so much."""
    each = [f"coder_{k}." for k in range(coders)]
    h = Inside(RunLength(coders), folder, *(one + name for one in each for name in PORTS.values()),
               cut=[one + PORTS[port] for one in each for port in ("room", "ends", "closing")], absent=("coder_*.*",))
    unit, m, inner = h.ports, h.m, h.inner
    i, o, start, steps = unit.rows, unit.o, unit.start, h.free(coders, "steps")
    turns = [Turns(h, f"turns_{k}", SimpleNamespace(**{port: inner[one + name] for port, name in PORTS.items()}),
                   i.valid, ~o.valid | o.ready, steps[k]) for k, one in enumerate(each)]
    comes, goes = i.valid & i.ready, o.valid & o.ready
    row, under, over, owed, inside = (Signal(bits, name=name) for bits, name in (
        (3, "row"), (1, "under"), (1, "over"), (1, "owed"), (range(MOST * coders + 1), "inside")))
    m.d.sync += [row.eq(row + comes), under.eq(start | (under & ~(comes & i.p.last))),
                 over.eq(~start & (over | (comes & i.p.last))),
                 owed.eq((comes & i.p.last) | (owed & ~(goes & o.p.last))),
                 inside.eq(inside + Cat(one.opens for one in turns).any() - Cat(one.left for one in turns).any())]
    h.assume(unit.decompress & ~unit.i.valid & ~(start & (under | owed)))
    h.assume(~i.valid | (under & (~i.p.last | (row == 7))))
    for one in turns:
        for condition in one.guaranteed:
            h.assume(condition)
        for condition in one.assumed:
            h.jointly(TURNS, condition)

    turn, mine = (Cat(inner[one + name] for one in each) for name in ("turn", "mine"))
    h.jointly(SPREAD, Cat(mine == 1 << k for k in range(coders)).any())
    h.jointly(SPREAD, turn == Array(mine.rotate_left(k) for k in range(coders))[(inside - (row != 0)) % coders])
    h.jointly(SPREAD, (row == 0) | (under & (inside != 0)))
    h.jointly(LAST, ~(over & under) & (over | under | (inside == 0)))
    h.jointly(LAST, owed == (over & ((inside != 0) | o.valid)))
    h.jointly(LAST, ~o.valid | (o.p.last == (over & (inside == 0))))
    for k in range(coders):
        places = range(k, MOST * coders, coders)  # blocks before that of the coder k places behind
        behind = [turns[(first + k) % coders] for first in range(coders)]
        count, closed = (choose(zip(mine, values, strict=True)) for values in (
            [one.inside for one in behind], [one.closed for one in behind]))
        h.jointly(SPREAD, count == sum(inside > place for place in places))
        h.jointly(LAST, Mux(inside == 0, ~(closed & under),
                            closed == (over & Cat(inside == place + 1 for place in places).any())))
    moved = Cat(start, comes, goes, steps, ~(under | owed), *(inner[f"{one}leaves"] for one in each))
    stuck = h.stuck(moved.any(), (i.valid | ~under) & o.ready, PATIENCE)
    h.jointly(DECODES, stuck <= choose((mine[k], one.stuck) for k, one in enumerate(turns)))
    h.jointly(DECODES, stuck <= PATIENCE)
    return h


def proofs():
    return [Proof("rle", "ends", completes, "rows to o, symbols of a block"),
            Proof("rle", "ends", goes_on, f"rows to o, turns of a coder, {PATIENCE} willing cycles, such symbols"),
            *(Proof("rle", "ends", lambda folder, coders=coders: deals(coders, folder),
                    f"rows to o, coders {coders}, {PATIENCE} willing cycles, such turns") for coders in (1, 2, 4))]
