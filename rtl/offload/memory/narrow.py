"""From float32 to sectors as they are in memory."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.offload.memory.formats import Format, check_formats, round_up, rounding

__all__ = ["Narrow"]

_sector = data.ArrayLayout(32, 8)


class Narrow(wiring.Component):
    """Rounds the float32 values of a sector to the format that memory has, between a CDU and a writer.

    Once, to nearest even; beyond float16's largest number to infinity; subnormal numbers are made; a NaN keeps its sign
    and upper bits and is quiet. A sector of a 16-bit format has its eight values in the low 128 bits; what is above
    means nothing. With ``plain`` the values are the low halves of the words as they are.

    Throughput: a sector a cycle. Latency: one cycle. Buffering: a sector. Combinational path: ``o.ready`` to
    ``i.ready``; an increment of 15 bits lies between the registers and ``o.p``.

    Source: this project; IEEE 754-2019 for the formats.

    Parameters
    ----------
    formats : tuple of {"bfloat16", "float16"}
        Those of 16 bits that values can be rounded to; float32 always passes.

    Ports
    -----
    i, o : stream of 8 words of 32 bits
    format : input, :class:`~actcodec.rtl.offload.memory.formats.Format`
    plain : input
        Both constant while a tensor is under way; ``plain`` has no effect on float32.

    Raises
    ------
    ValueError
        If ``formats`` are not one or more formats of 16 bits.
    """

    def __init__(self, formats=("bfloat16", "float16")):
        self.formats = check_formats(formats)
        super().__init__({"i": In(stream.Signature(_sector)), "o": Out(stream.Signature(_sector)),
                          "format": In(Format), "plain": In(1)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        wide = self.format == Format.FLOAT32
        halves = [rounding(m, word, self.format, self.formats) for word in self.i.p]
        narrow = [Mux(self.plain, word[:16], half) for word, (half, _) in zip(self.i.p, halves, strict=True)]
        # Of a 16-bit format only the low half changes, and only there something is added.
        words = Cat(self.i.p)
        low, high, ups = pipe.stage(Mux(wide, words[:128], Cat(narrow)), words[128:],
                                    Cat(up & ~wide & ~self.plain for _, up in halves))
        m.d.comb += self.o.p.as_value().eq(
            Cat(*(round_up(low.word_select(k, 16), ups[k]) for k in range(8)), high))
        pipe.finish()
        return m
