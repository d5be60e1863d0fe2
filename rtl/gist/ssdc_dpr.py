"""SSDC with values reduced by DPR: the two units of each in series."""

from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.minifloat import Format
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import sectors
from actcodec.rtl.gist.dpr import DprDecode, DprEncode
from actcodec.rtl.gist.ssdc_decode import SsdcDecode
from actcodec.rtl.gist.ssdc_encode import SsdcEncode

__all__ = ["SsdcDprDecode", "SsdcDprEncode"]

BEAT = 32  # bytes


class SsdcDprEncode(wiring.Component):
    """SSDC, and DPR behind its values.

    Ports are those of :class:`~actcodec.rtl.gist.ssdc_encode.SsdcEncode`, but ``values`` carries bytes, and
    ``format`` is DPR's, constant while a tensor passes. Rate, and latency of columns and counts, are SSDC's; values
    take DPR's latency on top. There is nothing between the units: ``values.ready`` reaches ``i.ready`` as in each of
    them.

    Source: Gist, sections III-A and IV-A.
    """

    i: In(stream.Signature(sectors))
    values: Out(stream.Signature(chunk_layout(BEAT)))
    columns: Out(stream.Signature(chunk_layout(BEAT)))
    counts: Out(stream.Signature(chunk_layout(BEAT)))
    format: In(Format)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ssdc = ssdc = SsdcEncode()
        m.submodules.dpr = dpr = DprEncode()
        wiring.connect(m, wiring.flipped(self.i), ssdc.i)
        wiring.connect(m, ssdc.values, dpr.i)
        wiring.connect(m, dpr.o, wiring.flipped(self.values))
        wiring.connect(m, ssdc.columns, wiring.flipped(self.columns))
        wiring.connect(m, ssdc.counts, wiring.flipped(self.counts))
        m.d.comb += dpr.format.eq(self.format)
        return m


class SsdcDprDecode(wiring.Component):
    """DPR in front of SSDC's values.

    Ports are those of :class:`~actcodec.rtl.gist.ssdc_decode.SsdcDecode`, but ``values`` carries bytes, ``nonzero`` is
    how many values these are, once a tensor, and ``format`` is DPR's, constant while a tensor passes. ``error`` is
    SSDC's, with DPR's above it. Rate is SSDC's; DPR's latency comes on top.

    Source: Gist, sections III-A and IV-A.
    """

    length: In(stream.Signature(32))
    nonzero: In(stream.Signature(32))
    values: In(stream.Signature(chunk_layout(BEAT)))
    columns: In(stream.Signature(chunk_layout(BEAT)))
    counts: In(stream.Signature(chunk_layout(BEAT)))
    o: Out(stream.Signature(sectors))
    format: In(Format)
    error: Out(6)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dpr = dpr = DprDecode()
        m.submodules.ssdc = ssdc = SsdcDecode()
        wiring.connect(m, wiring.flipped(self.length), ssdc.length)
        wiring.connect(m, wiring.flipped(self.nonzero), dpr.length)
        wiring.connect(m, wiring.flipped(self.values), dpr.i)
        wiring.connect(m, dpr.o, ssdc.values)
        wiring.connect(m, wiring.flipped(self.columns), ssdc.columns)
        wiring.connect(m, wiring.flipped(self.counts), ssdc.counts)
        wiring.connect(m, ssdc.o, wiring.flipped(self.o))
        m.d.comb += [dpr.format.eq(self.format), self.error.eq(Cat(ssdc.error, dpr.error))]
        return m
