"""The coalescer: beats that lie one after the other become bursts."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi

__all__ = ["LIMIT", "Bursts", "beat_layout"]

LIMIT = 8  # beats of a burst


def beat_layout(address_width):
    """A step of a stream of beats: ``index`` is the address over 32; ``joins`` says that it is the one after the beat
    before and that both lie in the same 256 bytes; steps without ``beat`` touch no memory. ``last`` marks the last
    step of a tensor."""
    return data.StructLayout({"index": address_width - 5, "beat": 1, "joins": 1, "last": 1})


class Bursts(wiring.Component):
    """Joins beats to bursts of 1 to 8.

    Bursts end where a multiple of 256 bytes begins, so none crosses 4 KiB, none is longer than 8 beats, and no line of
    128 bytes is cut in two: the sender of the beats compares addresses (it has to anyway), this unit only holds the
    burst that grows. It leaves when a beat does not join it, after ``last``, or ``window`` steps after its first one.
    Until then it waits.

    Throughput: one step per cycle. Latency: one cycle from the step that ends a burst to it, none from the beat that
    does not join it. Buffering: a burst. Combinational paths: ``i`` to ``o.valid``, ``o.ready`` and ``i.p`` to
    ``i.ready``.

    Source: JPEG-ACT, section III-C (whole lines are read); AMBA AXI, IHI 0022, section A3.4.1 (4 KiB).

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 12 to 64.
    window : int or None
        Most steps that a burst stays open, for senders that cannot go on before it has left; None for no limit.

    Ports
    -----
    i : stream of :func:`beat_layout`
    o : stream of :func:`~actcodec.rtl.common.axi.address_layout`

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, window=None):
        if not isinstance(address_width, int) or not 12 <= address_width <= 64:
            raise ValueError(f"address_width must be 12 to 64 bits, not {address_width!r}")
        if window is not None and (not isinstance(window, int) or window < 1):
            raise ValueError(f"window must be at least 1 step or None, not {window!r}")
        self.window = window
        super().__init__({
            "i": In(stream.Signature(beat_layout(address_width))),
            "o": Out(stream.Signature(axi.address_layout(address_width))),
        })

    def elaborate(self, platform):
        m = Module()
        step = self.i.p
        open_, closed = Signal(), Signal()  # there is a burst; nothing more joins it
        index = Signal.like(step.index, reset_less=True)
        length = Signal(range(LIMIT), reset_less=True)

        extends, moves = Signal(), Signal()
        m.d.comb += [
            extends.eq(open_ & ~closed & step.joins),
            self.i.ready.eq(~step.beat | extends | ~open_ | self.o.ready),
            moves.eq(self.i.valid & self.i.ready),
            self.o.valid.eq(open_ & (closed | (self.i.valid & step.beat & ~step.joins))),
            self.o.p.address.eq(index << 5),
            self.o.p.length.eq(length),
        ]

        full = Signal()
        if self.window is not None:
            age = Signal(range(self.window + 1), reset_less=True)  # steps since the burst began
            steps = Signal.like(age)
            m.d.comb += [steps.eq(Mux(step.beat & ~extends, 1, age + 1)), full.eq(steps == self.window)]
            with m.If(moves):
                m.d.sync += age.eq(steps)

        with m.If(self.o.valid & self.o.ready):
            m.d.sync += open_.eq(0)
        with m.If(moves & step.beat & ~extends):
            m.d.sync += [open_.eq(1), index.eq(step.index)]
        with m.If(moves):
            with m.If(step.beat):
                m.d.sync += length.eq(Mux(extends, length + 1, 0))
            m.d.sync += closed.eq(step.last | full | (closed & ~step.beat))
        return m
