"""Whose block is next: turns, counted out in the order of memory."""

from amaranth.hdl import Cat, Mux, Signal

from actcodec.rtl.offload.wire.round_robin import GROUP, RoundRobin
from formal.catalogue import Proof
from formal.harness import Harness
from formal.inside import peeked

__all__ = ["DEALT", "SHARE", "model", "proofs"]

DEALT = "every block once; in each run of groups the blocks 0 of all CDUs, then the blocks 1 and so on"
SHARE = "no CDU gets more than its share of the blocks, and in the end all of it"


def turns(cdus, folder):
    h = Harness(component := RoundRobin(cdus), peeked(component, folder, "left", "upper", "borrow", "index"))
    seen, late, at = Signal(32, name="seen"), Signal(name="late"), Signal(2, name="at")
    upper = Signal(name="upper")
    unit = h.unit(o_left=seen, o_upper=upper, o_borrow=late, o_index=at)
    h.assume(~unit.next | unit.active)
    model(h, unit, seen, upper, late, at, cdus)
    return h


def model(h, unit, seen, upper, late, at, cdus):
    """A model knows how many blocks are left from this run of groups on, with 32 bits and no carry that comes late.
    What exists of the run follows from that, and so do the outputs of ``unit``, whose registers are the others.

    Adds both properties. Returns how many blocks each CDU has been dealt."""
    m, run = h.m, GROUP * cdus
    active, left, index = Signal(name="active"), Signal(32, name="left"), Signal(2, name="index")
    cdu = Signal(range(cdus), name="cdu")
    have = [Signal(3, name=f"have_{c}") for c in range(cdus)]  # blocks of each CDU in this run
    m.d.comb += [have[c].eq(Mux(left > run, GROUP, Mux(left <= GROUP * c, 0, Mux(
        left >= GROUP * (c + 1), GROUP, left - GROUP * c)))) for c in range(cdus)]
    across = Cat((cdu == c) & (have[c + 1] > index) for c in range(cdus - 1)).any()
    down, over = have[0] > index + 1, left > run
    more = Cat((cdu == c) & ((have[c] > index + 1) | (left > run + GROUP * c)) for c in range(cdus)).any()
    follows = Mux(across, 2 << cdu, down | over)[:cdus]

    # Blocks that were dealt: all, and each CDU's; four for each run behind.
    total, blocks, before = (Signal(32, name=name) for name in ("total", "blocks", "before"))
    dealt = [Signal(32, name=f"dealt_{c}") for c in range(cdus)]
    with m.If(unit.next):
        m.d.sync += [total.eq(total + 1), *(dealt[c].eq(dealt[c] + (cdu == c)) for c in range(cdus))]
        with m.If(across):
            m.d.sync += cdu.eq(cdu + 1)
        with m.Elif(down):
            m.d.sync += [cdu.eq(0), index.eq(index + 1)]
        with m.Elif(over):
            m.d.sync += [cdu.eq(0), index.eq(0), left.eq(left - run), before.eq(before + GROUP)]
        with m.Else():
            m.d.sync += active.eq(0)
    with m.If(unit.start):
        m.d.sync += [active.eq(unit.blocks != 0), left.eq(unit.blocks), cdu.eq(0), index.eq(0), total.eq(0),
                     blocks.eq(unit.blocks), before.eq(0), *(count.eq(0) for count in dealt)]

    def equal(name, when, one, other):
        h.check(name, ~when | (one == other))

    h.check(DEALT, unit.active == active)
    for one, other in ((unit.turn, 1 << cdu), (unit.follows, follows), (unit.ends, ~more), (unit.last, follows == 0)):
        equal(DEALT, active, one, other)
    h.check(DEALT, ~active | Cat((cdu == c) & (have[c] > index) for c in range(cdus)).any())
    equal(DEALT, ~active, total, blocks)
    # What makes this inductive: the unit's registers are the model's, and what was dealt was left before.
    h.check(DEALT, ~active | ((seen[:16] == left[:16]) & (seen[16:] == (left[16:] + late)[:16]) & (at == index)))
    h.check(DEALT, ~late | ~active | (left[:16] >= (1 << 16) - run))
    h.check(DEALT, ~active | (upper == seen[16:].any()) | (left[:16] >= (1 << 16) - 2 * run))
    reached = [Mux(active & (index + (cdu > c) < have[c]), index + (cdu > c), have[c]) for c in range(cdus)]
    equal(DEALT, active, (total + left)[:32], (blocks + sum(reached))[:32])
    for c in range(cdus):
        # All that it has in runs behind, and no more of this one.
        h.check(SHARE, dealt[c] == (before + reached[c])[:32])
    for conditions in h.checks[DEALT]:
        h.check(SHARE, conditions)
    return dealt


def proofs():
    return [Proof("round_robin", "turns", lambda folder, cdus=cdus: turns(cdus, folder), f"{cdus} CDUs")
            for cdus in (2, 3, 8)]
