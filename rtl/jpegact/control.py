"""The control of a CDU: from a tensor's configuration to its end."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.target import target
from actcodec.rtl.offload.control.config import Chosen, Error, beyond, config_layout, limited

__all__ = ["Control"]


class Control(wiring.Component):
    """Holds a tensor's configuration, starts the units, counts blocks, and sees a stream that does not fit to its end.

    Throughput: a tensor may start three cycles after the last one has ended, for LUTs four. Latency: ``start`` follows
    a transfer at ``config`` by one cycle, for LUTs by two, as all units wait for it. Buffering: a configuration.
    Combinational paths: ``counted`` to nothing, ``excess`` and ``left`` to nothing; all outputs come from registers and
    a few gates.

    Source: JPEG-ACT, section III-A.

    Parameters
    ----------
    modes : tuple
        Those of the unit (see :func:`~actcodec.rtl.offload.control.config.check_modes`).

    Ports
    -----
    config : stream of :func:`~actcodec.rtl.offload.control.config.config_layout`
    tensor : output, the same
        Of the tensor that is under way.
    start : output
        Pulse, while ``tensor`` already stands, unless it cannot be done.
    counted : input
        A sector of the tensor came in (compress), or a row was taken from the compressed side.
    more : output
        Some are still to come.
    last : output
        The next one is the last.
    done : input
        Pulse: the last beat leaves.
    short, excess : input
        The compressed stream ended early; it has not ended yet. The latter is looked at while ``closing``.
    malformed : input
        A block of this tensor was, from a cycle after ``start`` to ``done``.
    left : input
        What was in excess is not through yet.
    feeding : output
        Rows are taken from the compressed side.
    closing : output
        Pulse after the end of a tensor.
    dropping : output
        What is ``left`` is thrown away.
    busy : output
        A tensor is under way.
    error : output, :class:`Error`
    refused : output, only with modes whose settings have limits
        While not ``busy``: what stood at ``config`` in the cycle before has a setting beyond its limits.
    """

    def __init__(self, modes):
        self.modes = modes
        flags = {name: Out(1) for name in ("start", "more", "last", "feeding", "closing", "dropping", "busy")}
        flags |= {name: In(1) for name in ("counted", "done", "short", "excess", "malformed", "left")}
        shape = config_layout(modes)
        super().__init__({"config": In(stream.Signature(shape)), "tensor": Out(shape), "error": Out(Error), **flags}
                         | ({"refused": Out(1)} if limited(modes) else {}))

    def elaborate(self, platform):
        m = Module()
        tensor = Signal(config_layout(self.modes), reset_less=True)
        row, blocks, last_block = Signal(3), Signal(32, reset_less=True), Signal(reset_less=True)
        m.d.comb += [self.tensor.eq(tensor), self.last.eq(last_block & (row == 7))]
        lut = target(platform) == "lut"
        fewer = [blocks.eq(blocks - 1), last_block.eq(blocks == 2)]
        if lut:  # a cycle later, as `counted` is late, and reaches many flip-flops
            passed = Signal()
            m.d.sync += passed.eq(self.counted & (row == 7))
            with m.If(passed):
                m.d.sync += fewer
        with m.If(self.start):
            m.d.sync += [row.eq(0), blocks.eq(tensor.blocks), last_block.eq(tensor.blocks == 1), self.more.eq(1)]
        with m.Elif(self.counted):
            m.d.sync += row.eq(row + 1)
            with m.If(row == 7):
                m.d.sync += [*([] if lut else fewer), self.more.eq(~last_block)]

        with m.If(self.feeding & self.short):
            m.d.sync += self.error.short.eq(1)
        with m.If(self.feeding & self.malformed):
            m.d.sync += self.error.malformed.eq(1)
        known = tensor.mode < len(self.modes)
        tiled = Chosen(self.modes, tensor.mode)(lambda mode: mode.tiled)
        uneven = tiled & ((tensor.layout == 3) | ((tensor.layout == 1) & tensor.blocks[0]))
        if hasattr(tensor, "share"):
            segmented = Chosen(self.modes, tensor.mode)(lambda mode: mode.format.segmented)
            uneven |= segmented & ((tensor.share.sectors == 0) | (tensor.share.tail == 0) | (tensor.share.tail > 8))
        if hasattr(self, "refused"):
            uneven |= self.refused
        wrong = (tensor.blocks == 0) | ~known | uneven
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.config.ready.eq(1)
                m.d.sync += tensor.eq(self.config.p)
                if hasattr(self, "refused"):
                    m.d.sync += self.refused.eq(beyond(self.modes, self.config.p))
                with m.If(self.config.valid):
                    m.d.sync += self.error.eq(0)
                    m.next = "check" if lut else "start"
            if lut:
                checked = Signal(reset_less=True)
                with m.State("check"):
                    m.d.comb += self.busy.eq(1)
                    m.d.sync += checked.eq(wrong)
                    m.next = "start"
            with m.State("start"):
                m.d.comb += self.busy.eq(1)
                with m.If(checked if lut else wrong):
                    m.d.sync += self.error.config.eq(1)
                    m.next = "idle"
                with m.Else():
                    m.d.comb += self.start.eq(1)
                    m.next = "run"
            with m.State("run"):
                m.d.comb += [self.busy.eq(1), self.feeding.eq(tensor.decompress)]
                # SFPR has yet to count the values of the row that has just left.
                with m.If(self.done):
                    m.next = "close"
            with m.State("close"):
                # A stream that is too long goes on being taken, and thrown away, until its `last`.
                m.d.comb += [self.busy.eq(1), self.closing.eq(1)]
                m.d.sync += self.error.excess.eq(self.excess & ~self.error.short)
                m.next = "drain"
            with m.State("drain"):
                m.d.comb += [self.busy.eq(1), self.dropping.eq(1)]
                with m.If(~self.left):
                    m.next = "idle"
        return m
