"""COMET's interleaving goes on while its neighbours are willing, as its FIFOs are as deep as lengths of codes demand.

No tool finds by itself why. So one harness counts the bits that a lane has given, remembers how many they were when
each step came that may still wait, and says of both FIFOs what follows: the argument of
:class:`~actcodec.rtl.comet.interleave.Interleave`, each line of which follows from the others a cycle earlier. It
counts bits modulo 256 and bytes modulo 32, more than can be inside. The other harness assumes of each lane what the
first one proves of any.
"""

from itertools import pairwise

from amaranth.hdl import Array, Cat, Mux, Signal

from actcodec.rtl.comet.interleave import BYTES, SPARE, STEPS
from actcodec.rtl.comet.payloads import LANES
from actcodec.units import UNITS
from formal.catalogue import Proof
from formal.inside import Inside
from formal.progress import MOVES

__all__ = ["deep", "moves", "proofs"]

DEEP = "bytes that are given and not asked for wait: behind 23 steps none is missing, before them there is room"
FIFOS = "levels of FIFOs agree with their flags, and nothing comes when one is full"
BEGINS = "a tensor begins with nothing inside"
GIVEN = "a step gives 1 to 8 bits"
ASKS = "a step asks for the bytes in which it has the first bit"
ASKED = "so many bytes have been asked for when a step leaves"
DEPTH = STEPS + SPARE  # of the FIFO of steps
FEW = STEPS - 1  # steps that may wait for a byte
NEGATIVE = 28  # of numbers of bytes, modulo 32
PATIENCE = 2


class Fifo:
    """The state of a FIFO: ``count`` words, ``some`` in its output register; ``full``; ``sound`` in itself."""

    def __init__(self, level, some, any_, depth):
        self.some, self.count, self.full = some, (level + some)[:5], level == depth - 1
        self.sound = (level < depth) & (any_ == level.any()) & (some | ~any_)


class Interleaver:
    """A harness, and what is inside of its unit."""

    def __init__(self, folder):
        component = UNITS["interleave"].build()
        parts = ("level", "some", "any")
        words = [f"step_{k}" for k in range(DEPTH - 1)]
        lanes = [[f"{name}_{lane}" for lane in range(LANES)] for name in ("part", "byte")]
        names = ["full", "goes", "clear", "ending", "opening", "finished", "leaving", "final", "asks", "step_head",
                 *words, *lanes[0], *(f"{name}_{part}" for name in ("step", *lanes[1]) for part in parts)]
        self.h = h = Inside(component, folder, *names)
        self.unit, self.inner = unit, inner = h.ports, h.inner
        self.words = [inner[name] for name in (*words, "step_head")]  # the newest one first, the next one last
        self.parts = [inner[name] for name in lanes[0]]
        self.bytes = [[inner[f"{name}_{part}"] for part in parts] for name in lanes[1]]
        self.steps = Fifo(*(inner[f"step_{part}"] for part in parts), DEPTH)
        self.comes, self.leaves = unit.i.valid & unit.i.ready, unit.o.valid & unit.o.ready
        self.reset = inner["clear"] & ~inner["ending"]  # the cycle after one, in which nothing comes

    def __getattr__(self, name):
        return self.inner[name]


def _deep(fifo, inside, head):
    """What is proved of one lane, and assumed of each."""
    asked = inside.opening | (inside.steps.some & head)
    return Cat(~fifo.full | (inside.steps.count > FEW),
               inside.ending | (inside.steps.count <= FEW) | ~asked | fifo.some).all()


def deep(folder):
    """The harness for one lane."""
    unit = Interleaver(folder)
    h, m, i, steps, ending = unit.h, unit.h.m, unit.unit.i, unit.steps, unit.ending
    lane = h.rigid(range(LANES), "lane")
    takes = unit.comes & ~i.p.end
    size, part = i.p.size[lane], Array(unit.parts)[lane]
    asks, *words, head = ((word >> lane)[0] for word in (unit.asks, *unit.words))
    fifo = Fifo(*(Array(signals)[lane] for signals in zip(*unit.bytes, strict=True)), BYTES + SPARE)

    def having(bits):
        """Bytes that have any of so many bits."""
        return (bits + 7)[3:8]

    # The lane's bits, also when each of the last steps came; bytes asked for, and one until the first ones have left.
    bits, asked, begun = Signal(8, name="bits"), Signal(5, init=1, name="asked"), Signal(name="begun")
    given = [Signal(8, name=f"given_{k}") for k in range(DEPTH)]
    with m.If(unit.finished):
        m.d.sync += [bits.eq(0), asked.eq(1), begun.eq(0)]
    with m.Else():
        m.d.sync += asked.eq(asked + (unit.goes & ~unit.opening & head))
        with m.If(takes):
            m.d.sync += [begun.eq(1), bits.eq(bits + size + 1), given[0].eq(bits),
                         *(after.eq(before) for before, after in pairwise(given))]
    first = Array([given[-1], *given])[steps.count]  # the next step that leaves
    h.jointly(FIFOS, Mux(unit.reset, unit.full, unit.full | ~(fifo.full | steps.full)))
    h.jointly(FIFOS, fifo.sound & steps.sound)
    h.jointly(BEGINS, Mux(begun, ~unit.reset & (~unit.opening | steps.some), unit.opening & ~steps.some & (bits == 0)))
    h.jointly(BEGINS, unit.clear | Mux(ending, (part == 0) & asks, (part == bits[:3]) & (begun | asks)))
    # A step gives 1 to 8 bits, and asks for the bytes in which it has any.
    for k, before in enumerate(given):
        since = (bits - before)[:8]
        h.jointly(GIVEN, ~((steps.count > k) | (begun & (k == 0))) | ((since > k) & (since <= 8 * (k + 1))))
    for k, (before, after, word) in enumerate(zip(given[1:], given[:-1], words, strict=True)):
        h.jointly(ASKS, (unit.step_level <= k) | (word == (having(after) - having(before))[:5]))
    h.jointly(ASKS, ~begun | ending | (asks == (having(bits) - having(given[0]))[:5]))
    # So many bytes have been asked for when the next step leaves; of what has been given, the others wait.
    now = Mux(steps.some, having(first) - head, Mux(ending, having(given[0]), having(bits) - asks))
    h.jointly(ASKED, asked == Mux(begun | ~(ending | unit.reset), now + 2, 1)[:5])
    h.jointly(ASKED, ~unit.opening | ((asked == 1) & (~steps.some | (first == 0))))
    waits = (Mux(ending, having(bits), bits[3:]) - asked + unit.opening)[:5]
    h.jointly(DEEP, fifo.count == Mux(ending & (waits >= NEGATIVE), 0, waits))
    h.jointly(DEEP, _deep(fifo, unit, head))
    return h


def moves(folder):
    """The harness for all lanes."""
    unit = Interleaver(folder)
    h, m, i, o, steps, ending = unit.h, unit.h.m, unit.unit.i, unit.unit.o, unit.steps, unit.ending
    fifos = [steps, *(Fifo(*signals, BYTES + SPARE) for signals in unit.bytes)]
    for lane, fifo in enumerate(fifos[1:]):
        h.assume(_deep(fifo, unit, unit.words[-1][lane]))
    # Tensors follow one another, until one is the last.
    closing, owed = Signal(name="closing"), Signal(2, name="owed")
    h.assume(~i.valid | ~closing)
    m.d.sync += [closing.eq(closing | (unit.comes & i.p.end & h.free(1, "closes"))),
                 owed.eq(owed + (unit.comes & i.p.end) - (unit.leaves & o.p.last))]
    moved = unit.comes | unit.leaves | unit.clear | (closing & (owed == 0))
    stuck = h.stuck(moved, (i.valid | closing) & o.ready, PATIENCE)
    h.check(MOVES, Mux(stuck == 0, 1, Mux(stuck == 1, unit.leaving | o.valid, (stuck == PATIENCE) & o.valid)))
    h.check(MOVES, owed == ending + (unit.leaving & unit.final) + (o.valid & o.p.last))
    h.check(MOVES, Cat(fifo.sound for fifo in fifos).all())
    h.check(MOVES, Mux(unit.reset, unit.full, unit.full == Cat(fifo.full for fifo in fifos).any()))
    return h


def proofs():
    return [Proof("interleave", "ends", deep, "bytes of any lane"),
            Proof("interleave", "ends", moves, f"{PATIENCE} willing cycles, such bytes")]
