"""From sectors as they are in memory to float32."""

from amaranth.hdl import Cat, Const, Module, Mux, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import sectors
from actcodec.rtl.common.wires import wire
from actcodec.rtl.offload.memory.formats import Format, check_formats, widen

__all__ = ["Widen"]


class Widen(wiring.Component):
    """Makes the values of a sector float32, exactly, between a reader and a CDU.

    A sector of a 16-bit format has its eight values in the low 128 bits, whatever is above. ``plain`` leaves them as
    words of 16 bits, each in the low half of a word of 32, for modes that move words. Zeros stay zeros. Codes of 8
    bits, in the low 64 bits, stay what they are, each in the low byte of a word, whose other bytes mean nothing.

    Throughput: a sector a cycle. Latency: one cycle. Buffering: a sector. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: this project; IEEE 754-2019 for the formats.

    Parameters
    ----------
    formats : tuple of {"bfloat16", "float16", "int8"}
        Those of 16 bits that can be widened, and codes; float32 always passes.
    counts : bool
        Sectors tell how many values they have.

    Ports
    -----
    i, o : stream of 8 words of 32 bits, or, with ``counts``, of :data:`~actcodec.rtl.common.vectors.sectors`
    format : input, :class:`~actcodec.rtl.offload.memory.formats.Format`
    plain : input
        Both constant while a tensor is under way; ``plain`` has no effect on float32, nor on codes.

    Raises
    ------
    ValueError
        If ``formats`` are not one or more formats of 16 bits or 8.
    """

    def __init__(self, formats=("bfloat16", "float16"), counts=False):
        self.formats, self.counts = check_formats(formats), bool(counts)
        sector = stream.Signature(sectors if counts else data.ArrayLayout(32, 8))
        super().__init__({"i": In(sector), "o": Out(sector),
                          "format": In(Format), "plain": In(1)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        source, target = (side.p.data if self.counts else side.p for side in (self.i, self.o))
        sector = Value.cast(source)
        wide, byte = wire(m, self.format == Format.FLOAT32), wire(m, self.format == Format.INT8)
        signs, plain = (wire(m, way & ~wide & ~byte) for way in (~self.plain, self.plain))
        halves = {form: wire(m, (self.format == form) & ~self.plain) for form in self.formats if form != Format.INT8}
        words = []
        for k in range(8):
            half, code = sector.word_select(k, 16), sector.word_select(k, 8)
            if not halves:
                words.append(Cat(Mux(byte, code, source[k][:8]), source[k][8:]))
                continue
            ways = [(wide, source[k]), (plain, half), (signs, Cat(Const(0, 31), half[15])),
                    *widen(m, half, halves)]
            if Format.INT8 in self.formats:
                ways.append((byte, code))
            words.append(choose(ways))
        words, *about = pipe.stage(Cat(words), *([self.i.p.count, self.i.p.last] if self.counts else []))
        m.d.comb += target.as_value().eq(words)
        if self.counts:
            m.d.comb += [self.o.p.count.eq(about[0]), self.o.p.last.eq(about[1])]
        pipe.finish()
        return m
