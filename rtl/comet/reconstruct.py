"""Reconstruction: eight integers to float32 multiples of the step, every cycle."""

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import BITS, LANES, finished, integers
from actcodec.rtl.common import carrysave
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Reconstruct"]

PRODUCT = 19  # bits of a magnitude times the step's significand
LOW = 5  # the lowest bits of a product, which are added up before the others
FIRST = 7  # the lowest place of a product's highest bit, which is that of the significand


class Reconstruct(wiring.Component):
    """Multiplies integers by the step, which is exact: 11 bits by 8, or 2048 from a stream that is garbage.

    q = 0 gives +0.0. Each two bits of a magnitude choose a multiple of the significand, 0 to 3 times; the lowest two
    also take the one that makes a magnitude of a complement, so up to 4 times. The product is shifted until its top bit
    is set. What is given for an outlier means nothing.

    Throughput: one sector a cycle. Latency: 2 cycles. Buffering: 2 sectors. Combinational path: ``o.ready`` to
    ``i.ready``.

    Source: COMET, sections 2.2 and 3.4; the dual quantisation of cuSZ.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.integers`
    o : stream of :data:`~actcodec.rtl.comet.payloads.finished`
        float32 words; +0.0 and no outlier beyond the sector's count.
    step : input, 16 bits
        s, a bfloat16 from 2^-125 to 2^112. Stands from two cycles before the first sector until the last one has left.
    """

    i: In(stream.Signature(integers))
    o: Out(stream.Signature(finished))
    step: In(16)

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        i = self.i.p

        # The significand and three times it; what a digit of two bits chooses.
        significand, thrice = Signal(8, reset_less=True), Signal(10, reset_less=True)
        once = Cat(self.step[:7], Const(1, 1))
        m.d.sync += [significand.eq(once), thrice.eq(once + (once << 1))]
        multiples = {1: significand, 2: significand << 1, 3: thrice, 4: significand << 2}

        # The product in two rows.
        rows = []
        for q in i.data:
            sign = q[-1]
            bits = Cat(q.as_unsigned()[: BITS - 1] ^ sign.replicate(BITS - 1), Const(0, 1))
            columns = [[] for _ in range(PRODUCT)]
            for place in range(0, BITS, 2):
                digit = bits[place : place + 2] + (0 if place else sign)
                row = choose([(digit == n, multiple) for n, multiple in multiples.items() if n < 4 or not place])
                for weight, bit in enumerate(row[: PRODUCT - place], place):
                    columns[weight].append(bit)
            columns = carrysave.reduced(m, columns, LOW)
            row, other = (Cat(column[k] if k < len(column) else Const(0, 1) for column in columns) for k in range(2))
            rows += [row, other[LOW:]]
        used = Cat(i.edges.count > k for k in range(LANES))
        *rows, signs, outliers, count, last = pipe.stage(
            *rows, Cat(q[-1] for q in i.data), i.outliers & used, i.edges.count, i.edges.last)
        *products, signs, outliers, count, last = pipe.stage(
            *(Cat(row[:LOW], (row[LOW:] + other)[: PRODUCT - LOW])
              for row, other in zip(rows[::2], rows[1::2], strict=True)), signs, outliers, count, last)

        # The top bit goes to the top; its place is what the exponent is more by. Padding is zero.
        words = []
        for k, (product, sign) in enumerate(zip(products, signs, strict=True)):
            leading = Signal(PRODUCT - FIRST, name=f"leading_{k}")  # one hot
            m.d.comb += leading.eq(Cat(product[place] & ~product[place + 1 :].any() & (count > k)
                                       for place in range(FIRST, PRODUCT)))
            fraction = choose([(one, product[:place] << (PRODUCT - 1 - place))
                               for place, one in enumerate(leading, FIRST)])
            more = Cat(Cat(one for place, one in enumerate(leading) if place >> bit & 1).any() for bit in range(4))
            exponent = (self.step[7:15] + more)[:8] & leading.any().replicate(8)
            words.append(Cat(Const(0, 24 - PRODUCT), fraction[: PRODUCT - 1], exponent, sign & leading.any()))

        o = self.o.p
        m.d.comb += [Value.cast(o.data).eq(Cat(words)), o.outliers.eq(outliers), o.count.eq(count), o.last.eq(last)]
        pipe.finish()
        return m
