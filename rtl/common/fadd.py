"""An adder of float32 numbers."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import wires
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["LATENCY", "Fadd", "add"]

LATENCY = 5
QUIET_NAN = 0x7FC0_0000


def add(m, pipe, a, b, *carry):
    """Five stages of ``pipe`` that add the float32 words ``a`` and ``b`` as :class:`Fadd` does.

    Returns the sum, and after it whatever was to be carried along, ``carry``.
    """
    wire = partial(wires.wire, m)

    # 1. The larger magnitude first: x - y is never negative then. Both differences of exponents are under way
    # while the magnitudes are compared. Inf and NaN have the largest exponent and thus come first as well.
    less = wire(a[:31] < b[:31])
    x, y = Mux(less, b[:31], a[:31]), Mux(less, a[:31], b[:31])
    special_a, special_b, minus = a[23:31].all(), b[23:31].all(), a[31] ^ b[31]
    nan = (special_a & a[:23].any()) | (special_b & b[:23].any()) | (special_a & special_b & minus)
    exponent, large, normal, small, distance, sign, minus, nan, *carry = pipe.stage(
        x[23:31], x[:23], y[23:31].any(), y[:23],
        Mux(less, (b[23:31] - a[23:31])[:8], (a[23:31] - b[23:31])[:8]), Mux(less, b[31], a[31]), minus, nan, *carry)

    # 2. The smaller one to the exponent of the larger. Of what falls off, two bits and whether there is more (sticky)
    # decide every rounding.
    aligned = Cat(Const(0, 3), Mux(normal, Cat(small, 1), 0))
    for bit in range(5):
        step = 1 << bit
        aligned = wire(Mux(distance[bit], Cat(aligned[step] | aligned[:step].any(), aligned[step + 1:]), aligned))
    far = distance[5:].any()
    large = Mux(exponent.any(), Cat(large, 1), 0)
    aligned = Cat(Mux(far, normal, aligned[0]), Mux(far, 0, aligned[1:]))
    exponent, large, aligned, sign, minus, nan, *carry = pipe.stage(
        exponent, large, aligned, sign, minus, nan, *carry)

    # 3.
    total = Cat(1, Const(0, 3), large) + Cat(minus, aligned ^ minus.replicate(27), minus)
    exponent, total, sign, minus, nan, *carry = pipe.stage(exponent + 2, total[1:29], sign, minus, nan, *carry)

    def up_by(bit):
        return wire(Mux(zeros[bit], Cat(Const(0, 1 << bit), total[:28 - (1 << bit)]), total))

    # 4. The leading one to the top. Each nibble tells how many zeros it leads with while it is found out which of them
    # has the leading one.
    nibbles = [total[low:low + 4] for low in range(24, -4, -4)]
    empty = [wire(~nibble.any()) for nibble in nibbles]
    leads = [wire(Cat(~nibble[3] & (nibble[2] | ~nibble[1]), ~nibble[2:].any())) for nibble in nibbles]
    sixteen = wire(Cat(empty[:4]).all())
    eight = wire(Mux(sixteen, empty[4] & empty[5], empty[0] & empty[1]))
    four = wire(Mux(sixteen, Mux(eight, empty[6], empty[4]), Mux(eight, empty[2], empty[0])))
    upper, lower = Mux(four, leads[1], leads[0]), Mux(four, leads[3], leads[2])
    lead = wire(Mux(sixteen, Mux(eight, leads[6], Mux(four, leads[5], leads[4])), Mux(eight, lower, upper)))
    zeros = Cat(lead, four, eight, sixteen)
    for bit in (4, 3, 2):
        total = up_by(bit)
    exponent, total, zeros, sign, minus, nan, *carry = pipe.stage(
        exponent, total, zeros, sign, minus, nan, *carry)

    # 5. Rounding carries into the exponent only if all bits of the fraction are set, and leaves none set then.
    for bit in (1, 0):
        total = up_by(bit)
    fraction = total[4:27]
    up = wire(total[3] & (total[4] | total[:3].any()))
    carries = wire(up & fraction.all())
    down = ~Cat(zeros, Const(0, 5))  # -1 - zeros; two are in the exponent since the third stage
    exact, higher = wire((exponent + down)[:10].as_signed()), wire((exponent + down + 1)[:10])
    none = wire(~total[27])
    under = none | (exact < 1)  # nothing rounds here: no more than one bit was shifted out, and it has come back
    infinite = wire((exponent == 257) | (exact == 255) | (carries & (exact == 254)))
    result = Mux(nan, QUIET_NAN, Cat(Mux(under | infinite, 0, Mux(up, (fraction + 1)[:23], fraction)),
                                     Mux(infinite, 0xFF, Mux(under, 0, Mux(carries, higher[:8], exact[:8]))),
                                     sign & ~(none & minus)))
    return pipe.stage(result, *carry)


class Fadd(wiring.Component):
    """Adds two float32 numbers: to nearest, ties to even.

    Subnormal operands and results count as zeros of the same sign. Inf, signed zeros and overflow are as IEEE 754 has
    them; every NaN is the same one, quiet and positive.

    Throughput: one sum a cycle. Latency: 5 cycles. Buffering: 5 sums. Combinational path: ``o.ready`` to ``i.ready``.

    Source: IEEE Std 754-2019; D. Goldberg, "What every computer scientist should know about floating-point arithmetic",
    1991, for the two digits and the sticky bit that are enough.

    Ports
    -----
    i : stream of two float32 words, ``a`` and ``b``
    o : stream of float32 words
    """

    i: In(stream.Signature(data.StructLayout({"a": 32, "b": 32})))
    o: Out(stream.Signature(32))

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        (total,) = add(m, pipe, self.i.p.a, self.i.p.b)
        pipe.finish()
        m.d.comb += self.o.p.eq(total)
        return m
