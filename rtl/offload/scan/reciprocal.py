"""From the scale that compresses to the one that decompresses."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Reciprocal"]


def _fraction(significand):
    """That of float32(1 / k), by the significand of k, 129 to 255: of 2^8 / significand, which is between 1 and 2 and
    never halfway between two numbers."""
    return round(2**31 / significand) - (1 << 23)


class Reciprocal(wiring.Component):
    """r = float32(1 / k), of one word per cycle.

    k has 8 significant bits, so there are 128 fractions, which are a table of gates.

    Throughput: a word per cycle. Latency: one cycle. Buffering: a word. Combinational path: ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-B, equation 5.

    Ports
    -----
    i, o : stream of words of 32 bits
        Of k the upper half, a bfloat16 number whose sign does not count: subnormal numbers are 0, and what would be Inf
        or NaN is a number like all others. r is float32, 0 if k is 0 and where it would be subnormal.
    plain : input
        Words pass as they are. Constant while a word is inside.
    """

    i: In(stream.Signature(32))
    o: Out(stream.Signature(32))
    plain: In(1)

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        k, fraction, exponent = self.i.p, Signal(23), self.i.p[23:31]
        with m.Switch(k[16:23]):
            for low in range(1, 128):
                with m.Case(low):
                    m.d.comb += fraction.eq(_fraction(128 + low))
        power = ~k[16:23].any()
        biased = (253 - exponent + power)[:8]
        zero = ~exponent.any() | (exponent > 253) | ((exponent == 253) & ~power)
        r = Cat(fraction, biased, Const(0, 1)) & (~zero).replicate(32)
        (word,) = pipe.stage(Mux(self.plain, k, r))
        pipe.finish()
        m.d.comb += self.o.p.eq(word)
        return m
