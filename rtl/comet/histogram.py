"""The histogram of symbols that a host builds the next code book from."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import BITS, LANES

__all__ = ["BINS", "WIDTH", "Histogram"]

BINS = 32
WIDTH = 24  # bits of a bin
DIRECT = 16  # symbols with a bin of their own


class Histogram(wiring.Component):
    """Counts one symbol of each round, that of lane (number of the round) mod 8, in 32 bins that saturate.

    Symbols below 16 have a bin each; above there are two an octave, so that bin 16 + 2 (e - 4) + (the next bit) has
    those with floor(log2(u)) = e.

    A count is read, in the next cycle increased, in the next written, by way of what one may read of them all.

    Throughput: one round a cycle. Latency: ``value`` is right 4 cycles after the last round, and 2 after ``bin``.
    Combinational paths: none.

    Source: COMET, section 3.4 (cuSZ's histogram of 1,024 bins, in a pass of its own).

    Ports
    -----
    valid, symbols : input
        A round passes.
    clear : input
        Sets all counts to zero, and the number of the round; what passes in the same cycle, or has in the three before,
        is lost.
    bin : input, value : output
        A bin and its count, while no rounds pass.

    Parameters
    ----------
    width : int
        Bits of a count.

    Raises
    ------
    ValueError
        If ``width`` is not 1 to 32.
    """

    def __init__(self, width=WIDTH):
        if type(width) is not int or not 1 <= width <= 32:
            raise ValueError(f"width must be 1 to 32 bits, not {width!r}")
        self.width = width
        super().__init__({"valid": In(1), "symbols": In(BITS * LANES), "clear": In(1), "bin": In(range(BINS)),
                          "value": Out(width)})

    def elaborate(self, platform):
        m = Module()
        lane = Signal(range(LANES))
        symbol, sampled = Signal(BITS, reset_less=True), Signal()
        with m.If(self.valid):
            m.d.sync += [lane.eq(lane + 1),
                         symbol.eq(Array(self.symbols[BITS * k : BITS * (k + 1)] for k in range(LANES))[lane])]
        octave, half = Signal(3), Signal()
        for e in range(4, BITS):  # the highest bit that is set wins
            with m.If(symbol[e]):
                m.d.comb += [octave.eq(e - 4), half.eq(symbol[e - 1])]
        number = Mux(symbol[4:].any(), Cat(half, octave, 1), symbol[:4])

        places = [Signal(range(BINS), reset_less=True, name=f"place_{k}") for k in range(2)]
        # What clears them is set by reset, and they are not, since a register that has a reset gets no clock gate.
        clear = Signal(init=1)
        counts = Array(Signal(self.width, reset_less=True, name=f"bin_{k}") for k in range(BINS))
        counting = Signal(2)
        count, more = Signal(self.width, reset_less=True), Signal(self.width)
        again = counting[1] & counting[0] & (places[0] == places[1])
        m.d.comb += [more.eq(count + ~count.all()), self.value.eq(count)]
        m.d.sync += [
            clear.eq(self.clear),
            sampled.eq(self.valid & ~self.clear),
            counting.eq(Mux(self.clear, 0, Cat(sampled, counting[0]))),
            places[0].eq(Mux(sampled, number, self.bin)), places[1].eq(places[0]),
            count.eq(Mux(again, more, counts[places[0]])),
        ]
        for k, counter in enumerate(counts):
            with m.If(clear | (counting[1] & (places[1] == k))):
                m.d.sync += counter.eq(Mux(clear, 0, more))
        with m.If(self.clear):
            m.d.sync += lane.eq(0)
        return m
