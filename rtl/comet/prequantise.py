"""Prequantisation: eight float32 values to multiples of a step, every cycle, none off by more than half of it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import integers, marked
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Prequantise"]

ROWS = 12  # of the divider that can give a one for what is no outlier
STAGES = (2, 2, 2, 2, 2, 2)  # rows of each stage


class Prequantise(wiring.Component):
    """Divides float32 values by the step and rounds to integers, half away from zero.

    With mant and ex, significand and biased exponent of x, and s = S * 2**E of eight significant bits, 2|x|/s is
    mant / (S * 2**k), k = 149 - ex + E. The significand is shifted first, so that what a row of the divider gives is a
    bit of the quotient's integer part t, and |q| = (t + 1) >> 1: no sticky bit, and no tie to detect. What is beyond
    2047 either way is an outlier, which is known in front of the divider. Thus t has twelve bits, and no row decides
    about a thirteenth. An outlier's significand is shifted until q is 0.

    Throughput: one sector a cycle. Latency: 7 cycles. Buffering: 7 sectors. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: COMET, sections 2.2 and 3.4; the dual quantisation of cuSZ.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.marked`
        float32 words. Values beyond the sector's count have to be zero.
    o : stream of :data:`~actcodec.rtl.comet.payloads.integers`
        -2047 to 2047.
    step : input, 16 bits
        s, a bfloat16 from 2^-125 to 2^112. Stands for two cycles before the first sector comes and until the last one
        has left.
    """

    i: In(stream.Signature(marked))
    o: Out(stream.Signature(integers))
    step: In(16)

    def elaborate(self, platform):
        m = Module()
        place, divisor = Signal(8, reset_less=True), Cat(self.step[:7], Const(1, 1))
        m.d.sync += place.eq(self.step[7:15] + 11)  # ex for which the significand's top 20 bits are divided
        pipe, i = Pipeline(m, self.i, self.o), self.i.p
        # A lane's bits: what is left of the divided, the bits of the quotient in the places of those that are used up.
        lanes = []
        for word, outlier in zip(i.data, i.outliers, strict=True):
            distance = (place - word[23:31])[:9]
            shift = distance[:4] | (distance[4:8].any() | outlier).replicate(4)  # 13 and more give 0
            lanes.append((Cat(word[4:23], Const(1, 1)) >> shift)[:20])
        state = pipe.stage(*lanes, Cat(word[31] for word in i.data), i.outliers, i.edges)
        row = 0
        for number, rows in enumerate(STAGES):
            *lanes, signs, outliers, place_in_walk = state
            # All rows of all lanes read the divisor: each stage has a copy, a cycle later than the one in front of it,
            # since equal flip-flops would become one.
            copy = Signal(7, reset_less=True, name=f"divisor_{number}")
            m.d.sync += copy.eq(divisor)
            divisor = Cat(copy, Const(1, 1))
            final = row + rows == ROWS
            results = [self._rows(m, lane, divisor, rows, sign, final)
                       for lane, sign in zip(lanes, signs, strict=True)]
            state = pipe.stage(*results, *([] if final else [signs]), outliers, place_in_walk)
            row += rows
        pipe.finish()
        *lanes, outliers, place_in_walk = state
        m.d.comb += [word.eq(lane) for word, lane in zip(self.o.p.data, lanes, strict=True)]
        m.d.comb += [self.o.p.outliers.eq(outliers), self.o.p.edges.eq(place_in_walk)]
        return m

    @staticmethod
    def _rows(m, lane, divisor, rows, sign, final):
        """A lane's bits after some rows: remainder at the top, quotient at the bottom. Rounded in the end."""
        for row in range(rows):
            shifted, less = Signal(9, name="shifted"), Signal(10, name="less")
            bit = Signal(name="bit")
            m.d.comb += [shifted.eq(lane[11:]), less.eq(shifted - divisor), bit.eq(~less[9])]
            if final and row == rows - 1:
                # -(n + bit) = ~n + (1 - bit): one incrementer rounds and negates.
                whole = Cat(lane[:11], Const(0, 1))
                turned, result = Signal(12, name="turned"), Signal(12, name="result")
                m.d.comb += turned.eq(whole ^ sign.replicate(12))
                flips = (turned + 1)[:12] ^ turned
                m.d.comb += result.eq(turned ^ (flips & (bit ^ sign).replicate(12)))
                return result
            after = Signal(20, name="after")
            m.d.comb += after.eq(Cat(bit, lane[:11], Mux(bit, less[:8], shifted[:8])))
            lane = after
        return lane
