"""A unit that has taken its last input waits for nothing but its outputs: liveness, as a property of safety.

An adversary stops giving once the tensor has ended, at whatever time. From then on outputs may be stalled for as long
as one likes, but whenever none is offered for some cycles on end, the last beat has left.
"""

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In

from actcodec.units import UNITS
from formal.catalogue import Proof
from formal.harness import Harness

__all__ = ["proofs"]

ENDS = "behind its last input it waits for nothing but its outputs"

# Cycles in which nothing is offered, by unit. Those without a register for valid cannot wait, and are left out. Where
# beats come in blocks of eight rows, a tensor has no part of one.
PATIENCE = {"sfpr": 4, "transpose": 8, "dct8": 6, "dct": 22, "binarize": 1, "bitpack": 1, "dpr_encode": 2,
            "ssdc_encode": 6, "packer": 2}
BLOCKS = ("transpose", "dct")


def ends(component, patience, blocks):
    h = Harness(component)
    unit, m = h.unit(), h.m
    streams = [(member.flow is In, getattr(unit, name)) for name, member in component.signature.members.items()
               if isinstance(member.signature if member.is_signature else None, stream.Signature)]
    for name, member in component.signature.members.items():
        if member.is_port and member.flow is In and name not in ("start", "clear"):
            value = Value.cast(getattr(unit, name))
            h.assume(value == h.past(value))
    (i,) = [port for comes, port in streams if comes]
    outputs = [port for comes, port in streams if not comes]
    taken, closing, closes = i.valid & i.ready, Signal(name="closing"), h.free(1, "closes")
    h.assume(~closing | ~i.valid)
    m.d.sync += closing.eq(closing | (taken & i.p.last & closes))
    if blocks:
        row = Signal(3, name="row")
        m.d.sync += row.eq(row + taken)
        h.assume(~i.valid | ~i.p.last | (row == 7))
    quiet = Signal(range(patience + 2), name="quiet")
    m.d.sync += quiet.eq(0)
    with m.If(closing & ~Cat(port.valid for port in outputs).any()):
        m.d.sync += quiet.eq(quiet + (quiet != patience + 1))
    for k, port in enumerate(outputs):
        left, moves = Signal(name=f"left_{k}"), port.valid & port.ready
        m.d.sync += left.eq(~taken & Mux(moves, port.p.last, left))  # what is taken leaves later
        h.check(ENDS, (quiet <= patience) | left)
    return h


def proofs():
    return [Proof(name, "ends", lambda _, name=name, patience=patience: ends(
        UNITS[name].build(), patience, name in BLOCKS), f"{patience} cycles", {"depth": 50})
        for name, patience in PATIENCE.items()]
