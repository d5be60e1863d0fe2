"""Collector and splitter: whose block moves, in the whole unit, with the model of turns beside it."""

from types import SimpleNamespace

from amaranth.hdl import Cat, Mux, Signal, Value

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.wire.collector import Collector
from actcodec.rtl.offload.wire.splitter import Splitter
from formal.catalogue import Proof
from formal.inside import Inside
from formal.turns import DEALT, SHARE, model

__all__ = ["proofs"]

TURNS = ("start", "blocks", "next", "active", "turn", "follows", "ends", "last", "left", "upper", "borrow",
         "index")
PICKED = "what moves is a piece of the block whose turn it is, from its first to its last"
WHOLE = "a block moves when its eight chunks are there, and no CDU is more than a block ahead"
FREE = "no block is loaded over another one"
ROWS = "eight rows for each block, and last on the last one of a CDU's share"


def dealer(component, folder, *names):
    """A harness; the unit; its signals ``names`` by name; the blocks that each CDU was dealt."""
    cdus = component.sizes.cdus
    names = ["step", *(f"pick_{c}" for c in range(cdus)), *(f"turns.{name}" for name in TURNS), *names]
    h = Inside(component, folder, *names)
    unit, inner = h.ports, h.inner
    h.near = "unit/w:turns.* unit/w:pick_* unit/w:step unit/w:*load %u %u %u %ci2"
    turns = SimpleNamespace(**{name: inner[f"turns.{name}"] for name in TURNS})
    dealt = model(h, turns, turns.left, turns.upper, turns.borrow, turns.index, cdus)
    h.assume(~unit.start | (unit.blocks != 0))
    step = inner["step"]
    h.check(PICKED, Cat(step == 1 << k for k in range(len(step))).any() & (turns.active | step[0]))
    for c in range(cdus):
        h.check(PICKED, inner[f"pick_{c}"] == Mux(turns.active & turns.turn[c], step, 0))
    h.check(PICKED, ~turns.active | Cat(turns.turn == 1 << c for c in range(cdus)).any())
    h.check(PICKED, ~turns.next | turns.active)
    follow_up(h, DEALT, PICKED)
    follow_up(h, SHARE, PICKED)
    return h, unit, inner, turns, dealt


def collector(cdus, modes, folder):
    names = [f"gatherer_{c}.{name}" for c in range(cdus) for name in ("full", "taken", "count")]
    h, unit, inner, turns, _ = dealer(Collector(cdus, modes), folder, *names)
    h.assume(~unit.start | ~turns.active)
    for c in range(cdus):
        full, taken, count = (inner[f"gatherer_{c}.{name}"] for name in ("full", "taken", "count"))
        there, leaves = Signal(5, name=f"there_{c}"), turns.next & turns.turn[c]
        h.m.d.sync += there.eq(there + taken - Mux(leaves, 8, 0))
        tail = inner[f"pick_{c}"][1:].any()
        h.check(WHOLE, (~leaves | (there >= 8)) & (there < 16))
        h.check(WHOLE, (there == Mux(full | tail, 8, 0) + count) & ~(full & tail))
    follow_up(h, WHOLE, PICKED)
    return h


def follow_up(h, name, *others):
    """Makes properties part of another one, which follows from them."""
    for other in others:
        for condition in h.checks[other]:
            h.check(name, condition)


def splitter(cdus, modes, folder):
    names = [f"dispenser_{c}.{name}" for c in range(cdus)
             for name in ("free", "load", "row", "last_block", "waiting", "some", "whole")]
    component = Splitter(cdus, modes)
    h, unit, inner, turns, dealt = dealer(component, folder, *names)
    h.assume(~unit.start | (~unit.busy & h.past(1)))
    for value in (Value.cast(unit.mode), unit.blocks):
        h.assume(~h.past(unit.start | unit.busy) | (value == h.past(value)))
    early = component.sizes.early
    for c in range(cdus):
        free, load, row, last_block, waiting, some, ready = (
            inner[f"dispenser_{c}.{name}"]
            for name in ("free", "load", "row", "last_block", "waiting", "some", "whole"))
        h.check(FREE, ~load[0] | free)
        # Of the block that is moving, the first piece counts as the block.
        whole, part = turns.next & turns.turn[c], inner[f"pick_{c}"][1:].any()
        ended, given = Signal(name=f"ended_{c}"), Signal(32, name=f"given_{c}")
        o = unit.o[c]
        moved = o.valid & o.ready
        with h.m.If(moved):
            h.m.d.sync += given.eq(given + 1)
        with h.m.If(whole):
            h.m.d.sync += ended.eq(turns.ends)
        with h.m.If(unit.start):
            h.m.d.sync += [given.eq(0), ended.eq(0)]
        h.check(ROWS, (~part & ~some) | (last_block == Mux(part, turns.ends, ended)))
        h.check(ROWS, unit.short | ((given + Mux(some, 8 - row, 0))[:32] == ((dealt[c] + part) << 3)[:32]))
        h.check(ROWS, (~some & (row == 0)) | (some & waiting & ((ready & ~part) | (part & ~ready & (row <= early)))))
        h.check(ROWS, unit.short | ~o.valid | (o.p.last == ((row == 7) & ended)))
    follow_up(h, ROWS, PICKED)
    follow_up(h, FREE, PICKED)
    return h


def proofs():
    return [Proof(unit, "turns", lambda folder, build=build, cdus=cdus, mode=mode: build(
                cdus, lane_modes(mode), folder), f"{cdus} CDUs, {mode}")
            for unit, build in (("collector", collector), ("splitter", splitter))
            for cdus, mode in ((2, "brc"), (3, "jpeg-act"), (5, "jpeg-act"))]
