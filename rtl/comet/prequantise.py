"""Prequantisation: eight float32 values to multiples of a step, every cycle, none off by more than half of it."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import LANES, integers, sectors
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Prequantise", "octets"]

ROWS = 12  # of the divider that can give a one for what is no outlier
STAGES = (2, 2, 2, 2, 2, 2)  # rows of each stage
WORD = 4  # bytes of an outlier

# One byte of each outlier of a sector, at the lane of its value.
octets = data.StructLayout({"data": data.ArrayLayout(8, LANES), "mask": LANES})


class Prequantise(wiring.Component):
    """Divides float32 values by the step and rounds to integers, half away from zero.

    With mant and ex, significand and biased exponent of x, and s = S * 2**E of eight significant bits, 2|x|/s is
    mant / (S * 2**k), k = 149 - ex + E. The significand is shifted first, so that what a row of the divider gives is a
    bit of the quotient's integer part t, and |q| = (t + 1) >> 1: no sticky bit, and no tie to detect. What is beyond
    2047 either way is an outlier, and so are infinities and NaN: all that is 2047.5 s or more as a bit pattern,
    which is known in front of the divider. Thus t has twelve bits, and no row decides about a thirteenth.

    An outlier's bits do not go through the divider. Its sector waits at the entrance while they leave by ``words``, a
    byte of each outlier a cycle, and its significand is shifted until q is 0.

    Throughput: one sector a cycle, one in four cycles if it has outliers. Latency: 8 cycles, 11 for a sector with
    outliers. Buffering: 8 sectors. Combinational paths: ``o.ready`` and ``words.ready`` to ``i.ready``.

    Source: COMET, sections 2.2 and 3.4; the dual quantisation of cuSZ.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.payloads.sectors`
        float32 words. Values beyond the sector's count have to be zero.
    o : stream of :data:`~actcodec.rtl.comet.payloads.integers`
        -2047 to 2047.
    words : stream of :data:`octets`
        Four beats for a sector that has outliers, least significant bytes first, before it is at ``o``.
    step : input, 16 bits
        s, a bfloat16 from 2^-125 to 2^112. Stands for two cycles before the first sector comes and until the last one
        has left.
    moves, count : output
        Pulse: a sector goes on into the divider, and how many values it has.
    """

    i: In(stream.Signature(sectors))
    o: Out(stream.Signature(integers))
    words: Out(stream.Signature(octets))
    step: In(16)
    moves: Out(1)
    count: Out(range(LANES + 1))

    def elaborate(self, platform):
        m = Module()
        divisor, exponent = Cat(self.step[:7], Const(1, 1)), self.step[7:15]

        # 2047.5 s is 4095 S / 2 * 2**E, and 4095 S has 20 significant bits, or 19 if S is 128.
        product, even = Signal(20), ~self.step[:7].any()
        m.d.comb += product.eq((divisor << 12) - divisor)
        limit, place = Signal(27, reset_less=True), Signal(8, reset_less=True)
        m.d.sync += [
            place.eq(exponent + 11),  # ex for which the significand's top 20 bits are divided
            limit.eq(Cat(Mux(even, product << 1, product)[:19], (exponent + 11 - even)[:8])),
        ]

        # The entrance: a sector, how far its significands have to be shifted, and which of its values are outliers.
        valid, sector = Signal(), Signal(sectors, reset_less=True)
        shifts = [Signal(4, reset_less=True, name=f"shift_{k}") for k in range(LANES)]
        outliers, some = Signal(LANES, reset_less=True), Signal(reset_less=True)
        byte, sent, done, leaves = Signal(2), Signal(), Signal(), Signal()
        advance = Signal()
        beyond = Cat(Value.cast(word[4:31]) >= limit for word in self.i.p.data)
        m.d.comb += [
            done.eq(~some | sent | (byte.all() & self.words.ready)),
            leaves.eq(advance & done),
            self.i.ready.eq(~valid | leaves),
            self.moves.eq(valid & leaves),
            self.count.eq(sector.edges.count),
            self.words.valid.eq(valid & some & ~sent),
            self.words.p.mask.eq(outliers),
        ]
        for k, word in enumerate(sector.data):
            m.d.comb += self.words.p.data[k].eq(
                Cat(*(word[8 * place : 8 * place + 8] for place in range(WORD))).word_select(byte, 8))
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += [byte.eq(byte + 1), sent.eq(byte.all() & ~leaves)]
        with m.Elif(leaves):
            m.d.sync += sent.eq(0)
        with m.If(self.i.ready):
            m.d.sync += [valid.eq(self.i.valid), sector.eq(self.i.p), outliers.eq(beyond), some.eq(beyond.any())]
            for shift, word, one in zip(shifts, self.i.p.data, beyond, strict=True):
                distance = (place - word[23:31])[:9]
                m.d.sync += shift.eq(distance[:4] | (distance[4:8].any() | one).replicate(4))  # 13 and more give 0

        entrance = stream.Signature(0).create(path=["entrance"])
        m.d.comb += [entrance.valid.eq(valid & done), advance.eq(entrance.ready)]
        pipe = Pipeline(m, entrance, self.o)
        # A lane's bits: what is left of the divided, the bits of the quotient in the places of those that are used up.
        lanes = []
        for word, shift in zip(sector.data, shifts, strict=True):
            lanes.append((Cat(word[4:23], Const(1, 1)) >> shift)[:20])
        state = pipe.stage(*lanes, Cat(word[31] for word in sector.data), outliers, sector.edges)
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
