"""SSDC's decoder ends while its neighbours are willing, whatever its arrays are: something moves, and no more than a
tensor's sectors come.

For the first it is enough that the unpacker of values goes on (formal/unpacking.py). The second one is a matter of
numbers, of rows that are left and of sectors of a row; a harness counts them once more, with what another one proves of
each cycle. What columns are in the window is anything in any cycle.
"""

from amaranth.hdl import Cat, Mux, Signal

from actcodec.units import UNITS
from formal.catalogue import Proof
from formal.inside import Inside
from formal.marks import full
from formal.unpacking import adds_up

__all__ = ["LEAVES", "MOVES", "SECTORS", "STEPS", "Counts", "Decoder", "moves", "proofs", "sectors", "steps"]

MOVES = "until the next length may come, a beat comes or goes"
STEPS = "rows open one after the other, and the last one ends with its last sector"
LEAVES = "the last sector that is found is the last one that leaves"
SECTORS = "the last sector is that of the length"
AHEAD = 5  # willing cycles while sectors come
PATIENCE = 15  # and after them, while a word of counts has sixteen pieces


class Decoder(Inside):
    """The harness of a decoder, its streams of arrays, and how far it is."""

    def __init__(self, folder, *names):
        super().__init__(UNITS["ssdc_decode"].build(), folder, *names, cut=[f"entry_{k}" for k in range(16)])
        ports = self.ports
        self.arrays = values, *others = ports.values, ports.columns, ports.counts
        self.starts, self.busy = ports.length.valid & ports.length.ready, ~ports.length.ready
        self.goes = ports.o.valid & ports.o.ready
        self.assume((~values.valid | values.p.last | (values.p.count == 8)) & (values.p.count <= 8))
        for port in others:
            self.assume((~port.valid | full(port.p)) & (port.p.count <= len(port.p.data)))


def moves(folder):
    """The harness for the first."""
    h = Decoder(folder, "unjudged", "probe", "columns.index", "counts.index", *(f"values.{name}" for name in (
        "discarding", "next", "stored", "known", "closed", "place_0", "place_2")))
    unjudged, probe, piece, count, discarding, forgets, stored, known, closed, *digits = h.inner.values()
    m, busy, o = h.m, h.busy, h.ports.o
    # Arrays that are in, without those of tensors that have ended; of values also those of the next tensor.
    done, comes = h.past(busy) & ~busy, [port.valid & port.ready for port in h.arrays]
    arrays = [Signal(2, name=f"arrays_{k}") for k in range(len(comes))]
    values, columns, counts = present = [(one - done)[:2] for one in arrays]
    m.d.sync += [one.eq(now + (moved & port.p.last))
                 for one, now, moved, port in zip(arrays, present, comes, h.arrays, strict=True)]
    willing = Cat(port.valid | now.any() for port, now in zip(h.arrays, present, strict=True)).all() & o.ready
    stuck = h.stuck(~busy | h.goes | Cat(comes).any(), willing, PATIENCE)
    h.check(MOVES, stuck <= PATIENCE)
    # Until the last sector has left, sectors leave; then counts are taken, and what is left of columns.
    finished, cleared = Signal(name="finished"), Signal(name="cleared")
    m.d.sync += [finished.eq(busy & (finished | (h.goes & o.p.last))), cleared.eq(busy & (cleared | forgets))]
    behind = Mux(~counts.any(), count, Mux(~columns.any(), piece, 1))
    h.check(MOVES, ~busy | (stuck <= Mux(finished, behind, AHEAD)))
    h.check(MOVES, (values == closed + (busy & cleared & ~discarding)) & (columns <= busy) & (counts <= busy))
    h.check(MOVES, ~(probe & unjudged) & adds_up(stored, known, closed, digits, 8))
    return h


class Counts(Decoder):
    """The same, with sectors of a row counted once more."""

    def __init__(self, folder):
        super().__init__(folder, "giving", "row_last", "end", "behind", "partial", "opens", "go")
        self.giving, self.row_last, self.end, self.behind, self.partial, self.opens, self.go = self.inner.values()
        self.sector, self.opened = Signal(5, name="sector"), Signal(name="opened")
        ends = self.go & self.sector.all()
        self.m.d.sync += [
            self.sector.eq(Mux(self.starts, 0, self.sector + self.go)),
            self.opened.eq(Mux(self.starts, ~self.ports.length.p.any(), self.opens | (self.opened & ~ends))),
        ]
        # Whether one row is left, which the unit knows a cycle late.
        self.next_last = self.past(~self.behind[1:].any() & (self.behind[0] ^ self.partial), name="next_last")
        final = self.go & self.row_last & (self.sector == self.end[3:])
        started, opened = self.past(self.starts), self.past(self.opens)
        self.steps = Cat(
            ~self.go | (self.giving & self.opened),
            ~self.opens | (self.giving & (~self.opened | (ends & ~final))),
            ~(self.opens & (opened | started)),
            self.giving == (started | self.past(self.giving & ~final)),
            started | (self.row_last == self.past(Mux(self.opens, self.next_last, self.row_last))),
        ).all()


def steps(folder):
    """The harness for what is true of each cycle."""
    h = Counts(folder)
    o, inside = h.ports.o, Signal(3, name="inside")
    h.m.d.sync += inside.eq(inside + h.go - h.goes)
    h.check(STEPS, h.steps)
    h.check(LEAVES, ~o.valid | (o.p.last == (~h.giving & (inside == 1))))
    return h


def sectors(folder):
    """The harness for the second."""
    h = Counts(folder)
    h.assume(h.steps)
    length, left = h.ports.length.p, Signal(30, name="left")
    h.m.d.sync += left.eq(Mux(h.starts, Mux(length.any(), (length + 7) >> 3, 1), left - h.go))
    rows, last = (h.behind + h.partial)[:25], h.end[3:]  # rows that are not open, and the last sector of the last one
    h.check(SECTORS, h.giving == left.any())
    # As many as rows have that are to come, and this one.
    h.check(SECTORS, ~h.giving | (left == (
        Mux(h.row_last, 0, (rows - ~h.opened) << 5) + last - h.sector + 1)[:len(left)]))
    h.check(SECTORS, ~h.giving | h.opened | (h.sector == 0))
    h.check(SECTORS, ~h.giving | Mux(h.row_last, h.opened & (h.sector <= last), rows.any()))
    h.check(SECTORS, ~h.giving | h.past(h.starts | h.opens) | (h.next_last == (rows == 1)))
    return h


def proofs():
    return [Proof("ssdc_decode", "ends", moves, f"{PATIENCE} willing cycles"),
            Proof("ssdc_decode", "ends", steps, "rows and sectors"),
            Proof("ssdc_decode", "ends", sectors, "such rows and sectors")]
