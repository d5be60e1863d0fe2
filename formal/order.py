"""No loss, no repetition, order kept: the parts of which streams are built, with a marked item inside."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO, SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.axis import Receiver, Sender
from actcodec.rtl.common.bursts import Bursts
from actcodec.rtl.common.fifo import Fifo
from actcodec.rtl.common.gearbox import Join, Split
from actcodec.rtl.common.packer import Packer
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.unpacker import Unpacker
from formal.catalogue import Proof
from formal.harness import Harness
from formal.inside import flat
from formal.marks import DRAINS, ROOM, Beat, drains, follow, full, padded
from formal.streams import Port, held

__all__ = ["proofs"]

FULL = "full words, but the last of a tensor"
DEPTH = 4  # of a FIFO


class Stages(wiring.Component):
    """A pipeline of some stages, and nothing else."""

    i: In(stream.Signature(4))
    o: Out(stream.Signature(4))

    def __init__(self, stages):
        self.stages = stages
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        value = self.i.p
        for _ in range(self.stages):
            value, = pipe.stage(value)
        pipe.finish()
        m.d.comb += self.o.p.eq(value)
        return m


class Library(wiring.Component):
    """A FIFO of Amaranth's library, and nothing else."""

    i: In(stream.Signature(1))
    o: Out(stream.Signature(1))

    def __init__(self, kind):
        self.kind = kind
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = self.kind(width=1, depth=DEPTH)
        m.d.comb += [fifo.w_data.eq(self.i.p), fifo.w_en.eq(self.i.valid), self.i.ready.eq(fifo.w_rdy),
                     self.o.p.eq(fifo.r_data), self.o.valid.eq(fifo.r_rdy), fifo.r_en.eq(self.o.ready)]
        return m


def moves(port):
    return port.valid & port.ready


def polite(h, port):
    """What comes in obeys the rules of streams."""
    h.assume(held(h, Port("", False, port.valid, port.ready, Value.cast(port.p))))


def whole(component, room, patience, last=False, text=None):
    """A unit that passes beats as they are. Of what has an end it drains that, others whatever is inside."""
    h = Harness(component, text)
    unit = h.unit()
    beats = [Beat(moves(port), [port.p], Const(1), port.p.last if last else Const(0))
             for port in (unit.i, unit.o)]
    inside, ends = follow(h, *beats, room)
    drains(h, ((ends if last else inside) != 0) & ~unit.o.valid, patience)
    return h


def library(kind, patience, folder):
    """A FIFO of Amaranth's library, its memory as registers: Yosys has no faults for the ports of such a one."""
    component = Library(kind)
    return whole(component, DEPTH, patience, text=flat(component, folder, "memory_map"))


def chunk(port):
    payload = port.p
    return Beat(moves(port), list(payload.data), payload.count, payload.last)


def packer(i_size, o_size):
    h = Harness(Packer(1, i_size, o_size))
    unit = h.unit()
    h.assume(padded(unit.i.p))
    _, ends = follow(h, chunk(unit.i), chunk(unit.o), o_size + max(o_size, 2 * i_size - o_size) + 2)
    drains(h, (ends != 0) & ~unit.o.valid, 2)
    h.check(FULL, ~unit.o.valid | (full(unit.o.p) & padded(unit.o.p)))
    return h


def unpacker(i_size, o_size):
    """What is taken are items; ``next`` forgets the others of the tensor, those that are still to come as well."""
    h = Harness(Unpacker(1, i_size, o_size))
    unit = h.unit()
    h.assume(padded(unit.i.p) & full(unit.i.p) & (unit.take <= o_size))
    word = chunk(unit.i)
    dropping, ended = Signal(name="dropping"), Signal(name="ended")
    ends = ended | (word.moves & word.last)
    h.m.d.sync += [dropping.eq(Mux(unit.next, ~(ends & ~dropping) & ~(word.moves & word.last),
                                   dropping & ~(word.moves & word.last))),
                   ended.eq(~unit.next & (ended | (word.moves & word.last & ~dropping)))]
    # Of a tensor that is being dropped nothing counts; a word in the cycle of `next` belongs to the one that ends.
    h.assume(~(unit.next & dropping))
    counted = Beat(word.moves & ~dropping, word.items, word.count, Const(0))
    inside, left = Signal(range(64), name="bytes"), Signal(range(64), name="left")
    amount = Mux(unit.take > inside, inside, unit.take)[:len(unit.take)]
    h.m.d.comb += left.eq(inside - Mux(moves(unit.o), amount, 0) + Mux(counted.moves, counted.count, 0))
    h.m.d.sync += inside.eq(Mux(unit.next, 0, left))
    follow(h, counted, Beat(moves(unit.o), list(unit.o.p.data), amount, Const(0)),
           i_size * (-(-(i_size - 1 + o_size) // i_size) + 1) + 1, forgets=unit.next)
    shown = list(unit.o.p.data)
    h.check("short, and zeros, where bytes are missing",
            ~unit.o.valid | ((unit.o.p.short == (unit.take > inside))
                             & Cat((inside > k) | (byte == 0) for k, byte in enumerate(shown)).all()))
    h.check("excess says that bytes are left", unit.excess == ((inside != 0) | ~ended))
    drains(h, ended & ~unit.o.valid, 1, "with the last word there, it offers whatever is left")
    return h


def pieces(component):
    """Both directions, with pieces as items: their bytes and how many these are. The last one may be empty, which then
    is no item."""
    size = component.size
    h = Harness(component)
    unit = h.unit()

    def beat(port):
        payload = port.p
        items = []
        for k in range(len(payload.data) // size):
            count = Mux(payload.count > size * k + size, size, payload.count - size * k)
            items.append(Cat(payload.data.as_value().word_select(k, 8 * size), count[:size.bit_length()]))
        return Beat(moves(port), items, (payload.count + size - 1) >> (size.bit_length() - 1), payload.last)

    h.assume(padded(unit.i.p) & full(unit.i.p))
    comes = beat(unit.i)
    if isinstance(component, Split):  # what waits at the input comes when it is offered
        polite(h, unit.i)
        comes.moves = unit.i.valid & ~h.past(unit.i.valid & ~unit.i.ready)
    _, ends = follow(h, comes, beat(unit.o), 2 * (32 // size) + 2)
    drains(h, (ends != 0) & ~unit.o.valid, 1)
    h.check(FULL, ~unit.o.valid | (full(unit.o.p) & padded(unit.o.p)))
    return h


def frame(port):
    """A beat of AXI4-Stream whose bytes begin in lane 0 without gaps."""
    items = [port.tdata.word_select(k, 8) for k in range(len(port.tkeep))]
    return Beat(port.tvalid & port.tready, items, sum(port.tkeep), port.tlast)


def tidy(keep):
    return Cat(keep[k] | ~keep[k + 1] for k in range(len(keep) - 1)).all()


def sender(size):
    h = Harness(Sender(size))
    unit = h.unit()
    polite(h, unit.i)
    h.assume(padded(unit.i.p) & full(unit.i.p))
    # Aborted until it is quiet and the unit in front is reset, so that nothing is offered any more.
    h.assume(unit.abort | ~h.past(unit.abort) | h.past(unit.quiet))
    begun = Signal(name="begun")
    sent = frame(unit.o)
    closing = sent.moves & ~moves(unit.i)  # a beat that is nobody's
    with h.m.If(sent.moves):
        h.m.d.sync += begun.eq(~sent.last)
    follow(h, chunk(unit.i), Beat(sent.moves & ~closing, sent.items, sent.count, sent.last), 0)
    h.check("a frame that is given up ends with a beat without bytes",
            ~closing | (unit.abort & begun & sent.last & (sent.count == 0)))
    h.check("quiet is no frame under way", ~unit.quiet | (~begun & ~unit.o.tvalid))
    h.check("beats are full but the last", ~unit.o.tvalid | (tidy(unit.o.tkeep) & (unit.o.tkeep.all() | unit.o.tlast)))
    drains(h, unit.i.valid & ~unit.abort & ~unit.o.tvalid, 1)
    drains(h, unit.abort & ~unit.quiet & ~unit.o.tvalid, 1)
    return h


def receiver(size):
    h = Harness(Receiver(size))
    unit = h.unit()
    i = unit.i
    h.assume(held(h, Port("", False, i.tvalid, i.tready, Cat(i.tdata, i.tkeep, i.tlast))))
    h.assume(~(unit.abort & (unit.run | h.past(unit.run))))
    # Of a beat that is not well formed all lanes count, with zeros where there is no byte.
    well = tidy(i.tkeep) & (i.tkeep.all() | i.tlast)
    zeroed = [Mux(i.tkeep[k], i.tdata.word_select(k, 8), 0) for k in range(size)]
    begun, dropping = Signal(name="begun"), Signal(name="dropping")
    comes = i.tvalid & i.tready
    with h.m.If(comes):
        h.m.d.sync += begun.eq(~i.tlast)
    h.m.d.sync += dropping.eq((dropping | (unit.abort & begun)) & ~(comes & i.tlast))
    follow(h, Beat(comes & ~dropping, zeroed, Mux(well, sum(i.tkeep), size), i.tlast), chunk(unit.o), 0)
    h.check(FULL, ~unit.o.valid | (full(unit.o.p) & padded(unit.o.p)))
    h.check("malformed tells of every such beat",
            unit.malformed == h.past(comes & ~dropping & ~well))
    drains(h, i.tvalid & unit.run & ~dropping & ~unit.o.valid, 1, DRAINS)
    return h


def bursts(window):
    """Beats of memory: their index. A burst of n is n items."""
    component = Bursts(12, window)
    h = Harness(component)
    unit = h.unit()
    step, burst = unit.i.p, unit.o.p
    before, known = Signal.like(step.index, name="before"), Signal(name="known")
    follows = known & (step.index == before + 1) & (step.index[:3] != 0)
    h.assume(~(step.beat & step.joins) | follows)
    polite(h, unit.i)
    with h.m.If(moves(unit.i) & step.beat):
        h.m.d.sync += [before.eq(step.index), known.eq(1)]
    # With the last step the burst ends as well, whatever comes behind it.
    index = (burst.address >> 5)[:len(step.index)]
    items = [(index + k)[:len(step.index)] for k in range(8)]
    inside, _ = follow(h, Beat(moves(unit.i) & step.beat, [step.index], Const(1), Const(0)),
                       Beat(moves(unit.o), items, burst.length + 1, Const(0)), 8)
    waits = Signal(name="waits")
    with h.m.If(moves(unit.i)):
        h.m.d.sync += waits.eq(step.last)
    h.check("bursts begin at a beat, none crosses 256 bytes",
            ~unit.o.valid | ((index[:3] + burst.length <= 7) & (burst.address[:5] == 0)))
    drains(h, waits & (inside != 0) & ~unit.o.valid, 1, "behind the last step a burst is offered at once")
    if window:
        steps = Signal(range(window + 2), name="steps")
        with h.m.If(moves(unit.i)):
            h.m.d.sync += steps.eq(Mux(steps == window + 1, steps, steps + 1))
        with h.m.If(moves(unit.i) & step.beat & (~step.joins | (inside == 0) | moves(unit.o))):
            h.m.d.sync += steps.eq(1)
        h.check("no burst is open for more steps than the window has",
                (inside == 0) | unit.o.valid | (steps < window))
    return h


def fifo(depth, packets):
    shape = data.StructLayout({"data": 4, "last": 1})
    h = Harness(Fifo(shape, depth, packets))
    unit = h.unit()
    beats = [Beat(moves(port), [port.p], Const(1), Const(0)) for port in (unit.i, unit.o)]
    inside, _ = follow(h, *beats, depth + 2)
    if not packets:
        drains(h, (inside != 0) & ~unit.o.valid, 3)
        h.check("takes a beat whenever there is room in its memory", unit.i.ready | (inside >= depth))
        return h
    # Beats of the packet that is not complete, and whether the one that leaves has begun.
    open_, begun = Signal(range(depth + 2), name="open"), Signal(name="begun")
    ends = Signal(range(depth + 4), name="ends")
    last = unit.i.p.last
    with h.m.If(moves(unit.i)):
        h.m.d.sync += open_.eq(Mux(last, 0, open_ + 1))
    h.assume(~unit.i.valid | last | (open_ < depth - 1))
    h.m.d.sync += ends.eq(ends + (moves(unit.i) & last) - (moves(unit.o) & unit.o.p.last))
    with h.m.If(moves(unit.o)):
        h.m.d.sync += begun.eq(~unit.o.p.last)
    h.check("nothing of a packet is offered before all of it is there", ~unit.o.valid | (ends != 0))
    h.check("a packet that has begun leaves without a pause", ~begun | unit.o.valid)
    drains(h, (ends != 0) & ~unit.o.valid, 4)
    return h


def proofs():
    def proof(unit, note, build, *arguments, **options):
        return Proof(unit, "order", lambda _: build(*(one() if callable(one) else one for one in arguments)), note,
                     options)

    return [
        proof("skid", "4 bits", whole, lambda: Skid(4), 2, 1),
        proof("skid", "half, 4 bits", whole, lambda: Skid(4, half=True), 1, 0),
        proof("pipeline", "5 stages, 4 bits", whole, lambda: Stages(5), 5, 5),
        proof("fifo", f"depth {DEPTH}, 4 bits", fifo, DEPTH, False),
        proof("fifo", f"packets, depth {DEPTH}, 4 bits", fifo, DEPTH, True),
        *(Proof("fifo", "order", lambda folder, kind=kind, patience=patience: library(kind, patience, folder),
                f"{kind.__name__}, depth {DEPTH}, 1 bit") for kind, patience in ((SyncFIFO, 0), (SyncFIFOBuffered, 1))),
        proof("packer", "4 bytes to 4", packer, 4, 4),
        proof("packer", "5 bytes to 4", packer, 5, 4),
        proof("unpacker", "4 bytes to 4", unpacker, 4, 4, bounds={ROOM: 20}),
        *(proof("gearbox", f"{kind.__name__}, {size} bytes", pieces, partial(kind, size)) for kind in (Join, Split)
          for size in (16, 8)),
        proof("sender", "2 bytes", sender, 2),
        proof("receiver", "2 bytes", receiver, 2),
        proof("bursts", "12 bits of address", bursts, None),
        proof("bursts", "12 bits of address, window 3", bursts, 3),
    ]
