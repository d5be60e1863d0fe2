"""DIV: quantization by division."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import carrysave
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.jpegact.dct import COEFFICIENT, coefficients

__all__ = ["FRACTION", "Div", "reciprocal"]

FRACTION = 12  # fraction bits of a reciprocal
CUT = FRACTION - 3  # columns of the product that are left out; three fraction bits of twice C stay
ROWS = COEFFICIENT // 2  # digits of radix 4
WIDTH = 17  # of the product that is left
ROUNDING = 5  # makes up for the columns that are left out, and for reciprocals being rounded


def reciprocal(d):
    """256 / d with :data:`FRACTION` fraction bits, for d from 128 to 255, rounded; what is almost 2 in place of 2."""
    return min((2 ** (FRACTION + 9) // d + 1) // 2, 2 ** (FRACTION + 1) - 1)


class Div(wiring.Component):
    """Divides coefficients by any numbers of 8 bits, or multiplies them back.

    Compress: q = floor(C / D + 1/2), clipped to 8 bits, exact for every C and D. Decompress: C = q D, saturated to 12
    bits. One multiplier a lane does both, of 12 by 13 bits in radix 4.

    A quotient is a product with a reciprocal. D is shifted up until its top bit is 1, to d; 256 / d lies between 1 and
    2 and takes 12 fraction bits, and the product is shifted down by as much more. So the bits of the product that count
    are few whatever D is, and nine columns of it, all below an eighth of twice C, are left out. A fixed number that is
    added, and half of a quotient's unit, make the result exact: between the halves of whole numbers, which C / D is
    compared with, and the nearest quotient that is not one, there always lies half a unit of twice C. That holds for
    each C and D was found by trying them all; the bench does it again.

    Vectors are columns of a block: lane v of beat j carries vertical frequency v of horizontal frequency j. The unit
    counts beats modulo 8 from ``start``, so blocks have to be whole.

    Throughput: one vector a cycle. Latency: one cycle. Buffering: one vector. Combinational paths: from ``o.ready`` to
    ``i.ready``; ``o`` is an adder and a shifter away from registers, so that a register should follow.

    Source: JPEG-ACT, section III-E (DIV); A. D. Booth's digits, in radix 4.

    Ports
    -----
    i : stream of :func:`vectors_layout` of signed 12
        Twice C, rounded down, or 16 q.
    o : stream of :func:`vectors_layout` of signed 12
        16 q, of which the lower 4 bits mean nothing, or C.
    start : input
        Pulse, three cycles or more before the first block of a tensor.
    decompress : input
        Direction; constant from ``start`` on.
    table : input, 64 numbers of 8 bits
        D, the DQT, 1 to 255, row-major with the vertical frequency first; constant from ``start`` on. For a D of 0, q
        means nothing.
    """

    i: In(stream.Signature(coefficients))
    o: Out(stream.Signature(coefficients))
    start: In(1)
    decompress: In(1)
    table: In(data.ArrayLayout(8, 64))

    # What another quantizer that divides may have otherwise: fraction bits of a reciprocal; columns of the product that
    # are left out, and the bits that are left; and those of them that lie below a C that is multiplied back.
    fraction, cut, width, low = FRACTION, CUT, WIDTH, 0

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        decompress, moved, begins = self.decompress, Signal(), Signal(2)
        # A Johnson counter of the column that is looked up next, two beats before it is needed: a beat for its
        # reciprocals lies between. One-hot, it selects from the table in few gates.
        ahead = Signal(4, reset_less=True)
        m.d.sync += begins.eq(Cat(self.start, begins[0]))
        m.d.comb += moved.eq(begins.any() | (self.i.valid & pipe.advance))
        with m.If(self.start):
            m.d.sync += ahead.eq(0)
        with m.Elif(moved):
            m.d.sync += ahead.eq(Cat(~ahead[3], ahead[:3]))
        before = Cat(~ahead[3], ahead[:3])
        there = Signal(8)
        m.d.comb += there.eq(Cat(before & ~ahead, ~before & ahead))

        def wire(value, name="wire"):
            wire = Signal(len(value), name=name)
            m.d.comb += wire.eq(value)
            return wire

        table = Array(Const(self.reciprocal(128 + k) % 2**self.fraction, self.fraction) for k in range(128))
        sums, shifts = [], []
        for lane in range(8):
            d = Signal(8, reset_less=True, name=f"d_{lane}")
            with m.If(moved):
                m.d.sync += d.eq(choose((there[j], self.table[8 * lane + j]) for j in range(8)))
            far = Signal(3, name=f"far_{lane}")
            for k in range(1, 8):  # the top bit that is 1
                with m.If(d[k]):
                    m.d.comb += far.eq(k)
            shifted = d[:7]
            for bit in reversed(range(3)):
                shifted = wire(Mux(far[bit], shifted, (shifted << (1 << bit))[:7]))
            number = Signal(self.fraction + 1, reset_less=True, name=f"number_{lane}")
            by = Signal(3, reset_less=True, name=f"by_{lane}")
            with m.If(moved):
                m.d.sync += [
                    number.eq(Mux(decompress, Cat(Const(0, self.fraction - 7), d),
                                  Cat(wire(table[shifted]), Const(1, 1)))),
                    by.eq(self._distance(far, shifted)),
                ]
            sums.append(self._product(m, self.i.p.data[lane], number, by))
            shifts.append(by)

        staged = pipe.stage(*(row for rows in sums for row in rows), *shifts, self.i.p.last)
        for lane in range(8):
            one, other, by = staged[2 * lane], staged[2 * lane + 1], staged[16 + lane]
            product, low = wire((one + other)[: self.width], f"product_{lane}"), self.low
            sign = product[-1]
            shown = Cat(product[5:], sign.replicate(20 - self.width))
            for bit in reversed(range(3)):
                shown = wire(Mux(by[bit], shown[1 << bit :], shown)[: 7 + (1 << bit)])
            # What lies above the bits that are shown has to be the sign.
            high = wire(product[11:-1] ^ sign.replicate(self.width - 12))
            over = wire(Mux(decompress, high[low:].any(),
                            reduce(or_, (high[1 + e :].any() & (by == e) for e in range(len(high) - 1)))))
            upper = Mux(decompress, product[low + 4 : low + 11], shown[:7])
            m.d.comb += self.o.p.data[lane].eq(Cat(
                Mux(over, (~sign).replicate(11), Cat(product[low : low + 4], upper)), sign).as_signed())
        m.d.comb += self.o.p.last.eq(staged[-1])
        pipe.finish()
        return m

    def _product(self, m, value, number, by):
        """Two rows of ``width`` bits whose sum is the product of a value and a number without its ``cut`` lower
        columns, and, compressing, what rounds the quotient."""
        # All the rows' top bits are worth less than nothing.
        signs = [2 * row + self.fraction + 2 - self.cut for row in range(ROWS)]
        columns = self._constants(m, -sum(1 << place for place in signs), value, by)
        digits = Cat(Const(0, 1), value)
        for k in range(ROWS):
            low, middle, high = digits[2 * k : 2 * k + 3]
            single, double, negative = (Signal(name=f"{name}_{k}") for name in ("single", "double", "negative"))
            m.d.comb += [single.eq(low ^ middle), double.eq((low == middle) & (middle != high)),
                         negative.eq(high & ~(low & middle))]
            first = 2 * k - self.cut  # column of the row's lowest bit

            def partial(place, first=first, k=k, single=single, double=double, negative=negative):
                bit = place - first
                here, below = (number[b] if 0 <= b <= self.fraction else Const(0, 1) for b in (bit, bit - 1))
                partial = Signal(name=f"partial_{k}_{bit}")
                m.d.comb += partial.eq(((single & here) | (double & below)) ^ negative)
                return partial

            for place in range(max(0, first), first + self.fraction + 2):
                columns[place].append(partial(place))
            columns[signs[k]].append(~negative)
            self._complete(columns, k, first, negative, partial)
        reduced = carrysave.reduced(m, columns)
        return [Cat(column[k] if k < len(column) else Const(0, 1) for column in reduced) for k in range(2)]

    @staticmethod
    def reciprocal(d):
        """What stands in the table for d, but for its top bit."""
        return reciprocal(d)

    def _distance(self, far, shifted):
        """How far a product is shifted down, for a D whose top bit is number ``far``, with ``shifted`` below it."""
        return far

    def _constants(self, m, constant, value, by):
        """Lists of bits, one for each column of a product: a constant and, compressing, half a unit of the quotient."""
        constants = Array(Const(constant + ROUNDING + (16 << e), self.width) for e in range(8))
        row = Signal(self.width, name="constant")
        m.d.comb += row.eq(Mux(~self.decompress, constants[by], Const(constant, self.width)))
        return [[row[place]] for place in range(self.width)]

    def _complete(self, columns, k, first, negative, partial):
        """Adds the one that a negative row k, which begins in column ``first``, is short of; ``partial(place)`` makes a
        bit of it."""
        # Below the cut that matters only for products that have to be exact, those of 16 q, whose first two digits are
        # zero.
        if k >= 2:
            columns[max(0, first)].insert(0, negative)
