"""The rules of streams, for any unit: every pair of ports ``...valid`` and ``...ready`` is one."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Mux, Signal, Value
from amaranth.lib.wiring import In

from actcodec.rtl.common.axis import Sender
from actcodec.rtl.common.packer import Packer
from actcodec.rtl.jpegact.dct import Dct8
from actcodec.units import UNITS
from formal.catalogue import Proof
from formal.harness import Harness
from formal.inside import opened
from formal.marks import full, padded

__all__ = ["HOLDS", "INDEPENDENT", "Port", "independent", "keeps", "ports"]

HOLDS = "valid and payload hold until ready"
INDEPENDENT = "valid does not wait for ready"


@dataclass
class Port:
    """A stream at a unit's edge; ``sends``: it is the unit's output."""

    name: str
    sends: bool
    valid: Value
    ready: Value
    p: Value

    @property
    def stalled(self):
        return self.valid & ~self.ready


def ports(interface, signature):
    """All streams of an interface: Amaranth's, and the channels of AXI with their flat ports."""
    flat = {"__".join(map(str, path)): (member.flow, Value.cast(value))
            for path, member, value in signature.flatten(interface)}
    result = []
    for name, (flow, valid) in flat.items():
        prefix = name.removesuffix("valid")
        if prefix != name and prefix + "ready" in flat:
            payload = [value for other, (way, value) in flat.items()
                       if other.startswith(prefix) and way == flow and other != name]
            result.append(Port(prefix.rstrip("_"), flow is not In, valid, flat[prefix + "ready"][1], Cat(payload)))
    return result


def held(h, port):
    """Whether a stream obeys the rule that what is offered stays."""
    offered, payload = h.past(port.stalled), h.past(port.p)
    return ~offered | (port.valid & (port.p == payload))


def keeps(component, surround=None, polite=False):
    """The harness for the first rule.

    Parameters
    ----------
    component : wiring.Component
    surround : callable
        Called with the harness and the unit: what inputs have to obey.
    polite : bool
        Whether what comes in has to obey the rule, too.
    """
    h = Harness(component)
    unit = h.unit()
    for port in ports(unit, component.signature):
        if port.sends:
            h.check(HOLDS, held(h, port))
        elif polite:
            h.assume(held(h, port))
    if surround:
        surround(h, unit)
    return h


def independent(component, folder):
    """The harness for the second rule, which is about one cycle: whatever state the unit is in, whatever comes in.

    Two copies of the unit are in the same state and get the same, except that one sees another ``ready`` of a stream
    whenever it is not valid. They give the same, and their next state is the same. So, from cycle to cycle, nothing
    that a unit ever offers depends on whether somebody was ready before it was offered.
    """
    text, size = opened(component, folder)
    h = Harness(component, text)
    signature = component.signature
    state = h.free(size, "state") if size else None
    following = [Signal(size, name=name) for name in ("following", "other_following")]
    one, other = (h.unit(name, **({"i_state": state, "o_following": after} if size else {}))
                  for name, after in zip(("unit", "other"), following, strict=True))
    unseen = set()
    for port, twin in zip(ports(one, signature), ports(other, signature), strict=True):
        if port.sends:
            unseen.add(id(twin.ready))
            h.drive(twin.ready, Mux(port.valid, port.ready, h.free(1, f"{port.name}_unseen")))
            h.check(INDEPENDENT, (port.valid == twin.valid) & (~port.valid | (port.p == twin.p)))
        else:
            h.check(INDEPENDENT, ~port.valid | (port.ready == twin.ready))
    for (_, member, value), (_, _, same) in zip(signature.flatten(one), signature.flatten(other), strict=True):
        if member.flow is In and id(Value.cast(same)) not in unseen:
            h.drive(same, Value.cast(value))
    h.check(INDEPENDENT, following[0] == following[1])
    h.near = "unit/i:*ready %co3 %ci2"
    return h


# -------------------------------------------------------------------------------------------------------- the catalogue
def steady(*names, pulses=()):
    """Inputs that stand still as long as a beat is offered and not taken, and pulses that do not come then."""
    def surround(h, unit):
        waits = Cat(port.stalled for port in ports(unit, unit.signature) if port.sends).any()
        waited = h.past(waits)
        for name in names:
            value = Value.cast(getattr(unit, name))
            h.assume(~waited | (value == h.past(value)))
        for name in pulses:
            h.assume(~(waits & getattr(unit, name)))
    return surround


def constant(*names):
    """Inputs that never change."""
    def surround(h, unit):
        for name in names:
            value = Value.cast(getattr(unit, name))
            h.assume(~h.past(1) | (value == h.past(value)))
    return surround


def rle(h, unit):
    """The direction stays."""
    steady("empty", pulses=("start",))(h, unit)
    constant("decompress")(h, unit)


def unpacker(h, unit):
    """Words are full; what is taken stays the same while it is offered, and nobody forgets a tensor whose bytes are
    offered."""
    steady("take")(h, unit)
    h.assume(padded(unit.i.p) & full(unit.i.p) & (unit.take <= len(unit.o.p.data)))
    h.assume(~(unit.o.valid & ~unit.o.ready & unit.next))


def under_way(h, unit):
    """From ``start`` until the last beat has left."""
    busy = Signal(name="busy")
    h.m.d.sync += busy.eq(unit.start | (busy & ~(unit.o.valid & unit.o.ready & unit.o.p.last)))
    return busy


def walk(h, unit):
    """A tensor starts when the one before has ended; until then, nothing changes."""
    busy = under_way(h, unit)
    h.assume(~(busy & (unit.start | unit.load)) & (~unit.start | (unit.blocks != 0)))
    for value in (unit.geometry, unit.blocks):
        h.assume(~busy | (Value.cast(value) == h.past(value)))


def collector(h, unit):
    """A tensor starts when the one before has left."""
    h.assume(~unit.start | (~under_way(h, unit) & (unit.blocks != 0)))


def splitter(h, unit):
    """A tensor starts when the one before has ended; until then, nothing changes."""
    h.assume(~unit.start | (~unit.busy & h.past(1)))
    for value in (Value.cast(unit.mode), unit.blocks):
        h.assume(~h.past(unit.start | unit.busy) | (value == h.past(value)))


def payload(h, unit):
    """A frame starts when the one before has ended; until then, nothing changes. Giving up lasts until then, too, and
    withdraws a packet. Memory answers what it was asked for, a burst of writes when it has all of it."""
    h.assume(~(unit.start & (unit.busy | unit.abort)) & ~(unit.abort & unit.o.valid & ~unit.o.ready))
    h.assume(unit.abort | ~h.past(unit.abort & unit.busy))
    chosen = Cat(unit.decompress, unit.size[:5])
    h.assume(~h.past(unit.start | unit.busy) | (chosen == h.past(chosen)))
    ar, r, aw, w, b = unit.reads.ar, unit.reads.r, unit.writes.aw, unit.writes.w, unit.writes.b
    for asks, amount, answer in ((ar, ar.p.length + 1, r), (aw, 1, b), (w, w.p.last, b)):
        owed = Signal(8, name="owed")
        h.m.d.sync += owed.eq(owed + Mux(asks.valid & asks.ready, amount, 0) - (answer.valid & answer.ready))
        h.assume(~answer.valid | (owed != 0))


# Parameters that differ from the catalogue's: what stores much is proved with a small store.
SMALL = {"maxpool": {"width": 4}, "maxpool_backward": {"width": 4}, "reader": {"outstanding": 8},
         "writer": {"outstanding": 3}, "payload": {"outstanding": 8}, "lane": {"modes": ("brc",), "outstanding": 8},
         "accelerator": {"cdus": 2, "modes": ("brc",), "outstanding": 8}}
# Of the faults that are tried, where those of seed 1 do not break valid.
SEEDS = {"dct": 4, "dpr_reduce": 3, "mx_decode": 7}
# There is nothing in these that could break: valid and ready are wires.
WIRES = ("round", "unbinarize")
# Their output streams are those of parts (formal/parts.py), of which the first rule is proved with the parameters that
# they have there: readers and writers above, and these; or they are followed to an accelerator, as the queue's
# (formal/ring.py).
WHOLE = ("dct", "comet", "lane", "accelerator", "queue")
SURROUNDINGS = {
    "sfpr": steady("decompress", "signs"),
    "align": steady("decompress", "layout", "blocks", pulses=("start",)),
    "transpose": steady("straight"),
    "dct8": steady("inverse"),
    "quantize": steady("decompress", "table", pulses=("start",)),
    "zvc": steady("decompress", "straight", "empty"),
    "div": steady("decompress", "table", pulses=("start",)),
    "steps": steady("decompress", "table", "dead_zone", pulses=("start",)),
    "nibble": steady("decompress", "table", "empty", pulses=("start",)),
    "rice": steady("decompress", "table", "empty", pulses=("start",)),
    "rle": rle,
    "unpacker": unpacker,
    "bitpack": steady("width"),
    "bitunpack": steady("width"),
    "dpr_reduce": steady("format"),
    "dpr_expand": steady("format"),
    "dpr_encode": steady("format"),
    "dpr_decode": steady("format"),
    "division_encode": steady("config", pulses=("start",)),
    "division_decode": steady("config", pulses=("start",)),
    "mx_encode": constant("format", "rule"),
    "mx_decode": steady("format"),
    "mx_scales": constant("decompress", "format", "coder"),
    "prequantise": steady("step"),
    "lorenzo": steady("decompress", "horizontal", "vertical", "signed"),
    "rounds": steady("decompress"),
    "huffman": steady("decompress", "book", "some", "ended", pulses=("start",)),
    "reconstruct": steady("step"),
    "dock": steady("decompress", "step"),
    "address_generator": walk,
    "beat_planner": steady("scaled", "gather", "table"),
    "reader": steady("gather", "scaled", "scales", pulses=("abort",)),
    "payload": payload,
    "collector": collector,
    "splitter": splitter,
    "stream_collector": lambda h, unit: h.assume(~unit.start | ~h.past(unit.o.valid & ~unit.o.ready)),
    "stream_splitter": lambda h, unit: h.assume(~unit.start | ~unit.busy),
    "places": steady(pulses=("start",)),
    "statistics": steady(pulses=("clear",)),
    "reciprocal": steady("plain"),
    "scan": steady("route", pulses=("start",)),
}


def sender(h, unit):
    """Aborted until it is quiet and the unit in front is reset."""
    h.assume(unit.abort | ~h.past(unit.abort) | h.past(unit.quiet))


INSIDE = (("dct8", "the second of dct", lambda: Dct8(14, 18, fraction=0, half=True), steady("inverse")),
          ("packer", "8 bytes to 8", lambda: Packer(1, 8, 8), None),
          ("sender", "128 bytes", lambda: Sender(128), sender))


def proofs():
    """Both rules for every unit of the catalogue that sends a stream."""
    every = [Proof(name, "holds", lambda _, build=build, surround=surround: keeps(build(), surround, polite=True), note)
             for name, note, build, surround in INSIDE]
    for name, unit in UNITS.items():
        if name in WIRES:
            continue

        def build(name=name, unit=unit):
            return unit.build(**SMALL.get(name, {}))

        interface = build().signature
        if not any(port.sends for port in ports(interface.create(), interface)):
            continue
        note = ", ".join(f"{key} {' '.join(value) if isinstance(value, tuple) else value}"
                         for key, value in SMALL.get(name, {}).items())
        if name not in WHOLE:
            every.append(Proof(name, "holds", lambda _, name=name, build=build: keeps(
                build(), SURROUNDINGS.get(name), polite=True), note))
        every.append(Proof(name, "independent", lambda folder, build=build: independent(build(), folder), note,
                           {"depth": 3, "faults": 255, "seed": SEEDS.get(name, 1)}))
    return every
