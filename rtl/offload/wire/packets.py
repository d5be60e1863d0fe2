"""Where lanes' bytes leave as packets, and come back as such: blocks, streams, or either."""

from amaranth.hdl import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.offload.control.config import Chosen, check_streams, config_layout, of_blocks, of_streams
from actcodec.rtl.offload.wire.collector import Collector
from actcodec.rtl.offload.wire.round_robin import PACKET
from actcodec.rtl.offload.wire.splitter import Splitter
from actcodec.rtl.offload.wire.streams.stream_collector import LENGTH, StreamCollector
from actcodec.rtl.offload.wire.streams.stream_splitter import StreamSplitter
from actcodec.rtl.offload.wire.streams.turns import TURN

__all__ = ["PacketCollector", "PacketSplitter", "collector", "splitter"]


def collector(cdus, modes):
    """A :class:`~actcodec.rtl.offload.wire.collector.Collector`, or a :class:`PacketCollector` where modes have
    streams."""
    return PacketCollector(cdus, modes) if of_streams(modes) else Collector(cdus, modes)


def splitter(cdus, modes):
    """A :class:`~actcodec.rtl.offload.wire.splitter.Splitter`, or a :class:`PacketSplitter` where modes have
    streams."""
    return PacketSplitter(cdus, modes) if of_streams(modes) else Splitter(cdus, modes)


def _ports(cdus, direction):
    """Ports of both for lanes' streams, and what goes with them."""
    lanes = direction(stream.Signature(chunk_layout(TURN))).array(cdus)
    return {"streams": lanes, "streamed": In(1), "used": In(cdus), "start": In(1)}


class PacketCollector(wiring.Component):
    """A collector of streams, and one of blocks if there are modes that have them. ``streamed`` says which of them has
    the tensor.

    Throughput, latency, buffering, combinational paths: those of
    :class:`~actcodec.rtl.offload.wire.collector.Collector` and
    :class:`~actcodec.rtl.offload.wire.streams.stream_collector.StreamCollector`.

    Source: JPEG-ACT, section III-G, Figure 15a.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.
    modes : tuple
        Those of the CDUs (see :func:`~actcodec.rtl.offload.control.config.check_modes`).

    Ports
    -----
    streamed : input
        The tensor's mode has streams. Constant as long as there is one.
    streams : ``cdus`` streams, ``i`` of the collector of streams
    others : those of the same names of both collectors

    Raises
    ------
    ValueError
        If ``cdus`` is out of range, if ``modes`` are not such of a lane, or if none has streams.
    """

    def __init__(self, cdus, modes):
        check_streams(modes)
        self._of_streams = StreamCollector(cdus)
        blocks = of_blocks(modes)
        self._of_blocks = Collector(cdus, blocks) if blocks else None
        super().__init__({
            **_ports(cdus, In), "o": Out(stream.Signature(chunk_layout(PACKET))), "blocks": In(32),
            "lengths": Out(LENGTH).array(cdus), **({"i": self._of_blocks.signature.members["i"]} if blocks else {})})

    def elaborate(self, platform):
        m = Module()
        m.submodules.streams = streams = self._of_streams
        m.d.comb += [streams.used.eq(self.used), streams.start.eq(self.start & self.streamed)]
        for mine, inner in zip(self.streams, streams.i, strict=True):
            wiring.connect(m, wiring.flipped(mine), inner)
        m.d.comb += [mine.eq(inner) for mine, inner in zip(self.lengths, streams.lengths, strict=True)]
        if not self._of_blocks:
            wiring.connect(m, streams.o, wiring.flipped(self.o))
            return m
        m.submodules.blocks = blocks = self._of_blocks
        m.d.comb += [blocks.blocks.eq(self.blocks), blocks.start.eq(self.start & ~self.streamed)]
        for mine, inner in zip(self.i, blocks.i, strict=True):
            wiring.connect(m, wiring.flipped(mine), inner)
        m.d.comb += [
            self.o.valid.eq(Mux(self.streamed, streams.o.valid, blocks.o.valid)),
            self.o.p.eq(Mux(self.streamed, streams.o.p, blocks.o.p)),
            streams.o.ready.eq(self.o.ready & self.streamed), blocks.o.ready.eq(self.o.ready & ~self.streamed),
        ]
        return m


class PacketSplitter(wiring.Component):
    """A splitter of streams, and one of blocks if there are modes that have them. ``streamed`` says which of them has
    the tensor.

    Throughput, latency, buffering, combinational paths: those of
    :class:`~actcodec.rtl.offload.wire.splitter.Splitter` and
    :class:`~actcodec.rtl.offload.wire.streams.stream_splitter.StreamSplitter`.

    Source: JPEG-ACT, section III-G, Figure 15b.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.
    modes : tuple
        Those of the CDUs (see :func:`~actcodec.rtl.offload.control.config.check_modes`).

    Ports
    -----
    mode : input
        Place among ``modes``; constant as ``streamed``.
    streamed : input
        The tensor's mode has streams. Constant as long as there is one.
    streams : ``cdus`` streams, ``o`` of the splitter of streams
    others : those of the same names of both splitters

    Raises
    ------
    ValueError
        As :class:`PacketCollector`.
    """

    def __init__(self, cdus, modes):
        check_streams(modes)
        self.modes = tuple(modes)
        self._of_streams = StreamSplitter(cdus)
        blocks = of_blocks(modes)
        self._of_blocks = Splitter(cdus, blocks) if blocks else None
        inner = self._of_blocks.signature.members if blocks else {}
        super().__init__({
            **inner, **_ports(cdus, Out), "i": In(stream.Signature(chunk_layout(PACKET))), "blocks": In(32),
            "mode": In(config_layout(modes)["mode"].shape), "lengths": In(LENGTH).array(cdus),
            "busy": Out(1), "wants": Out(1), "short": Out(1), "excess": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.streams = streams = self._of_streams
        flags = ("busy", "wants", "short", "excess")
        m.d.comb += [streams.used.eq(self.used), streams.start.eq(self.start & self.streamed)]
        for mine, inner in zip(self.streams, streams.o, strict=True):
            wiring.connect(m, inner, wiring.flipped(mine))
        m.d.comb += [inner.eq(mine) for mine, inner in zip(self.lengths, streams.lengths, strict=True)]
        if not self._of_blocks:
            wiring.connect(m, wiring.flipped(self.i), streams.i)
            m.d.comb += [getattr(self, name).eq(getattr(streams, name)) for name in flags]
            return m
        m.submodules.blocks = blocks = self._of_blocks
        m.d.comb += blocks.start.eq(self.start & ~self.streamed)
        for mine, inner in zip(self.o, blocks.o, strict=True):
            wiring.connect(m, inner, wiring.flipped(mine))
        for name, member in blocks.signature.members.items():
            if member.is_port and name not in ("start", "mode", *flags):
                m.d.comb += getattr(blocks, name).eq(getattr(self, name))
        m.d.comb += [
            blocks.mode.eq(Chosen(self.modes, self.mode).choose(
                lambda mode: of_blocks(self.modes).index(mode) if mode in of_blocks(self.modes) else 0)),
            streams.i.valid.eq(self.i.valid & self.streamed), blocks.i.valid.eq(self.i.valid & ~self.streamed),
            streams.i.p.eq(self.i.p), blocks.i.p.eq(self.i.p),
            self.i.ready.eq(Mux(self.streamed, streams.i.ready, blocks.i.ready)),
            *(getattr(self, name).eq(Mux(self.streamed, getattr(streams, name), getattr(blocks, name)))
              for name in flags),
        ]
        return m
