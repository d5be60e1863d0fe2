"""SH: quantization by shifts."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.vectors import vectors

__all__ = ["Round", "Shift"]


class Shift(wiring.Component):
    """Divides coefficients by powers of two, for :class:`Round` to finish, or multiplies them back.

    Compress: floor(C / 2**s), where C has 6 fraction bits and the result one; that is all that rounding needs, since
    dividing in steps rounds down to the same number as dividing at once. Decompress: C = q * 2**s without fraction
    bits, saturated to 12 bits.

    A lane has one shifter for both: q << s is (q << 7) >> (7 - s), and 7 - s is ~s.

    Vectors are columns of a block: lane v of beat j carries vertical frequency v of horizontal frequency j. The unit
    counts beats modulo 8 from reset, so blocks have to be whole.

    Throughput: one vector a cycle. Latency, buffering: none; a register has to follow, which a CDU needs there anyway.
    Combinational paths: from ``i`` to ``o`` and from ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-F, Figure 14, equations 6 and 7.

    Ports
    -----
    i : stream of :func:`vectors` of signed 17
        C times 64, or q in the low 8 bits.
    o : stream of :func:`vectors` of signed 12
        Twice the quotient, or C.
    decompress : input
        Direction; may change between blocks, a cycle before the next one.
    table : input, 64 numbers of 3 bits
        s, log2 of the DQT, row-major with the vertical frequency first; may change as ``decompress`` may.
    """

    i: In(stream.Signature(vectors(signed(17))))
    o: Out(stream.Signature(vectors(signed(12))))
    decompress: In(1)
    table: In(data.ArrayLayout(3, 64))

    def elaborate(self, platform):
        m = Module()
        decompress = Signal(reset_less=True)
        column, following = Signal(8, init=1), Signal(8)  # one-hot: it selects from the table in few gates
        m.d.comb += following.eq(Mux(self.i.valid & self.i.ready, column.rotate_left(1), column))
        m.d.sync += [column.eq(following), decompress.eq(self.decompress)]
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
                     self.o.payload.last.eq(self.i.payload.last)]

        def wire(value):
            wire = Signal(name="wire")
            m.d.comb += wire.eq(value)
            return wire

        for lane in range(8):
            value, by = self.i.payload.data[lane], Signal(3, reset_less=True, name=f"by_{lane}")
            s = reduce(or_, (self.table[8 * lane + j] & following[j].replicate(3) for j in range(8)))
            m.d.sync += by.eq(Cat(s[:2] ^ self.decompress.replicate(2), s[2]))
            sign = wire(Mux(decompress, value[7], value[16]))

            # The first step chooses between the inputs, too: C from bit 5 on, or q seven places up.
            inputs = [*value[5:16], *[sign] * 7], [*[0] * 7, *value[:7], *[sign] * 4]
            selects = ((wire(~decompress & ~by[2]), wire(~decompress & by[2])),
                       (wire(decompress & by[2]), wire(decompress & ~by[2])))
            ways = [(bits[4 * up:], select[up]) for bits, select in zip(inputs, selects, strict=True) for up in (0, 1)]
            steps = [wire(reduce(or_, (bits[k] & select for bits, select in ways))) for k in range(14)]
            steps = [wire(Mux(by[1], steps[k + 2], steps[k])) for k in range(12)]

            # Whether q * 2**s fits shows before it is shifted; the last step makes it the greatest number or the least.
            over = wire(selects[1][0] & (((value[6] ^ sign) & ~by[:2].all()) | ((value[5] ^ sign) & ~by[1])
                                         | ((value[4] ^ sign) & ~by[:2].any())))
            keep, take, ones = wire(~by[0] & ~over), wire(by[0] & ~over), wire(over & ~sign)
            result = Cat((steps[k] & keep) | (steps[k + 1] & take) | ones for k in range(11))
            m.d.comb += self.o.payload.data[lane].eq(Cat(result, sign).as_signed())
        return m


class Round(wiring.Component):
    """Rounds what :class:`Shift` has divided: q = clip(floor(x / 2 + 1/2), -128, 127).

    Throughput: one vector a cycle. Latency, buffering: none. Combinational paths: from ``i`` to ``o`` and from
    ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-F, Figure 14, equation 6.

    Ports
    -----
    i : stream of :func:`vectors` of signed 12
        x, twice the quotient.
    o : stream of :func:`vectors` of signed 8
    """

    i: In(stream.Signature(vectors(signed(12))))
    o: Out(stream.Signature(vectors(signed(8))))

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
                     self.o.payload.last.eq(self.i.payload.last)]
        for lane in range(8):
            value = self.i.payload.data[lane]
            sign = value[11]
            clips = (value[8:11] ^ sign.replicate(3)).any() | (value[:8].all() & ~sign)
            rounded = (value[1:9] + value[0])[:8]
            m.d.comb += self.o.payload.data[lane].eq(
                Cat(Mux(clips, (~sign).replicate(7), rounded[:7]), Mux(clips, sign, rounded[7])).as_signed())
        return m
