"""The dispenser: a block of one CDU, row by row."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.carrysave import add
from actcodec.rtl.common.onehot_shift import Digits, window
from actcodec.rtl.offload.control.config import Chosen, config_layout, rows_layout
from actcodec.rtl.offload.wire.block_format import HALVES, MASK

__all__ = ["Dispenser", "ones"]


def ones(m, byte):
    """How many bits of a byte are set."""
    totals, carries = zip(add(m, *byte[:3]), add(m, *byte[3:6]), add(m, *byte[6:], 0), strict=True)
    (one, two), (more, four) = add(m, *totals), add(m, *carries)
    return Cat(one, two ^ more, four ^ (two & more), four & two & more)


class Dispenser(wiring.Component):
    """Holds a block of one CDU and gives it row by row.

    Throughput: a row a cycle; the next block's first piece comes in while the last row leaves. Combinational path:
    ``o.ready`` to ``free``.

    Parameters
    ----------
    sizes : :class:`~actcodec.rtl.offload.wire.round_robin.Sizes`

    Ports
    -----
    piece : input, as many bytes as a piece has
        Part of a block, its first byte in the least significant bits; of a block's last piece, anything after its end.
    load : input, a bit for each piece of the longest block
        Bit k: ``piece`` is the block's k-th. The first one only when ``free``.
    whole : input
        With a piece: it is the block's last one.
    lacking : input
        With a first piece: there is no such block, and no piece will come any more.
    final : input
        With a block's first piece: it is the tensor's last block for this CDU.
    begins : input, only with modes whose blocks have segments
        With a block's first piece: a bit for each row, with which a segment begins.
    free : output
        There is no block, or its last row leaves in this cycle.
    mode : input
        Of the tensor, its place among the modes; constant while ``waiting``.
    start : input
        Pulse that starts a tensor.
    waits : input
        With ``start``: there will be a block for this CDU.
    ended : input
        No piece will come any more.
    waiting : output
        From ``start`` until the row with ``last`` has left.
    o : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout`
        Eight rows a block; if the stream has ended too soon, one with ``last`` follows that means nothing.
    """

    def __init__(self, sizes):
        self.sizes = sizes
        begins = {"begins": In(8)} if sizes.segmented else {}
        super().__init__({"piece": In(8 * sizes.piece), "load": In(sizes.pieces), "whole": In(1), "lacking": In(1),
                          "final": In(1), **begins, "free": Out(1),
                          "mode": In(config_layout(sizes.modes)["mode"].shape), "start": In(1), "waits": In(1),
                          "ended": In(1), "waiting": Out(1),
                          "o": Out(stream.Signature(rows_layout(sizes.row, sizes.halves)))})

    def elaborate(self, platform):
        m = Module()
        sizes, granule = self.sizes, self.sizes.granule
        unit, fine = 8 * granule, granule.bit_length() - 1
        size, width = sizes.block // granule, sizes.row // granule
        span = 1 << (width - 1).bit_length()
        mode = Chosen(sizes.modes, self.mode)
        counted, halved = (mode(lambda mode, kind=kind: mode.format.kind == kind) for kind in ("counted", "halves"))

        block = Signal(8 * sizes.block, reset_less=True)
        part = 8 * sizes.piece
        for k in range(sizes.pieces):
            with m.If(self.load[k]):
                m.d.sync += block[part * k :][:part].eq(self.piece)

        some, whole = Signal(name="some"), Signal(name="whole")  # of the block is here
        last_block = Signal(reset_less=True)  # it is the tensor's last for this CDU
        row = Signal(3)
        mask = Signal(8, reset_less=True)  # of the row
        # Where its words begin, in granules, of which `across` has the multiples of `span`: one row more adds one of
        # those at most. Without words of 4 bytes, all blocks lie after where a mask ends.
        low = (span - 1).bit_length()
        skipped = 0 if sizes.wide else sizes.head
        place, end = Signal(low, reset_less=True), Signal(low + 1)
        across = Signal(-(-(size - skipped) // span), reset_less=True)
        cut, moved, ends = Signal(), Signal(), Signal()
        m.d.comb += [
            cut.eq(self.waiting & self.ended & ~some),
            moved.eq(self.o.valid & self.o.ready),
            ends.eq(row == 7),
            self.free.eq(~some | (whole & ends & self.o.ready)),
            self.o.valid.eq(whole | (some & (row < sizes.early)) | cut),
            self.o.p.mask.eq(mask),
            self.o.p.last.eq(cut | (ends & last_block)),
        ]
        words = ones(m, mask)
        behind = {1: words, 2: words << 1, 4: words << 2}  # of a mask: the row's words, of so many bytes
        segmented = {row: row + mask[0] for row in {mode.format.row for mode in sizes.modes if mode.format.segmented}}
        step = mode.choose(lambda mode: behind[mode.format.item] if mode.format.kind == "mask"
                           else segmented[mode.format.row] if mode.format.segmented else mode.format.row) >> fine
        m.d.comb += end.eq(place + step)
        first = mode.choose(lambda mode: mode.format.head) >> fine if sizes.wide else Const(0, low)
        digits = Digits([1, *[2] * (low // 2)], span, "place", init=None)
        with m.If(moved | self.load[0]):
            begin = Mux(self.load[0], first, end)[:low]
            m.d.sync += [place.eq(begin), *digits.eq(begin), across.eq(Mux(
                self.load[0], 1 << (first >> low), Mux(end[low], across << 1, across)))]

        def bytes_of(kind, data, count):
            """Where blocks of a kind have their mask, or begin, so many bytes."""
            places = {_begin(sizes, one) for one in sizes.modes if one.format.kind == kind} or {0}
            fields = {place: data[8 * place :][: 8 * count] for place in places}
            if len(fields) == 1:
                return fields[places.pop()]
            return mode.choose(lambda mode: fields[_begin(sizes, mode)] if mode.format.kind == kind else 0)

        def begun(other, segments):
            """With blocks of segments, which of the rows begin one; otherwise ``other``."""
            return Mux(mode(lambda mode: mode.format.segmented), segments, other) if sizes.segmented else other

        with m.If(moved):
            # The other half's byte is the second one of a block, or the last one in front of its rows.
            other = block[8:16] if sizes.wide else block[8 * sizes.head - 8 : 8 * sizes.head]
            further = bytes_of("mask", block, MASK)[8:].word_select(row, 8)
            m.d.sync += mask.eq(begun(Mux(halved, other, further) if sizes.halved else further, mask >> 1))
            with m.If(~cut):
                m.d.sync += row.eq(row + 1)
            with m.If(ends):
                m.d.sync += [some.eq(0), whole.eq(0)]
            with m.If(self.o.p.last):
                m.d.sync += self.waiting.eq(0)
        with m.If(self.load[0]):
            front = bytes_of("mask", self.piece, 1)
            if not sizes.wide:
                front = Mux(counted, bytes_of("counted", self.piece, 1), front)
                if sizes.halved:
                    front = Mux(halved, bytes_of("halves", self.piece, 1), front)
            elif sizes.halves:
                front = Mux(mode(lambda mode: mode.format.kind == "mask"), front, self.piece[:8])
            m.d.sync += [some.eq(~self.lacking), last_block.eq(self.final),
                         mask.eq(begun(front, self.begins if sizes.segmented else None))]
        with m.If(self.load.any()):
            m.d.sync += whole.eq(self.whole & ~self.lacking)
        with m.If(self.start):
            m.d.sync += self.waiting.eq(self.waits)

        if sizes.halves:
            places = {kind: block[8 * place :][: 8 * HALVES] for kind, place in
                      (("mask", 0), ("counted", 1 if sizes.wide else sizes.head - HALVES))}
            m.d.comb += self.o.p.halves.eq(mode.choose(
                lambda mode: places[mode.format.kind] if mode.format.halves else 0))
        lanes = [block.word_select(k, unit) for k in range(skipped, size)]
        m.d.comb += self.o.p.data.as_value().eq(Cat(window(m, lanes, [*digits[:], (low, across)], width)))
        return m


def _begin(sizes, mode):
    """The byte of the block register with which a block's mask begins, or else the block itself."""
    begin = 0 if sizes.wide else sizes.head - mode.format.head
    return begin + (mode.format.head - MASK if mode.format.kind == "mask" else 0)
