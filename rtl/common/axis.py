"""AXI4-Stream at the edge of the design: frames of beats whose last one may be partial.

Source: AMBA AXI-Stream protocol specification, IHI 0051.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout

__all__ = ["Receiver", "Sender", "axis", "connect", "ports"]

NAMES = ("tdata", "tkeep", "tlast", "tvalid", "tready")


def axis(size):
    """The signature of a master of ``size`` bytes a beat."""
    return wiring.Signature({"tdata": Out(8 * size), "tkeep": Out(size), "tlast": Out(1), "tvalid": Out(1),
                             "tready": In(1)})


def ports(prefix, size, flow):
    """Members of a component that make a flat port, a master (``flow`` is Out) or a slave (In)."""
    return {prefix + name: member if flow == Out else member.flip() for name, member in axis(size).members.items()}


def check_size(size):
    """Raises ValueError unless ``size`` is a power of two, at least 2."""
    if not isinstance(size, int) or size < 2 or size & (size - 1):
        raise ValueError(f"size must be a power of two of bytes, at least 2, not {size!r}")


def connect(m, component, prefix, port):
    """Connects the flat port ``prefix`` of ``component`` with the port of a unit inside."""
    for name in NAMES:
        outer, inner = getattr(component, prefix + name), getattr(port, name)
        inwards = port.signature.members[name].flow == In
        m.d.comb += inner.eq(outer) if inwards else outer.eq(inner)


class Sender(wiring.Component):
    """Sends chunks as frames.

    Throughput: one beat a cycle. Latency and buffering: none; the chunks should come from registers. Combinational
    paths: ``i`` to ``o``, ``o.tready`` to ``i.ready``, ``abort`` to both.

    Parameters
    ----------
    size : int
        Bytes of a beat, a power of two, at least 2.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout`
        All full, but the last one of a frame.
    o : :func:`axis`
        ``tkeep`` marks the bytes of the chunk.
    abort : input
        Give the frame up: the beat on offer still goes, nothing else of ``i`` is taken, and if the frame has begun, a
        beat without bytes ends it.
    quiet : output
        With ``abort``: that has been done, and ``i`` may be reset.

    Raises
    ------
    ValueError
        If ``size`` is no power of two, or 1.
    """

    def __init__(self, size=128):
        check_size(size)
        self.size = size
        super().__init__({"i": In(stream.Signature(chunk_layout(size))), "o": Out(axis(size)), "abort": In(1),
                          "quiet": Out(1)})

    def elaborate(self, platform):
        m = Module()
        i, o = self.i, self.o
        begun, stopped = Signal(), Signal()  # a frame is under way; what was on offer has gone
        stalled = Signal()  # offered, and not taken
        closing = Signal()
        m.d.comb += [
            closing.eq(stopped & begun),
            self.quiet.eq(stopped & ~begun),
            o.tvalid.eq(Mux(stopped, closing, i.valid & (stalled | ~self.abort))),
            # Whatever comes at i meanwhile: an offered beat stays as it is.
            o.tdata.eq(Mux(stopped, 0, i.p.data.as_value())),
            o.tkeep.eq(Mux(stopped, 0, Cat(i.p.count > k for k in range(self.size)))),
            o.tlast.eq(stopped | i.p.last),
            i.ready.eq(o.tready & ~stopped & (stalled | ~self.abort)),
        ]
        m.d.sync += [stalled.eq(o.tvalid & ~o.tready), stopped.eq(self.abort & (stopped | ~o.tvalid | o.tready))]
        with m.If(o.tvalid & o.tready):
            m.d.sync += begun.eq(~o.tlast)
        return m


class Receiver(wiring.Component):
    """Receives frames as chunks.

    A beat is well formed if its bytes begin in lane 0 without gaps, and fill it unless it is the last of its frame. Of
    others, all lanes are taken, zeros where ``tkeep`` is 0, so that whatever follows stays in step.

    Throughput: one beat a cycle, but the last one of a frame waits for a cycle, in which its bytes are counted.
    Latency and buffering: none. Combinational paths: ``i`` to ``o`` but for the count, ``i.tlast``, ``run`` and
    ``o.ready`` to ``i.tready``.

    Parameters
    ----------
    size : int
        Bytes of a beat, a power of two, at least 2.

    Ports
    -----
    i : slave of :func:`axis`
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout`
    run : input
        Beats may be taken.
    abort : input
        Pulse, while not ``run``: the rest of a frame that has begun is dropped when it comes, ``run`` or not. Nothing
        of it, nor of the next frame in its place, reaches ``o``.
    malformed : output
        A beat that was not well formed was taken in the cycle before.

    Raises
    ------
    ValueError
        If ``size`` is no power of two, or 1.
    """

    def __init__(self, size=128):
        check_size(size)
        self.size = size
        super().__init__({"i": In(axis(size)), "o": Out(stream.Signature(chunk_layout(size))), "run": In(1),
                          "abort": In(1), "malformed": Out(1)})

    def elaborate(self, platform):
        m = Module()
        i, o, size = self.i, self.o, self.size
        begun, dropping = Signal(), Signal()
        # Of the cycle before, since readiness may come late: a beat was taken, the last one stood there, malformed.
        took, ended, odd, before = Signal(), Signal(), Signal(), Signal()
        dropped, offered, ready = Signal(), Signal(), Signal()  # what it was taken by
        full, gaps, partial = Signal(), Signal(), Signal()
        ends = [Signal(name=f"ends_{k}") for k in range(1, size)]  # the bytes end in front of lane k
        length, count, counted = Signal(range(size)), Signal(range(size + 1)), Signal()  # of the last beat
        may = Signal()
        m.d.comb += [end.eq(i.tkeep[k] & ~i.tkeep[k + 1]) for k, end in enumerate(ends)]
        m.d.comb += [
            full.eq(i.tkeep.all()),
            gaps.eq(Cat(~i.tkeep[k] & i.tkeep[k + 1] for k in range(size - 1)).any()),
            partial.eq(~gaps & ~full),
            length.eq(Cat(Cat(end for k, end in enumerate(ends, 1) if k >> bit & 1).any()
                          for bit in range(size.bit_length() - 1))),
            counted.eq(ended & ~took),
            may.eq(self.run & (counted | ~i.tlast)),
            o.valid.eq(i.tvalid & may & ~dropping),
            o.p.data.as_value().eq(Cat(Mux(i.tkeep[k], i.tdata.word_select(k, 8), 0) for k in range(size))),
            o.p.count.eq(Mux(i.tlast, count, size)),
            o.p.last.eq(i.tlast),
            i.tready.eq(dropping | (may & o.ready)),
            self.malformed.eq(took & odd),
            took.eq(dropped | (offered & ready)),
            begun.eq(Mux(took, ~ended, before)),
        ]
        m.d.sync += [dropped.eq(i.tvalid & dropping), offered.eq(i.tvalid & may), ready.eq(o.ready),
                     ended.eq(i.tvalid & i.tlast), before.eq(begun),
                     odd.eq(~dropping & (gaps | ~(full | i.tlast))), count.eq(Mux(partial, length, size))]
        with m.If(dropping & i.tvalid):
            m.d.sync += dropping.eq(~i.tlast)
        with m.Elif(self.abort):
            m.d.sync += dropping.eq(begun)
        return m
