"""Reconstruction: eight integers to float32 multiples of the step, every cycle."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import BITS, LANES, integers
from actcodec.rtl.common import carrysave
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import sectors

__all__ = ["Reconstruct"]

PRODUCT = 20  # bits of a magnitude with its top bit set times the step's significand
LOW = 5  # the lowest bits of a product, which are added up before the others


class Reconstruct(wiring.Component):
    """Multiplies integers by the step, which is exact: 11 bits by 8, or 2048 from a stream that is garbage.

    q = 0 gives +0.0. The magnitude is shifted until its top bit is set; then the product's top bit is the highest one
    or the next. An outlier's bits come by ``bytes``, a byte of each a cycle, while its sector waits at the exit.

    Throughput: one sector a cycle, one in five cycles if it has outliers. Latency: 4 cycles, 8 for a sector with
    outliers. Buffering: 4 sectors. Combinational path: ``o.ready`` to ``i.ready``.

    Source: COMET, sections 2.2 and 3.4; the dual quantisation of cuSZ.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.integers`
    o : stream of :data:`~actcodec.rtl.common.vectors.sectors`
        float32 words; +0.0 beyond the sector's count.
    step : input, 16 bits
        s, a bfloat16 from 2^-125 to 2^112. Stands while any sector is inside.
    mask, take : output, bytes : input
        Lanes with an outlier of the sector at the exit; their next bytes, least significant first, are taken. They are
        there, in any lane, when the sector is.
    moves, count : output
        Pulse: a sector has all its bytes, and how many values it has.
    """

    i: In(stream.Signature(integers))
    o: Out(stream.Signature(sectors))
    step: In(16)
    mask: Out(LANES)
    take: Out(1)
    bytes: In(data.ArrayLayout(8, LANES))
    moves: Out(1)
    count: Out(range(LANES + 1))

    def elaborate(self, platform):
        m = Module()
        exit_ = stream.Signature(0).create(path=["exit"])
        pipe = Pipeline(m, self.i, exit_)
        i = self.i.p

        # Magnitude and sign; padding is zero.
        magnitudes = []
        for k, q in enumerate(i.data):
            bits = q.as_unsigned()
            turned = (bits ^ q[-1].replicate(BITS)) & (i.edges.count > k).replicate(BITS)
            magnitude = Signal(BITS, name="magnitude")
            m.d.comb += magnitude.eq(turned + (q[-1] & (i.edges.count > k)))
            magnitudes.append(magnitude)
        outliers = i.outliers & Cat(i.edges.count > k for k in range(LANES))
        *magnitudes, signs, outliers, count, last = pipe.stage(
            *magnitudes, Cat(q[-1] for q in i.data), outliers, i.edges.count, i.edges.last)

        # The top bit goes to the top; its place is what the exponent is more by.
        found = []
        for magnitude in magnitudes:
            leading = Signal(BITS, name="leading")  # one hot
            m.d.comb += leading.eq(Cat(magnitude[k] & ~magnitude[k + 1 :].any() for k in range(BITS)))
            value = Cat(Cat(leading[k] & magnitude[k + j - BITS + 1] for k in range(BITS - 1 - j, BITS)).any()
                        for j in range(BITS))
            place = Cat(Cat(leading[k] for k in range(BITS) if k >> bit & 1).any() for bit in range(4))
            found.append((value, place))
        *found, signs, outliers, count, last = pipe.stage(
            *(part for pair in found for part in pair), signs, outliers, count, last)
        found = list(zip(found[::2], found[1::2], strict=True))

        # The product in two rows.
        products = []
        for value, place in found:
            columns = [[] for _ in range(PRODUCT)]
            for row, bit in enumerate((*self.step[:7], Const(1, 1))):
                for weight, one in enumerate(value, row):
                    columns[weight].append(one & bit)
            columns = carrysave.reduced(m, columns, LOW)
            rows = [Cat(column[row] if row < len(column) else Const(0, 1) for column in columns) for row in range(2)]
            products += [rows[0], rows[1][LOW:], place, value[-1]]
        *products, signs, outliers, count, last = pipe.stage(*products, signs, outliers, count, last)

        words = []
        for k in range(LANES):
            row, other, place, some = products[4 * k : 4 * k + 4]
            high, product = Signal(PRODUCT - LOW, name="high"), Signal(PRODUCT, name="product")
            m.d.comb += [high.eq(row[LOW:] + other), product.eq(Cat(row[:LOW], high))]
            top = product[-1]
            least, exponent = Signal(8, name="least"), Signal(8, name="exponent")
            m.d.comb += [least.eq(self.step[7:15] + place),
                         exponent.eq(least ^ (((least + 1)[:8] ^ least) & top.replicate(8)))]
            fraction = Mux(top, product[:-1], product[:-1] << 1)[: PRODUCT - 1]
            words.append(Mux(some, Cat(Const(0, 4), fraction, exponent, signs[k]), 0))

        # The exit: an outlier's bytes move in from the top.
        valid, sector = Signal(), Signal(sectors, reset_less=True)
        left, waits, loads, byte = Signal(LANES, reset_less=True), Signal(), Signal(), Signal(2)
        m.d.comb += [
            exit_.ready.eq(~valid | (~waits & self.o.ready)), loads.eq(exit_.valid & exit_.ready),
            self.o.valid.eq(valid & ~waits), self.o.p.eq(sector),
            self.mask.eq(left), self.take.eq(waits),
            self.moves.eq(self.o.valid & self.o.ready), self.count.eq(sector.count),
        ]
        with m.If(exit_.ready):
            m.d.sync += [valid.eq(exit_.valid), waits.eq(exit_.valid & outliers.any()), left.eq(outliers),
                         sector.count.eq(count), sector.last.eq(last)]
        with m.If(waits):
            m.d.sync += [byte.eq(byte + 1), waits.eq(~byte.all())]
        for k, (kept, word) in enumerate(zip(sector.data, words, strict=True)):
            with m.If(exit_.ready | (waits & left[k])):
                m.d.sync += kept.eq(Mux(waits, Cat(kept[8:], self.bytes[k]), word))
        pipe.finish()
        return m
