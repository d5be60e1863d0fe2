"""The splitter: a stream of packets dealt out to several CDUs, block by block."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.carrysave import columns, pair, reduced, weigh
from actcodec.rtl.common.onehot_shift import Digits, choose, digits_of, window
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.offload.control.config import Chosen, config_layout, rows_layout
from actcodec.rtl.offload.memory.geometry import FAR, TILES
from actcodec.rtl.offload.wire.block_format import MASK, VALUES
from actcodec.rtl.offload.wire.dispenser import Dispenser, ones
from actcodec.rtl.offload.wire.round_robin import GROUP, PACKET, RoundRobin, Sizes
from actcodec.rtl.offload.wire.row_starts import segment_begins

__all__ = ["Splitter"]

DEPTH = 6  # XORs that the mask's bits pass in a cycle, in which they may have to show first


class Splitter(wiring.Component):
    """Deals the blocks of a stream of packets out to the CDUs in turn.

    Blocks are taken from a packet while it stands at the input. Only its end is kept, as much as a block that goes on
    in the next packet can have of it, and the packet is let go when that is all that is left of it. One shifter shows
    the next piece of a block (see :class:`~actcodec.rtl.offload.wire.round_robin.Sizes`), which moves into the block
    register of its CDU, from where it leaves row by row. A block's length is known from its mask: with up to 4 CDUs
    there is a cycle for that; beyond, and with rows of more than 8 bytes, it has to be found in the cycle in which the
    mask shows. This takes the place of the paper's FIFO of 256 bytes and of the unpackers of the CDUs.

    Throughput: up to 4 CDUs, a block in two cycles, of one or two in three, unless blocks are counted, beyond that a
    block a cycle; a row a cycle and CDU. With rows of more than 8 bytes: 128 bytes a cycle, a block in up to three. The
    last packet waits a cycle, once in a tensor. Latency: 1 cycle from a packet to the first row that lies in it, 2 if
    it is the last. Buffering: 71 bytes (127 with such rows), and a block for each CDU. Combinational paths:
    ``i.valid``, ``i.p`` and ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-G, Figure 15b.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.
    modes : tuple
        Those of the CDUs (see :func:`~actcodec.rtl.offload.control.config.check_modes`).

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 128 bytes
        All full but the last one of the tensor, which may be empty.
    o : ``cdus`` streams of :func:`~actcodec.rtl.offload.control.config.rows_layout`
        For ``rows_i`` of each ``Cdu(packed=False)``: eight rows a block, with ``last`` on the last row of the last one.
        A CDU that has no block gets nothing.
    mode, blocks : input
        Of the tensor; constant from ``start`` until ``busy`` falls. 1 block or more.
    start : input
        Pulse that starts a tensor; only when not ``busy``, and not in the first cycle after a reset.
    sectors, stride, load, origin : input, only with modes whose blocks have segments in rows of the tensor
        As those of the CDUs' :class:`~actcodec.rtl.offload.wire.row_starts.RowStarts`, of which ``load`` has a bit for
        each.
    void, ending : input, as these
        Rows of the tensor's last block in memory that lie after its end; the CDU that has this block, one bit for
        each. Constant as ``blocks``.
    busy : output
        Rows are still to be given, or packets to be taken.
    short : output
        The stream ended inside of a block, or before the last one; until ``start``. The values of a block that has
        begun are not reliable. Each CDU that waits for more blocks gets one more row, with ``last``.
    wants : output
        The stream has not ended: it is waited for in cycles in which ``i`` has nothing.
    excess : output
        The stream went on after the last block; until ``start``. The rest is taken and dropped. A last packet without
        bytes is nothing that goes on.

    Raises
    ------
    ValueError
        If ``cdus`` or ``modes`` is out of range.
    """

    def __init__(self, cdus, modes):
        self.sizes = Sizes(cdus, modes)
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(PACKET))),
                "o": Out(stream.Signature(rows_layout(self.sizes.row, self.sizes.halves))).array(cdus),
                "mode": In(config_layout(self.sizes.modes)["mode"].shape),
                "blocks": In(32),
                "start": In(1),
                "busy": Out(1),
                "wants": Out(1),
                "short": Out(1),
                "excess": Out(1),
            } | ({"sectors": In(TILES), "stride": In(FAR), "load": In(cdus), "origin": In(FAR), "void": In(3),
                  "ending": In(cdus)}
                 if self.sizes.segments else {})
        )

    def elaborate(self, platform):
        """Blocks follow each other at any byte, and a block's length is in its own mask or first byte. Three tricks let
        a piece move every cycle. The place of the next piece is kept as digits, one-hot, so that the window into the
        stream is a few levels of AND-OR; the mask has selects of its own (``look_mask``), which are known a cycle
        earlier. The length is never added up alone: population counts, fixed part and the block's place go into one
        carry-save tree, whose two outputs are added digit by digit, with the carry as the last select. And since a
        piece is never longer than a packet, one bit tells whether the next packet is needed."""

        m = Module()
        sizes = self.sizes
        mode = Chosen(sizes.modes, self.mode)
        m.submodules.turns = turns = RoundRobin(sizes.cdus)
        m.d.comb += [turns.blocks.eq(self.blocks), turns.start.eq(self.start)]

        # From here on, all is counted in granules.
        granule = sizes.granule
        unit, fine = 8 * granule, granule.bit_length() - 1
        piece, most, packet = sizes.piece // granule, sizes.block // granule, PACKET // granule
        steady = sizes.pieces > 1 and not sizes.wide  # a block is always as many pieces, however short it is
        # What may be behind a place in the stream, up to where it goes on.
        ahead = most if steady else piece
        depth = ahead - 1
        # A block without a mask is shown as if it had one, so that what is after its head always begins in the same
        # lanes; unless that would take another piece.
        masked = mode(lambda mode: mode.format.kind == "mask")
        begin = Signal(range(depth + 1))
        m.d.comb += begin.eq(depth if sizes.wide else mode.choose(
            lambda mode: depth - sizes.head + mode.format.head))
        least = mode.choose(lambda mode: min(mode.format.fixed, MASK) // granule)

        # ---------------------------------------------------------------------------------------- the packets
        running, closed, discarding = Signal(), Signal(), Signal()  # closed: the last packet stands at the input
        stop, moved, whole, there = Signal(), Signal(), Signal(), Signal()
        near = Signal()  # what follows lies in the next packet, or at least behind what is kept of this one
        # A counted block that says it is longer than a packet, which none of its kind is: another packet has to go.
        # Where packets are the pieces of blocks, it has two of them like others.
        skips, leaps = Signal(), Signal()
        goes = moved & whole if steady else moved  # nothing before the next place is needed again
        # Places in the stream, after `depth` lanes: where the block begins, the stream ends, the next piece begins.
        reach = max(depth + packet, most + sizes.head).bit_length() + 1 + sizes.counted
        # The shortest block begins at ``bound`` at the latest.
        base, top, bound, after = (Signal(reach, name=name, reset_less=True)
                                   for name in ("base", "top", "bound", "after"))
        bits = (packet - 1).bit_length()
        passed = Signal(len(base) - bits)  # packets
        # Where the piece begins, of what is kept and the packet at the input. The mask's own is below.
        look = Digits([*digits_of(4, platform), bits - 4], packet, "look", init=None)
        # One bit for each piece of a block: what is to move; the same, for each CDU.
        step = Signal(sizes.pieces, init=1)
        pick = [Signal(sizes.pieces, name=f"pick_{c}") for c in range(sizes.cdus)]
        store = Signal(unit * depth, reset_less=True)
        source = self.i.p.data.as_value()
        m.d.comb += [
            there.eq(closed | (self.i.valid & ~self.i.p.last)),
            self.wants.eq(discarding | (running & ~closed)),
        ]
        # What is kept, as soon as nothing else of it is wanted. A block's later pieces may begin in it, but not if the
        # block begins in what was kept before: its pieces but the last are shorter than what of a packet is not kept.
        with m.If((goes & near) | leaps | (step[0] & look.reaches(depth))):
            m.d.sync += store.eq(source[-len(store) :])
        with m.If(goes):
            m.d.sync += passed.eq(after[bits:])
        with m.If(running & ~closed & self.i.valid):
            end = Cat(self.i.p.count[fine : bits + fine], passed + self.i.p.count[bits + fine])
            m.d.sync += [closed.eq(self.i.p.last), top.eq(end + begin), bound.eq(end + (begin - least))]

        # ---------------------------------------------------------------------------------------- the blocks
        def beyond(place):
            """Whether the block begins after a place of the stream's end, which may lie inside of the block before."""
            return (place - base)[len(base) - 1]

        lanes = [Cat(store, source).word_select(k, unit) for k in range(depth + packet)]
        coarse = window(m, lanes, look[-1:], piece + 15)
        next_piece = Cat(window(m, coarse, look[:-1], piece))
        # The mask, of which the order does not matter: of the lanes that are a mask's length apart, one is in it. It is
        # where the piece begins, or, with a byte for each half in front of any, so many lanes behind.
        length = MASK // granule
        fronts = sorted({_front(sizes, mode) for mode in sizes.modes if mode.format.kind == "mask"}) or [0]
        look_mask = [Signal(len(range(k, 15 + length + fronts[-1], length)), name=f"look_mask_{k}", reset_less=True)
                     for k in range(length)]

        def place_mask(number, valid):
            """Assignments of `look_mask`; without ``valid`` the mask is zero."""
            low = number[:4]
            places = [[Cat((low <= at - front) & (low + length > at - front) for at in range(k, 24 + front, length))
                       for k in range(length)] for front in fronts]
            if len(fronts) == 1:
                return [signal.eq(Mux(valid, place, 0)) for place, signal in zip(places[0], look_mask, strict=True)]
            valids = [valid & mode(lambda mode, front=front: _front(sizes, mode) == front) for front in fronts]
            return [signal.eq(choose(zip(valids, place, strict=True)))
                    for place, signal in zip(zip(*places, strict=True), look_mask, strict=True)]

        mask = Cat(choose((one, coarse[k + q * length]) for q, one in enumerate(signal))
                   for k, signal in enumerate(look_mask))

        # A block's length is a constant of the mode and what its mask adds, or its first byte, or its segments.
        fixed = Signal(range(sizes.block + 1))
        m.d.sync += fixed.eq(mode.choose(lambda mode: mode.format.fixed))
        waits = steady and sizes.pieces > 2  # what the first piece says, while the second one shows
        if waits:
            first_mask = Signal.like(mask, name="first_mask", reset_less=True)
            with m.If(moved & step[0]):
                m.d.sync += first_mask.eq(mask)
            mask = first_mask
        # The mask's bits are added up as far as there is time for, to bits of several weights.
        sums = reduced(m, [list(mask), *([] for _ in range(VALUES.bit_length() - 1))], depth=DEPTH)
        weights = [weight for weight, column in enumerate(sums) for _ in column]
        count, counted = Signal(len(weights)), Signal(len(weights), reset_less=True)
        m.d.comb += count.eq(Cat(sums))
        # While a piece but the last shows, where it ends takes the place of the mask's count.
        def adds_up_to(number):
            """Bits of these weights."""
            chosen = []
            for weight in reversed(weights):
                chosen.insert(0, number >= 1 << weight)
                number -= chosen[0] << weight
            assert not number
            return Cat(Const(bit, 1) for bit in chosen)

        ends = [adds_up_to(piece * (k + 1) if steady else 0) for k in range(1 + waits)]
        if waits:
            with m.If(moved | ~running):
                m.d.sync += counted.eq(Mux(~running | step[2], ends[0], Mux(step[1], count, ends[1])))
        else:
            with m.If((moved & (step[0] | whole)) | ~running):
                m.d.sync += counted.eq(count | Mux(step[0] & running, 0, ends[0]))
        counts = counted if steady else Mux(step[0], count, counted)
        if sizes.wide:
            items = {item: mode(lambda mode, item=item: mode.format.kind == "mask" and mode.format.item == item)
                     for item in (2, 4)}  # bytes
            if any(mode.format.kind == "mask" and mode.format.item == 2 for mode in sizes.modes):
                counts = [Mux(items[2], bit << 1, bit) for bit in counts]
            counts = [Mux(items[4], bit << 2, bit) >> fine for bit in counts]
        terms = list(zip(counts, weights, strict=True))
        begins = segment_begins(m, self, mode, turns) if sizes.segmented else None
        if sizes.counted or sizes.segments:
            heads = {mode.format.head: next_piece[0 if sizes.wide else 8 * (sizes.head - mode.format.head) :][:8]
                     for mode in sizes.modes if mode.format.counted} or {0: Const(0, 8)}
            head = next(iter(heads.values()))
            if len(heads) > 1 and not sizes.wide:
                head = mode.choose(lambda mode: heads[mode.format.head] if mode.format.counted else 0)
            follow, followed = Signal(8), Signal(8, reset_less=True)
            says = {(8, False): head, (8, True): head, (6, False): Mux(head[:6].all(), 64, head[:6]),
                    (6, True): Mux(head[1:6].any(), head[:6], Cat(Const(0, 1), head[0], Const(0b10000, 5)))}
            further = ones(m, Cat(begins[1:], Const(0, 1))) if sizes.segments else 0  # segments after the first
            m.d.comb += follow.eq(mode.choose(
                lambda mode: says[mode.format.bits, mode.format.halves] if mode.format.counted
                else further if mode.format.kind == "segments" else 0))
            # Like the counts, it is added with a block's last piece only; the others are as long as pieces are.
            if waits:
                follows = Signal.like(followed, reset_less=True)
                with m.If(moved & step[0]):
                    m.d.sync += follows.eq(follow)
                with m.If(moved | ~running):
                    m.d.sync += followed.eq(Mux(step[1] & running, follows, 0))
            else:
                with m.If((moved & (step[0] | whole)) | ~running):
                    m.d.sync += followed.eq(Mux(step[0] & running, follow, 0))
            said = followed if steady else Mux(step[0], follow, followed)
            terms.append((said if sizes.wide else said[:bits], 0))
        leaping = sizes.counted and not sizes.wide
        if leaping:
            with m.If(leaps):
                m.d.sync += skips.eq(0)
            with m.If(moved & whole):
                m.d.sync += skips.eq(said[bits])
        m.d.comb += whole.eq(step[-1] if steady else choose(
            (step[k], 1 if k == sizes.pieces - 1 else
             columns(m, [*terms, (fixed >> fine, 0)], len(base)) <= piece * (k + 1)) for k in range(sizes.pieces)))
        # Not even the shortest block is there: it is dealt out all the same, as that is known late, but is none.
        lacking, offered = Signal(), Signal()
        m.d.comb += [
            lacking.eq(running & step[0] & closed & ~skips & Mux(turns.active, beyond(bound), beyond(top))),
            offered.eq(running & turns.active & ~self.short & there & ~skips),
            turns.next.eq(moved & whole),
        ]
        # Where the next piece begins: in the block, while it has more of them, or else behind it.
        if not steady:
            more = Mux(whole, fixed >> fine, choose((step[k], Const(piece * (k + 1))) for k in range(sizes.pieces)))
            terms = [*((Mux(whole, term, 0), shift) for term, shift in terms), (more, 0)]
        # The upper digit for both carries into it, since the carry comes late.
        lower, upper, turned = Signal(5), Signal(len(base) - 4), Signal(1 << bits - 4)
        one, other = pair(reduced(m, weigh([*terms, (base, 0)], len(base))))
        m.d.comb += [lower.eq(one[:4] + other[:4]), upper.eq(one[4:] + other[4:]),
                     after.eq(Cat(lower[:4], upper + lower[4])), turned.eq(1 << upper[: bits - 4])]
        # Never by more than one packet, so that one bit tells.
        here = upper[bits - 4] ^ passed[0]
        carried = here ^ (one[4:bits] ^ other[4:bits]).all()
        lets = goes & ~closed
        if depth <= packet - packet // 4:
            quarters = (one[bits - 2 : bits + 1] + other[bits - 2 : bits + 1])[:3]  # of a packet; or there is one more
            m.d.comb += near.eq(quarters[:2].all() | (quarters[2] ^ passed[0]))
        else:
            m.d.comb += near.eq(Mux(lower[4], carried, here))
        # The carry comes latest of all, hence last.
        m.d.comb += self.i.ready.eq(discarding | (leaps & ~closed) | Mux(lower[4], lets & carried, lets & here))
        later = [*look.values(lower[:4])[:-1], Mux(lower[4], turned.rotate_left(1), turned)]
        # One assignment each: a constant on its own would be taken for a reset, and spoil the clock's gate.
        with m.If(moved | self.start):
            m.d.sync += [digit.eq(Mux(self.start, first, value)) for (_, digit), first, value in zip(
                look[:], look.values(begin), later, strict=True)]
        with m.If(moved | self.start | ~running):
            m.d.sync += place_mask(Mux(self.start, begin, after), masked & (self.start | (moved & whole)))
        settles = whole | (step[1] if waits else steady)  # for the last piece, with what is constant
        with m.If(moved & settles | self.start):
            m.d.sync += base.eq(Mux(self.start, begin, Mux(whole, after, base + fixed)))
        if leaping:
            m.d.comb += leaps.eq(skips & there)
            with m.If(leaps):
                m.d.sync += [passed.eq(passed + 1), base[bits:].eq(base[bits:] + 1)]
        with m.If(moved):
            m.d.sync += step.eq(Mux(whole, 1, step << 1))
            for c in range(sizes.cdus):
                m.d.sync += pick[c].eq(Mux(whole, turns.follows[c], pick[c] << 1))

        # ------------------------------------------------------------------------------------------- the CDUs
        waiting, free = Signal(sizes.cdus), Signal(sizes.cdus)
        m.d.comb += moved.eq(offered & ((free & Cat(picked[0] for picked in pick)).any() | ~step[0]))
        for c in range(sizes.cdus):
            m.submodules[f"dispenser_{c}"] = dispenser = Dispenser(sizes)
            wiring.connect(m, dispenser.o, wiring.flipped(self.o[c]))
            m.d.comb += [
                dispenser.piece.eq(next_piece),
                dispenser.whole.eq(whole),
                dispenser.lacking.eq(lacking),
                dispenser.final.eq(turns.ends),
                dispenser.mode.eq(self.mode),
                dispenser.start.eq(self.start),
                dispenser.waits.eq(self.blocks > GROUP * c),
                dispenser.ended.eq(self.short),
                waiting[c].eq(dispenser.waiting),
                free[c].eq(dispenser.free),
                dispenser.load.eq(Mux(moved, pick[c], 0)),
                *([dispenser.begins.eq(begins)] if sizes.segmented else ()),
            ]

        # --------------------------------------------------------------------------------------------- control
        # What follows on the last block tells whether the stream goes on: it may end in a packet without bytes.
        m.d.comb += [stop.eq(running & (self.short | (~turns.active & there & ~skips))),
                     self.busy.eq(running | discarding | waiting.any())]
        with m.If(lacking):
            m.d.sync += self.short.eq(1)
        with m.If(stop):
            m.d.sync += [running.eq(0), discarding.eq(1),
                         self.excess.eq(~self.short & ~lacking & (~closed | (top != base)))]
        with m.If(discarding & self.i.valid & self.i.p.last):
            m.d.sync += discarding.eq(0)
        with m.If(self.start):
            m.d.sync += [running.eq(1), closed.eq(0), passed.eq(0), step.eq(1), self.short.eq(0), self.excess.eq(0)]
            m.d.sync += [picked.eq(c == 0) for c, picked in enumerate(pick)]
        return m


def _front(sizes, mode):
    """Lanes of a piece in front of the mask."""
    return mode.format.head - MASK if sizes.wide else sizes.head - MASK
