"""MX's decoder: blocks of two scales and 64 elements to sectors of float32."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import wires
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import words
from actcodec.rtl.mx.element import NAN, check_elements
from actcodec.rtl.offload.control.config import rows_layout

__all__ = ["Decode"]

LANES = 8


class Decode(wiring.Component):
    """Multiplies each element with its scale: a leading one in front, exponents added.

    A result below the normal numbers of float32 is a zero of its sign, one beyond them infinity, NaN 0x7FC00000.

    Throughput: a row a cycle, 8 cycles a block. Latency: 2 cycles. Buffering: two rows. Combinational path: ``o.ready``
    to ``rows.ready``.

    Source: OCP Microscaling Formats (MX) v1.0, sections 5 and 6; docs/formats.md.

    Parameters
    ----------
    elements : tuple of {"int8", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}
        Element formats, one or more.

    Ports
    -----
    rows : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout` of as many bytes as an element has bits
        Eight a block; with the first one, ``mask`` is the scale of the upper four, with the fifth one that of the
        others.
    empty : input
        The row of this cycle, and its scale, count as zeros.
    o : stream of :data:`~actcodec.rtl.common.vectors.words`, float32
    format : input
        Place of the elements' format among ``elements``. Constant while a tensor is under way.

    Raises
    ------
    ValueError
        If ``elements`` are not such.
    """

    def __init__(self, elements=("int8", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1")):
        self.formats = check_elements(elements)
        self.width = max(form.width for form in self.formats)
        super().__init__({
            "rows": In(stream.Signature(rows_layout(self.width))), "empty": In(1),
            "o": Out(stream.Signature(words)), "format": In(range(max(len(self.formats), 2))),
        })

    def elaborate(self, platform):
        m = Module()
        self._wire = partial(wires.wire, m)
        self._here = [Signal(name=f"is_{form.name}", reset_less=True) for form in self.formats]
        m.d.sync += [here.eq(self.format == place if len(self.formats) > 1 else 1)
                     for place, here in enumerate(self._here)]
        pipe = Pipeline(m, self.rows, self.o)

        row, held, scale = Signal(3), Signal(8, reset_less=True), Signal(8)
        m.d.comb += scale.eq(Mux(row[:2] == 0, Mux(self.empty, 0, self.rows.p.mask), held))
        with m.If(self.rows.valid & self.rows.ready):
            m.d.sync += [row.eq(row + 1), held.eq(scale)]

        lanes = [self._normal(m, self._wire(code)) for code in self._codes(self.rows.p.data.as_value())]
        *values, scale, last = pipe.stage(*(value for lane in lanes for value in lane), scale, self.rows.p.last)
        size = len(lanes[0])
        lanes = [self._scaled(scale, *values[size * k :][:size]) for k in range(LANES)]
        *lanes, last = pipe.stage(*lanes, last)
        pipe.finish()
        m.d.comb += [word.eq(Cat(Const(0, 32 - len(lane)), lane))
                     for word, lane in zip(self.o.p.data, lanes, strict=True)]
        m.d.comb += self.o.p.last.eq(last)
        return m

    def _choose(self, value, forms=None):
        """The Amaranth value that the function ``value`` has for the format, 0 unless that is one of ``forms``."""
        return choose((here, value(form)) for form, here in zip(self.formats, self._here, strict=True)
                      if forms is None or form in forms)

    def _codes(self, content):
        """A row's codes, each with its sign in the top bit and the bits of its magnitude in the lowest."""
        def lane(k, form):
            code = content[form.width * k :][: form.width]
            return Cat(code[:-1], Const(0, self.width - form.width), code[-1])

        return [self._choose(lambda form, k=k: lane(k, form)) for k in range(LANES)]

    def _normal(self, m, code):
        """Sign, exponent less that of the scale (in two's complement), mantissa behind the leading one with its first
        bit at the top, and whether the element is zero, infinite, not a number. An empty row has only zeros, whatever
        their exponents and mantissas."""
        sign, wire, there = code[-1], self._wire, ~self.empty
        integers = [form for form in self.formats if form.integer]
        magnitude = wire(code[:-1])
        if integers:  # -128 is a magnitude of 8 bits
            whole = wire(Mux(sign, -code, code)[:8])
            ones = [wire(whole[k] & ~whole[k + 1 :].any()) for k in range(8)]
            integer = Cat(choose((one, Const(k - 6, 7)) for k, one in enumerate(ones))[:7],
                          choose((one, (whole << 7 - k)[1:7]) for k, one in enumerate(ones))[:6], ~whole.any())

        def parts(form):
            """Exponent, mantissa, zero."""
            bits = form.mantissa
            if form.integer:
                return integer
            field, mantissa = magnitude[bits : form.width - 1], magnitude[:bits]
            ones = [wire(mantissa[k] & ~mantissa[k + 1 :].any()) for k in range(bits)]
            low = choose((one, Const(1 - form.bias - bits + k, 7)) for k, one in enumerate(ones))
            moved = choose((one, (mantissa << bits - k)[:bits]) for k, one in enumerate(ones))[:bits]
            normal, exponent = wire(field.any()), Signal(7, name="exponent")
            m.d.comb += exponent.eq(Mux(normal, field - form.bias, low.as_signed()))
            return Cat(exponent, Const(0, 6 - bits), Mux(normal, mantissa, moved)[:bits], ~(normal | mantissa.any()))

        found = wire(self._choose(parts))
        infinite = self._choose(lambda form: magnitude == form.infinity,
                                [form for form in self.formats if form.infinity is not None])
        number = self._choose(lambda form: magnitude > (form.largest if form.infinity is None else form.infinity),
                              [form for form in self.formats if form.nan is not None])
        return sign & there, found[:7], found[7:13], found[13] | self.empty, infinite[0] & there, number[0] & there

    def _scaled(self, scale, sign, exponent, mantissa, zero, infinite, number):
        """The upper bits of the word."""
        wire = self._wire
        total = wire((scale + exponent.as_signed()).as_unsigned())  # 10 bits
        none = ~total[:9].any() | total[9]
        beyond = ~total[9] & (total[8] | total[:8].all())
        nan = wire(number | (scale == NAN))
        infinite = wire(~nan & (infinite | (beyond & ~zero)))
        plain = wire(~(nan | infinite | zero | none))
        field = Mux(plain, total[:8], (nan | infinite).replicate(8))
        return Cat(Mux(plain, mantissa[:5], 0)[:5], (plain & mantissa[5]) | nan, field, sign & ~nan)
