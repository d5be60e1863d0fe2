"""A FIFO in a memory, which can hold packets back until all of them is there."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.target import target

__all__ = ["Fifo"]


class Fifo(wiring.Component):
    """First in, first out, through a memory with a port to write and one to read: block RAM on an FPGA, a macro on a
    chip.

    The memory answers a cycle after it was asked and keeps its output until it is asked again, which is the first stage
    behind it; a register is the second, so that a slow memory has a cycle for itself.

    Throughput: one beat a cycle. Latency: 3 cycles, 4 with ``packets``, and then those that the rest of the packet
    takes. Buffering: ``depth`` beats, and two behind the memory. Combinational paths: none; ``i.ready`` comes from a
    register, ``o.ready`` goes to the memory's read enable.

    Parameters
    ----------
    shape : shape-castable
        Payload of the streams; with ``packets`` it has a member ``last``.
    depth : int
        Beats that the memory holds, at least 2. With ``packets``, at least as many as the longest packet has: a longer
        one would wait for itself for ever.
    packets : bool
        Nothing of a packet is at ``o`` before its ``last`` beat came in. From then on it leaves without waiting for
        anything but ``o.ready``.

    Ports
    -----
    i, o : stream of ``shape``

    Raises
    ------
    ValueError
        If ``depth`` is not an int of at least 2, or packets have no ``last``.
    """

    def __init__(self, shape, depth, packets=False):
        if type(depth) is not int or depth < 2:
            raise ValueError(f"depth must be an integer of at least 2 beats, not {depth!r}")
        if packets and "last" not in getattr(shape, "members", ()):
            raise ValueError(f"shape must have a member last for packets, not {shape!r}")
        self.shape, self.depth, self.packets = shape, depth, bool(packets)
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        # A shallow one would take a LUT for two bits.
        attributes = {"ram_style": "block"} if target(platform) == "lut" else {}
        m.submodules.memory = memory = Memory(shape=self.shape, depth=self.depth, init=[], attrs=attributes)
        write, read = memory.write_port(), memory.read_port(domain="sync")
        full, some = Signal(), Signal()  # of the memory: no room for a beat; there is one that may leave
        # The memory's output, and the register behind it, have a beat.
        fetched, valid = Signal(name="fetched"), Signal()
        payload = Signal.like(self.o.p, reset_less=True)
        pushes, pulls, moves = Signal(), Signal(), Signal()
        m.d.comb += [
            self.i.ready.eq(~full),
            self.o.valid.eq(valid),
            self.o.p.eq(payload),
            pushes.eq(self.i.valid & ~full),
            moves.eq(~valid | self.o.ready),
            pulls.eq(some & (~fetched | moves)),
            write.data.eq(self.i.p),
            write.en.eq(pushes),
            read.en.eq(pulls),
        ]
        for port, steps in ((write, pushes), (read, pulls)):
            place = Signal(range(self.depth), name="place")
            m.d.comb += port.addr.eq(place)
            with m.If(steps):
                m.d.sync += place.eq(Mux(place == self.depth - 1, 0, place + 1))
        with m.If(~fetched | moves):
            m.d.sync += fetched.eq(pulls)
        with m.If(moves):
            m.d.sync += valid.eq(fetched)
        with m.If(moves & fetched):
            m.d.sync += payload.eq(read.data)

        level = Signal(range(self.depth + 1))
        with m.If(pushes & ~pulls):
            m.d.sync += [level.eq(level + 1), full.eq(level == self.depth - 1)]
        with m.Elif(pulls & ~pushes):
            m.d.sync += [level.eq(level - 1), full.eq(0)]
        if not self.packets:
            m.d.comb += some.eq(level != 0)
            return m

        # What has come of a packet counts, all at once, in the cycle after its last beat.
        whole, length, done = (Signal(range(most), name=name) for name, most in (
            ("whole", self.depth + 1), ("length", self.depth), ("done", self.depth + 1)))
        m.d.comb += some.eq(whole != 0)
        with m.If(pushes):
            m.d.sync += length.eq(Mux(self.i.p.last, 0, length + 1))
        m.d.sync += [done.eq(Mux(pushes & self.i.p.last, length + 1, 0)), whole.eq(whole + done - pulls)]
        return m
