"""SH: quantization by shifts."""

from functools import partial
from itertools import islice

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import wires
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.pipeline import Pipeline, Register
from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.dct import COEFFICIENT, coefficients

__all__ = ["Round", "Shift", "mirror"]


def mirror(number):
    """A signed number as :class:`Shift` takes and gives it when it decompresses: of its 12 bits, the lower 11 in the
    opposite order."""
    *lower, sign = (number[min(k, len(number) - 1)] for k in range(COEFFICIENT))
    return Cat(*reversed(lower), sign)


class Shift(wiring.Component):
    """Divides coefficients by powers of two, for :class:`Round` to finish, or multiplies them back.

    Compress: floor(C / 2**s), where C and the result have one fraction bit; that is all that rounding needs, since
    dividing in steps rounds down to the same number as dividing at once. What goes beyond 8 bits becomes the greatest
    number or the least. Decompress: C = q * 2**s, saturated to 12 bits.

    A lane has one shifter for both: a shift to the left is one to the right of the number seen in a mirror. That takes
    no gates, where what comes and goes in the two directions has other neighbours anyway.

    Vectors are columns of a block: lane v of beat j carries vertical frequency v of horizontal frequency j. The unit
    counts beats modulo 8 from ``start``, so blocks have to be whole.

    Throughput: one vector a cycle. Latency, buffering: none; a register has to follow, which a CDU needs there anyway.
    Combinational paths: from ``i`` to ``o`` and from ``o.ready`` to ``i.ready``. For LUTs, a vector in a register in
    front of the last step, with a latency of one cycle.

    Source: JPEG-ACT, section III-F, Figure 14, equations 6 and 7.

    Ports
    -----
    i : stream of :func:`vectors_layout` of signed 12
        Twice C, rounded down, or the mirror of q.
    o : stream of :func:`vectors_layout` of signed 12
        Twice the quotient, of which bits 8 to 10 mean nothing, or the mirror of C.
    start : input
        Pulse, a cycle or more before the first block of a tensor.
    decompress : input
        Direction; constant from ``start`` on.
    table : input, 64 numbers of 3 bits
        s, log2 of the DQT, row-major with the vertical frequency first; constant from ``start`` on.
    """

    i: In(stream.Signature(coefficients))
    o: Out(stream.Signature(coefficients))
    start: In(1)
    decompress: In(1)
    table: In(data.ArrayLayout(3, 64))

    def elaborate(self, platform):
        m = Module()
        decompress, moved, o = self.decompress, Signal(), self.o
        # A Johnson counter: the column after the one at hand. One-hot, it selects from the table in few gates.
        following, ahead = Signal(4, reset_less=True), Signal(4)
        pipe = Pipeline(m, self.i, o) if target(platform) == "lut" else None
        if not pipe:
            m.d.comb += [o.valid.eq(self.i.valid), self.i.ready.eq(o.ready), o.p.last.eq(self.i.p.last)]
        m.d.comb += [moved.eq(self.start | (self.i.valid & self.i.ready)), ahead.eq(Mux(self.start, 0, following))]
        with m.If(moved):
            m.d.sync += following.eq(Cat(~ahead[3], ahead[:3]))

        wire = partial(wires.wire, m)

        def one_hot(counter):
            before = Cat(~counter[3], counter[:3])
            return wire(Cat(before & ~counter, ~before & counter))

        here, there = one_hot(following).rotate_right(1), one_hot(ahead)

        def first_steps(lane):
            """What the last one needs, in bits."""
            value = self.i.p.data[lane]
            shifts = [self.table[8 * lane + j] for j in range(8)]
            # The two lower bits are looked up a cycle ahead; there is time for the upper one.
            by = Signal(2, reset_less=True, name=f"by_{lane}")
            with m.If(moved):
                m.d.sync += by.eq(choose((there[j], shifts[j][:2]) for j in range(8)))
            far = wire(choose((here[j], shifts[j][2]) for j in range(8)))

            sign = value[11]
            fill = wire(sign & ~decompress)
            bits = [*value[:11], fill]
            for k in range(2):
                shifted = [*bits[1 << k:], *[fill] * (1 << k)]
                bits = [*(wire(Mux(by[k], more, less)) for less, more in zip(bits[:11], shifted, strict=False)), fill]
            # Whether it fits shows before the last step. What is beyond then: of a C, or of a mirrored q.
            beyond = [wire(Mux(decompress, bits[1 + k], bits[8 + k]) ^ sign) for k in range(3)]
            over = wire((far == decompress) & Cat(beyond).any())
            return *bits, far, over, sign

        def last_step(*values):
            *bits, far, over, sign = values
            keep, take, ones = wire(~far & ~over), wire(far & ~over), wire(over & ~sign)
            # Above bit 6 nothing comes down but the sign, and only bit 7 of that counts.
            top = wire((bits[-1] & far) | ones)
            return Cat(
                *((bits[k] & keep) | (bits[k + 4] & take) | ones for k in range(7)), (bits[7] & keep) | top,
                *((bits[k] & keep) | ones for k in range(8, 11)), sign).as_signed()

        if not pipe:
            for lane in range(8):
                m.d.comb += o.p.data[lane].eq(last_step(*first_steps(lane)))
            return m
        registers = iter(pipe.stage(self.i.p.last, *(bit for lane in range(8) for bit in first_steps(lane))))
        m.d.comb += o.p.last.eq(next(registers))
        for lane in range(8):
            m.d.comb += o.p.data[lane].eq(last_step(*islice(registers, 15)))
        pipe.finish()
        return m


class Round(wiring.Component):
    """Rounds what :class:`Shift` has divided: q = floor(x / 2 + 1/2), or 127 if that is 128.

    Throughput: one vector a cycle. Latency, buffering: none. Combinational paths: from ``i`` to ``o`` and from
    ``o.ready`` to ``i.ready``. For LUTs, a vector in a register at the output, with a latency of one cycle.

    Source: JPEG-ACT, section III-F, Figure 14, equation 6.

    Ports
    -----
    i : stream of :func:`vectors_layout` of signed 12
        x, twice the quotient: from -256 to 255, so that bits 8 to 10 mean nothing beside the sign.
    o : stream of :func:`vectors_layout` of signed 8
    """

    i: In(stream.Signature(coefficients))
    o: Out(stream.Signature(vectors_layout(signed(8))))

    def elaborate(self, platform):
        m = Module()
        o = self.o
        if target(platform) == "lut":
            m.submodules.register = register = Register(o.p.shape())
            wiring.connect(m, register.o, wiring.flipped(o))
            o = register.i
        m.d.comb += [o.valid.eq(self.i.valid), self.i.ready.eq(o.ready),
                     o.p.last.eq(self.i.p.last)]
        for lane in range(8):
            value = self.i.p.data[lane]
            sign, ones = value[11], Signal(name=f"ones_{lane}")
            m.d.comb += ones.eq(value[:8].all())
            rounded = (value[1:8] + (value[0] & ~(ones & ~sign)))[:7]
            m.d.comb += o.p.data[lane].eq(Cat(rounded, sign & ~ones).as_signed())
        return m
