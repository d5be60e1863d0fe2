"""From float32 to sectors as they are in memory."""

from amaranth.hdl import Cat, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.wires import wire
from actcodec.rtl.offload.memory.formats import Format, check_formats, round_up, rounding

__all__ = ["Narrow"]

_sector = data.ArrayLayout(32, 8)


class Narrow(wiring.Component):
    """Rounds the float32 values of a sector to the format that memory has, between a CDU and a writer.

    Once, to nearest even; beyond float16's largest number to infinity; subnormal numbers are made; a NaN keeps its sign
    and upper bits and is quiet. A sector of a 16-bit format has its eight values in the low 128 bits; what is above
    means nothing. With ``plain`` the values are the low halves of the words as they are. Codes of 8 bits are the low
    bytes of the words as they are, in the low 64 bits.

    Throughput: a sector a cycle. Latency: one cycle. Buffering: a sector. Combinational path: ``o.ready`` to
    ``i.ready``; an increment of 15 bits lies between the registers and ``o.p``.

    Source: this project; IEEE 754-2019 for the formats.

    Parameters
    ----------
    formats : tuple of {"bfloat16", "float16", "int8"}
        Those of 16 bits that values can be rounded to, and codes; float32 always passes.

    Ports
    -----
    i, o : stream of 8 words of 32 bits
    format : input, :class:`~actcodec.rtl.offload.memory.formats.Format`
    plain : input
        Both constant while a tensor is under way; ``plain`` has no effect on float32, nor on codes.

    Raises
    ------
    ValueError
        If ``formats`` are not one or more formats of 16 bits or 8.
    """

    def __init__(self, formats=("bfloat16", "float16")):
        self.formats = check_formats(formats)
        super().__init__({"i": In(stream.Signature(_sector)), "o": Out(stream.Signature(_sector)),
                          "format": In(Format), "plain": In(1)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        wide = wire(m, self.format == Format.FLOAT32)
        byte = wire(m, (self.format == Format.INT8) & (Format.INT8 in self.formats))
        plain = wire(m, self.plain & ~wide & ~byte)
        halves = {form: wire(m, (self.format == form) & ~self.plain) for form in self.formats if form != Format.INT8}
        sector, codes, low, behind = Cat(self.i.p), Cat(word[:8] for word in self.i.p), [], []
        for k, word in enumerate(self.i.p) if halves else ():
            ways = [(wide, sector.word_select(k, 16)), (plain, word[:16])]
            if Format.INT8 in self.formats and k < 4:
                ways.append((byte, codes.word_select(k, 16)))
            bits, *rest = rounding(m, word, halves, ways)
            low.append(bits)
            behind += rest
        if not halves:
            low = Mux(byte, codes, sector[:64]), sector[64:128]
        # Of a 16-bit format only the low half changes, and only there something is added. The upper half, which means
        # nothing then, has what rounding needs for that.
        size = len(behind)
        high = Cat(Mux(wide, sector[128:][:size], Cat(behind)), sector[128 + size :])
        low, high, wide = pipe.stage(Cat(low), high, wide)  # which may be another one before the sector leaves
        if halves:
            low = Cat(round_up(low.word_select(k, 16), high[2 * k] & ~wide, high[2 * k + 1]) for k in range(8))
        m.d.comb += self.o.p.as_value().eq(Cat(low, high))
        pipe.finish()
        return m
