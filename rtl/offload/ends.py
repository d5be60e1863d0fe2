"""Where an accelerator's packets go and come from: the streams, a memory port of their own, or either."""

from amaranth.hdl import Const, Module, ResetInserter, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi, axis
from actcodec.rtl.common.pipeline import Register
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.stream_mux import StreamMux
from actcodec.rtl.common.target import target
from actcodec.rtl.offload.control.limits import LINE
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.rtl.offload.memory.payload import Payload
from actcodec.rtl.offload.wire.round_robin import PACKET

__all__ = ["Ends", "end_ports", "in_memory", "in_streams"]


def in_streams(payload):
    """Whether an accelerator with this parameter has the streams."""
    return payload != "memory"


def in_memory(payload):
    """Whether it has a memory port for payloads."""
    return payload != "stream"


def end_ports(payload, address_width):
    """The accelerator's ports for payloads."""
    return {
        **(axis.ports("m_axis_", PACKET, Out) | axis.ports("s_axis_", PACKET, In) if in_streams(payload) else {}),
        **(axi.ports("m_axi_payload_", address_width) if in_memory(payload) else {}),
    }


class Ends:
    """Adds to the module ``m`` of an accelerator what moves its packets: from ``source``, a collector's stream, and to
    the ``splitter``, which comes into a module with the receiver, as readiness goes through both at the end of the
    splitter's longest path. ``control`` is what the host says, ``clear`` is the accelerator's.

    Memory's port moves a packet in four beats, so one waits in a register on either side of it: while a packet is
    stored, the collector fills the next one, and while the splitter takes one apart, the next one is put together. Its
    readiness is late for the collector. One lane without long rows has cycles between packets, so a slow register parts
    them; of others a skid buffer does, for LUTs. With one lane the splitter can miss a cycle after each packet; with
    several it gets the next one at once from a skid buffer.

    It is no component, as it shares that module, and as an accelerator without memory for payloads has nothing of it
    but wires.

    Attributes
    ----------
    leaves, comes : streams of packets
        Those that leave, and those for the splitter, wherever their other end is.
    resident : Value
        The payload of this tensor is in memory.
    accept : Signal
        Driven by the accelerator: packets to decompress are accepted.
    busy : list of Value
        Memory is at work, or owes an answer.
    quiet : Value
        No frame has begun at ``m_axis``.
    malformed, refused : list of Value
        A beat of the stream was malformed; the host's settings are illegal.
    """

    def __init__(self, m, accelerator, control, clear, source, splitter, platform):
        payload = accelerator.payload
        self._sender = self._receiver = self._memory = None
        self._control, self._clear = control, clear
        if in_streams(payload):
            m.submodules.sender = self._sender = axis.Sender(PACKET)
        m.submodules.inlet = inlet = Module()
        if in_streams(payload):
            inlet.submodules.receiver = self._receiver = axis.Receiver(PACKET)
        if in_memory(payload):
            m.submodules.payload = self._memory = Payload(accelerator.address_width, accelerator.outstanding)
        inlet.submodules.splitter = splitter
        sender, receiver, memory = self._sender, self._receiver, self._memory
        if memory:
            shape, one = memory.o.p.shape(), accelerator.cdus == 1
            seldom = one and all(mode.format.row <= 8 for mode in accelerator.modes)  # a packet in 14 cycles
            m.submodules.write_register = write = ResetInserter(clear)(
                Register(shape, slow=True) if seldom else
                Register(shape) if target(platform) == "cells" else Skid(shape))
            inlet.submodules.read_register = read = ResetInserter(clear)(
                Register(shape, slow=True) if one else Skid(shape))
            wiring.connect(m, write.o, memory.i)
            wiring.connect(inlet, memory.o, read.i)
        if sender:
            axis.connect(m, accelerator, "m_axis_", sender.o)
            axis.connect(m, accelerator, "s_axis_", receiver.i)
        if memory:
            axi.connect(m, accelerator, "m_axi_payload_", memory.reads, memory.writes)
        if sender and memory:
            self.leaves, self.comes, self.resident = source, splitter.i, Signal(name="resident")
            m.d.sync += self.resident.eq(control.payload_memory)
            for module, pairs in ((m, ((source, sender.i), (source, write.i))),
                                  (inlet, ((receiver.o, splitter.i), (read.o, splitter.i)))):
                mux = StreamMux(module)
                for when, (one, other) in zip((~self.resident, self.resident), pairs, strict=True):
                    mux.link(when, one, other, **{name: one.p[name] for name in ("data", "count", "last")})
                mux.finish()
        else:
            self.leaves, self.comes = (sender.i, receiver.o) if sender else (write.i, read.o)
            self.resident = Const(bool(memory), 1)
            wiring.connect(m, source, self.leaves)
            wiring.connect(inlet, self.comes, splitter.i)

        self.accept = Signal(name="accept") if memory else receiver.run
        if sender and memory:
            m.d.comb += receiver.run.eq(self.accept & ~self.resident)
        self.quiet = sender.quiet if sender else Const(1, 1)
        self.malformed = [receiver.malformed] if sender else []
        self.busy = [memory.busy] if memory else []
        passes = ~control.scan | ~control.scan_only | control.decompress if accelerator.scan else Const(1, 1)
        self.refused = [self.resident & passes & control.payload[: LINE.bit_length() - 1].any()] if memory else []

    def driven(self, launch, decompress, abort):
        """Statements: a tensor starts, and is given up."""
        control, memory = self._control, self._memory
        statements = [self._receiver.abort.eq(self._clear), self._sender.abort.eq(abort)] if self._sender else []
        if memory:
            statements += [memory.start.eq(launch & self.resident), memory.abort.eq(abort),
                           memory.decompress.eq(decompress), memory.base.eq(control.payload),
                           memory.size.eq(control.payload_size)]
        return statements

    def failed(self, side, decompress):
        """Values: memory answered the payload's port with an error, ``side`` says which way; at most one."""
        memory = self._memory
        return [self.resident & memory.error & (decompress == (side == "read"))] if memory else []

    def errors(self, decompress):
        """Pairs (value, code) of what befell a payload, but for beats and answers."""
        memory = self._memory
        return [(self.resident & ~decompress & memory.overflow, ErrorCode.OVERFLOW)] if memory else []
