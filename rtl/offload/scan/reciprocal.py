"""From the scale that compresses to the one that decompresses."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.target import target

__all__ = ["Reciprocal"]


def _fraction(significand):
    """That of float32(1 / k), by the significand of k, 129 to 255: of 2^8 / significand, which is between 1 and 2 and
    never halfway between two numbers."""
    return round(2**31 / significand) - (1 << 23)


class Reciprocal(wiring.Component):
    """r = float32(1 / k), of one word per cycle.

    k has 8 significant bits, so there are 128 fractions, which are a table of gates, or for LUTs a block RAM, whose
    output takes the place of the pipeline's register.

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
        fractions = [0, *(_fraction(128 + low) for low in range(1, 128))]
        power = ~k[16:23].any()
        biased = (253 - exponent + power)[:8]
        zero = ~exponent.any() | (exponent > 253) | ((exponent == 253) & ~power)
        if target(platform) == "lut":
            m.submodules.table = table = Memory(shape=23, depth=128, init=fractions, attrs={"rom_style": "block"})
            read = table.read_port(domain="sync")
            rest = Cat(Const(0, 23), biased, Const(0, 1)) & (~zero).replicate(32)
            word, reads = pipe.stage(Mux(self.plain, k, rest), ~self.plain & ~zero)
            m.d.comb += [read.addr.eq(k[16:23]), read.en.eq(pipe.advance), fraction.eq(read.data)]
            word |= fraction & reads.replicate(23)
        else:
            with m.Switch(k[16:23]):
                for low in range(1, 128):
                    with m.Case(low):
                        m.d.comb += fraction.eq(fractions[low])
            r = Cat(fraction, biased, Const(0, 1)) & (~zero).replicate(32)
            (word,) = pipe.stage(Mux(self.plain, k, r))
        pipe.finish()
        m.d.comb += self.o.p.eq(word)
        return m
