"""The registers of the accelerator, as an AXI4-Lite slave."""

from itertools import groupby

from amaranth.hdl import Cat, Const, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axil
from actcodec.rtl.offload.control import setting
from actcodec.rtl.offload.control.config import check_modes, check_payload, of_streams
from actcodec.rtl.offload.control.limits import FORMATS
from actcodec.rtl.offload.control.register_map import (
    ADDRESS_BITS,
    BITS,
    DESCRIPTOR,
    PAYLOAD,
    PAYLOADS,
    QUEUE,
    SCAN,
    STREAMS,
    VALUES,
)
from actcodec.rtl.offload.memory.formats import codes_of, halves_of
from actcodec.rtl.offload.memory.geometry import check_address_width
from actcodec.rtl.offload.wire.round_robin import check_cdus

__all__ = ["Registers", "check_queue", "described", "line_layout"]

SHAPES = {"table": data.ArrayLayout(3, 64)}  # of values that are more than a number
ADDRESSES = ("base", "scales", "payload", "payload_size", "ring")
SIZES = (0, *(1 << log for log in range(1, 16)))  # of a ring
LINE = 32  # bytes of a descriptor that come in a cycle

line_layout = data.StructLayout({"valid": 1, "place": 4, "data": 8 * LINE})
"""A line of a descriptor: its place, and what is there."""


def check_queue(queue):
    """Raises ValueError unless ``queue`` is a number of descriptors that a ring can have, or 0."""
    if type(queue) is not int or queue not in SIZES:
        raise ValueError(f"queue must be 0 or a power of two, 2 to 32768, not {queue!r}")


def described(bits):
    """Whether a piece of a value comes from a descriptor: of what can be written, from MODE to LENGTHS_IN."""
    return bits.address in DESCRIPTOR and VALUES[bits.name].locked and bits.name not in ("bin", *QUEUE[2:])


class Registers(wiring.Component):
    """What a host sees of the accelerator. The map is declared in register_map.py and documented in docs/registers.md.

    The five channels of AXI4-Lite are streams without ``prot``. A write address and its data may come in any order;
    both are taken together, one cycle after both are there. Writes while ``status.busy`` change nothing of ``control``,
    so that the accelerator needs no copy of it; nor does one to a bit of an address that does not exist.

    Throughput: a write in three cycles and, independently, a read in two. Latency: from both halves of a write to its
    response 2 cycles, from a read's address to its data 1. Buffering: the two answers. Combinational paths: none
    between channels; all outputs come from registers but ``ar.ready``, which is the inverse of ``r.valid``.

    Source: the bus is AMBA's (IHI 0022, AXI4-Lite); JPEG-ACT leaves open how a host talks to the accelerator.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8: a field of CAPABILITIES.
    modes : tuple
        Those that were built in (see :func:`~actcodec.rtl.offload.control.config.check_modes`). Told to the host; and
        of SETTINGS no more bits, nor words, exist than they have settings for; what is about streams only with modes
        that have them.
    address_width : int
        Bits of an address in memory, 32 to 64; registers have no more, and a write of more is refused.
    formats : tuple of {"float32", "bfloat16", "float16", "int8"}
        Of values in memory (see :func:`~actcodec.rtl.offload.memory.formats.halves_of`).
    payload : {"stream", "memory", "both"}
        Where payloads pass. "stream": the streams, and nothing here is about memory. "memory": memory alone. "both":
        either, as a bit of MODE says.
    scan : bool
        Tensors can be scanned.
    queue : int
        Descriptors that a ring can have, a power of two, 2 to 32768; 0 for no queue.

    Ports
    -----
    aw, ar : stream of byte addresses
    w : stream of ``data`` (32 bits) and ``strb`` (4 bits)
    b : stream of responses
    r : stream of ``data`` (32 bits) and ``resp`` (2 bits)
    control : output, one member for each value that can be written and that the accelerator needs
        Stands still from ``start`` until ``status.busy`` falls.
    start, reset : output
        Pulses of one cycle. ``start`` comes only while ``status.busy`` is low.
    status : input, one member for each value that is read from the accelerator
        ``busy`` has to be high from the cycle after ``start`` or ``reset`` on, for as long as it takes. ``error``
        stands from ``done`` to the next ``start``.
    done : input
        Pulse: a tensor has ended, well or, with ``status.error``, badly. In the cycle of ``reset`` it is too late;
        not given from then on.
    fault : input, only with ``queue``
        With ``done``, in place of ``status.error``: badly.
    line : input, :data:`line_layout`, only with ``queue``
        What comes of a descriptor: it replaces what registers have. Only while ``status.busy``.
    doorbell : output, only with ``queue``
        Pulse: ``control.head``, which does not stand, has been written.
    interrupt : output

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, cdus, modes, address_width=64, formats=("float32",), payload="stream",
                 scan=False, queue=0):
        check_cdus(cdus)
        check_modes(modes)
        check_address_width(address_width)
        check_payload(payload)
        check_queue(queue)
        self.queue = queue
        beside = (*halves_of(formats), *codes_of(formats))
        self.fixed = {"cdus": cdus, "modes": sum(1 << mode.code for mode in modes),
                      "address_width": address_width, "payloads": PAYLOADS.index(payload), "scans": 1,
                      "queues": queue.bit_length() - 1 if queue else 0,
                      "formats": sum(1 << FORMATS.index(name) - 1 for name in beside)}
        self.widths = widths = {name: address_width if name in ADDRESSES else info.width
                                for name, info in VALUES.items()} | {
            "settings": setting.width(modes), "clipped": int(any(mode.format.segmented for mode in modes)),
            "format": VALUES["format"].width if beside else 0, "payload_memory": int(payload == "both")}
        widths |= dict.fromkeys(PAYLOAD, 0) if payload == "stream" else {}
        widths |= {} if scan else dict.fromkeys(SCAN, 0)
        numbers = dict.fromkeys(("ring_size", "head", "tail"), queue.bit_length())
        widths |= numbers if queue else dict.fromkeys(QUEUE, 0)
        lengths = dict.fromkeys(("lengths_in", "lengths_out"), 32 * cdus)
        widths |= lengths if of_streams(modes) else dict.fromkeys(STREAMS, 0)
        super().__init__({
            **axil.members(ADDRESS_BITS),
            "control": Out(data.StructLayout({name: SHAPES.get(name, widths[name])
                                              for name, info in VALUES.items()
                                              if (info.locked or name == "head") and widths[name]})),
            "start": Out(1),
            "reset": Out(1),
            "status": In(data.StructLayout({name: widths[name] for name, info in VALUES.items()
                                            if info.access == "ro" and name != "done" and widths[name]})),
            "done": In(1),
            "interrupt": Out(1),
        } | ({"fault": In(1), "line": In(line_layout), "doorbell": Out(1)} if queue else {}))

    def elaborate(self, platform):
        m = Module()
        optional = ("settings", "payload_memory", *STREAMS, *PAYLOAD, *SCAN, *QUEUE)
        # An address that exists has its upper word, which takes zeros alone where it has no bits.
        there = (bits for bits in BITS if bits.name not in optional or bits.part < self.widths[bits.name]
                 or (bits.name in ADDRESSES and self.widths[bits.name]))
        words = {address: list(pieces) for address, pieces in groupby(there, lambda bits: bits.address)}

        # What is stored: a register for each byte, since bytes have enables of their own. Reset writes zeros into them:
        # a flip-flop with both reset and enable gets no clock gate.
        values = {name: Const(0, info.width) if info.access == "pulse" else Cat() for name, info in VALUES.items()}
        stored = {}  # (address, lane) -> [(name, register, what is written to it)]
        for bits in BITS:
            info = VALUES[bits.name]
            for lane in range(4) if info.access in ("rw", "w1c") else ():
                low, high = max(bits.low, 8 * lane), min(bits.low + bits.width, 8 * lane + 8)
                start = bits.part + low - bits.low
                width = min(high - low, self.widths[bits.name] - start)
                if width > 0:
                    register = Signal(width, reset_less=info.access == "rw", name=f"{bits.name}_{start}")
                    values[bits.name] = Cat(values[bits.name], register)
                    stored.setdefault((bits.address, lane), []).append((bits, register, low))
        m.d.comb += [Value.cast(self.control[name]).eq(values[name]) for name in self.control.shape().members]
        values |= {name: self.status[name] for name in self.status.shape().members} | {"done": Signal(name="done_0")}
        values |= {name: Const(self.fixed.get(name, info.reset), info.width) for name, info in VALUES.items()
                   if info.access == "fixed"}

        # ------------------------------------------------------------------------------------------------------ write
        take, legal = Signal(), Signal()  # both halves are there; the address can be written now
        content, strobes, address = self.w.p.data, self.w.p.strb, self.aw.p[2:]
        beyond = Signal()  # for an upper half of an address: bits that do not exist
        m.d.sync += beyond.eq(Cat(content[bit] & strobes[bit // 8]
                                  for bit in range(self.fixed["address_width"] - 32, 32)).any())
        m.d.comb += [self.aw.ready.eq(take), self.w.ready.eq(take)]
        m.d.sync += take.eq(self.aw.valid & self.w.valid & ~take & ~self.b.valid)
        with m.If(self.b.ready):
            m.d.sync += self.b.valid.eq(0)
        with m.If(take):
            m.d.sync += [self.b.valid.eq(1), self.b.p.eq(Mux(legal, axil.OKAY, axil.SLVERR))]
        with m.Switch(address):
            for place, pieces in words.items():
                with m.Case(place >> 2):
                    bits = pieces[0]
                    hinders = [self.status.busy] * VALUES[bits.name].locked
                    hinders += [beyond] * (bits.name in ADDRESSES and bits.part > 0)
                    m.d.comb += legal.eq(~Cat(hinders).any())
        clear, entered = ResetSignal(), Signal(32)
        m.d.comb += entered.eq(Mux(clear, 0, content))
        if self.queue:
            # A line has the bus to itself: meanwhile the host's writes to what it loads are refused.
            line, typed, loaded = self.line, Signal(32), Signal(8 * LINE)
            m.d.comb += [typed.eq(Mux(line.valid, 0, entered)),
                         loaded.eq(Mux(line.valid & ~clear, line.data, 0))]
        for (place, lane), registers in stored.items():
            word, enters = entered, (take & legal & (address == place >> 2) & strobes[lane]) | clear
            if self.queue and described(registers[0][0]):
                first = place - DESCRIPTOR.start
                word = typed | loaded.word_select(first % LINE // 4, 32)
                enters |= line.valid & (line.place == first // LINE)
            with m.If(enters):
                for bits, register, low in registers:
                    new = word[low : low + len(register)]
                    m.d.sync += register.eq(new if VALUES[bits.name].access == "rw" else register & ~new)

        pulses = {bits.name: (take & (address == bits.address >> 2) & strobes[bits.low // 8] & content[bits.low])
                  for bits in BITS if VALUES[bits.name].access == "pulse"}
        m.d.sync += [self.reset.eq(pulses["reset"]),
                     self.start.eq(pulses["start"] & ~pulses["reset"] & ~self.status.busy)]

        # The end of a tensor comes after the writes, and so wins over them, but not over a reset.
        done, pending = values["done"], Cat(values["done_pending"], values["error_pending"])
        with m.If(self.start | self.reset):
            m.d.sync += done.eq(0)
        with m.Elif(self.done):
            m.d.sync += [done.eq(1), values["done_pending"].eq(1)]
            with m.If(self.fault if self.queue else self.status.error != 0):
                m.d.sync += values["error_pending"].eq(1)
        if self.queue:
            head, = (bits for bits in BITS if bits.name == "head")
            m.d.sync += self.doorbell.eq(take & (address == head.address >> 2))
        m.d.sync += self.interrupt.eq((pending & Cat(values["done_enable"], values["error_enable"])).any())

        # ------------------------------------------------------------------------------------------------------- read
        m.d.comb += self.ar.ready.eq(~self.r.valid)
        with m.If(self.r.ready):
            m.d.sync += self.r.valid.eq(0)
        with m.If(self.ar.valid & self.ar.ready):
            m.d.sync += [self.r.valid.eq(1), self.r.p.data.eq(0), self.r.p.resp.eq(axil.SLVERR)]
            with m.Switch(self.ar.p[2:]):
                for place, pieces in words.items():
                    with m.Case(place >> 2):
                        m.d.sync += [self.r.p.data.eq(self._word(values, pieces)),
                                     self.r.p.resp.eq(axil.OKAY)]
        return m

    @staticmethod
    def _word(values, pieces):
        """The word that consists of ``pieces``, zeros between them."""
        parts, at = [], 0
        for bits in pieces:
            value = values[bits.name][bits.part : bits.part + bits.width]
            parts += [Const(0, bits.low - at), value]
            at = bits.low + len(value)
        return Cat(parts)
