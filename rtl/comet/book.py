"""The code book: from how many codes there are of each length to what coders compare with and add."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["LENGTHS", "Book", "tables"]

LENGTHS = 8  # bits of the longest code

# What encoder and decoder know of a complete book. ``limits`` are, for the lengths 1 to 7, how many symbols have codes
# of at most so many bits (encoder), or where these codes end, left aligned in 8 bits, modulo 256 where that is the end
# of all codes (decoder). ``full``: there are no longer codes. ``delta``: symbol minus code modulo 256, for the lengths
# 1 to 8. ``escape``: the last symbol, U.
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
    ends : input
        What ``limits`` are: ends of codes, and not numbers of symbols.
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
    ends: In(1)
    start: In(1)
    done: Out(1)
    tables: Out(tables)
    bad: Out(1)

    def elaborate(self, platform):
        m = Module()
        kept = Signal(tables, reset_less=True)
        turn = Signal(LENGTHS)  # one hot: which length it is
        # Codes left of the length at hand (256 codes of 8 bits); symbols so far. `over`: more than there can be.
        left, used, over = Signal(9, reset_less=True), Signal(9, reset_less=True), Signal(reset_less=True)
        number, rest, sums = Signal(9), Signal(10), Signal(10)
        chosen = 0
        for one, count in zip(turn, self.counts, strict=False):
            chosen = chosen | (count & one.replicate(8))
        # Codes of length l that shorter ones leave: twice those that the length before left.
        m.d.comb += [number.eq(Mux(turn[-1], left, chosen)), rest.eq(left - number), sums.eq(used + number),
                     self.tables.eq(kept)]
        m.d.sync += [turn.eq(Cat(self.start, turn[:-1])), self.done.eq(turn[-1])]
        with m.If(self.start):
            m.d.sync += [left.eq(2), used.eq(0), over.eq(0)]
        with m.Elif(turn.any()):
            m.d.sync += [left.eq(rest << 1), used.eq(sums), over.eq(over | rest[-1] | sums[9])]
        # 2**l less what is left of it is where the codes of l bits end.
        for k in range(LENGTHS - 1):
            with m.If(turn[k]):
                end = (-(rest[:8] << (LENGTHS - 1 - k)))[:8]
                m.d.sync += [kept.limits[k].eq(Mux(self.ends, end, sums[:8])), kept.full[k].eq(~rest.any())]
        with m.If(turn.any()):
            # Symbol minus code of length l: symbols before it, less the first code, 2**l - left.
            first = Signal(8)
            m.d.comb += first.eq(sum((one << (k + 1) for k, one in enumerate(turn)), 0) - left)
            m.d.sync += Cat(*(kept.delta[k] for k in range(LENGTHS))).eq(
                Cat(*(kept.delta[k] for k in range(1, LENGTHS)), (used[:8] - first)[:8]))
        with m.If(turn[-1]):
            m.d.sync += [kept.escape.eq((sums - 1)[:8]), self.bad.eq(over | rest[-1] | sums[9])]
        return m
