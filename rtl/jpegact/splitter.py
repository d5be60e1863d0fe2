"""The splitter: a stream of packets dealt out to several CDUs, block by block."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.carrysave import add, columns
from rtl.common.digits import Digits, choose, window
from rtl.common.packer import chunk
from rtl.jpegact.cdu import JPEG_ACT
from rtl.jpegact.config import Mode
from rtl.jpegact.dispenser import MASKED, ROWS, Dispenser, Modes
from rtl.jpegact.turns import GROUP, MASK, PACKET, Sizes, Turns
from rtl.jpegact.zvc import rows

__all__ = ["Splitter"]

BANKS = 8


def ones(m, byte):
    """How many bits of a byte are set, after two levels of full adders: bits 0 to 2 of a number, and bit 1 of
    another."""
    totals, carries = zip(add(m, *byte[:3]), add(m, *byte[3:6]), add(m, *byte[6:], 0), strict=True)
    (one, two), (more, four) = add(m, *totals), add(m, *carries)
    return Cat(one, two, four, more)


class Splitter(wiring.Component):
    """Deals the blocks of a stream of packets out to the CDUs in turn.

    Packets lie in a ring of eight banks, each of which is filled anew as soon as it has been passed; the ring is just
    long enough that this may take a cycle. One shifter shows the next piece of a block (see
    :class:`~rtl.jpegact.turns.Sizes`), which moves into the block register of its CDU, from where it leaves row by row.
    A block's length is known from its mask: with up to 4 CDUs there is a cycle for that, beyond it has to be found in
    the cycle in which the mask shows. This takes the place of the paper's FIFO of 256 bytes and of the unpackers of the
    CDUs.

    Throughput: up to 4 CDUs, a block in two cycles, beyond that a block a cycle; a row a cycle and CDU. With modes raw
    or zvc: 128 bytes a cycle, a block in up to three. Latency: 2 cycles from a packet to the first row that lies in it.
    Buffering: the ring, which is a packet (two with more than 4 CDUs, four with modes raw or zvc), and a block for each
    CDU. Combinational paths: ``i.payload`` to ``i.ready``.

    Source: JPEG-ACT, section III-G, Figure 15b.

    Parameters
    ----------
    cdus : int
        1 to 8.
    modes : tuple of str
        Those of the CDUs.

    Ports
    -----
    i : stream of :func:`~rtl.common.packer.chunk` of 128 bytes
        All full but the last one of the tensor.
    o : ``cdus`` streams of :func:`~rtl.jpegact.zvc.rows`
        For ``rows_i`` of each ``Cdu(packed=False)``: eight rows a block, with ``last`` on the last row of the last one.
        A CDU that has no block gets nothing.
    mode, blocks : input
        Of the tensor; constant from ``start`` until ``busy`` falls. 1 block or more.
    start : input
        Pulse that starts a tensor; only when not ``busy``.
    busy : output
        Rows are still to be given, or packets to be taken.
    short : output
        The stream ended inside of a block, or before the last one; until ``start``. The values of a block that has
        begun are not reliable. Each CDU that waits for more blocks gets one more row, with ``last``.
    excess : output
        The stream went on after the last block; until ``start``. The rest is taken and dropped.

    Raises
    ------
    ValueError
        If ``cdus`` or ``modes`` is out of range.
    """

    def __init__(self, cdus, modes=JPEG_ACT):
        self.sizes = Sizes(cdus, modes)
        super().__init__(
            {
                "i": In(stream.Signature(chunk(PACKET))),
                "o": Out(stream.Signature(rows(self.sizes.row))).array(cdus),
                "mode": In(Mode),
                "blocks": In(32),
                "start": In(1),
                "busy": Out(1),
                "short": Out(1),
                "excess": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sizes = self.sizes
        mode = Modes(sizes.modes, self.mode)
        m.submodules.turns = turns = Turns(sizes.cdus)
        m.d.comb += [turns.blocks.eq(self.blocks), turns.start.eq(self.start)]

        # From here on, all is counted in granules.
        granule = sizes.granule
        unit, fine = 8 * granule, granule.bit_length() - 1
        piece, most, packet = sizes.piece // granule, sizes.block // granule, PACKET // granule
        # A bank that has been passed is full again two cycles later; until then a piece must be there.
        ring = 1 << (most + piece - 1).bit_length()
        bank = ring // BANKS
        assert ring - (bank - 1) - most >= piece and ring - (bank - 1) >= piece * sizes.pieces

        # ------------------------------------------------------------------------------------------ the ring
        running, closed, discarding = Signal(), Signal(), Signal()  # closed: all of the stream is in
        stop = Signal()
        base, top = Signal(range(4 * ring)), Signal(range(4 * ring))  # where the block begins, and the stream ends
        # Packets have fixed places. One whose place is not free yet is there as far as the block that is still in it
        # begins, and stands at the input until that is all of it.
        place = Signal(range(4 * ring // packet))
        limit = Signal(range(packet))  # what it may have while it is taken by another one
        come, filling, complete = Signal(range(packet + 1)), Signal(), Signal()
        taken, slots = (place ^ base[len(limit) :])[: (2 * ring // packet - 1).bit_length()], ring // packet
        m.d.comb += [
            come.eq(self.i.payload.count >> fine),
            limit.eq(base[: len(limit)] & -bank),
            complete.eq((taken != slots) | (self.i.payload.last & (come <= limit))),
            filling.eq(self.i.valid & running & ~closed & ~stop),
            self.i.ready.eq(discarding | (running & ~closed & ~stop & complete)),
        ]
        banks = [Signal(unit * bank, reset_less=True, name=f"bank_{k}") for k in range(BANKS)]
        source = self.i.payload.data.as_value()
        for k in range(BANKS):
            slot, part = divmod(k * bank, packet)
            here = place[: (slots - 1).bit_length()] == slot if slots > 1 else Const(1, 1)
            with m.If(filling & here & ((taken != slots) | (limit > part))):
                m.d.sync += banks[k].eq(source[unit * part :][: unit * bank])
        with m.If(filling):
            m.d.sync += top.eq((place << len(limit)) + Mux(complete, Mux(self.i.payload.last, come, packet), limit))
            with m.If(complete):
                m.d.sync += [place.eq(place + 1), closed.eq(self.i.payload.last)]

        # ---------------------------------------------------------------------------------------- the blocks
        bits = (ring - 1).bit_length()
        # Where the next piece begins.
        look = Digits([2, 2, bits - 4] if bits < 8 else [2, 2, 2, bits - 6], ring, "look")

        def level(more):
            """That the stream goes on for ``more`` behind the block's beginning, as far as known; it may end before
            that if it has proved to lie inside of the block before."""
            reach = Signal(signed(len(base)))
            m.d.comb += reach.eq(top - base - more)
            return reach >= 0

        lanes = [Cat(banks).word_select(k % ring, unit) for k in range(ring + piece - 1)]
        coarse = window(m, lanes, look[1:], piece + len(look[0][1]) - 1)
        shown = Cat(window(m, coarse, look[:1], piece))
        # The mask once more, without the many flip-flops that read a piece; zero where there is none.
        masked = mode(*MASKED)
        look_mask = Digits([2], 4, "look_mask", init=0)
        mask = Cat(window(m, coarse, look_mask[:], MASK // granule))

        # One bit for each piece of each CDU, and of whatever CDU: what is to move.
        pick = [Signal(sizes.pieces, name=f"pick_{c}") for c in range(sizes.cdus)]
        step = Signal(sizes.pieces, init=1)
        moved = Signal()
        # A block's length is a constant of the mode and what its mask adds.
        fixed = Signal(range(sizes.block + 1))
        m.d.sync += fixed.eq(mode.choose({name: 8 * ROWS.get(name, 1) for name in sizes.modes}))
        whole, there = Signal(), Signal()
        terms = []
        for k in range(MASK):
            bits, kept = Signal(4, name=f"bits_{k}"), Signal(4, name=f"kept_{k}")
            m.d.comb += bits.eq(ones(m, mask[8 * k :][:8]))
            # Zero again before the next block.
            with m.If((moved & (step[0] | whole)) | ~running):
                m.d.sync += kept.eq(bits)
            count = Mux(step[0], bits, kept) if sizes.hurried else kept
            terms += [(count[:3], 0), (count[3], 1)]
        if sizes.wide:
            terms = [(Mux(mode("zvc"), term << 2, term) >> fine, shift) for term, shift in terms]
        length = [*terms, (fixed >> fine, 0)]

        m.d.comb += there.eq(level(choose((step[k], Const(piece * (k + 1))) for k in range(sizes.pieces))))
        # Unless hurried, a block has two pieces or more.
        m.d.comb += whole.eq(choose(
            (step[k], 1 if k == sizes.pieces - 1 else columns(m, length, len(base)) <= piece * (k + 1))
            for k in range(0 if sizes.hurried else 1, sizes.pieces)))
        lacking, offered = Signal(), Signal()  # not even the shortest block is there, or one was not
        m.d.comb += [
            lacking.eq(running & step[0] & closed & ~level(Mux(turns.active, MASK // granule, 0))),
            offered.eq(running & turns.active & ~stop & (there | (closed & ~lacking))),
            turns.next.eq(moved & whole),
        ]
        # Where the next piece begins: in the block, while it has more of them, or else behind it.
        after, more = Signal.like(base), Signal(range(2 * ring))
        m.d.comb += more.eq(Mux(whole, fixed >> fine, choose(
            (step[k], Const(piece * (k + 1))) for k in range(sizes.pieces))))
        if sizes.pieces > 2:
            terms = [(Mux(whole, term, 0), shift) for term, shift in terms]
        m.d.comb += after.eq(columns(m, [*terms, (base, 0), (more, 0)], len(base)))
        with m.If(moved):
            m.d.sync += [step.eq(Mux(whole, 1, step << 1)), *look.eq(after), *look_mask.eq(after, masked & whole)]
            for c in range(sizes.cdus):
                m.d.sync += pick[c].eq(Mux(whole, turns.follows[c], pick[c] << 1))
            with m.If(whole):
                m.d.sync += base.eq(after)

        # ------------------------------------------------------------------------------------------- the CDUs
        waiting, free = Signal(sizes.cdus), Signal(sizes.cdus)
        m.d.comb += moved.eq(offered & ((free & Cat(picked[0] for picked in pick)).any() | ~step[0]))
        for c in range(sizes.cdus):
            m.submodules[f"dispenser_{c}"] = dispenser = Dispenser(sizes)
            wiring.connect(m, dispenser.o, wiring.flipped(self.o[c]))
            m.d.comb += [
                dispenser.piece.eq(shown),
                dispenser.whole.eq(whole),
                dispenser.final.eq(turns.ends),
                dispenser.mode.eq(self.mode),
                dispenser.start.eq(self.start),
                dispenser.waits.eq(self.blocks > GROUP * c),
                dispenser.ended.eq(self.short),
                waiting[c].eq(dispenser.waiting),
                free[c].eq(dispenser.free),
                dispenser.load.eq(Mux(moved, pick[c], 0)),
            ]

        # --------------------------------------------------------------------------------------------- control
        m.d.comb += [stop.eq(running & (~turns.active | self.short)),
                     self.busy.eq(running | discarding | waiting.any())]
        with m.If(lacking):
            m.d.sync += self.short.eq(1)
        with m.If(stop):
            m.d.sync += [*look_mask.eq(Const(0, 2), 0), running.eq(0), discarding.eq(~closed),
                         self.excess.eq(~self.short & ~lacking & (~closed | (top != base)))]
        with m.If(discarding & self.i.valid & self.i.payload.last):
            m.d.sync += discarding.eq(0)
        with m.If(self.start):
            m.d.sync += [running.eq(1), closed.eq(0), place.eq(0), base.eq(0), top.eq(0),
                         *look.eq(Const(0, len(base))), *look_mask.eq(Const(0, 2), masked), step.eq(1),
                         self.short.eq(0), self.excess.eq(0)]
            m.d.sync += [picked.eq(c == 0) for c, picked in enumerate(pick)]
        return m
