"""RLD goes on while its neighbours are willing, whatever the bytes are, and so ends.

Codes, and places and faults that follow from them, are anything in any cycle. One thing has to be known of them: the
64th symbol of a block completes it, and by then the block before has left. For no symbol takes less than a place, so
that a block of 64 has none without a value, and its first value in the last line to leave waits until that has left.
This is proved of one coder, and assumed of each.
"""

from amaranth.hdl import Mux, Signal

from actcodec.rtl.jpegact.runlength import RunLength
from actcodec.rtl.jpegact.runlength_coder import Coder
from actcodec.rtl.jpegact.zigzag import ZIGZAG
from formal.catalogue import Proof
from formal.inside import Inside

__all__ = ["COMPLETES", "DECODES", "completes", "decodes", "proofs"]

COMPLETES = "the 64th symbol completes its block, when the one before has left"
DECODES = "a row comes, a symbol is decoded, or a line leaves, until the last one has"
PATIENCE = 8  # willing cycles

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


def decodes(folder):
    """The harness for rows and lines."""
    component = RunLength(1)
    names = ["coder_0.phase", "coder_0.done", *(f"coder_0.decoder.{name}" for name in ("final", STEP, VALID, COMPLETE))]
    cut = [*(f"coder_0.decoder.{name}" for name in (*CUT, COMPLETE, GOOD, "column", "number")),
           *(f"coder_0.encoder.{name}" for name in ("ready", "store", "line_of", "closing", "word", "pick", "value"))]
    h = Inside(component, folder, *names, cut=cut)
    unit, inner, m = h.ports, h.inner, h.m
    i, o, (phase, done, final, step, valid, complete) = unit.rows, unit.o, inner.values()
    h.assume(~(valid & final) | (complete & ~done))
    comes, goes = i.valid & i.ready, o.valid & o.ready
    under, closing, owed, row = (Signal(bits, name=name) for bits, name in (
        (1, "under"), (1, "closing"), (1, "owed"), (3, "row")))
    m.d.sync += [row.eq(row + comes), under.eq(unit.start | (under & ~(comes & i.p.last))),
                 closing.eq(closing | (comes & i.p.last & h.free(1, "closes"))),
                 owed.eq((comes & i.p.last) | (owed & ~(goes & o.p.last)))]
    h.assume(unit.decompress & ~unit.i.valid & ~(unit.start & (under | owed)))
    h.assume(~i.valid | (under & ~closing & (~i.p.last | (row == 7))))
    h.check(DECODES, phase == 1 << row)
    moved = comes | goes | step | (closing & ~owed)
    h.check(DECODES, h.stuck(moved, (i.valid | closing) & o.ready, PATIENCE) <= PATIENCE)
    return h


def proofs():
    return [Proof("rle", "ends", completes, "rows to o, symbols of a block"),
            Proof("rle", "ends", decodes, f"rows to o, a coder, {PATIENCE} willing cycles, such symbols")]
