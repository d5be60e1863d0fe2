"""COMET as a codec of a lane."""

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.comet import Comet, legal
from actcodec.rtl.comet.histogram import BINS, WIDTH
from actcodec.rtl.comet.payloads import LANES
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import edges
from actcodec.rtl.offload.control import setting
from actcodec.rtl.offload.control.config import Chosen, Error, check_streams, config_layout

__all__ = ["LaneCodec"]


class LaneCodec(wiring.Component):
    """:class:`~actcodec.rtl.comet.comet.Comet` with the ports that a lane has for a codec that makes streams.

    Throughput, latency, buffering, combinational paths: those of Comet.

    Source: COMET, section 3.4, Figure 3, phase 4.

    Parameters
    ----------
    modes : tuple
        Those of the lane, of which some have the settings ``step``, ``horizontal``, ``vertical``, ``signed`` and
        ``counts``.

    Ports
    -----
    config : stream of :func:`~actcodec.rtl.offload.control.config.config_layout`
    edges : stream of :data:`~actcodec.rtl.common.vectors.edges`
    sectors_i, sectors_o : stream of 8 float32 words
    stream_i, stream_o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8
    busy : output
    error : output, :class:`~actcodec.rtl.offload.control.config.Error`
    refused : output
        What stands at ``config`` has an illegal step or book, or vertical prediction without tiles; two cycles
        later.
    bin : input, count : output
        As Comet has them.

    Raises
    ------
    ValueError
        If ``modes`` are not such of a lane, or none has streams.
    """

    def __init__(self, modes):
        check_streams(modes)
        self.modes = tuple(modes)
        sector, chunk = data.ArrayLayout(32, LANES), chunk_layout(LANES)
        super().__init__({
            "config": In(stream.Signature(config_layout(modes))),
            "edges": In(stream.Signature(edges)),
            "sectors_i": In(stream.Signature(sector)), "sectors_o": Out(stream.Signature(sector)),
            "stream_i": In(stream.Signature(chunk)), "stream_o": Out(stream.Signature(chunk)),
            "busy": Out(1), "error": Out(Error), "refused": Out(1), "bin": In(range(BINS)), "count": Out(WIDTH)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.comet = comet = Comet()
        config, codec_config = self.config.p, comet.config.p
        for source, sink in (
                (wiring.flipped(self.edges), comet.edges), (wiring.flipped(self.sectors_i), comet.sectors_i),
                (wiring.flipped(self.stream_i), comet.bytes_i), (comet.bytes_o, wiring.flipped(self.stream_o))):
            wiring.connect(m, source, sink)
        m.d.comb += [
            comet.config.valid.eq(self.config.valid), self.config.ready.eq(comet.config.ready),
            codec_config.decompress.eq(config.decompress),
            codec_config.tiled.eq(Chosen(self.modes, config.mode)(lambda mode: mode.tiled)),
            *(Value.cast(codec_config[name]).eq(setting.part(self.modes, config.settings, name))
              for name in ("step", "horizontal", "vertical", "signed", "counts")),
            self.sectors_o.valid.eq(comet.sectors_o.valid), comet.sectors_o.ready.eq(self.sectors_o.ready),
            self.sectors_o.p.eq(comet.sectors_o.p.data),
            self.busy.eq(comet.busy),
            self.error.eq(comet.error),
            comet.bin.eq(self.bin), self.count.eq(comet.count),
        ]
        # Comet finds a fault of the book only while it makes its tables, when lanes are already at work.
        total = Signal(16)  # of 256 codes of 8 bits, those that begin with a shorter one
        m.d.sync += [total.eq(sum(count << (8 - length) for length, count in enumerate(codec_config.counts, 1))),
                     self.refused.eq((total > 256) | ~legal(codec_config))]
        return m
