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
        Direction; may change between vectors.
    table : input, 64 numbers of 3 bits
        s, log2 of the DQT, row-major with the vertical frequency first; may change between blocks, a cycle
        before the next one.
    """

    i: In(stream.Signature(vectors(signed(17))))
    o: Out(stream.Signature(vectors(signed(12))))
    decompress: In(1)
    table: In(data.ArrayLayout(3, 64))

    def elaborate(self, platform):
        m = Module()
        decompress = self.decompress
        column, following = Signal(8, init=1), Signal(8)  # one-hot: it selects from the table in few gates
        m.d.comb += following.eq(Mux(self.i.valid & self.i.ready, column.rotate_left(1), column))
        m.d.sync += column.eq(following)
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready),
                     self.o.payload.last.eq(self.i.payload.last)]

        for lane in range(8):
            value, s = self.i.payload.data[lane], Signal(3, reset_less=True, name=f"s_{lane}")
            m.d.sync += s.eq(reduce(or_, (self.table[8 * lane + j] & following[j].replicate(3) for j in range(8))))
            sign = Mux(decompress, value[7], value[16])
            shifted = Cat(value[5:12] & (~decompress).replicate(7),
                          Mux(decompress, value[:8], Cat(value[12:], sign.replicate(3))))
            for bit in (2, 1, 0):
                by, size = 1 << bit, 10 + (1 << bit)
                step = Signal(size, name=f"shifted_{by}_{lane}")
                m.d.comb += step.eq(Mux(s[bit] ^ decompress, Cat(shifted, sign.replicate(3))[by:], shifted))
                shifted = step
            # Whether q * 2**s fits shows before it is shifted.
            over = decompress & s[2] & (((value[6] ^ sign) & s[:2].any()) | ((value[5] ^ sign) & s[1])
                                        | ((value[4] ^ sign) & s[:2].all()))
            m.d.comb += self.o.payload.data[lane].eq(Cat(Mux(over, (~sign).replicate(11), shifted), sign).as_signed())
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
