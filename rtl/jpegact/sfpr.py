"""SFPR, scaled fix-point precision reduction: eight float32 values to eight int8 values and back, every cycle."""

from functools import partial

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import carrysave, wires
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import words

__all__ = ["LATENCY", "Sfpr", "scaled"]

LATENCY = {"cells": 4, "lut": 6}  # by target: cycles, each of them a stage of the pipeline
LANES = 8
PRODUCT = 32  # bits of a significand of 24 times one of 8; both have their top bit set, so it is at least 2**30
LOW = 6  # the lowest bits of a product: no rounding looks at them but to see whether they are zero
BLOCK = 18  # bits of an operand of an FPGA's multiplier
SHIFTS = 10  # places where the binary point of a product can be if it is to round to something from 0 to 128
FIRST = 252  # sum of the two biased exponents at which it is in front of the product: value = P * 2**(sum - 284)
ORIGIN = 256  # what the unit makes of that sum, so that few gates tell the place

scaled = data.StructLayout({"data": data.ArrayLayout(32, LANES), "scale": 32, "last": 1})


def _any(terms):
    return Cat(*terms).any()


class Spe:
    """One processing element: what a lane computes in each of the stages.

    Compressing, the significand of x meets that of k, compressed exponents tell where the binary point of the product
    is, and the integer above it is rounded. Decompressing, the significand of r meets |y|, shifted so that its
    top bit is set, and the product is rounded to 24 bits. Both directions use the same multiplier of 24 by 8 bits, the
    same exponent adder, and the same incrementer for the rounding. For LUTs, an FPGA's multipliers take the place of
    the first, and |y| and what is rounded are found in stages of their own.
    """

    def __init__(self, m, direction, decompress, signs, lut):
        """``direction`` is decompress for the first stage, ``decompress`` the same for the others."""
        self.m, self.direction, self.decompress, self.signs, self.lut = m, direction, decompress, signs, lut
        self._wire = partial(wires.wire, m)

    def magnitude(self, word):
        """The word, and the magnitude of the integer in its low byte."""
        return [word, self._wire(Mux(word[7], -word[:8], word[:8])[:8])]

    def operands(self, word, magnitude, scale):
        """Significands without their top bits (always set), the exponent that is added to that of the scale, sign.

        The exponent of an integer is its bit length, so that in both directions 0 stands for a zero.
        """
        leading = [self._wire(magnitude[i] & ~magnitude[i + 1:].any()) for i in range(8)]
        length = Cat(_any(leading[i] for i in range(8) if (i + 1) >> bit & 1) for bit in range(4))
        # Bit j of the significand is j - 7 places below the leading one.
        fraction = Cat(_any(leading[i] & magnitude[i + j - 7] for i in range(7 - j, 8)) for j in range(7))
        return [
            Mux(self.direction, scale[:23], word[:23]),
            Mux(self.direction, fraction, scale[16:23]),
            Mux(self.direction, length, word[23:31]),
            Mux(self.direction, word[7], word[31]),
        ]

    def scale(self, exponent):
        """What the exponent of the scale adds to that of the lane, and whether the scale is 0.

        Compressing, a sum of ``ORIGIN`` + i means place i of the binary point. Decompressing, it is the exponent of a
        product of less than 2**31.
        """
        return [exponent + Mux(self.direction, C(-1, 9), ORIGIN - FIRST)[:9], ~exponent.any()]

    def multiply(self, a, b, exponent, sign, scale_exponent, no_scale):
        """The product as two rows from bit ``LOW`` on, whether it has bits below, or these; the sum of exponents, if
        the result is 0, if x is not finite or as good as that, sign, if the result has to be positive.

        NaN is what is not finite and gives 0.
        """
        *rows, low = self.blocks(a, b) if self.lut else self.tree(a, b)
        total = self._wire(exponent + scale_exponent)
        special = exponent.all()
        zero = Mux(special, a[:23].any(), ~exponent.any() | no_scale)
        positive = self.signs & ~sign & exponent.any() & ~special
        return [*rows, low, total[:9], zero, special | total[9], sign, positive]

    def blocks(self, a, b):
        """The two rows, and the bits below, by multipliers of 18 bits."""
        a, b = Cat(a, 1), Cat(b, 1)
        lower, upper = self._wire(a[:BLOCK] * b), a[BLOCK:] * b
        return lower[LOW:], upper << BLOCK - LOW, lower[:LOW]

    def tree(self, a, b):
        """The two rows, and whether there are bits below, by a tree of full adders."""
        # Digits of b to the base 4: three of -1, 0, 1 and 2, and the last, 0 to 2, to which the top bit of b adds 2. A
        # row of bits for each digit, and one for that top bit; unlike rows for Booth's digits, they need no exclusive
        # ORs. -a is ~a + 1, and has the lowest bit of a. Sign bits are worth the inverted bit less its weight, and
        # these weights add up to a constant, with the top bit of a.
        columns = [[] for _ in range(PRODUCT)]
        for weight, bit in enumerate(a, 7):
            columns[weight].append(bit)
        constant, carry = 1 << 30, C(0, 1)
        a = Cat(a, 1)
        for digit in range(4):
            low, high = b[2 * digit], b[2 * digit + 1] if digit < 3 else C(0, 1)
            odd = self._wire(low ^ carry)
            one, minus = self._wire(odd & ~high), self._wire(odd & high)
            two = self._wire(Mux(high, ~(low | carry), low & carry))
            carry = self._wire(high & (low | carry))
            row = [a[0] & odd, *((a[j] & one) | (a[j - 1] & two) | (~a[j] & minus) for j in range(1, 24)), two | minus]
            for weight, bit in enumerate(row, 2 * digit):
                columns[weight].append(self._wire(bit))
            if digit < 3:
                columns[2 * digit + 1].append(self._wire(minus & ~a[0]))
                columns[2 * digit + 25].append(self._wire(~minus))
                constant -= 1 << (2 * digit + 25)
        for weight in range(PRODUCT):
            if constant >> weight & 1:
                columns[weight].append(C(1, 1))
        columns = carrysave.reduced(self.m, columns, LOW)
        rows = [Cat(column[row] if row < len(column) else C(0, 1) for column in columns[LOW:]) for row in range(2)]
        return *rows, _any(bit for bit, in columns[:LOW])

    def add(self, row, other, low, exponent, zero, special, sign, positive):
        """The product from bit ``LOW`` on, whether it has bits below, and where to round it.

        Compressing, ``select`` has one bit for each place of the binary point, none if the result is 0; ``forced``
        saturates. Decompressing, it is the exponent of a product of less than 2**31; ``forced`` takes it as it is, for
        a zero or an infinity, and bit 8 warns that a larger product would be one. The last result: what is less than 1
        has to become 1, and the product may be that.
        """
        high = exponent[1:8].all()
        over = self._wire(~zero & (exponent[8] | (high & exponent[0])))
        biased = Cat((exponent[:8] | over.replicate(8)) & (~zero).replicate(8), high & ~exponent[0], 0)
        beyond = exponent[4:8].any()
        near = self._wire(exponent[8] & ~beyond & ~zero & ~special)
        places = Cat((exponent[:4] == place) & near for place in range(SHIFTS))
        return [
            (row + other)[: PRODUCT - LOW], low.any() if self.lut else low,
            Mux(self.decompress, biased, places),
            Mux(self.decompress, zero | over, ~zero & (special | (exponent[8] & (beyond | (exponent[:4] >= SHIFTS))))),
            sign & ~zero,
            positive & ~(near & exponent[1:4].any()),
        ]

    def choose(self, high, low, select, forced, sign, least):
        """What is rounded: the bits above the point, inverted if they are to be negated, and whether one is added to
        them; of a float, whether that carries into its exponent, the exponent, and whether it rises by one anyway; of
        an integer, whether it is beyond int8 but for its bit 7, and as given: that bit, ``forced`` and ``sign``."""
        product = {LOW + index: high[index] for index in range(PRODUCT - LOW)}
        top = product[31]

        # An integer: `place` bits of the product are above the binary point.
        integer = [self._wire(_any(select[place] & product[32 - place + j] for place in range(j + 1, SHIFTS)))
                   for j in range(8)]
        guard = _any(select[place] & product[31 - place] for place in range(SHIFTS))
        sticky = _any([low, *(product[i] for i in range(LOW, 32 - SHIFTS)),
                       *(product[30 - i] & select[:i + 1].any() for i in range(SHIFTS - 1))])
        up = (guard & (integer[0] | sticky)) | (least & ~(select[1] & top))

        # A significand of 24 bits: from the top if that is set, or else from the next.
        finite = self._wire(self.decompress & ~forced & ~(select[8] & top))
        upper, lower = self._wire(finite & top), self._wire(finite & ~top)
        fraction = [self._wire((product[8 + j] & upper) | (product[7 + j] & lower)) for j in range(23)]
        tail = ((product[7] & upper) | (product[6] & lower)) & (fraction[0] | low | (top & product[6]))

        # -(n + up) = ~n + (1 - up): one incrementer rounds and negates.
        value = self._wire(Cat(Mux(self.decompress, fraction[j], integer[j] ^ sign) if j < 8 else fraction[j]
                               for j in range(23)))
        carry = self._wire(Mux(self.decompress, tail, up ^ sign))
        # The exponent of a float rises by one if the product has its top bit, and by one if the rounding carries that
        # far, which is seen before the significand is chosen.
        ones = Cat(product[8 + j] for j in range(22)).all()
        carries = tail & ones & ((product[30] & upper) | (product[7] & lower))
        return [value, carry, carries, select[:8] & self.decompress.replicate(8), top & (self.decompress & ~forced),
                select[9] & product[31], integer[7], forced, sign]

    def round(self, value, carry, carries, exponent, top, beyond, seventh, forced, sign):
        """The result, and whether it saturated."""
        flips = self._wire((value + 1)[:23] ^ value)
        result = value ^ (flips & carry.replicate(23))
        carries, exponent = self._wire(carries), self._wire(exponent)
        flips = (exponent[1:] + 1)[:7] ^ exponent[1:]
        twice = (top & carries) | ((top | carries) & exponent[0])
        exponent ^= Cat(top ^ carries, flips & twice.replicate(7))

        # Beyond int8: bit 7 of the integer, unless it is the magnitude of -128, or a carry into it from 127.
        beyond = seventh ^ (carry & value[:7].all() & ~value[7]) | beyond
        saturated = self._wire(~self.decompress & (forced | beyond))
        return [
            Cat(Mux(saturated, Cat((~sign).replicate(7), sign), result[:8]),
                result[8] & self.decompress, result[9:], exponent, sign & self.decompress),
            saturated,
        ]


class Sfpr(wiring.Component):
    """Eight processing elements that compress a sector of float32 to int8, or decompress int8 to float32.

    Compressing, y = clip(rne(x * k), -128, 127), ties to even, the exact product rounded once; subnormal x and NaN give
    0, infinities saturate whatever k is. Decompressing, x* = float32(y * r), to nearest even; y = 0 gives +0.0, and
    what is too large gives infinity.

    k has the eight significant bits of a bfloat16, as many as y: a multiplier of 24 by 8 bits serves both directions
    at less than half the area of one of 24 by 24.

    Throughput: one sector a cycle, each with its own scale. Latency: 4 cycles, for LUTs 6. Buffering: as many sectors.
    Combinational path: ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-B, equations 4 and 5, Figure 11.

    Ports
    -----
    i : stream of ``scaled``
        ``data``: eight float32 words, or eight int8 in the low bytes of the words. ``scale``: k, of which the upper
        half is used, or r; both as float32 words, normal or zero. Their sign is ignored and subnormal numbers count as
        zero; r with an exponent of 255 makes every y but 0 infinite.
    o : stream of ``words``
        Eight int8 in the low bytes of the words, the other bytes zero, or eight float32 words.
    decompress : input
        Direction, constant while any sector is inside.
    signs : input
        x > 0 that is not subnormal gives 1 where it would give 0, so that y > 0 exactly where a ReLU lets its gradient
        through; not in the paper. Constant while any sector is inside; decompressing, without effect.
    nans, saturated : output, 32 bits
        Values of compressed sectors that were NaN, and those with rne(x * k) outside [-128, 127], infinities among
        them. A sector counts two cycles after it left. Modulo 2**32.
    clear : input
        Sets the counters to zero; whatever left before is forgotten.
    """

    i: In(stream.Signature(scaled))
    o: Out(stream.Signature(words))
    decompress: In(1)
    signs: In(1)
    nans: Out(32)
    saturated: Out(32)
    clear: In(1)

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        # The later stages know the direction by a register: no sector reaches them in the cycle in which it changes.
        decompress, signs = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [decompress.eq(self.decompress), signs.eq(self.signs & ~self.decompress)]
        lut = target(platform) == "lut"
        spe = Spe(m, self.decompress, decompress, signs, lut)

        def stage(function, lanes, shared, *passed):
            """A stage: ``function`` of each lane and the ``shared`` values, and some that are ``passed`` on."""
            results = [function(*lane, *shared) for lane in lanes]
            registers = pipe.stage(*[value for result in results for value in result], *passed)
            size = len(results[0])
            return [registers[size * k : size * (k + 1)] for k in range(LANES)], registers[size * LANES :]

        source = self.i.p
        lanes, scale, last = [[word] for word in source.data], source.scale, source.last
        if lut:
            lanes, (scale, last) = stage(spe.magnitude, lanes, [], scale, last)
            lanes, (*scale, last) = stage(spe.operands, lanes, [scale], *spe.scale(scale[23:31]), last)
        else:
            lanes, (*scale, last) = stage(lambda word, scale: spe.operands(*spe.magnitude(word), scale), lanes, [scale],
                                          *spe.scale(scale[23:31]), last)
        lanes, (last,) = stage(spe.multiply, lanes, scale, last)
        nans = carrysave.count([zero & special for *_, zero, special, _, _ in lanes])
        lanes, (nans, last) = stage(spe.add, lanes, [], nans, last)
        if lut:
            lanes, (nans, last) = stage(spe.choose, lanes, [], nans, last)
            lanes, (nans, last) = stage(spe.round, lanes, [], nans, last)
        else:
            lanes, (nans, last) = stage(lambda *lane: spe.round(*spe.choose(*lane)), lanes, [], nans, last)
        pipe.finish()
        m.d.comb += self.o.p.last.eq(last)
        m.d.comb += [word.eq(value) for word, (value, _) in zip(self.o.p.data, lanes, strict=True)]

        leaves = self.o.valid & self.o.ready & ~self.decompress
        for counter, number in ((self.nans, nans), (self.saturated, carrysave.count([flag for _, flag in lanes]))):
            step = Signal(4)
            m.d.sync += step.eq(Mux(leaves & ~self.clear, number, 0))
            m.d.sync += counter.eq(Mux(self.clear, 0, counter + step))
        return m
