"""The DCT of JPEG-ACT: an 8-point transform that goes both ways, and two of them with a transpose between."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import carrysave
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.skid import skidded
from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.jpegact.transpose import Transpose

__all__ = ["COEFFICIENT", "Dct", "Dct8", "coefficients"]

# sqrt(2) cos(k pi / 16) with 11 fraction bits, rounded to the nearest.
CONSTANT_BITS = 11
CONSTANTS = {1: 2841, 2: 2676, 3: 2408, 5: 1609, 6: 1108, 7: 565}
# Odd coefficients from odd differences, as indices into CONSTANTS with their sign. The matrix is symmetric: a 4-point
# DCT-IV is its own inverse, so one copy serves both directions.
ODD = [[1, 3, 5, 7], [3, -7, -1, -5], [5, -1, 7, 3], [7, -5, 3, -1]]
EVEN = [[2, 6], [6, -2]]

COEFFICIENT = 12  # bits, the lowest of them a fraction's
coefficients = vectors_layout(signed(COEFFICIENT))
"""Those that are quantized, and those that come back."""

DIRECTIONS = ("both", "forward", "inverse")


def _check_direction(direction):
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}, not {direction!r}")


def _signed(value, width):
    """The low ``width`` bits as a signed number, for sums that are known to fit."""
    return Value.cast(value)[:width].as_signed()


class Dct8(wiring.Component):
    """One-dimensional 8-point DCT (type II) or its inverse (type III), eight values a cycle.

    The transform is Loeffler, Ligtenberg and Moschytz's: butterflies that split the values into an even and an odd
    half, the even half split once more, with results sqrt(8) times the orthonormal ones so that coefficients 0 and 4
    need no multiplier. The odd half is not their chain of rotations but the four dot products that it computes:
    rotations come first in one direction and last in the other, whereas the matrix of dot products is symmetric and
    serves both. Inverting then means no more than passing the same *core* before the butterflies and not after them::

        forward   i -> butterfly of 8 -> butterfly of 4 -> core -> o
        inverse   i -> core -> butterfly of 4 -> butterfly of 8 -> o

    Each product sum is exact and is rounded once: floor(sum / 2**drop + 1/2), where drop = 11 - ``fraction``.

    Throughput: one vector a cycle. Latency: 6 cycles in both directions. Buffering: 6 vectors. Combinational path:
    ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-D, Figure 13; C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical fast 1-D DCT
    algorithms with 11 multiplications", ICASSP 1989.

    Parameters
    ----------
    width : int
        Bits of a value, the input of the forward direction, 2 to 32.
    coefficient_width : int
        Bits of a coefficient, the input of the inverse direction, 2 to 32.
    fraction : int
        Fraction bits that the output has beyond those of the input, 0 to 10.
    direction : {"both", "forward", "inverse"}
        "both": the input ``inverse`` chooses. "forward", "inverse": this one alone.
    half : bool
        Makes the inverse round off six fraction bits and saturate to 8 bits, all that its outputs then have. It adds 32
        to the values 0 to 3 and 31 to their mirror images 7 to 4, so that the rounding has no bias on average. It
        requires a ``fraction`` of 0, and inputs of 10 bits or more.

    Ports
    -----
    i : stream of :func:`vectors_layout`, signed, of the wider of the two inputs
        Values in order, or coefficients in order of frequency.
    o : stream of :func:`vectors_layout`, signed, three bits and ``fraction`` wider than ``i``
        With ``half``, the upper bits of an inverse mean nothing.
    inverse : input
        Direction, constant while any vector is inside.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, width=8, coefficient_width=12, fraction=3, direction="both", half=False):
        for name, value in (("width", width), ("coefficient_width", coefficient_width)):
            if not isinstance(value, int) or not 2 <= value <= 32:
                raise ValueError(f"{name} must be 2 to 32 bits, not {value!r}")
        if not isinstance(fraction, int) or not 0 <= fraction < CONSTANT_BITS:
            raise ValueError(f"fraction must be 0 to {CONSTANT_BITS - 1} bits, not {fraction!r}")
        _check_direction(direction)
        self.width, self.coefficient_width = width, coefficient_width
        self.fraction, self.direction, self.half = fraction, direction, bool(half)
        # Per direction: bits of the input, of what enters the core, and of what leaves it. Two butterflies precede the
        # core in one direction and follow it in the other; no product sum of the inverse needs its last bit.
        widths = {
            "forward": (width, width + 2, width + 3 + fraction),
            "inverse": (coefficient_width, coefficient_width, coefficient_width + 2 + fraction),
        }
        used = widths.values() if direction == "both" else [widths[direction]]
        self.i_width, self.core_i_width, self.core_o_width = (max(column) for column in zip(*used, strict=True))
        self.o_width = self.i_width + 3 + fraction
        if half and (fraction or self.i_width < 10):
            raise ValueError(f"half must be False unless fraction is 0 and inputs have 10 bits or more, not {half!r}")
        super().__init__(
            {
                "i": In(stream.Signature(vectors_layout(signed(self.i_width)))),
                "o": Out(stream.Signature(vectors_layout(signed(self.o_width)))),
                "inverse": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        pipe = Pipeline(m, self.i, self.o)
        inverse = {"both": self.inverse, "forward": Const(0, 1), "inverse": Const(1, 1)}[self.direction]
        bits = self.o_width

        # The three parts stand in a ring; `inverse` chooses where the ring is entered and left. What a part takes
        # from one that is described later is a wire.
        def wires(name, count, width):
            return [Signal(signed(width), name=f"{name}_{k}") for k in range(count)]

        core_o = wires("core", 8, self.core_o_width)  # e0 e1 r0 r1 and four odd ones
        four_o = wires("four", 8, bits)  # s0 s1 s2 s3 and four odd ones
        source = self.i.p.data

        # Butterfly of 8. Forward: sums and differences of mirror images. Inverse: values from sums and odd parts,
        # where the missing one of the two's complement makes the mirrored half end up one lower (see `half`).
        carry = ~inverse if self.half else Const(1, 1)
        sums, differences = [], []
        for k in range(4):
            u = Mux(inverse, four_o[k], source[k][: self.width].as_signed())
            v = Mux(inverse, four_o[4 + k], source[7 - k][: self.width].as_signed())
            sums.append(_signed(u + v, bits))
            differences.append(_signed(u + ~v + carry, bits))
        eight = pipe.stage(*sums, *differences)

        # Butterfly of 4 on the even half; the odd half waits.
        u = [Mux(inverse, core_o[k], eight[k]) for k in (0, 1)]
        v = [Mux(inverse, core_o[2 + k], eight[3 - k]) for k in (0, 1)]
        odd = [Mux(inverse, core_o[4 + k], eight[4 + k]) for k in range(4)]
        sums = [_signed(u[k] + v[k], bits) for k in (0, 1)]
        differences = [_signed(u[k] - v[k], bits) for k in (0, 1)]
        four = pipe.stage(*sums, *differences, *odd)
        # Inverse: s0 s1 s2 s3 (the differences come out mirrored).
        order = [0, 1, 3, 2, 4, 5, 6, 7]
        m.d.comb += [four_o[k].eq(four[order[k]]) for k in range(8)]

        # The core sees a0 a1 b0 b1 and the odd differences, or coefficients 0 4 2 6 and 1 3 5 7.
        frequencies = [0, 4, 2, 6, 1, 3, 5, 7]
        x = [_signed(Mux(inverse, source[frequencies[k]], four[k]), self.core_i_width) for k in range(8)]
        m.d.comb += [wire.eq(value) for wire, value in zip(
            core_o, self._core(m, pipe, x, inverse, target(platform) == "lut"), strict=True)]

        last = self.i.p.last
        for _ in range(6):
            delayed = Signal(reset_less=True)
            with m.If(pipe.advance):
                m.d.sync += delayed.eq(last)
            last = delayed
        pipe.finish()

        values = eight[:4] + eight[:3:-1]
        for k in range(8):
            value, coefficient = values[k], core_o[frequencies.index(k)]
            if self.half:
                value = value[6:].as_signed()
                fits = (value[7:] == value[-1].replicate(len(value) - 7))
                value = Cat(Mux(fits, value[:7], (~value[-1]).replicate(7)), value[-1])
                # Above, there are only coefficients.
                value = Cat(value, coefficient[8:]) if self.direction == "both" else value.as_signed()
            m.d.comb += self.o.p.data[k].eq(Mux(inverse, value, coefficient))
        m.d.comb += self.o.p.last.eq(last)
        return m

    def _core(self, m, pipe, x, inverse, lut):
        """Four stages: the transform of the split halves, the same in both directions."""
        drop = CONSTANT_BITS - self.fraction
        width = self.core_o_width + drop
        half = Mux(inverse, 32, 0) if self.half else 0

        direct = [_signed((x[0] + x[1] + half) << self.fraction, self.core_o_width),
                  _signed((x[0] - x[1] + half) << self.fraction, self.core_o_width)]
        # Multiples of three, once for each input, halve the number of terms of a tree's products.
        triples = [] if lut else [_signed(value + (value << 1), len(value) + 2) for value in x[2:]]
        e0, e1, *x = pipe.stage(*direct, *x[2:], *triples)
        multiples = {1: x[:6], 3: x[6:]}

        products = []
        for matrix, offset in ((EVEN, 0), (ODD, 2)):
            for row in matrix:
                factors = [CONSTANTS[abs(index)] * (1 if index > 0 else -1) for index in row]
                if lut:
                    products.append([x[offset + column] * factor for column, factor in enumerate(factors)])
                    continue
                terms = []
                for column, factor in enumerate(factors):
                    terms += [(sign, multiples[m][offset + column], shift) for sign, m, shift
                              in carrysave.digits(factor, odd=(1, 3))]
                products.append(carrysave.rows(terms, 1 << (drop - 1), width))

        # The tree of full adders takes two stages, as do an FPGA's multipliers and what adds pairs of their products.
        if lut:
            parts = [lambda rows: rows, lambda rows: [sum(rows[k::2], k << (drop - 1)) for k in (0, 1)]]
        else:
            depth = max(carrysave.levels(len(rows)) for rows in products)
            parts = [lambda rows, part=part: carrysave.reduce(m, rows, width, part)
                     for part in (depth - depth // 2, depth // 2)]
        for part in parts:
            products = [part(rows) for rows in products]
            registers = iter(pipe.stage(e0, e1, *[row for rows in products for row in rows]))
            e0, e1 = next(registers), next(registers)
            products = [[next(registers) for _ in rows] for rows in products]
        return pipe.stage(e0, e1, *[(a + b)[drop:width].as_signed() for a, b in products])


class Dct(wiring.Component):
    """Two-dimensional 8x8 DCT and iDCT: a pass, a transpose, a pass, each block eight vectors of eight.

    A CDU gets one row of eight values a cycle, so one 8-point unit for each pass keeps up with it; and since a CDU
    either compresses or decompresses, one datapath serves both directions.

    Forward: takes the rows of a block of 8-bit values, gives the columns of its orthonormal DCT with 6 fraction bits
    (vector j holds all vertical frequencies of horizontal frequency j). Inverse: takes columns of integer
    coefficients of 12 bits, gives rows of values, rounded and saturated to 8 bits.

    Throughput: one vector a cycle. Latency: 20 cycles from the first vector in to the first vector out. Buffering: 12
    vectors in the passes and a block in the transpose, where it waits for the next one to push it out unless it is the
    last. Combinational paths: ``o.ready`` to ``i.ready``, none from ``i`` to ``o``. For LUTs a skid buffer behind the
    transpose adds a cycle and two vectors, and cuts the path; multipliers take the place of trees.

    Accuracy, measured: forward within 0.2 of the exact coefficient; inverse within the limits of IEEE Std 1180-1990.

    Source: JPEG-ACT, section III-D, Figure 13.

    Parameters
    ----------
    direction : {"both", "forward", "inverse"}
        "both": the input ``inverse`` chooses. "forward", "inverse": this one alone.

    Ports
    -----
    i : stream of :func:`vectors_layout` of signed 12 (8 if it only goes forward)
    o : stream of :func:`vectors_layout` of signed 17 (8 if it only goes back)
        The values of an inverse are the low 8 bits; those above mean nothing.
    inverse : input
        Direction, constant while any vector is inside.

    Raises
    ------
    ValueError
        If the direction is unknown.
    """

    def __init__(self, direction="both"):
        _check_direction(direction)
        self.direction = direction
        super().__init__(
            {
                "i": In(stream.Signature(vectors_layout(signed(8 if direction == "forward" else COEFFICIENT)))),
                "o": Out(stream.Signature(vectors_layout(signed(8 if direction == "inverse" else 17)))),
                "inverse": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        first = Dct8(8, COEFFICIENT, fraction=3, direction=self.direction)
        second = Dct8(14, 18, fraction=0, direction=self.direction, half=True)
        m.submodules.first = first
        m.submodules.transpose = transpose = Transpose(first.o_width)
        m.submodules.second = second
        # A register of its own, as so much reads it; the second pass learns the direction long before a vector arrives.
        inverse = Signal(reset_less=True)
        m.d.sync += inverse.eq(self.inverse)
        m.d.comb += [first.inverse.eq(self.inverse), second.inverse.eq(inverse)]
        wiring.connect(m, wiring.flipped(self.i), first.i)
        wiring.connect(m, first.o, transpose.i)
        between = transpose.o
        if target(platform) == "lut":
            between = skidded(m, "skid", between)
        m.d.comb += [
            second.i.valid.eq(between.valid),
            between.ready.eq(second.i.ready),
            second.i.p.last.eq(between.p.last),
            self.o.valid.eq(second.o.valid),
            second.o.ready.eq(self.o.ready),
            self.o.p.last.eq(second.o.p.last),
        ]
        for k in range(8):
            m.d.comb += second.i.p.data[k].eq(between.p.data[k])
            m.d.comb += self.o.p.data[k].eq(second.o.p.data[k])
        return m
