"""The row cutter: a stream of bytes as the rows of its blocks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.carrysave import reduced, weigh
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.target import target
from actcodec.rtl.common.unpacker import window_layout
from actcodec.rtl.offload.control.config import Chosen, check_blocks, config_layout, rows_layout
from actcodec.rtl.offload.wire.block_format import MASK

__all__ = ["RowCutter", "beat_size", "window_size"]


def beat_size(modes):
    """Bytes of a beat of the stream."""
    return 32 if any(mode.format.row > 16 for mode in modes) else 16


def window_size(modes):
    """Most bytes that move in a cycle: a beat, or a row with the mask after it."""
    return max(beat_size(modes), *(mode.format.head + mode.format.row for mode in modes))


class RowCutter(wiring.Component):
    """Takes blocks from an :class:`~actcodec.rtl.common.unpacker.Unpacker`, and gives each as eight rows: what a
    splitter does for several CDUs.

    It takes the mask of the first block on its own; then the bytes of a row in every cycle, and together with those of
    row 7 the mask of the next block, which lies after them. Made for LUTs, it takes as many bytes of a mask as an item
    has in its place, and the others with row 0.

    Throughput: one row a cycle, hence 8 cycles a block (and one more for a tensor of blocks with a mask). Latency: none
    from a row's bytes to the row. Buffering: a mask. Combinational paths: ``bytes.valid`` and ``bytes.p`` to ``o``,
    ``o.ready`` to ``bytes.ready``; none to ``take``.

    Source: JPEG-ACT, section III-F; section II-B4 and Figure 4 for the format of blocks with a mask.

    Parameters
    ----------
    modes : tuple
        Such of a lane whose blocks have one size, or a mask.

    Ports
    -----
    bytes : stream of :func:`~actcodec.rtl.common.unpacker.window_layout` of :func:`window_size`
    take : output
        Bytes that a transfer at ``bytes`` consumes. Between tensors, when there is none, it may be anything.
    o : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout`
        Eight rows a block, ``last`` on the last row of the last block.
    mode, blocks : input
        Of the tensor, the place of its mode among ``modes``; read at ``start``.
    start : input
        Pulse that starts a tensor of one block or more; only while none is under way.
    stop : input
        There is no tensor, unless one starts.
    active : output
        Rows are still to be given.
    short : output
        Pulse: the stream is short. Missing bytes count as zeros, and all blocks come nevertheless.

    Raises
    ------
    ValueError
        If ``modes`` are not such.
    """

    def __init__(self, modes):
        check_blocks(modes)
        if wrong := [mode.name for mode in modes if mode.format.kind not in ("fixed", "mask")]:
            raise ValueError(f"modes must be such whose blocks have one size, or a mask, not {', '.join(wrong)}")
        self.modes = tuple(modes)
        size = window_size(modes)
        super().__init__({
            "bytes": In(stream.Signature(window_layout(size))), "take": Out(range(size + 1)),
            "o": Out(stream.Signature(rows_layout(max(8, *(mode.format.row for mode in modes))))),
            "mode": In(config_layout(modes)["mode"].shape), "blocks": In(32), "start": In(1), "stop": In(1),
            "active": Out(1), "short": Out(1)})

    def elaborate(self, platform):
        m = Module()
        place = Signal.like(self.mode, reset_less=True)
        mode = Chosen(self.modes, place)
        masked, starts_masked = mode(_masked), Chosen(self.modes, self.mode)(_masked)

        # The state is about what is taken next.
        first = Signal()  # the mask of the first block, else a row
        row = Signal(3)
        mask = Signal(64, reset_less=True)  # of that row and, above, of those after it
        remaining = Signal(32, reset_less=True)  # blocks whose row 0 has not been taken
        final = Signal()  # there is none; lags, as it is needed in row 7 only

        # Items of the row. In row 0 they are counted in the cycle after the mask has come, in others a cycle ahead: in
        # row 7 the count also says where the next mask is. For LUTs they are counted in their own cycle, by gates.
        ahead = Signal(range(9))
        next_mask = Signal()  # the transfer has the mask of the next block in it
        content = data = self.bytes.p.data.as_value()
        accepted = Signal()

        def by_item(value, other):
            """A value for as many bytes as an item after a mask has; ``other`` without a mask, by the mode."""
            values = {mode.format.item: value(mode.format.item) for mode in self.modes if _masked(mode)}
            return mode.choose(lambda mode: values[mode.format.item] if _masked(mode) else other(mode))

        # ``front``: number of bytes of the next block's mask that are taken with row 7; ``behind`` selects these bytes,
        # which follow the items of row 7.
        if target(platform) == "lut":
            # Only those bytes of a mask that row 0 needs are taken with row 7, where they may begin at any byte; the
            # others are taken with row 0. Where they begin is one-hot, as a slow path ends there, and known a cycle
            # ahead. The size of a transfer depends on registers alone, as the unpacker moves on by it within the cycle.
            front = min((mode.format.item for mode in self.modes if _masked(mode)), default=MASK)
            begins = Signal()  # row 0 of a block with a mask
            data = Mux(begins, content[8 * (MASK - front) :], content)
            whole = Cat(mask[: 8 * front], Mux(begins, content, mask[8 * front :])[: 8 * (MASK - front)])
            after = Signal(9)
            with m.If(accepted):
                m.d.sync += [begins.eq(next_mask), next_mask.eq(masked & (row == 6) & ~final),
                             after.eq(1 << sum(mask[8:16]))]
            with m.If(self.start):
                m.d.sync += [begins.eq(0), next_mask.eq(starts_masked), after.eq(1), mask[:8].eq(0)]

            def behind(item):
                return choose((after[k], content[8 * item * k :][: 8 * front]) for k in range(9))

            # Bytes of a mask beside the row's, and all of them: added by gates, as a carry chain would be slower there.
            beside = Signal(range(MASK + 1))
            m.d.comb += beside.eq(Mux(begins, MASK - front, Mux(next_mask, front, 0)))

            def total(item):
                terms = [(beside, 0), *((bit, item.bit_length() - 1) for bit in mask[:8])]
                bits = reduced(m, weigh(terms, len(self.take)), single=len(self.take))
                return Cat(Cat(column) if column else Const(0, 1) for column in bits)

            take = by_item(total, lambda mode: mode.format.row)
        else:
            front, whole = MASK, mask

            def size(count):
                return by_item(lambda item: count << item.bit_length() - 1, lambda mode: mode.format.row)

            def behind(item):
                return content.bit_select(ahead << item.bit_length() + 2, 8 * MASK)

            m.d.comb += next_mask.eq(masked & (first | ((row == 7) & ~final)))
            take = Mux((row == 0) & ~first, size(sum(mask[:8])), size(ahead) + Mux(next_mask, front, 0))

        m.d.comb += [
            self.take.eq(take),
            self.bytes.ready.eq(self.active & (first | self.o.ready)),
            accepted.eq(self.bytes.valid & self.bytes.ready),
            self.o.valid.eq(self.bytes.valid & self.active & ~first),
            self.o.p.data.as_value().eq(data),
            self.o.p.mask.eq(mask[:8]),
            self.o.p.last.eq((row == 7) & final),
            self.short.eq(accepted & self.bytes.p.short),
        ]
        m.d.sync += final.eq(remaining == 0)
        with m.If(accepted):
            m.d.sync += [first.eq(0), mask.eq(whole[8:]), ahead.eq(sum(whole[8:16]))]
            with m.If(~first):
                m.d.sync += [row.eq(row + 1), self.active.eq(~self.o.p.last)]
                with m.If(row == 0):
                    m.d.sync += remaining.eq(remaining - 1)
            with m.If(next_mask):
                m.d.sync += mask[: 8 * front].eq(by_item(behind, lambda mode: 0))
        with m.If(self.stop):
            m.d.sync += self.active.eq(0)
        with m.If(self.start):
            m.d.sync += [self.active.eq(1), place.eq(self.mode), first.eq(starts_masked),
                         remaining.eq(self.blocks), row.eq(0), ahead.eq(0)]
        return m


def _masked(mode):
    return mode.format.kind == "mask"
