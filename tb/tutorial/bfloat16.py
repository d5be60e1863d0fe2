"""The codec of docs/add-a-codec.md: every value as a bfloat16, rounded to nearest or cut off."""

import numpy as np
from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec import codecs, units
from actcodec.codecs.jpegact import CDUS
from actcodec.golden.jpegact import path
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.vectors import words
from actcodec.rtl.offload.control.stage import Hop, Stage
from actcodec.rtl.offload.wire.block_format import BlockFormat


class Model(path.Stage):
    """float32 to bfloat16, as the upper 16 bits; nearest is to even. NaN stays NaN."""

    dtype = np.uint16

    def settings(self, rounding="nearest", **options):
        return {"truncate": int(rounding == "truncate")}

    def forward(self, x, settings):
        bits = x.view(np.uint32)
        nearest = 0 if settings["truncate"] else 0x7FFF + (bits >> 16 & 1)
        return (np.where(np.isnan(x), bits | 1 << 22, bits + nearest) >> 16).astype(np.uint16)

    def backward(self, x, settings):
        return (x.astype(np.uint32) << 16).view(np.float32)


class Bfloat16(wiring.Component):
    """Both directions. Throughput: one vector per cycle. Latency: 1 cycle. Buffering: a skid buffer."""

    i: In(stream.Signature(words))
    o: Out(stream.Signature(words))
    decompress: In(1)
    truncate: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.skid = skid = Skid(words)
        wiring.connect(m, skid.o, wiring.flipped(self.o))
        m.d.comb += [skid.i.valid.eq(self.i.valid), self.i.ready.eq(skid.i.ready), skid.i.p.last.eq(self.i.p.last)]
        for word, out in zip(self.i.p.data, skid.i.p.data, strict=True):
            nan = word[23:31].all() & word[:23].any()
            up = ~nan & ~self.truncate & word[15] & (word[:15].any() | word[16])  # more than half, or a tie to even
            code = (word[16:] + up)[:16] | Mux(nan, 1 << 6, 0)
            m.d.comb += out.eq(Mux(self.decompress, Cat(Const(0, 16), word[:16]), code))
        return m


def stage(context, here):
    """The unit's place in a CDU: one way in both directions. The row that leaves is the low 16 bits of each lane."""
    unit = context.add("bfloat16", Bfloat16)
    context.m.d.comb += [unit.decompress.eq(context.config.decompress), unit.truncate.eq(context.setting("truncate"))]
    both = Hop(unit.i, unit.o)
    return Stage(both, both)


ROUNDING = codecs.Option("rounding", str, "nearest", "Where the lower bits go.", choices=("nearest", "truncate"),
                         stored=False)
TRUNCATE = codecs.Setting("truncate", 1, meaning="lower bits are cut off, not rounded", stored=False)

MODE = codecs.Mode(
    "bfloat16", 50, (codecs.Stage(f"{__name__}:stage", f"{__name__}:Model", BlockFormat("fixed", 16),
                                  settings=(TRUNCATE,)),),
    options=(ROUNDING, CDUS), lossy=True, summary="the upper half of each value", tensors="anything",
    source="docs/add-a-codec.md")


def register():
    codecs.register(MODE)
    units.register(units.Unit("bfloat16", Bfloat16, "float32 to bfloat16, and back", bench="tutorial/bfloat16"))
