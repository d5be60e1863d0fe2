"""The collector: the blocks of several CDUs as one stream of packets."""

from functools import reduce
from operator import and_

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import Digits, choose, digits_of, exceeds, turn
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.offload.wire.round_robin import PACKET, RoundRobin, Sizes

__all__ = ["Collector"]


class Gatherer(wiring.Component):
    """Puts a block together from its eight chunks.

    A chunk is rotated to where the bytes before it end, and bytes have an enable each: what comes later overwrites what
    lies after the end of what came before.

    Throughput: one chunk a cycle. Combinational path: ``again`` and ``tail`` to ``i.ready``.

    Parameters
    ----------
    sizes : :class:`~actcodec.rtl.offload.wire.round_robin.Sizes`

    Ports
    -----
    i : stream of chunks
        Eight a block.
    block, level : output
        The bytes, and how many they are, which stands until the next block is complete; more than those mean nothing.
    full : output
        The block is complete.
    again : input
        The next block may begin although ``full``: its first chunk is taken while the first piece is, or is seen for
        the last time.
    first : input
        Pulse: the first piece is taken; only while ``full``.
    tail : input, a bit for each other piece
        But those up to this one are not yet taken.
    begun : output
        The next block begins.
    """

    def __init__(self, sizes):
        self.sizes = sizes
        super().__init__({"i": In(stream.Signature(chunk_layout(sizes.first))),
                          "block": Out(8 * sizes.block), "level": Out(range(sizes.block + 1)), "full": Out(1),
                          "again": In(1), "first": In(1), "tail": In(max(sizes.pieces - 1, 1)), "begun": Out(1)})

    def elaborate(self, platform):
        """Eight chunks of any length become one contiguous block without a barrel shifter of the block's width. A chunk
        is only rotated within the width of a row; ``at`` says, one-hot, in which row's width it begins, and ``below``
        which lanes have wrapped into the next one. Every byte of the block has its own write enable. No byte is masked:
        garbage after the end of a chunk is overwritten by the next chunk, and after the last one nobody looks."""

        m = Module()
        sizes, granule = self.sizes, self.sizes.granule
        unit, fine = 8 * granule, granule.bit_length() - 1
        row, head, size = sizes.chunk // granule, sizes.first // granule, sizes.block // granule

        low = (row - 1).bit_length()
        words = -(-size // row)
        count, begins = Signal(3, name="count"), Signal(init=1, name="begins")  # chunks; of which none is here
        taken = Signal()
        # Where the chunk begins and ends. This and what follows from it has no reset, but is written a cycle after
        # one: a reset would take a multiplexer for each bit in place of the clock's gate.
        fresh = Signal(init=1)
        place, end = Signal(range(size + 1), reset_less=True), Signal(range(size + 1))
        digits = Digits(digits_of(low, platform), row, "digit", init=None)
        at = Signal(words, reset_less=True)  # the rows' width in which it begins
        goes = Signal(range(size + 1))
        m.d.comb += [
            self.i.ready.eq(~fresh & Mux(self.full, self.again, reduce(and_, (
                ~self.tail[k - 1] | (count < sizes.chunks_within(k)) for k in range(1, max(sizes.pieces, 2)))))),
            taken.eq(self.i.valid & self.i.ready),
            self.begun.eq(taken & begins),
            end.eq(place + (self.i.p.count >> fine)),
        ]
        level = Signal.like(end, reset_less=True)
        m.d.comb += self.level.eq(level << fine)
        with m.If(self.first):
            m.d.sync += self.full.eq(0)
        with m.If(taken):
            m.d.sync += [count.eq(count + 1), begins.eq(0)]
            with m.If(count == 7):
                m.d.sync += [self.full.eq(1), level.eq(end), begins.eq(1)]
        m.d.sync += fresh.eq(0)
        m.d.comb += goes.eq(Mux(fresh | (count == 7), 0, end))
        with m.If(taken | fresh):
            m.d.sync += [place.eq(goes), *digits.eq(goes), at.eq(1 << goes[low:])]

        lanes = [self.i.p.data.as_value().word_select(k, unit) for k in range(head)]
        turned = turn(m, lanes[:row], digits[:], row)
        below = [Signal(name=f"below_{k}") for k in range(row)]  # lanes in which the chunk has wrapped
        hits = Signal(words)
        m.d.comb += [signal.eq(place[:low] > k) for k, signal in enumerate(below)]
        m.d.comb += hits.eq(Mux(taken, at, 0))
        # The first chunk is longer by what is in front of rows, unless others are as long, and never turned.
        for k in range(size):
            word, lane = divmod(k, row)
            value, writes = turned[lane], hits[word] & ~below[lane]
            if word:
                writes |= hits[word - 1] & below[lane]
            if row <= k < head:
                value, writes = Mux(begins, lanes[k], value), writes | (taken & begins)
            register = Signal(unit, reset_less=True, name=f"lane_{k}")
            with m.If(writes):
                m.d.sync += register.eq(value)
            m.d.comb += self.block.word_select(k, unit).eq(register)
        return m


class Filler(wiring.Component):
    """Fills packets with pieces of blocks.

    A piece is turned to where it has to lie and written there, over whatever was behind the pieces before it. The one
    that completes a packet leaves straight with it, and what goes beyond that becomes the beginning of the next one.
    The last packet is filled up by a piece of nothing but zeros.

    Throughput: a piece a cycle; one more cycle for a last packet that is not full. Latency: one cycle from the piece
    that completes a packet to that packet, two to a last packet that is not full. Buffering: a piece and a packet.
    Combinational path: ``o.ready`` to ``i.ready``.

    Parameters
    ----------
    sizes : :class:`~actcodec.rtl.offload.wire.round_robin.Sizes`

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout`, of which lanes beyond ``count`` mean nothing
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 128 bytes
    """

    def __init__(self, sizes):
        self.sizes = sizes
        super().__init__({"i": In(stream.Signature(chunk_layout(sizes.piece))),
                          "o": Out(stream.Signature(chunk_layout(PACKET)))})

    def elaborate(self, platform):
        """The same trick as in the gatherer, a level up: a piece is rotated to its place in the packet and written over
        whatever lies after the pieces before it. A piece that crosses the end of the packet is used twice: its front
        completes the packet that leaves, bypassing the register, and its back is written to the front of the register
        in the same cycle. Rotating zeros without a piece pads the last packet."""

        m = Module()

        # From here on, all is counted in granules.
        granule = self.sizes.granule
        unit, fine = 8 * granule, granule.bit_length() - 1
        piece, packet = self.sizes.piece // granule, PACKET // granule
        lanes = min(1 << (piece - 1).bit_length(), packet)  # of what is turned; the packet has a multiple of it

        position = Signal(range(packet))  # where the next piece begins
        end = Signal(range(2 * packet))  # and ends
        valid, last, across = Signal(), Signal(reset_less=True), Signal()  # of the piece that is written
        at = Signal.like(position, reset_less=True)
        content = Signal(unit * piece, reset_less=True)
        closing, ended, leaves = Signal(), Signal(), Signal()  # all pieces have been written; zeros after them, too
        m.d.comb += [
            end.eq(position + (self.i.p.count >> fine)),
            self.i.ready.eq(~valid | ~across | self.o.ready),
            leaves.eq(valid & (~across | self.o.ready)),
            self.o.valid.eq(across | ended),
            self.o.p.last.eq(ended | (last & (position == 0))),
            self.o.p.count.eq(Mux(ended, at, packet) << fine),
        ]
        bits = (lanes - 1).bit_length()
        digits = Digits(digits_of(bits, platform), lanes, "digit", init=None)
        with m.If(self.i.ready):
            # Without a piece, zeros are turned.
            m.d.sync += [valid.eq(self.i.valid), at.eq(position), *digits.eq(position, self.i.valid),
                         across.eq(self.i.valid & (end >= packet))]
            with m.If(self.i.valid):
                m.d.sync += [position.eq(end), last.eq(self.i.p.last),
                             content.eq(self.i.p.data.as_value())]
        turned = turn(m, [content.word_select(k, unit) for k in range(piece)], digits[:], lanes)

        beyond = exceeds(at, packet, platform)
        for k in range(packet):
            lane, value = Signal(unit, reset_less=True, name=f"lane_{k}"), turned[k % lanes]
            below = Signal(name=f"below_{k}")
            m.d.comb += [
                below.eq(beyond[k]),
                self.o.p.data.as_value().word_select(k, unit).eq(
                    Mux(below, lane, value) if k >= packet - piece else lane),
            ]
            with m.If((leaves | closing) & (~below | (across if k < piece - 1 else 0))):
                m.d.sync += lane.eq(value)

        with m.If(leaves & last & ~(across & (position == 0))):
            m.d.sync += closing.eq(1)
        with m.If(closing):
            m.d.sync += [closing.eq(0), ended.eq(1)]
        with m.If(self.o.valid & self.o.ready & self.o.p.last):
            m.d.sync += [ended.eq(0), position.eq(0)]
        return m


class Collector(wiring.Component):
    """Takes one block of each CDU in turn and sends them, one after the other, in packets.

    Each CDU's block is put together in a register of its own. From there it moves in one to three pieces (see
    :class:`~actcodec.rtl.offload.wire.round_robin.Sizes`) to the register of a packet. This takes the place of the
    paper's multiplexer of whole blocks and FIFO of 256 bytes.

    The chain of ``ready`` is cut where it costs least: a piece waits in its block's register, and all of that but the
    head, into which the next block's first chunk comes, stays as it is; the head alone is kept.

    Throughput: up to 4 CDUs, a block in two cycles, of one or two in up to three, beyond that a block a cycle: eight
    cycles for a block of each. With rows of more than 8 bytes: 128 bytes a cycle, a block in up to three. Latency: from
    a block's eighth chunk in to the packet that it completes, a cycle and one for each piece of the block; two more to
    a last packet that is not full. Buffering: a block for each CDU, a piece and a packet. Combinational paths: none.

    Source: JPEG-ACT, section III-G, Figure 15a.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.
    modes : tuple
        Those of the CDUs (see :func:`~actcodec.rtl.offload.control.config.check_modes`).

    Ports
    -----
    i : ``cdus`` streams of :func:`~actcodec.rtl.common.packer.chunk_layout`
        ``bytes_o`` of each ``Cdu(packed=False)``: eight chunks a block.
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 128 bytes
        All full but the last one of the tensor, which is filled up with zeros.
    blocks : input
        Of the tensor, 1 or more; read at ``start``.
    start : input
        Pulse that starts a tensor; only when all of the one before has left.

    Raises
    ------
    ValueError
        If ``cdus`` or ``modes`` is out of range.
    """

    def __init__(self, cdus, modes):
        self.sizes = Sizes(cdus, modes)
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(self.sizes.first))).array(cdus),
                "o": Out(stream.Signature(chunk_layout(PACKET))),
                "blocks": In(32),
                "start": In(1),
            }
        )

    def elaborate(self, platform):
        """``ready`` would have to ripple from the packet through the choice of a CDU to every byte of its block. It
        does not: which piece is next is decided a cycle ahead, one-hot per CDU (``pick``), as if every piece were
        taken. When one is not, its block still stands in its register, except for the head, which the next block's
        first chunk may have overwritten; so only the head is saved (``kept``) and shown again."""

        m = Module()
        sizes, piece = self.sizes, self.sizes.piece
        m.submodules.turns = turns = RoundRobin(sizes.cdus)
        m.d.comb += [turns.blocks.eq(self.blocks), turns.start.eq(self.start)]
        m.submodules.filler = filler = Filler(sizes)
        wiring.connect(m, filler.o, wiring.flipped(self.o))

        gatherers = [Gatherer(sizes) for _ in range(sizes.cdus)]
        # One bit for each piece of each CDU: what is on offer, or will be.
        pick = [Signal(sizes.pieces, name=f"pick_{c}") for c in range(sizes.cdus)]
        step = Signal(sizes.pieces, init=1)  # likewise, of whatever CDU
        # The next block's first chunk may overwrite the head of a piece that turns out not to be taken: it is kept.
        saved, head = Signal(), Signal(8 * sizes.front, reset_less=True)
        front = Signal.like(head)
        level = Signal(range(sizes.block + 1))
        final, moved = Signal(), Signal()
        offered = Signal(8 * piece)
        full = Cat(gatherer.full & picked[0] for gatherer, picked in zip(gatherers, pick, strict=True)).any()
        m.d.comb += [
            offered.eq(choose((pick[c][k], gatherer.block[8 * piece * k :][: 8 * piece])
                            for c, gatherer in enumerate(gatherers) for k in range(sizes.pieces))),
            front.eq(offered),
            level.eq(choose(zip(turns.turn, (gatherer.level for gatherer in gatherers), strict=True))),
            final.eq(step[-1] | choose((step[k], level <= piece * (k + 1)) for k in range(sizes.pieces - 1))),
            filler.i.valid.eq(full | ~step[0]),
            moved.eq(filler.i.valid & filler.i.ready),
            turns.next.eq(moved & final),
            filler.i.p.data.as_value().eq(Cat(Mux(saved, head, front), offered[len(head) :])),
            filler.i.p.count.eq(Mux(final, level - choose(
                (step[k], piece * k) for k in range(sizes.pieces)), piece)),
            filler.i.p.last.eq(final & turns.last),
        ]
        with m.If(~saved):
            m.d.sync += head.eq(front)
        with m.If(moved):
            m.d.sync += step.eq(Mux(final, 1, step << 1))
            for c in range(sizes.cdus):
                m.d.sync += pick[c].eq(Mux(final, turns.follows[c], pick[c] << 1))
        with m.If(self.start):
            m.d.sync += [picked.eq(c == 0) for c, picked in enumerate(pick)]
        for c, gatherer in enumerate(gatherers):
            m.submodules[f"gatherer_{c}"] = gatherer
            wiring.connect(m, wiring.flipped(self.i[c]), gatherer.i)
            m.d.comb += [
                gatherer.again.eq(pick[c][0] & ~saved),
                gatherer.first.eq(pick[c][0] & moved),
                gatherer.tail.eq(Cat(pick[c][1 : k + 1].any() for k in range(1, sizes.pieces))),
            ]
        m.d.sync += saved.eq(~moved & (saved | Cat(g.begun & g.full for g in gatherers).any()))
        return m
