"""MX's encoder: sectors of float32 to blocks of two scales and 64 elements."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import carrysave, wires
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import words
from actcodec.rtl.mx.element import NAN, check_elements
from actcodec.rtl.offload.wire.block_format import HALVES

__all__ = ["LATENCY", "RULES", "Encode"]

RULES = ("rceil", "floor", "even")  # in the order of their codes
LANES = 8
STORED = 6  # rows until the scale of the first one is known
FAR = 0b100000  # a field of a code, in two's complement, with which all is zero
LATENCY = 9  # rows that come in until the first one leaves


def _exceeds(one, other):
    """Whether ``one`` is greater: a tree of pairs (greater, not less), one for each bit. An operator's carries would
    have exclusive ors in front of them, and this is the slowest path."""
    bits = [(a & ~b, a | ~b) for a, b in zip(one, other, strict=True)]
    while len(bits) > 1:
        odd = bits[len(bits) & ~1 :]
        bits = [(high[0] | (high[1] & low[0]), high[1] & low[1]) for low, high in _pairs(bits[: len(bits) & ~1])] + odd
    return bits[0][0]


def _pairs(values):
    """The values, two by two."""
    values = list(values)
    return list(zip(values[::2], values[1::2], strict=True))


def _layout(width, coded):
    fields = {name: field.shape for name, field in chunk_layout(HALVES + width)}
    return data.StructLayout(fields | ({"codes": data.ArrayLayout(width, 8), "scales": 8 * HALVES} if coded else {}))


class Encode(wiring.Component):
    """Gives 32 values a scale, the power of two that the rule wants for the greatest of them, and makes an element of
    each: x / scale, rounded once to nearest, ties to even.

    ::

        sectors -> align -> two rows -> distances -> four rows -> shift -> round -> two rows -> chunks
                    | greatest so far --^----------------------- ^ scale -------------------- ^

    No rounding looks at more of a value than its exponent, the bits of an element's mantissa and the one behind them,
    and whether there are any others: that is all of a row that waits for the greatest exponent of those that share its
    scale, up to that row. What waits for the scale is less: how far an exponent is below that one, as far as elements
    reach. An exponent below that of the element's smallest normal number is a shift to the right, so that normal,
    subnormal and integer elements are one datapath. Both scales of a block leave in front of its first row.

    Throughput: a sector a cycle, 8 cycles a block. Latency: 9 cycles. Buffering: nine rows; a row moves only when
    another comes in, or after the last one, which flushes the unit. Combinational path: ``chunks.ready`` to
    ``i.ready``.

    Source: OCP Microscaling Formats (MX) v1.0, sections 5 and 6.3; docs/formats.md.

    Parameters
    ----------
    elements : tuple of {"int8", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}
        Element formats, one or more.
    coded : bool
        A coder may follow: the payload of ``chunks`` has ``codes``, the row's elements in lanes as wide as the widest,
        and ``scales``, the block's in its first chunk, as well.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.common.vectors.words`, float32
        Eight sectors a block; ``last`` only with the eighth.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 2 and as many bytes as an element has bits
        Eight a block, the first one with both scales.
    format : input
        Place of the elements' format among ``elements``.
    rule : input
        Of the scale: a place in :data:`RULES`. Both constant from before the first sector until the last chunk.
    clear : input
        Sets the counters to zero.
    nans, saturated : output, 32 bits
        Values that were NaN; and those that became the greatest one because they were beyond it by half a step or more,
        infinities among them. Complete when a row's chunk has left. Modulo 2**32.

    Raises
    ------
    ValueError
        If ``elements`` are not such.
    """

    def __init__(self, elements=("int8", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), coded=False):
        self.formats, self.coded = check_elements(elements), bool(coded)
        self.width = max(form.width for form in self.formats)
        # Bits of a distance, of which all ones say that it is longer; and those that integers use.
        size = max((form.bias + form.emax + form.mantissa + 1).bit_length() for form in self.formats)
        self._distance = size, min(size, 4)
        super().__init__({
            "i": In(stream.Signature(words)),
            "chunks": Out(stream.Signature(_layout(self.width, self.coded))),
            "format": In(range(max(len(self.formats), 2))), "rule": In(range(len(RULES))),
            "clear": In(1), "nans": Out(32), "saturated": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        i, chunks, self._m = self.i, self.chunks, m
        self._wire = wire = partial(wires.wire, m)
        self._flags = {}
        # The settings stand: where they are decoded costs no time.
        ceil, even = Signal(reset_less=True), Signal(reset_less=True)
        m.d.sync += [ceil.eq(self.rule == RULES.index("rceil")), even.eq(self.rule == RULES.index("even"))]

        # ---------------------------------------------------------------------------------------------- movement
        there = Signal(LATENCY)  # rows, from the first register on, without a gap between them
        flushing, left = Signal(), Signal()  # the last row is inside; the one at the end has left
        move, free = Signal(), Signal()
        phase = Signal(3)  # of the row that comes in
        m.d.comb += [
            free.eq(~there[-1] | left | chunks.ready),
            i.ready.eq(free & ~flushing),
            move.eq(free & (flushing | i.valid)),
            chunks.valid.eq(there[-1] & ~left),
            chunks.p.last.eq(~there[-2]),  # a row without a next one moves only to flush the unit
        ]
        with m.If(move):
            m.d.sync += [there.eq(Cat(~flushing, there)), left.eq(0), phase.eq(phase + 1)]
        with m.Elif(chunks.ready):
            m.d.sync += left.eq(left | there[-1])
        with m.If(i.valid & i.ready & i.p.last):
            m.d.sync += flushing.eq(1)
        with m.If(flushing & ~there.any()):
            m.d.sync += [flushing.eq(0), phase.eq(0)]

        def register(value, name):
            """``value`` a row later."""
            one = Signal.like(value, name=name, reset_less=True)
            with m.If(move):
                m.d.sync += one.eq(value)
            return one

        # ------------------------------------------------------------------------------------------------- a row
        # A key is an exponent and, in the lowest bit, whether the rule wants the next scale. Of each two lanes, one bit
        # says whose is greater: the exponents are in registers anyway.
        lanes = [self._aligned(word) for word in i.p.data]
        ups = [self._up(fraction, ceil, even) for _, _, fraction in lanes]
        firsts = [register(self._first(*(Cat(up, word[23:31]) for up, word in pair),
                                       *(word[23:31].all() for _, word in pair)), "first")
                  for pair in _pairs(zip(ups, i.p.data, strict=True))]
        ups = [register(up, "up") for up in ups]
        # Of what is special, two bits of the fraction say what it is.
        lanes = [[register(part, "lane") for part in lane] for lane in lanes]
        special = [wire(exponent.all()) for _, exponent, _ in lanes]
        nans = [wire(one & fraction.any()) for one, (_, _, fraction) in zip(special, lanes, strict=True)]
        keys = [wire(Mux(first, *(Cat(up, exponent) for up, (_, exponent, _) in pair)))
                for first, pair in zip(firsts, _pairs(zip(ups, lanes, strict=True)), strict=True)]
        lanes = [(register(sign, "sign"), register(exponent, "exponent"),
                  register(Cat(fraction[0] | one, Mux(one, number, fraction[1]), fraction[2:]), "fraction"))
                 for (sign, exponent, fraction), one, number in zip(lanes, special, nans, strict=True)]

        # ----------------------------------------------------------------------------------------------- the scale
        # It is that of four rows: the greatest key from their first one to the newest. Whatever is below what makes a
        # scale of 0 counts as that.
        begins = wire(phase[:2] == 1)
        bottom = Cat(Const(0, 1), self._constant(lambda form: form.emax))
        most, held, some = Signal(9, reset_less=True), Signal(9, reset_less=True), Signal(reset_less=True)
        before = wire(Mux(begins, bottom, most))
        # For integers there is no scale above 254.
        newest = Cat(most[0] & ~(self._any(lambda form: form.emax == 0) & most[2:].all()), most[1:])
        # All comparisons of two pairs' keys and the one before at once.
        none = [wire(one & other) for one, other in _pairs(special)]
        winners = [(wire(Mux(self._first(*pair, *empty), *pair)), wire(empty[0] & empty[1]))
                   for pair, empty in zip(_pairs(keys), _pairs(none), strict=True)]
        (one, one_none), (other, other_none) = winners
        stays = wire((~_exceeds(one, before) | one_none) & (~_exceeds(other, before) | other_none))
        goes = wire(self._first(one, other, one_none, other_none))
        greatest = wire(choose([(stays, before), (~stays & goes, one), (~stays & ~goes, other)]))
        lacks = self._any(lambda form: form.nan is None)
        base, hidden, now_hidden = Signal(signed(6), reset_less=True), Signal(reset_less=True), Signal()
        m.d.comb += now_hidden.eq(Mux(begins, some & lacks, hidden))
        first = Signal(8, reset_less=True)
        # Right when the next four begin. One adder: the lowest bit of the sum carries whether the exponent goes up, but
        # not from that of zeros.
        scale = wire(Mux(some & lacks, NAN, ((newest - bottom + newest[1:].any()) >> 1)[:8]))

        row = [register(self._packed(most[1:], *lane), "row") for lane in lanes]
        top = register(most[1:], "most")
        for _ in range(STORED - 5):
            row, top = [register(lane, "row") for lane in row], register(top, "most")
        row, top = ([register(lane, "row") for lane in row],
                    register((top + self._constant(lambda form: form.bias + form.emax))[:9], "top"))
        row = [register(lane, "row") for lane in row]
        with m.If(move):
            m.d.sync += [most.eq(greatest), some.eq(Cat(nans).any() | (some & ~begins)), hidden.eq(now_hidden),
                         base.eq(Mux(now_hidden, FAR, self._base(top, Mux(begins, newest, held))))]
            with m.If(begins):
                m.d.sync += [held.eq(newest), first.eq(scale)]

        # ---------------------------------------------------------------------------------------------- elements
        shifted = [self._shift(row, base, hidden) for row in row]
        shifted = [[register(value, "shifted") for value in values] for values in shifted]
        rounded = [self._round(*values) for values in shifted]
        codes = [register(code, "code") for code, _ in rounded]
        for _ in range(LATENCY - STORED - 2):
            codes = [register(code, "code") for code in codes]
        row = choose((self._any(lambda form, width=width: form.width == width), Cat(code[:width] for code in codes))
                     for width in sorted({form.width for form in self.formats}))
        head = Signal()
        size = self._constant(lambda form: form.width)
        m.d.comb += [
            head.eq(phase == LATENCY % 8),  # when the next block begins
            chunks.p.data.as_value().eq(Mux(head, Cat(first, scale, row), row)),
            chunks.p.count.eq(size + Mux(head, HALVES, 0)),
        ]
        if self.coded:
            m.d.comb += [chunks.p.codes.as_value().eq(Cat(codes)), chunks.p.scales.eq(Cat(first, scale))]

        # ---------------------------------------------------------------------------------------------- counters
        for counter, flags, place in ((self.nans, nans, 0), (self.saturated, [flag for _, flag in rounded], STORED)):
            step, carry = Signal(4), Signal()  # the upper half follows a cycle late
            m.d.sync += [step.eq(Mux(move & there[place] & ~self.clear, carrysave.count(flags), 0)),
                         Cat(counter[:16], carry).eq(Mux(self.clear, 0, counter[:16] + step)),
                         counter[16:].eq(Mux(self.clear, 0, counter[16:] + carry))]
        return m

    # ------------------------------------------------------------------------------------------- of the format
    def _any(self, holds):
        """Whether the function ``holds`` is true of the format: a register for each format, a gate for each set."""
        some = tuple(place for place, form in enumerate(self.formats) if holds(form))
        if len(some) in (0, len(self.formats)):
            return Const(len(some) > 0, 1)
        if some not in self._flags:
            flag = Signal(name="is_" + "_".join(self.formats[place].name for place in some), reset_less=True)
            if len(some) == 1:
                self._m.d.sync += flag.eq(self.format == some[0])
            else:
                self._m.d.comb += flag.eq(Cat(self._any(lambda form, place=place: form is self.formats[place])
                                              for place in some).any())
            self._flags[some] = flag
        return self._flags[some]

    def _constant(self, value):
        """The number that the function ``value`` has for the format, bit by bit."""
        size = max(value(form) for form in self.formats).bit_length()
        return Cat(self._any(lambda form, bit=bit: value(form) >> bit & 1) for bit in range(size))

    def _by_mantissa(self, value):
        """The Amaranth value that the function ``value`` has for the bits of the format's mantissa."""
        return choose((self._any(lambda form, bits=bits: form.mantissa == bits), value(bits))
                      for bits in sorted({form.mantissa for form in self.formats}))

    # ---------------------------------------------------------------------------------------------------- a value
    def _aligned(self, word):
        """Sign, exponent, and of the fraction whether there is anything behind an element's guard bit, that bit, and
        the mantissa in the lowest bits."""
        most = max(form.mantissa for form in self.formats)
        tail = self._by_mantissa(lambda bits: word[: 22 - bits].any())
        return word[31], word[23:31], self._wire(Cat(tail, self._by_mantissa(lambda m: word[22 - m : 23])[: most + 1]))

    @staticmethod
    def _first(one, other, no_one, no_other):
        """Whether the first of two keys is the greater one; ``no_one`` and ``no_other``: that key does not count."""
        return (_exceeds(one, other) & ~no_one) | no_other

    def _up(self, fraction, ceil, even):
        """Whether the rule wants the next scale for such a fraction."""
        more, guard = fraction[:2].any(), fraction[1]
        ones = self._by_mantissa(lambda bits: fraction[2 : 2 + bits].all())
        beyond = ones & more
        if any(form.name == "e4m3" for form in self.formats):  # whose greatest mantissa is even
            beyond |= self._any(lambda form: form.name == "e4m3") & fraction[3:5].all() & (fraction[2] | more)
        return self._wire((ceil & beyond) | (even & ones & guard))

    def _packed(self, top, sign, exponent, fraction):
        """A value as what it takes to make its code: how far its exponent is below the row's greatest one, all ones if
        that is so far that it is zero, or if it is special: then the lowest bit of its fraction is set, and the next
        one if it is no number. The upper bits of the distance, which integers do not need, are where they alone have
        mantissa."""
        distance = self._wire((top - exponent).as_unsigned())  # 9 bits; negative of what is special
        special, integer = distance[8], self._any(lambda form: form.integer)
        size, low = self._distance
        far = Mux(integer, distance[4:8].any() | distance[:4].all(), distance[size:8].any() | distance[:size].all())
        far = self._wire(far | special | ~exponent.any())
        near = distance[:size] | far.replicate(size)
        upper = near[low:] & (~integer).replicate(size - low)
        return Cat(sign, near[:low], fraction[0] & (~far | special), fraction[1:5], fraction[5:] | upper)

    def _unpacked(self, row):
        """Sign, distance, whether that is all ones, and fraction."""
        size, low = self._distance
        most = max(form.mantissa for form in self.formats) + 2
        integer = self._any(lambda form: form.integer)
        end = low + 1 + min(most, 5)
        near, fraction, rest = row[1 : low + 1], row[low + 1 : end], row[end:]
        upper = rest[: size - low]
        far = near.all() & (integer | upper.all() if size > low else 1)
        return (row[0], Cat(near, upper & (~integer).replicate(size - low)), far,
                Cat(fraction, rest[: max(most - 5, 0)] & integer.replicate(max(most - 5, 0))))

    @staticmethod
    def _base(top, key):
        """``top`` less an exponent and one more if it goes up; anything far below 0 is :data:`FAR`."""
        base = top + ~key[1:] + ~key[:1]  # and 256
        return Mux(base[8] | base[5:8].all(), base[:6], FAR)

    def _shift(self, row, base, hidden):
        """The magnitude of the element's code, its guard bit, its sticky bit, and the sign."""
        size, wire = self.width - 1, self._wire
        sign, distance, far, fraction = self._unpacked(row)
        field = wire((base - distance).as_unsigned())  # the code's exponent, unless it is less than 1
        beneath = field[-1]
        normal = wire(~beneath & field[:-1].any())
        mantissa, guard, tail = fraction[2:], fraction[1], fraction[0]
        above = self._by_mantissa(lambda bits: Cat(mantissa[:bits], field[: size - bits]))
        # Below, the leading one shows, and all moves down: by one place for 0, by two and more for a negative field.
        whole = wire(Cat(guard, self._by_mantissa(lambda bits: Cat(mantissa[:bits], 1))))
        lost, down = whole[:2].any(), whole[2:]
        for bit in range(3):
            by = ~field[bit]
            lost |= by & down[: 1 << bit].any()
            down = wire(Mux(by, down >> (1 << bit), down))
        zero, below = wire(~field.any()), wire(beneath & field[3:-1].all())
        special = wire(far & tail & ~hidden)
        number, infinite = (wire(special & one) for one in (guard, ~guard))
        # The shift's sticky bit, which matters only if the guard bit is set; the guard bit; the code. What saturates is
        # the greatest code with a guard bit.
        lacks = self._any(lambda form: form.infinity is None)
        bits = wire(choose([
            (normal, Cat(Const(0, 1), guard, above)), (zero, whole), (below, Cat(lost, down)),
            (infinite, Cat(Const(0, 1), lacks, self._constant(
                lambda form: form.largest if form.infinity is None else form.infinity))),
            (number, Cat(Const(0, 2), self._constant(lambda form: form.nan or 0)))]))
        half = bits[1]
        if any(form.name == "e4m3" for form in self.formats):  # whose largest code but one is NaN's
            half |= (self._any(lambda form: form.name == "e4m3") & normal & field[:4].all() & mantissa[:3].all())
        return [bits[2 : 2 + size], half, bits[0] | tail, sign & ~number & ~hidden]

    def _round(self, magnitude, guard, tail, sign):
        """The code, and whether it is the greatest one because the value was beyond it."""
        # A code above the greatest one, NaN's or infinity, has a guard bit only if it saturates.
        beyond = self._wire((magnitude | ~self._constant(lambda form: form.largest)).all() & guard)
        up = guard & (tail | magnitude[0]) & ~beyond
        if any(form.name == "e4m3" for form in self.formats):
            clears = self._any(lambda form: form.name == "e4m3") & beyond
            magnitude = Cat(magnitude[0] & ~clears, magnitude[1:])
        # -(n + up) = ~n + (1 - up): one incrementer rounds and negates.
        negates = sign & self._any(lambda form: form.integer)
        total = self._wire((Cat(magnitude, 0) ^ negates.replicate(len(magnitude) + 1)) + (up ^ negates))
        # Floats have zeros from the place of their sign on.
        code = total | Cat(sign & self._any(lambda form, width=width: form.width == width and not form.integer)
                           for width in range(1, self.width + 1))
        return code[: self.width], beyond
