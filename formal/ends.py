"""A unit that has taken its last input waits for nothing but its outputs: liveness, as a property of safety.

An adversary stops giving once the tensor has ended, at whatever time. From then on outputs may be stalled for as long
as one likes, but whenever none is offered for some cycles on end, the last beat has left.

And units that need a tensor's configuration or length before it never stop for good, whatever legal tensor it is: when
all inputs offer and all outputs take for some cycles on end, something moves, until the last beat has left.
"""

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In

from actcodec.rtl.division.config import refused
from actcodec.units import UNITS
from formal.catalogue import Proof
from formal.harness import Harness
from formal.marks import full

__all__ = ["proofs"]

ENDS = "behind its last input it waits for nothing but its outputs"
MOVES = "a tensor of any legal shape goes on until its last beat has left"

# Cycles in which nothing is offered, by unit. Those without a register for valid cannot wait, and are left out. Where
# beats come in blocks of eight rows, a tensor has no part of one.
PATIENCE = {"sfpr": 4, "transpose": 8, "dct8": 6, "dct": 22, "binarize": 1, "bitpack": 1, "dpr_reduce": 1,
            "dpr_expand": 1, "dpr_encode": 2, "ssdc_encode": 6, "packer": 2, "mx_encode": 2, "mx_decode": 1}
BLOCKS = ("transpose", "dct", "mx_encode", "mx_decode")
# Cycles in which nothing moves though all could, in a unit that gets a tensor's length.
LENGTHS = {"bitunpack": 1, "dpr_decode": 2}

# The same in a unit that gets a tensor's configuration; and cycles from reset for which that is proved. With room for
# one base less, the encoder stops for good in cycle 21.
TENSORS = {"division_encode": (8, 30), "division_decode": (6, 30)}


def _streams(component, unit):
    """A unit's streams, each with whether it comes in."""
    return [(member.flow is In, getattr(unit, name)) for name, member in component.signature.members.items()
            if isinstance(member.signature if member.is_signature else None, stream.Signature)]


def _stands(h, component, unit, *but):
    """Inputs of the unit that are no streams stand, without those called ``but``."""
    for name, member in component.signature.members.items():
        if member.is_port and member.flow is In and name not in but:
            value = Value.cast(getattr(unit, name))
            h.drive(value, h.rigid(value.shape(), name))


def ends(component, patience, blocks):
    h = Harness(component)
    unit, m = h.unit(), h.m
    streams = _streams(component, unit)
    _stands(h, component, unit, "start", "clear")
    (i,) = [port for comes, port in streams if comes]
    outputs = [port for comes, port in streams if not comes]
    comes, closing, closes = i.valid & i.ready, Signal(name="closing"), h.free(1, "closes")
    h.assume(~closing | ~i.valid)
    m.d.sync += closing.eq(closing | (comes & i.p.last & closes))
    if blocks:
        row = Signal(3, name="row")
        m.d.sync += row.eq(row + comes)
        h.assume(~i.valid | ~i.p.last | (row == 7))
    quiet = Signal(range(patience + 2), name="quiet")
    m.d.sync += quiet.eq(0)
    with m.If(closing & ~Cat(port.valid for port in outputs).any()):
        m.d.sync += quiet.eq(quiet + (quiet != patience + 1))
    for k, port in enumerate(outputs):
        left, moves = Signal(name=f"left_{k}"), port.valid & port.ready
        m.d.sync += left.eq(~comes & Mux(moves, port.p.last, left))  # what comes leaves later
        h.check(ENDS, (quiet <= patience) | left)
    return h


def moves(component, patience):
    """Of a unit of DIVISION, with any configuration that it does not refuse and that a plan can make."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    config, running, start = unit.config, Signal(name="running"), Value.cast(unit.start)
    h.drive(config, h.rigid(Value.cast(config).shape(), "config"))
    layout = Mux(config.sectors[2:].any() | config.sectors[:2].all(), 2, config.sectors == 2)
    h.assume(~refused(config, component.bits) & (config.layout == layout) & (config.phase < config.sectors)
             & (config.stride < config.sectors) & ~(config.tiled & layout[0] & config.blocks[0]))
    h.assume(~start | ~running)
    streams = _streams(component, unit)
    (o,) = [port for comes, port in streams if not comes]
    m.d.sync += running.eq(start | (running & ~(o.valid & o.ready & o.p.last)))
    could = Cat(port.valid if comes else port.ready for comes, port in streams).all()
    moving = Cat(port.valid & port.ready for _, port in streams).any()
    quiet = Signal(range(patience + 2), name="quiet")
    m.d.sync += quiet.eq(Mux(running & could & ~moving, quiet + (quiet != patience + 1), 0))
    h.check(MOVES, quiet <= patience)
    return h


def lengths(component, patience):
    """Of a unit that gets a tensor's length, whatever that is, and wherever its array ends."""
    h = Harness(component)
    unit, m = h.unit(), h.m
    i, o, length = unit.i, unit.o, unit.length
    _stands(h, component, unit)
    start, comes, goes = length.valid & length.ready, i.valid & i.ready, o.valid & o.ready
    running, ended = Signal(name="running"), Signal(name="ended")
    m.d.sync += [running.eq(start | (running & ~(goes & o.p.last))), ended.eq(~start & (ended | (comes & i.p.last)))]
    h.assume(~i.valid | (~ended & full(i.p)))
    h.check(MOVES, h.stuck(~running | comes | goes, (i.valid | ended) & o.ready, patience) <= patience)
    return h


def proofs():
    return [Proof(name, "ends", lambda _, name=name, patience=patience: ends(
        UNITS[name].build(), patience, name in BLOCKS), f"{patience} cycles", {"depth": 50})
        for name, patience in PATIENCE.items()
    ] + [Proof(name, "ends", lambda _, name=name, patience=patience: lengths(UNITS[name].build(), patience),
               f"{patience} cycles") for name, patience in LENGTHS.items()
    ] + [Proof(name, "ends", lambda _, name=name, patience=patience: moves(UNITS[name].build(), patience),
               f"{patience} cycles", {"depth": cycles, "bounds": {MOVES: cycles}})
         for name, (patience, cycles) in TENSORS.items()]
