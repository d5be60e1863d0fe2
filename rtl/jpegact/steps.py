"""DIV with steps in quarters, and a dead zone."""

from amaranth.hdl import Const, Mux, Signal
from amaranth.lib.wiring import In

from actcodec.rtl.jpegact.div import Div

__all__ = ["Steps"]


class Steps(Div):
    """Divides coefficients by any 8-bit number of quarters, or multiplies them back: a
    :class:`~actcodec.rtl.jpegact.div.Div` with other reciprocals and a dead zone.

    ``golden/jpegact/steps.py`` says what comes out, bit for bit. A reciprocal has 7 fraction bits in place of Div's 12,
    so rows of the product are shorter. That pays for what is new here. The product is exact but for its two lowest
    columns, whose carry is known from three bits of a row. It is rounded by half a unit of the quotient less the dead
    zone, by the sign of C. A step that is a power of two has the reciprocal 1 and is shifted a bit less, which makes it
    exact.

    Ports
    -----
    i, o, start, decompress :
        As Div has them. Decompressing, C is rounded half up.
    table : input, 64 numbers of 8 bits
        Quarters of a step, 2 to 255. With 0 or 1, q means nothing.
    dead_zone : input, 2 bits
        z: compressing, magnitudes are rounded up from 1/2 + z/16 on; constant from ``start`` on.

    Source: none of the papers; the form of the quantizer is that of video coders (G. J. Sullivan, "Efficient scalar
    quantization of exponential and Laplacian random variables", IEEE Transactions on Information Theory 42(5), 1996).
    """

    dead_zone: In(2)

    fraction, cut, width, low = 7, 2, 19, 4

    @staticmethod
    def reciprocal(d):
        return (2**15 + d // 2) // d

    def _distance(self, far, shifted):
        return far - ~shifted.any()

    def _constants(self, m, constant, value, by):
        row, offset = Signal(self.width, name="constant"), Signal(4, name="offset")
        sign = value.as_unsigned()[-1]
        m.d.comb += [
            row.eq(Mux(self.decompress, Const(constant + 8, self.width), Const(constant, self.width))),  # half a C
            offset.eq(Mux(sign, 8 + self.dead_zone, 8 - self.dead_zone) & (~self.decompress).replicate(4)),
        ]
        for bit in range(3):
            moved = Signal(len(offset) + (1 << bit), name=f"offset_by_{2 << bit}")
            m.d.comb += moved.eq(Mux(by[bit], offset << (1 << bit), offset))
            offset = moved
        columns = [[row[place]] for place in range(self.width)]
        for place, bit in enumerate(offset, 1):
            columns[place].append(bit)
        return columns

    def _complete(self, columns, k, first, negative, partial):
        if first < 0:  # the carry of what is left out
            negative = partial(first) & partial(first + 1) & negative
        columns[max(0, first)].insert(0, negative)
