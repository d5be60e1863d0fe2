"""SH: quantization by shifts."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.pipeline import Pipeline
from rtl.common.vectors import vectors

__all__ = ["Shift"]


class Shift(wiring.Component):
    """Divides coefficients by powers of two and rounds, or multiplies them back.

    Compress: q = clip(floor(C / 2**s + 1/2), -128, 127), where C has 6 fraction bits. Decompress: C = q * 2**s without
    fraction bits, saturated to 12 bits.

    A lane has one shifter for both: q << s is (q << 7) >> (7 - s), and 7 - s is ~s. It needs no more of C than one bit
    below the point of q, since shifting in steps rounds down to the same number as shifting at once.

    Vectors are columns of a block: lane v of beat j carries vertical frequency v of horizontal frequency j. The unit
    counts beats modulo 8 from reset, so blocks have to be whole.

    Throughput: one vector a cycle. Latency: 2 cycles. Buffering: 2 vectors. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: JPEG-ACT, section III-F, Figure 14, equations 6 and 7.

    Ports
    -----
    i : stream of :func:`vectors` of signed 17
        C times 64, or q.
    o : stream of :func:`vectors` of signed 12
        q, or C.
    decompress : input
        Direction, constant while any vector is inside.
    table : input, 64 numbers of 3 bits
        s, log2 of the DQT, row-major with the vertical frequency first; constant while any vector is inside.
    """

    i: In(stream.Signature(vectors(signed(17))))
    o: Out(stream.Signature(vectors(signed(12))))
    decompress: In(1)
    table: In(data.ArrayLayout(3, 64))

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        decompress = self.decompress

        column = Signal(8, init=1)  # one-hot: it selects from the table in few gates
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += column.eq(column.rotate_left(1))

        # Bit 0 of the shifter is the bit below the point of q; bits 1 to 15 are q << 7 at most. Beyond bit 11 the
        # value no longer matters if it does not fit.
        shifted = []
        for lane in range(8):
            value = self.i.payload.data[lane]
            s = reduce(or_, (self.table[8 * lane + j] & column[j].replicate(3) for j in range(8)))
            wide = Mux(decompress, value[:8].as_signed() << 8, value[5:].as_signed())
            wide = wide >> (s ^ decompress.replicate(3))
            shifted += [wide[:12], wide[15], (wide[12:15] ^ wide[15].replicate(3)).any()]
        *shifted, last = pipe.stage(*shifted, self.i.payload.last)

        # The bit below the point is 0 when decompressing, so both directions may add it. In both, a value that does not
        # fit becomes its sign followed by the opposite bits.
        results = []
        for value, sign, over in zip(shifted[0::3], shifted[1::3], shifted[2::3], strict=True):
            wide = (value[8:] ^ sign.replicate(4)).any() | (value[:8].all() & ~sign)
            clips = over | (wide & ~decompress)
            rounded = (value[1:9] + value[0])[:8]
            low = Mux(clips, (~sign).replicate(7), rounded[:7])
            top = Mux(clips, sign ^ decompress, rounded[7])
            high = Mux(decompress, Cat(Mux(over, (~sign).replicate(3), value[9:]), sign), top.replicate(4))
            results.append(Cat(low, top, high).as_signed())
        *results, last = pipe.stage(*results, last)
        pipe.finish()
        m.d.comb += [self.o.payload.data[lane].eq(results[lane]) for lane in range(8)]
        m.d.comb += self.o.payload.last.eq(last)
        return m
