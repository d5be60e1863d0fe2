"""RLD: a coder goes on while its neighbours are willing, whatever the bytes are, whenever its turns come.

Codes, and places and faults that follow from them, are anything in any cycle. One thing has to be known of them: the
64th symbol of a block completes it, and by then the block before has left. For no symbol takes less than a place, so
that a block of 64 has none without a value, and its first value in the last line to leave waits until that has left.
What is guaranteed of turns in return, and what follows for several coders, is in ``formal/runlength.py``.
"""

from amaranth.hdl import Mux, Signal

from actcodec.rtl.jpegact.runlength_coder import Coder
from actcodec.rtl.jpegact.zigzag import ZIGZAG
from formal.catalogue import Proof
from formal.inside import Inside
from formal.runlength import DECOMPRESS, Turns

__all__ = ["COMPLETES", "completes", "goes_on", "proofs"]

COMPLETES = "the 64th symbol completes its block, when the one before has left"

# What has no name of its own has the number that Amaranth gives it. Of another signal nothing here would hold.
STEP, VALID, COMPLETE, GOOD, WHERE, OWN = "$signal", "$signal$99", "$signal$96", "$signal$94", "$signal$85", "own$116"
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


def goes_on(folder):
    """The harness for a coder, whenever its turns come."""
    cut = [*(f"decoder.{name}" for name in (*CUT, COMPLETE, GOOD, "column", "number")),
           *(f"encoder.{name}" for name in ("ready", "store", "line_of", "closing", "word", "pick", "value"))]
    h = Inside(Coder(), folder, *(f"decoder.{name}" for name in ("final", STEP, VALID, COMPLETE)), cut=cut)
    final, step, valid, complete = h.inner.values()
    turns = Turns(h, "turns", DECOMPRESS, h.ports, h.free(1, "offered"), h.free(1, "free"), step)
    for condition in (*turns.assumed, ~(valid & final) | (complete & ~h.ports.done)):
        h.assume(condition)
    turns.require(h.check)
    return h


def proofs():
    willing = f"{DECOMPRESS.patience} willing cycles"
    return [Proof("rle", "ends", completes, "rows to o, symbols of a block"),
            Proof("rle", "ends", goes_on, f"rows to o, turns of a coder, {willing}, such symbols")]
