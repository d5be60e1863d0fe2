"""Lorenzo prediction: eight integers to the symbols of what their neighbours do not tell, and back, every cycle."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet import payloads
from actcodec.rtl.comet.payloads import BITS, LANES, integers, symbols
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Lorenzo"]

TILES = 4  # of a group, at most so many sectors in a row of it


class Lorenzo(wiring.Component):
    """Takes from a value its neighbour above, and from the result that of the neighbour on the left; or adds them up.

    All sums are modulo 2**12. Small residuals of either sign become small symbols (zigzag) if ``signed``; otherwise the
    symbol is the residual modulo 2**12. Back, a sector's prefix sums take two stages; a third adds the carry from the
    sector on the left, and the sector above. So both loops are a single adder. Only the last row of each of a group's
    four tiles is kept, for both directions: a neighbour never lies in another group.

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
        Direction. Like the three below, constant while any sector is inside.
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
        above = [Signal(BITS * LANES, reset_less=True, name=f"above_{tile}") for tile in range(TILES)]
        write, tile, row = Signal(), Signal(2), Signal(BITS * LANES)
        forwards = self._differences(m, above)
        backwards = self._sums(m, above)
        m.d.comb += [write.eq(Mux(self.decompress, backwards[0], forwards[0])),
                     tile.eq(Mux(self.decompress, backwards[1], forwards[1])),
                     row.eq(Mux(self.decompress, backwards[2], forwards[2]))]
        for number, kept in enumerate(above):
            with m.If(write & (tile == number)):
                m.d.sync += kept.eq(row)
        return m

    def _above(self, m, above, edges, name):
        """The values above a sector, 0 where there are none."""
        chosen = Signal(BITS * LANES, name=f"{name}_above")
        m.d.comb += chosen.eq(Array(above)[edges.tile] & (edges.above & self.vertical).replicate(BITS * LANES))
        return [chosen[BITS * k : BITS * (k + 1)] for k in range(LANES)]

    def _differences(self, m, above):
        """Compression. Returns whether a row is to be kept, for which tile, and the row."""
        pipe = Pipeline(m, self.differences_i, self.differences_o)
        i = self.differences_i.p
        values = [Value.cast(word).as_unsigned() for word in i.data]
        rows = [(value - other)[:BITS] for value, other in
                zip(values, self._above(m, above, i.edges, "differences"), strict=True)]
        *rows, outliers, edges = pipe.stage(*rows, i.outliers, i.edges)
        edges = data.View(payloads.edges, edges)

        before = Signal(BITS, reset_less=True)  # the last value of the sector before
        with m.If(pipe.advance & pipe.valid):
            m.d.sync += before.eq(rows[-1])
        results = []
        for k, value in enumerate(rows):
            left = Mux(self.horizontal & (edges.left if k == 0 else 1), rows[k - 1] if k else before, 0)
            d = Signal(BITS, name="residual")
            m.d.comb += d.eq(value - left)
            sign = d[-1]
            results.append(Mux(self.signed, Cat(sign, d[: BITS - 1] ^ sign.replicate(BITS - 1)), d))
        *results, outliers, edges = pipe.stage(*results, outliers, edges)
        pipe.finish()
        m.d.comb += [word.eq(value) for word, value in zip(self.differences_o.p.data, results, strict=True)]
        m.d.comb += [self.differences_o.p.outliers.eq(outliers), self.differences_o.p.edges.eq(edges)]
        return self.differences_i.valid & pipe.advance, i.edges.tile, Cat(values)

    def _sums(self, m, above):
        """Decompression. Returns as `_differences` does."""
        pipe = Pipeline(m, self.sums_i, self.sums_o)
        i = self.sums_i.p

        def plus(value, other, condition=1):
            total = Signal(BITS, name="total")
            m.d.comb += total.eq(value + (other & (self.horizontal & condition).replicate(BITS)))
            return total

        # Sums as far as to each lane: of two lanes, of four, of eight.
        lanes = []
        for u in i.data:
            value = Signal(BITS, name="residual")
            m.d.comb += value.eq(Mux(self.signed, Cat(u[1:] ^ u[0].replicate(BITS - 1), u[0]), u))
            lanes.append(value)
        lanes = [plus(lanes[k], lanes[k - 1]) if k & 1 else lanes[k] for k in range(LANES)]
        *lanes, outliers, edges = pipe.stage(*lanes, i.outliers, i.edges)
        for size in (2, 4):
            lanes = [plus(lanes[k], lanes[(k & -size) - 1]) if k & size else lanes[k] for k in range(LANES)]
        *lanes, outliers, edges = pipe.stage(*lanes, outliers, edges)
        edges = data.View(payloads.edges, edges)

        # The carry and the sum of all lanes make a loop of one adder; a sector and the one above it make another.
        carry = Signal(BITS, reset_less=True)
        lanes = [plus(value, carry, edges.left) for value in lanes]
        with m.If(pipe.advance & pipe.valid):
            m.d.sync += carry.eq(lanes[-1])
        rows = [(value + other)[:BITS]
                for value, other in zip(lanes, self._above(m, above, edges, "sums"), strict=True)]
        row = Signal(BITS * LANES, name="sums_row")
        m.d.comb += row.eq(Cat(rows))
        keep, tile = pipe.valid & pipe.advance, edges.tile
        *rows, outliers, edges = pipe.stage(*(row[BITS * k : BITS * (k + 1)] for k in range(LANES)), outliers, edges)
        pipe.finish()
        m.d.comb += [word.eq(value) for word, value in zip(self.sums_o.p.data, rows, strict=True)]
        m.d.comb += [self.sums_o.p.outliers.eq(outliers), self.sums_o.p.edges.eq(edges)]
        return keep, tile, row
