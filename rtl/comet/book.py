"""The code book: from how many codes there are of each length to what coders compare with and add."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LENGTHS", "Book", "tables"]

LENGTHS = 8  # bits of the longest code

# What encoder and decoder know of a complete book. ``limits`` are, for the lengths 1 to 7, how many symbols have codes
# of at most so many bits (encoder), or where these codes end, left aligned in 8 bits, modulo 256 where that is the end
# of all codes (decoder). ``full``: there are no longer codes. ``delta``: code minus symbol (encoder), or symbol minus
# code (decoder), modulo 256, for the lengths 1 to 8. ``escape``: the last symbol, U.
tables = data.StructLayout({"limits": data.ArrayLayout(8, LENGTHS - 1), "full": LENGTHS - 1,
                            "delta": data.ArrayLayout(8, LENGTHS), "escape": 8})


class Book(wiring.Component):
    """Works out a code book's tables, one length a cycle.

    Symbols 0 to U have codes of 1 to 8 bits whose lengths never fall, the shortest numerically smallest: n_l codes of l
    bits. All codes of up to l bits end at end_l = sum of n_j * 2**(8-j), left aligned in 8 bits, and the sum is 256 for
    a complete book. The n_8 is what is missing. Symbol minus code is sum of n_j, j < l, minus end_(l-1) >> (8-l).

    Throughput: a book in 9 cycles. Latency: ``done`` 9 cycles after ``start``. Combinational paths: none.

    Source: COMET, section 2.2 (the customised Huffman coding of SZ); D. Hirschberg and D. Lelewer, "Efficient decoding
    of prefix codes", Communications of the ACM 33(4), 1990.

    Ports
    -----
    counts : input
        n_1 to n_7; stand from ``start`` to ``done``.
    decompress : input
        The decoder's tables; like ``counts``.
    start : input
        Pulse.
    done : output
        Pulse: ``tables`` and ``bad`` stand from now on.
    tables : output, :data:`tables`
        Of a complete book.
    bad : output
        The book is not complete.
    """

    counts: In(data.ArrayLayout(8, LENGTHS - 1))
    decompress: In(1)
    start: In(1)
    done: Out(1)
    tables: Out(tables)
    bad: Out(1)

    def elaborate(self, platform):
        m = Module()
        registers = Signal(tables, reset_less=True)
        turn = Signal(LENGTHS)  # one hot: which length it is
        # The first code of the length at hand; symbols so far. `over`: more than there can be.
        first, used, over = Signal(9, reset_less=True), Signal(9, reset_less=True), Signal(reset_less=True)
        number, end, sums = Signal(9), Signal(10), Signal(9)
        by_length = 0
        for one, count in zip(turn, self.counts, strict=False):
            by_length = by_length | (count & one.replicate(8))
        m.d.comb += [number.eq(Mux(turn[-1], 256 - first, by_length)), end.eq(first + number), sums.eq(used + number),
                     self.tables.eq(registers), self.bad.eq(over)]
        m.d.sync += [turn.eq(Cat(self.start, turn[:-1])), self.done.eq(turn[-1])]
        with m.If(self.start):
            m.d.sync += [first.eq(0), used.eq(0), over.eq(0)]
        with m.Elif(turn.any()):
            m.d.sync += [first.eq(end << 1), used.eq(sums),
                         over.eq(over | Cat(one & (end > 2 << k) for k, one in enumerate(turn)).any())]
        for k in range(LENGTHS - 1):
            with m.If(turn[k]):
                m.d.sync += [registers.limits[k].eq(Mux(self.decompress, end << (LENGTHS - 1 - k), sums)),
                             registers.full[k].eq(end[k + 1])]
        with m.If(turn.any()):
            delta = Mux(self.decompress, used[:8], first[:8]) - Mux(self.decompress, first[:8], used[:8])
            m.d.sync += Cat(*(registers.delta[k] for k in range(LENGTHS))).eq(
                Cat(*(registers.delta[k] for k in range(1, LENGTHS)), delta[:8]))
        with m.If(turn[-1]):
            m.d.sync += registers.escape.eq((sums - 1)[:8])
        return m
