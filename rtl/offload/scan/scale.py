"""The scale of a channel, by a serial division."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CYCLES", "Scale"]

CYCLES = 12  # from a magnitude to the next one
PEAK = 9 << 20  # 144 is 9 * 2^4; as wide as a significand
BITS = 8  # of a bfloat16 significand


class Scale(wiring.Component):
    """k = bfloat16(float32(144 / m)), at most 2^126, of the largest magnitude m of a channel; 0 if m is 0 or subnormal.

    A restoring division gives the 8 bits of the significand, Q, and a remainder R: the quotient is Q + R / M, with M
    the significand of m. Rounding to bfloat16 at once would need no more than D = 2 R - M. But float32 rounds to 16
    more bits first, which makes a tie of whatever is within 2^-17 of a half, and ties go to even: Q is rounded up if
    D >= -M / 2^16 where it is odd, and if D > M / 2^16 where it is even. As D is an integer, the upper byte of M
    stands for M / 2^16. One adder makes all of it: eight differences, D, and D plus the byte or less it.

    Throughput: a scale in 12 cycles. Latency: 12 cycles. Buffering: a magnitude and a scale. Combinational paths:
    none; ``i.ready`` and ``o`` come from registers.

    Source: JPEG-ACT, section III-B, equation 4.

    Ports
    -----
    i : stream of 31 bits
        A finite float32 word without its sign.
    o : stream of 16 bits
        A bfloat16 word, the upper half of k.
    """

    i: In(stream.Signature(31))
    o: Out(stream.Signature(16))

    def elaborate(self, platform):
        m = Module()
        fraction, exponent = (Signal(width, reset_less=True, name=name)
                              for width, name in ((23, "fraction"), (8, "exponent")))
        rest, quotient, up = Signal(signed(26), reset_less=True), Signal(BITS, reset_less=True), Signal(reset_less=True)
        # The quotient of significands is from 1 on, not below; then it is doubled before it is divided.
        whole, new = Signal(reset_less=True), Signal()
        part = self.i.p
        m.d.comb += new.eq(~part[21:23].any() & ~(part[20] & part[:20].any()))

        significand = Cat(fraction, 1)
        odd, byte = quotient[0], significand[16:]
        rounding, total = Signal(), Signal(signed(26))
        term = Mux(rounding, Mux(odd, byte, ~Cat(byte, Const(0, 18))), ~Cat(significand, Const(0, 2)))
        m.d.comb += total.eq((Cat(1, rest) + Cat(~rounding, term))[1:])

        step, word = Signal(range(BITS)), Signal(16)
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [fraction.eq(part[:23]), exponent.eq(part[23:]), whole.eq(new), step.eq(0),
                             rest.eq(Mux(new, PEAK, PEAK << 1))]
                with m.If(self.i.valid):
                    m.next = "divide"
            with m.State("divide"):
                fits = ~total[-1]
                m.d.sync += [step.eq(step + 1), quotient.eq(Cat(fits, quotient)),
                             rest.eq(Cat(0, Mux(fits, total, rest)))]
                with m.If(step == BITS - 1):
                    m.next = "compare"
            with m.State("compare"):
                m.d.sync += rest.eq(total)
                m.next = "round"
            with m.State("round"):
                m.d.comb += rounding.eq(1)
                m.d.sync += up.eq(~total[-1])
                m.next = "end"
            with m.State("end"), m.If(~self.o.valid | self.o.ready):
                m.d.sync += [self.o.p.eq(word), self.o.valid.eq(1)]
                m.next = "idle"

        # 144 / m is 2^(134 - exponent) times the quotient of significands.
        biased = Signal(9)
        m.d.comb += biased.eq(260 - exponent + whole)
        most = ~exponent[4:].any() & (~exponent[3] | (whole & ~exponent[:3].any()))
        with m.If(most):
            m.d.comb += word.eq(Mux(exponent == 0, 0, 253 << 7))
        with m.Else():
            m.d.comb += word.eq((Cat(quotient[:7], biased[:8]) + up)[:15])
        return m
