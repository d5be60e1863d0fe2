"""AXI4-Lite: what a host can rely on from the registers."""

from amaranth.hdl import Cat, Mux, Signal, Value

from actcodec.codecs import lane_modes
from actcodec.rtl.common.axil import OKAY, SLVERR
from actcodec.rtl.offload.control import setting
from actcodec.rtl.offload.control.register_map import BITS, PAYLOAD, QUEUE, SCAN, STREAMS, VALUES
from actcodec.rtl.offload.control.registers import Registers
from formal.catalogue import Proof
from formal.harness import Harness
from formal.marks import drains
from formal.streams import HOLDS, Port, held

__all__ = ["proofs"]

WIDTH = 34  # of an address in memory
MODES = lane_modes("brc")
SETTINGS = setting.width(MODES)
# Without a mode that has streams in place of blocks, no word tells of their lengths; nor, without payloads in memory,
# of their places.
LACKS = (*STREAMS, *PAYLOAD, "payload_memory", "format", *SCAN, *QUEUE)
THERE = [bits for bits in BITS if bits.name not in LACKS and (bits.name != "settings" or bits.part < SETTINGS)]


def moves(port):
    return port.valid & port.ready


def port(stream):
    return Port("", False, stream.valid, stream.ready, Value.cast(stream.p))


def writable(address):
    """Bits of a word that keep what is written."""
    mask = 0
    total = {"base": WIDTH, "scales": WIDTH, "settings": SETTINGS}
    for bits in THERE:
        if bits.address == address and VALUES[bits.name].access == "rw":
            width = min(bits.width, total[bits.name] - bits.part) if bits.name in total else bits.width
            mask |= (1 << max(width, 0)) - 1 << bits.low
    return mask


def registers():
    h = Harness(Registers(1, MODES, WIDTH))
    unit, m = h.unit(), h.m
    aw, w, b, ar, r, status = unit.aw, unit.w, unit.b, unit.ar, unit.r, unit.status
    for stream in (aw, w, ar):
        h.assume(held(h, port(stream)))
    for stream in (b, r):
        h.check(HOLDS, held(h, port(stream)))
    h.assume(~h.past(unit.start | unit.reset) | status.busy)
    written, read = moves(aw) & moves(w), moves(ar)

    name = "an answer to each request and to nothing else"
    for answer, request in ((b, written), (r, read)):
        owed = Signal(name="owed")
        m.d.sync += owed.eq(request | (owed & ~moves(answer)))
        h.check(name, (answer.valid == owed) & ~(request & owed & ~answer.ready))
    h.check(name, moves(aw) == moves(w))
    h.check(name, ~moves(b) | ~written)
    name = "no request waits for anything but the answer before it"
    drains(h, aw.valid & w.valid & ~b.valid & ~aw.ready, 1, name)
    drains(h, ar.valid & ~r.valid & ~ar.ready, 0, name)

    # What an answer has to be. `status` at the write, the rest the cycle before, when both halves have been there.
    words = sorted({bits.address for bits in THERE})
    content, strobes = w.p.data, w.p.strb
    exists, hinders, keeps = Signal(name="exists"), Signal(name="hinders"), Signal(32, name="keeps")
    beyond = Cat(content[bit] & strobes[bit // 8] for bit in range(WIDTH - 32, 32)).any()
    with m.Switch(aw.p[2:]):
        for address in words:
            pieces = [bits for bits in THERE if bits.address == address]
            with m.Case(address >> 2):
                m.d.comb += exists.eq(1)
                if VALUES[pieces[0].name].locked:
                    m.d.comb += hinders.eq(status.busy)
                if pieces[0].name in ("base", "scales") and pieces[0].part:
                    m.d.comb += hinders.eq(status.busy | beyond)
    good = h.past(written & exists & ~hinders)
    name = "refused is what does not exist, and what must not be written now; it changes nothing"
    h.check(name, ~h.past(written) | (b.p == Mux(good, OKAY, SLVERR)))
    control = Value.cast(unit.control)
    h.check(name, good | (control == h.past(control)))
    h.check("what the accelerator uses stands still while it is busy",
            ~h.past(status.busy | unit.start) | (control == h.past(control)))
    start, reset = (h.past(written & (aw.p[2:] == 0x0C >> 2) & strobes[0] & content[bit]) for bit in (0, 1))
    name = "starts and resets when told to, and never starts what is busy"
    h.check(name, unit.start == (start & ~reset & ~h.past(status.busy)))
    h.check(name, unit.reset == reset)

    # One byte of one word, whichever: what was written is read.
    address, lane = h.rigid(6, "address"), h.rigid(2, "lane")
    h.assume(Cat(address == word >> 2 for word in words if writable(word)).any())
    with m.Switch(address):
        for word in words:
            if writable(word):
                with m.Case(word >> 2):
                    m.d.comb += keeps.eq(writable(word))
    mask = keeps.word_select(lane, 8)
    byte, known = Signal(8, name="byte"), Signal(name="known")
    coming = written & exists & ~hinders & (aw.p[2:] == address) & strobes.bit_select(lane, 1)
    with m.If(coming):
        m.d.sync += [byte.eq(content.word_select(lane, 8)), known.eq(1)]
    asked = h.past(read & (ar.p[2:] == address) & known)
    h.check("a byte that was written is read until the next write to it",
            ~asked | ((r.p.resp == OKAY) & ((r.p.data.word_select(lane, 8) ^ h.past(byte)) & mask == 0)))
    return h


def proofs():
    return [Proof("registers", "lite", lambda _: registers(), f"1 CDU, {WIDTH} bits of address")]
