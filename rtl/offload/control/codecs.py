"""The codecs of a lane that has modes with streams: one works at a time, all on the same ports for sectors."""

from importlib import import_module

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import edges
from actcodec.rtl.offload.control.config import Chosen, Error, check_streams, config_layout, of_blocks, of_streams
from actcodec.rtl.offload.wire.streams.turns import TURN

__all__ = ["BINS", "COUNT", "Codecs"]

BINS, COUNT = 32, 24  # of what a codec for streams counts; bits of a bin


class Codecs(wiring.Component):
    """A CDU for the modes that have blocks, and for each ``path`` of the others a unit that makes a stream of a tensor.

    A path names one class, "package.module:name". It is made with the lane's modes, and has the ports of this unit
    without those of blocks.

    Throughput, latency, buffering: those of the codecs. Combinational paths: those of the codecs.

    Source: this project's; JPEG-ACT's accelerator has one codec.

    Parameters
    ----------
    modes : tuple
        Of which some have streams (see :func:`~actcodec.rtl.offload.control.config.check_modes`).
    codec : callable
        Makes the CDU, as a :class:`~actcodec.rtl.offload.lane.Lane` wants it.
    **options
        Other parameters of ``codec``.

    Ports
    -----
    config : stream of :func:`~actcodec.rtl.offload.control.config.config_layout`
        What it carries stands from some cycles before the transfer until ``busy`` falls.
    sectors_i, sectors_o : stream of 8 float32 words
    edges : stream of :data:`~actcodec.rtl.common.vectors.edges`
        In modes that have streams, of each sector, in both directions; some are taken before their sectors.
    stream_i, stream_o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8
        In these modes: full beats, but the last one.
    bytes_o, rows_i, scales, nans, saturated, clipped, codes : those of the CDU, if there is one that has them
    busy : output
    error : output, :class:`~actcodec.rtl.offload.control.config.Error`
    refused : output
        What stands at ``config`` is not legal for its codec; some cycles later.
    bin : input, count : output
        In modes that have streams: a bin, and some cycles later its count of the last tensor that was compressed.

    Raises
    ------
    ValueError
        If ``modes`` are not such of a lane, or none has streams; and what the codecs raise.
    """

    def __init__(self, modes, codec, **options):
        check_streams(modes)
        self.modes = tuple(modes)
        blocks, self._units = of_blocks(modes), {}
        for path in dict.fromkeys(mode.path for mode in of_streams(modes)):
            module, _, name = path[0].partition(":")
            self._units[path] = getattr(import_module(module), name)(modes)
        for unit in self._units.values():
            assert (len(unit.bin), len(unit.count)) == ((BINS - 1).bit_length(), COUNT), "a count would be cut"
        self._cdu = codec(blocks, packed=False, **options) if blocks else None
        self.scaled = bool(blocks) and self._cdu.scaled
        sector = data.ArrayLayout(32, 8)
        blockwise = () if self._cdu is None else [name for name in (
            "bytes_o", "rows_i", "scales", "nans", "saturated", "clipped", "codes")
            if name in self._cdu.signature.members]
        super().__init__({
            "config": In(stream.Signature(config_layout(modes))),
            "sectors_i": In(stream.Signature(sector)),
            "sectors_o": Out(stream.Signature(sector)),
            "edges": In(stream.Signature(edges)),
            "stream_i": In(stream.Signature(chunk_layout(TURN))),
            "stream_o": Out(stream.Signature(chunk_layout(TURN))),
            **{name: self._cdu.signature.members[name] for name in blockwise},
            "busy": Out(1),
            "error": Out(Error),
            "refused": Out(1),
            "bin": In(range(BINS)),
            "count": Out(COUNT),
        })

    def elaborate(self, platform):
        m = Module()
        config, is_mode = self.config.p, Chosen(self.modes, self.config.p.mode)
        units, counters = [], []
        for number, (path, unit) in enumerate(self._units.items()):
            m.submodules[f"stream_{number}"] = unit
            chosen = Signal(name=f"chosen_{number}", reset_less=True)
            m.d.sync += chosen.eq(is_mode(lambda mode, path=path: mode.path == path))
            m.d.comb += [unit.config.p.eq(config), unit.bin.eq(self.bin)]
            counters.append((chosen, unit.count))
            units.append((chosen, unit))
            self._inwards(m, chosen, self.edges, unit.edges)
            self._inwards(m, chosen, self.stream_i, unit.stream_i)
        m.d.comb += self.count.eq(choose(counters))
        for name in ("edges", "stream_i"):
            self._ready(m, getattr(self, name), [(chosen, getattr(unit, name)) for chosen, unit in units])
        self._outwards(m, self.stream_o, [(chosen, unit.stream_o) for chosen, unit in units])
        if self._cdu:
            units.append((self._blocks(m, is_mode), self._cdu))
        for chosen, unit in units:
            self._inwards(m, chosen, self.config, unit.config, payload=False)
            self._inwards(m, chosen, self.sectors_i, unit.sectors_i)
        m.d.comb += self.refused.eq(
            Cat(chosen & unit.refused for chosen, unit in units if hasattr(unit, "refused")).any())
        for name in ("config", "sectors_i"):
            self._ready(m, getattr(self, name), [(chosen, getattr(unit, name)) for chosen, unit in units])
        self._outwards(m, self.sectors_o, [(chosen, unit.sectors_o) for chosen, unit in units])
        m.d.comb += [self.busy.eq(Cat(unit.busy for _, unit in units).any()),
                     self.error.eq(choose((chosen, unit.error) for chosen, unit in units))]
        return m

    def _blocks(self, m, is_mode):
        """The CDU. Returns whether the mode is one of its."""
        m.submodules.cdu = cdu = self._cdu
        chosen, config = Signal(name="chosen_blocks", reset_less=True), self.config.p
        m.d.sync += chosen.eq(is_mode(lambda mode: mode in cdu.modes))
        members = cdu.config.p.shape().members
        m.d.comb += [cdu.config.p[name].eq(config[name]) for name in members if name != "mode"]
        m.d.comb += cdu.config.p.mode.eq(is_mode.choose(
            lambda mode: cdu.modes.index(mode) if mode in cdu.modes else 0))
        for name in ("bytes_o", "rows_i", "scales"):
            if hasattr(self, name):
                wiring.connect(m, getattr(cdu, name), wiring.flipped(getattr(self, name)))
        for name in ("nans", "saturated", "clipped"):
            if hasattr(self, name):
                m.d.comb += getattr(self, name).eq(Mux(chosen, getattr(cdu, name), 0))
        if hasattr(self, "codes"):
            m.d.comb += cdu.codes.eq(self.codes)
        return chosen

    @staticmethod
    def _inwards(m, chosen, source, sink, payload=True):
        m.d.comb += sink.valid.eq(source.valid & chosen)
        if payload:
            m.d.comb += sink.p.eq(source.p)

    @staticmethod
    def _ready(m, source, sinks):
        m.d.comb += source.ready.eq(Cat(chosen & sink.ready for chosen, sink in sinks).any())

    @staticmethod
    def _outwards(m, sink, sources):
        m.d.comb += [sink.valid.eq(Cat(chosen & source.valid for chosen, source in sources).any()),
                     sink.p.eq(choose((chosen, source.p) for chosen, source in sources))]
        m.d.comb += [source.ready.eq(sink.ready & chosen) for chosen, source in sources]
