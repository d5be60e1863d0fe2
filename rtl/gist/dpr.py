"""DPR: float32 as FP16, FP10 or FP8, and back; and the same packed into sectors."""

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.a2dtwp.bitpack import Bitpack
from actcodec.rtl.a2dtwp.bitunpack import Bitunpack, Error
from actcodec.rtl.common.minifloat import WIDTH, Format, check_formats, narrow, rounding, widen
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import sectors

__all__ = ["DprDecode", "DprEncode", "DprExpand", "DprReduce", "Format"]


def width(form, formats):
    """The index that a run-time format has among ``formats``; none, or the last one, if it is not there."""
    if formats == tuple(Format):
        return form.as_value()
    result = Const(len(formats) - 1, 2)
    for index, name in enumerate(formats[:-1]):
        result = Mux(form == name, index, result)
    return result


class DprReduce(wiring.Component):
    """Rounds float32 values to a smaller format.

    Rounds to nearest, ties to even, as if the exponent had no lower bound; what is then below the smallest normal
    number becomes zero, what is beyond the largest one, or infinite, becomes that one, both with their sign. A NaN
    becomes the quiet NaN with its sign.

    Throughput: one sector of values a cycle. Latency: 1 cycle. Buffering: a sector. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: Gist, section III-A, "DPR".

    Parameters
    ----------
    formats : tuple of {"fp16", "fp10", "fp8"}
        Formats to choose from at run time.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.common.vectors.sectors`
    o : stream of :data:`~actcodec.rtl.common.vectors.sectors`
        Codes, at the top of their words; bits below the code's width mean nothing.
    format : input, :class:`Format`
        Constant while any value is inside. One that the unit does not have means the last that it has.

    Raises
    ------
    ValueError
        If ``formats`` names none or something else.
    """

    def __init__(self, formats=tuple(Format)):
        self.formats = check_formats(formats)
        super().__init__({"i": In(stream.Signature(sectors)), "o": Out(stream.Signature(sectors)),
                          "format": In(Format)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        lanes = [rounding(word, self.format, self.formats) for word in self.i.p.data]
        *registers, count, last = pipe.stage(*(value for lane in lanes for value in lane), self.i.p.count,
                                             self.i.p.last)
        pipe.finish()
        each = len(lanes[0])
        for lane, word in enumerate(self.o.p.data):
            code = narrow(m, self.format, self.formats, *registers[each * lane : each * (lane + 1)])
            m.d.comb += word.eq(Cat(Const(0, 16), code))
        m.d.comb += [self.o.p.count.eq(count), self.o.p.last.eq(last)]
        return m


class DprExpand(wiring.Component):
    """Converts values of a smaller format to float32, exactly: every code, subnormal numbers, infinities and NaNs
    among them.

    Throughput: one sector of values a cycle. Latency: 1 cycle. Buffering: a sector. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: Gist, section III-A, "DPR".

    Parameters
    ----------
    formats : tuple of {"fp16", "fp10", "fp8"}
        Formats to choose from at run time.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.common.vectors.sectors`
        Codes, at the top of their words; bits below the code's width are zero.
    o : stream of :data:`~actcodec.rtl.common.vectors.sectors`
    format : input, :class:`Format`
        As that of :class:`DprReduce`.

    Raises
    ------
    ValueError
        If ``formats`` names none or something else.
    """

    def __init__(self, formats=tuple(Format)):
        self.formats = check_formats(formats)
        super().__init__({"i": In(stream.Signature(sectors)), "o": Out(stream.Signature(sectors)),
                          "format": In(Format)})

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        words = [widen(m, word[16:], self.format, self.formats) for word in self.i.p.data]
        # The low bits of every word are zero and need no register.
        *registers, count, last = pipe.stage(*(word[13:] for word in words), self.i.p.count, self.i.p.last)
        pipe.finish()
        m.d.comb += [word.eq(Cat(Const(0, 13), register)) for word, register in zip(self.o.p.data, registers,
                                                                                  strict=True)]
        m.d.comb += [self.o.p.count.eq(count), self.o.p.last.eq(last)]
        return m


class DprEncode(wiring.Component):
    """Rounds float32 values to a smaller format, as :class:`DprReduce`, and packs 2, 3 or 4 of them into a 32-bit word.

    Throughput: one sector of values a cycle. Latency: 2 cycles from the values that fill a packed sector to that
    sector. Buffering: a sector of values and a packed one. Combinational path: ``o.ready`` to ``i.ready``.

    Source: Gist, section III-A, "DPR", Figure 6.

    Parameters
    ----------
    formats : tuple of {"fp16", "fp10", "fp8"}
        Formats to choose from at run time.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.common.vectors.sectors`
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32 bytes
        Sectors of the packed array, which has whole words: the last sector may be partial. A tensor of no values gives
        one of no bytes, and so does a last beat of no values after a full sector.
    format : input, :class:`Format`
        Constant while any value is inside. One that the unit does not have means the last that it has.

    Raises
    ------
    ValueError
        If ``formats`` names none or something else.
    """

    def __init__(self, formats=tuple(Format)):
        self.formats = check_formats(formats)
        super().__init__({
            "i": In(stream.Signature(sectors)),
            "o": Out(stream.Signature(chunk_layout(32))),
            "format": In(Format),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reduce = reduced = DprReduce(self.formats)
        m.submodules.pack = pack = Bitpack(tuple(WIDTH[form] for form in self.formats))
        wiring.connect(m, wiring.flipped(self.i), reduced.i)
        m.d.comb += [
            *(target.eq(word[-len(target) :]) for target, word in zip(pack.i.p.data, reduced.o.p.data, strict=True)),
            pack.i.valid.eq(reduced.o.valid),
            reduced.o.ready.eq(pack.i.ready),
            pack.i.p.count.eq(reduced.o.p.count),
            pack.i.p.last.eq(reduced.o.p.last),
            reduced.format.eq(self.format),
            pack.width.eq(width(self.format, self.formats)),
            self.o.valid.eq(pack.o.valid),
            pack.o.ready.eq(self.o.ready),
            self.o.p.data.eq(pack.o.p.data),
            self.o.p.count.eq((pack.o.p.count + 3) & ~3),
            self.o.p.last.eq(pack.o.p.last),
        ]
        return m


class DprDecode(wiring.Component):
    """Takes packed values of a smaller format apart and converts them to float32, as :class:`DprExpand`.

    For the length of a tensor, and for arrays that are too short or too long, see
    :class:`~actcodec.rtl.a2dtwp.bitunpack.Bitunpack`, of which this is the one for the widths of the formats.

    Throughput: one sector of values a cycle; a tensor takes three more to start and to end. Latency: 2 cycles from a
    packed sector to its first values; three from ``length``. Buffering: two sectors of values. Combinational path:
    ``o.ready`` to ``i.ready``.

    Source: Gist, section III-A, "DPR", Figure 6.

    Parameters
    ----------
    formats : tuple of {"fp16", "fp10", "fp8"}
        Formats to choose from at run time.

    Ports
    -----
    length : stream of 32 bits
        Values of the tensor that starts; taken when the one before has left. None at all give one sector of none.
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32 bytes
        The packed array; of no bytes, one empty chunk.
    o : stream of :data:`~actcodec.rtl.common.vectors.sectors`
    format : input, :class:`Format`
        Constant from ``length`` to the last sector. One that the unit does not have means the last that it has.
    error : output, :class:`~actcodec.rtl.a2dtwp.bitunpack.Error`

    Raises
    ------
    ValueError
        If ``formats`` names none or something else.
    """

    def __init__(self, formats=tuple(Format)):
        self.formats = check_formats(formats)
        super().__init__({
            "length": In(stream.Signature(32)),
            "i": In(stream.Signature(chunk_layout(32))),
            "o": Out(stream.Signature(sectors)),
            "format": In(Format),
            "error": Out(Error),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.unpack = unpack = Bitunpack(tuple(WIDTH[form] for form in self.formats))
        m.submodules.expand = expanded = DprExpand(self.formats)
        wiring.connect(m, wiring.flipped(self.i), unpack.i)
        wiring.connect(m, expanded.o, wiring.flipped(self.o))
        m.d.comb += [
            *(word.eq(code << 32 - len(code)) for word, code in zip(expanded.i.p.data, unpack.o.p.data, strict=True)),
            expanded.i.valid.eq(unpack.o.valid),
            unpack.o.ready.eq(expanded.i.ready),
            expanded.i.p.count.eq(unpack.o.p.count),
            expanded.i.p.last.eq(unpack.o.p.last),
            expanded.format.eq(self.format),
            unpack.width.eq(width(self.format, self.formats)),
            unpack.length.p.eq(self.length.p),
            # Not while values of the last tensor, and of its format, are here.
            unpack.length.valid.eq(self.length.valid & ~self.o.valid),
            self.length.ready.eq(unpack.length.ready & ~self.o.valid),
            self.error.eq(unpack.error),
        ]
        return m
