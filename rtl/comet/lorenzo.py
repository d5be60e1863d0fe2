"""Lorenzo prediction: eight integers to the symbols of what their neighbours do not tell, and back, every cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet.payloads import BITS, LANES, integers, symbols
from actcodec.rtl.common import carrysave
from actcodec.rtl.common.onehot_shift import choose

__all__ = ["Lorenzo"]

TILES = 4  # of a group, at most so many sectors in a row of it


class Lorenzo(wiring.Component):
    """Takes from a value its neighbour above, and from the result that of the neighbour on the left; or adds them up::

        compress    differences_i -> less above (values) -> less left (residuals) -> differences_o
        decompress  sums_i -> pairs of lanes (residuals) -> all, and left (sums) -> and above (values) -> sums_o

    All sums are modulo 2**12. Small residuals of either sign become small symbols (zigzag) if ``signed``; otherwise the
    symbol is the residual modulo 2**12. Only the last row of each of a group's four tiles is kept, as a neighbour never
    lies in another group. Back, what is on the left and what is above are added in stages of their own, so that both
    loops are a single adder. Both directions share the stages of the same names, and the adder for what is above: when
    compressing, rows are kept as their complements.

    Throughput: one sector a cycle. Latency: 2 cycles, back 3. Buffering: a sector in each stage. Combinational paths:
    ``differences_o.ready`` to ``differences_i.ready``, ``sums_o.ready`` to ``sums_i.ready``.

    Source: COMET, section 3.4; SZ and cuSZ.

    Ports
    -----
    differences_i : stream of :data:`~actcodec.rtl.comet.payloads.integers`
    differences_o : stream of :data:`~actcodec.rtl.comet.payloads.symbols`
        Compression. Lanes beyond the sector's count mean nothing.
    sums_i : stream of :data:`~actcodec.rtl.comet.payloads.symbols`
    sums_o : stream of :data:`~actcodec.rtl.comet.payloads.integers`
        Decompression.
    decompress : input
        Direction. Like the three below, constant from ten cycles before the first sector until the last one has left.
    horizontal, vertical : input
        Whether there is prediction from the left, and from above.
    signed : input
    """

    differences_i: In(stream.Signature(integers))
    differences_o: Out(stream.Signature(symbols))
    sums_i: In(stream.Signature(symbols))
    sums_o: Out(stream.Signature(integers))
    decompress: In(1)
    horizontal: In(1)
    vertical: In(1)
    signed: In(1)

    def elaborate(self, platform):
        m = Module()
        back, *ways = _copies(m, self.decompress, "back", 1 + LANES)
        forth = _copies(m, ~self.decompress, "forth", LANES)
        horizontal = _copies(m, self.horizontal, "horizontal", 2 + LANES // 2)
        signed = _copies(m, self.signed, "signed", 1 + LANES // 2)
        first, second = self.differences_i, self.sums_i
        residuals, sums, values = (Signal(symbols, reset_less=True, name=name)
                                   for name in ("residuals", "sums", "values"))
        some_residuals, some_sums, some_values = (Signal(name=f"some_{name}")
                                                  for name in ("residuals", "sums", "values"))
        advance = Signal()
        m.d.comb += [
            advance.eq(Mux(back, ~some_values | self.sums_o.ready, ~some_residuals | self.differences_o.ready)),
            first.ready.eq(advance & ~back), second.ready.eq(advance & back),
            self.differences_o.valid.eq(some_residuals & ~back), self.sums_o.valid.eq(some_values & back),
            self.differences_o.p.eq(residuals), Value.cast(self.sums_o.p).eq(values),
        ]
        # The last value of the sector before: of the row when decompressing, less what is above when compressing.
        before = Signal(BITS, reset_less=True)
        totals = self._sums(m, residuals, before, horizontal[0])
        chosen = Signal(TILES, reset_less=True)  # the row above `sums`, one hot, or none
        rows = self._rows(m, back, ways, sums, chosen, advance & Mux(back, some_sums, first.valid))
        lanes = self._differences(m, values, before, forth, horizontal[2:], signed[1:],
                                  self._pairs(m, horizontal[1], signed[0]))
        with m.If(advance):
            m.d.sync += [
                some_values.eq(Mux(back, some_sums, first.valid)),
                some_residuals.eq(Mux(back, second.valid, some_values)),
                some_sums.eq(some_residuals & back),
                Cat(values.data).eq(Cat(rows)),
                Cat(values.outliers, values.edges).eq(Mux(back, _beside(sums), _beside(first.p))),
                Cat(residuals.data).eq(Cat(lanes)),
                Cat(residuals.outliers, residuals.edges).eq(Mux(back, _beside(second.p), _beside(values))),
                Cat(sums.data).eq(Cat(totals)),
                Cat(sums.outliers, sums.edges).eq(_beside(residuals)),
                chosen.eq(_above(residuals.edges, self.vertical & back)),
            ]
            with m.If(Mux(back, some_residuals, some_values)):
                m.d.sync += before.eq(Mux(back, totals[-1], values.data[-1]))
        return m

    def _rows(self, m, back, ways, sums, chosen, write):
        """Values plus, or less, those above, which are kept."""
        above = [Signal(BITS * LANES, reset_less=True, name=f"above_{tile}") for tile in range(TILES)]
        i, vertical, asked = self.differences_i.p, Signal(reset_less=True), Signal(TILES)
        m.d.sync += vertical.eq(self.vertical & ~self.decompress)
        m.d.comb += asked.eq(chosen | _above(i.edges, vertical))
        other = choose([(asked[tile], row) for tile, row in enumerate(above)])
        one = asked.any() & ~back  # for the complement
        rows, kept = [], []
        for k, (value, way) in enumerate(zip(i.data, ways, strict=True)):
            row, value = Signal(BITS, name=f"row_{k}"), value.as_unsigned()
            terms = Mux(way, sums.data[k], value), other[BITS * k : BITS * (k + 1)]
            m.d.comb += row.eq((Cat(one, terms[0]) + Cat(one, terms[1]))[1:])
            rows.append(row)
            kept.append(Mux(way, row, ~value))
        tile = Mux(back, sums.edges.tile, i.edges.tile)
        for number, row in enumerate(above):
            with m.If(write & (tile == number)):
                m.d.sync += row.eq(Cat(kept))
        return rows

    def _differences(self, m, values, before, forth, horizontal, signed, pairs):
        """Symbols of values less those on the left; or, when decompressing, ``pairs``."""
        results = []
        for k, (value, pair) in enumerate(zip(values.data, pairs, strict=True)):
            left, zigzag = horizontal[k // 2] & (1 if k else values.edges.left), signed[k // 2]
            d = Signal(BITS, name=f"residual_{k}")
            m.d.comb += d.eq(value - Mux(left, values.data[k - 1] if k else before, 0))
            symbol = Mux(zigzag, d << 1, d)[:BITS] ^ (zigzag & d[-1]).replicate(BITS)
            results.append(Mux(forth[k], symbol, pair))
        return results

    def _pairs(self, m, horizontal, signed):
        """Residuals of symbols, and in odd lanes their sum with that on the left."""
        lanes = []
        for k, u in enumerate(self.sums_i.p.data):
            lane = Signal(BITS, name=f"lane_{k}")
            m.d.comb += lane.eq(Mux(signed, Cat(u[1:] ^ u[0].replicate(BITS - 1), u[0]), u))
            lanes.append(lane)
        return [_sum(lanes[k], Mux(horizontal, lanes[k - 1], 0)) if k & 1 else lanes[k] for k in range(LANES)]

    def _sums(self, m, residuals, before, horizontal):
        """Sums as far as to each lane, from those of pairs, with the last value of the sector before."""
        lanes = [Signal(BITS, name=f"half_{k}") for k in range(LANES)]  # as far as in its half of the lanes
        left = Mux(horizontal & residuals.edges.left, before, 0)
        totals = [Signal(BITS, name=f"total_{k}") for k in range(LANES)]
        for k, (lane, total) in enumerate(zip(lanes, totals, strict=True)):
            pair = residuals.data[(k & -2) - 1] if k & 2 else 0
            m.d.comb += lane.eq(_sum(residuals.data[k], Mux(horizontal, pair, 0)))
            terms = [lane, left, *([Mux(horizontal, lanes[3], 0)] if k & 4 else ())]
            m.d.comb += total.eq(carrysave.columns(m, [(term, 0) for term in terms], BITS))
        return totals


def _above(edges, vertical):
    """Which tile's row is above, one hot, or none."""
    return Cat((edges.tile == tile) & edges.above & vertical for tile in range(TILES))


def _beside(payload):
    return Cat(payload.outliers, payload.edges)


def _copies(m, bit, name, count):
    """Flip-flops for an input that many gates read, each a cycle later than the one before: equal ones would become
    one."""
    copies = [Signal(reset_less=True, name=f"{name}_{k}") for k in range(count)]
    m.d.sync += Cat(copies).eq(Cat(bit, *copies[:-1]))
    return copies


def _sum(one, other):
    return (one + other)[:BITS]
