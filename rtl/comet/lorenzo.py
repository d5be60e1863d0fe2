"""Lorenzo prediction: eight integers to the symbols of what their neighbours do not tell, and back, every cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
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
        back, *ways = _copies(m, self.decompress, 1 + LANES)
        horizontal, signed = (Signal(reset_less=True, name=f"{name}_register") for name in ("horizontal", "signed"))
        m.d.sync += [horizontal.eq(self.horizontal), signed.eq(self.signed)]
        first, second = self.differences_i, self.sums_i
        residuals, sums, values = (Signal(symbols, reset_less=True, name=name)
                                   for name in ("residuals", "sums", "values"))
        some_residuals, some_sums, some_values = (Signal(name=f"some_{name}")
                                                  for name in ("residuals", "sums", "values"))
        # Of each direction by itself: otherwise a bidirectional neighbour would close a loop.
        advance = Signal()
        m.d.comb += [
            first.ready.eq((~some_residuals | self.differences_o.ready) & ~self.decompress),
            second.ready.eq((~some_values | self.sums_o.ready) & self.decompress),
            advance.eq(first.ready | second.ready),
            self.differences_o.valid.eq(some_residuals & ~self.decompress),
            self.sums_o.valid.eq(some_values & self.decompress),
            self.differences_o.p.eq(residuals), Value.cast(self.sums_o.p).eq(values),
        ]
        # The last value of the sector before: of the row when decompressing, less what is above when compressing.
        before = Signal(BITS, reset_less=True)
        totals = self._sums(m, residuals, Mux(horizontal & residuals.edges.left, before, 0))
        chosen = Signal(TILES, reset_less=True)  # the row above `sums`, one hot, or none
        rows = self._rows(m, back, ways, sums, chosen, advance & Mux(self.decompress, some_sums, first.valid))
        lanes = self._residuals(m, values, Mux(values.edges.left, before, 0), signed)
        with m.If(advance):
            m.d.sync += [
                some_values.eq(Mux(self.decompress, some_sums, first.valid)),
                some_residuals.eq(Mux(self.decompress, second.valid, some_values)),
                some_sums.eq(some_residuals & self.decompress),
                Cat(values.data).eq(Cat(rows)),
                Cat(values.outliers, values.edges).eq(Mux(back, _beside(sums), _beside(first.p))),
                Cat(residuals.data).eq(Cat(lanes)),
                Cat(residuals.outliers, residuals.edges).eq(Mux(back, _beside(second.p), _beside(values))),
                Cat(sums.data).eq(Mux(horizontal, Cat(totals), Cat(residuals.data))),
                Cat(sums.outliers, sums.edges).eq(_beside(residuals)),
                chosen.eq(_above(residuals.edges, self.vertical & back)),
            ]
            with m.If(Mux(self.decompress, some_residuals, some_values)):
                m.d.sync += before.eq(Mux(back, totals[-1], values.data[-1]))
        return m

    def _rows(self, m, back, ways, sums, chosen, write):
        """Values plus, or less, those above, which are kept."""
        above = [Signal(BITS * LANES, reset_less=True, name=f"above_{tile}") for tile in range(TILES)]
        i, vertical, selects = self.differences_i.p, Signal(reset_less=True), Signal(TILES)
        m.d.sync += vertical.eq(self.vertical & ~self.decompress)
        m.d.comb += selects.eq(chosen | _above(i.edges, vertical))
        other = choose([(selects[tile], row) for tile, row in enumerate(above)])
        one = i.edges.above & vertical  # for the complement
        rows, updates = [], []
        for k, (value, way) in enumerate(zip(i.data, ways, strict=True)):
            row, value = Signal(BITS, name=f"row_{k}"), value.as_unsigned()
            terms = Mux(way, sums.data[k], value), other[BITS * k : BITS * (k + 1)]
            m.d.comb += row.eq((Cat(one, terms[0]) + Cat(one, terms[1]))[1:])
            rows.append(row)
            updates.append(Mux(way, row, ~value))
        tile = Mux(back, sums.edges.tile, i.edges.tile)
        for number, row in enumerate(above):
            with m.If(write & (tile == number)):
                m.d.sync += row.eq(Cat(updates))
        return rows

    def _residuals(self, m, values, before, signed):
        """Symbols of values less those on the left; or residuals of symbols, in odd lanes added to those on the left.

        What of these it is, is chosen behind the adders, as the bits that choose are read by many gates.
        """
        names = ("difference", "zigzag", "value", "zigzag_value", "sum", "symbol")
        kinds = data.StructLayout(dict.fromkeys(names, 1))
        kind = Signal(kinds, reset_less=True)
        forth, left = ~self.decompress, self.horizontal
        m.d.sync += [
            kind.difference.eq(forth & left & ~self.signed), kind.zigzag.eq(forth & left & self.signed),
            kind.value.eq(forth & ~left & ~self.signed), kind.zigzag_value.eq(forth & ~left & self.signed),
            kind.sum.eq(~forth & left), kind.symbol.eq(~forth & ~left),
        ]
        results, lower = [], None
        for k, (value, u) in enumerate(zip(values.data, self.sums_i.p.data, strict=True)):
            d, lane, total = (Signal(BITS, name=f"{name}_{k}") for name in ("residual", "lane", "sum"))
            m.d.comb += [
                d.eq(value - (values.data[k - 1] if k else before)),
                lane.eq(Mux(signed, Cat(u[1:] ^ u[0].replicate(BITS - 1), u[0]), u)),
                total.eq(lane + lower if k & 1 else lane),
            ]
            lower = lane
            flips = (kind.zigzag & d[-1]) | (kind.zigzag_value & value[-1])
            results.append(flips.replicate(BITS) ^ choose([
                (kind.difference, d), (kind.zigzag, (d << 1)[:BITS]), (kind.value, value),
                (kind.zigzag_value, (value << 1)[:BITS]), (kind.sum, total), (kind.symbol, lane)]))
        return results

    def _sums(self, m, residuals, before):
        """Sums as far as to each lane, from those of pairs, with the last value of the sector before."""
        lanes = [Signal(BITS, name=f"half_{k}") for k in range(LANES)]  # as far as in its half of the lanes
        totals = [Signal(BITS, name=f"total_{k}") for k in range(LANES)]
        for k, (lane, total) in enumerate(zip(lanes, totals, strict=True)):
            m.d.comb += lane.eq(residuals.data[k] + (residuals.data[(k & -2) - 1] if k & 2 else 0))
            terms = [lane, before, *([lanes[3]] if k & 4 else ())]
            m.d.comb += total.eq(carrysave.columns(m, [(term, 0) for term in terms], BITS))
        return totals


def _above(edges, vertical):
    """Which tile's row is above, one hot, or none."""
    return Cat((edges.tile == tile) & edges.above & vertical for tile in range(TILES))


def _beside(payload):
    return Cat(payload.outliers, payload.edges)


def _copies(m, bit, count):
    """Flip-flops for an input that many gates read, each a cycle later than the one before: equal ones would become
    one."""
    copies = [Signal(reset_less=True, name=f"copy_{k}") for k in range(count)]
    m.d.sync += Cat(copies).eq(Cat(bit, *copies[:-1]))
    return copies
