"""The collector: the blocks of several CDUs as one stream of packets."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.packer import Packer, chunk
from rtl.common.skid import Skid
from rtl.jpegact.cdu import JPEG_ACT
from rtl.jpegact.turns import MASK, PACKET, Sizes, Turns

__all__ = ["Collector"]


class Gatherer(wiring.Component):
    """Puts a block together from its eight chunks.

    A chunk is rotated to where the bytes before it end, and bytes have an enable each: what comes later overwrites what
    lies behind the end of what came before.

    Throughput: one chunk a cycle. Combinational path: ``first`` to ``i.ready``.

    Parameters
    ----------
    sizes : :class:`~rtl.jpegact.turns.Sizes`

    Ports
    -----
    i : stream of chunks
        Eight a block.
    block, level : output
        The bytes, and how many they are; more than those mean nothing.
    full : output
        The block is complete.
    first : input
        Pulse: its first piece is taken, and the next block may follow; only while ``full``.
    tail : input
        But the other pieces are not yet taken.
    """

    def __init__(self, sizes):
        self.sizes = sizes
        super().__init__({"i": In(stream.Signature(chunk(MASK + sizes.row))),
                          "block": Out(8 * sizes.block), "level": Out(range(sizes.block + 1)), "full": Out(1),
                          "first": In(1), "tail": In(1)})

    def elaborate(self, platform):
        m = Module()
        sizes, granule = self.sizes, self.sizes.granule
        unit, fine = 8 * granule, granule.bit_length() - 1
        row, head, size = sizes.row // granule, (sizes.row + MASK) // granule, sizes.block // granule

        count = Signal(3)  # chunks
        begins, taken = Signal(), Signal()
        m.d.comb += [
            begins.eq(count == 0),
            self.i.ready.eq(Mux(self.full, self.first, ~self.tail | (count < sizes.early))),
            taken.eq(self.i.valid & self.i.ready),
        ]
        level = Signal(range(size + 1))
        place = Signal.like(level)
        m.d.comb += [place.eq(Mux(begins, 0, level)), self.level.eq(level << fine)]
        with m.If(self.first):
            m.d.sync += self.full.eq(0)
        with m.If(taken):
            m.d.sync += [count.eq(count + 1), level.eq(place + (self.i.payload.count >> fine)),
                         self.full.eq(count == 7)]

        lanes = self.i.payload.data.as_value()
        low = (row - 1).bit_length()
        turned = lanes[: unit * row]
        for bit in range(low):
            step = Signal(unit * row, name=f"turned_{1 << bit}")
            m.d.comb += step.eq(Mux(place[bit], turned.rotate_left(unit << bit), turned))
            turned = step
        words = -(-size // row)
        at = [Signal(name=f"at_{k}") for k in range(words)]
        below = [Signal(name=f"below_{k}") for k in range(row)]  # lanes in which the chunk has wrapped
        m.d.comb += [signal.eq(place[low:] == k) for k, signal in enumerate(at)]
        m.d.comb += [signal.eq(place[:low] > k) for k, signal in enumerate(below)]
        # The first chunk is longer by the mask and never rotated.
        for k in range(size):
            word, lane = divmod(k, row)
            value, writes = turned.word_select(lane, unit), at[word] & ~below[lane]
            if word:
                writes |= at[word - 1] & below[lane]
            if row <= k < head:
                value, writes = Mux(begins, lanes.word_select(k, unit), value), writes | begins
            register = Signal(unit, reset_less=True, name=f"lane_{k}")
            with m.If(taken & writes):
                m.d.sync += register.eq(value)
            m.d.comb += self.block.word_select(k, unit).eq(register)
        return m


class Collector(wiring.Component):
    """Takes one block of each CDU in turn and sends them, one behind the other, in packets.

    Each CDU's block is put together in a register of its own. From there it moves in one to three pieces (see
    :class:`~rtl.jpegact.turns.Sizes`) through a skid buffer, which cuts the chain of ``ready``, into the packer. This
    takes the place of the paper's multiplexer of whole blocks and FIFO of 256 bytes.

    Throughput: up to 4 CDUs, a block in two cycles, beyond that a block a cycle: eight cycles for a block of each. With
    modes raw or zvc: 128 bytes a cycle, a block in up to three. Latency: from a block's eighth chunk in to the packet
    that it completes, 5 cycles (3 with more than 4 CDUs, or modes raw or zvc). Buffering: a block for each CDU, two
    pieces, and what the packer holds. Combinational paths: none.

    Source: JPEG-ACT, section III-G, Figure 15a.

    Parameters
    ----------
    cdus : int
        1 to 8.
    modes : tuple of str
        Those of the CDUs.

    Ports
    -----
    i : ``cdus`` streams of :func:`~rtl.common.packer.chunk`
        ``bytes_o`` of each ``Cdu(packed=False)``: eight chunks a block.
    o : stream of :func:`~rtl.common.packer.chunk` of 128 bytes
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

    def __init__(self, cdus, modes=JPEG_ACT):
        self.sizes = Sizes(cdus, modes)
        super().__init__(
            {
                "i": In(stream.Signature(chunk(MASK + self.sizes.row))).array(cdus),
                "o": Out(stream.Signature(chunk(PACKET))),
                "blocks": In(32),
                "start": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        sizes, piece = self.sizes, self.sizes.piece
        m.submodules.turns = turns = Turns(sizes.cdus)
        m.d.comb += [turns.blocks.eq(self.blocks), turns.start.eq(self.start)]
        m.submodules.skid = skid = Skid(chunk(piece))
        m.submodules.packer = packer = Packer(sizes.granule, piece, min(1 << (piece - 1).bit_length(), PACKET))
        piece_o = skid.o.payload
        m.d.comb += [
            packer.i.valid.eq(skid.o.valid),
            skid.o.ready.eq(packer.i.ready),
            # What lies behind the end is left over from other blocks.
            packer.i.payload.data.as_value().eq(Cat(
                Mux(piece_o.count > k, piece_o.data[k], 0) for k in range(piece))),
            packer.i.payload.count.eq(piece_o.count),
            packer.i.payload.last.eq(piece_o.last),
        ]

        step = Signal(range(max(sizes.pieces, 2)))  # pieces of the block that have been taken
        full, level, rest = Signal(), Signal(range(sizes.block + 1)), Signal(range(sizes.block + 1))
        count, final, moved = Signal(range(piece + 1)), Signal(), Signal()
        shown = Signal(8 * piece)
        m.d.comb += [
            final.eq(level <= piece),
            count.eq(Mux(final, level, piece)),
            skid.i.valid.eq(turns.active & (full | (step != 0))),
            moved.eq(skid.i.valid & skid.i.ready),
            turns.next.eq(moved & final),
            skid.i.payload.data.as_value().eq(shown),
            skid.i.payload.count.eq(count),
            skid.i.payload.last.eq(final & turns.last),
        ]
        with m.If(moved):
            m.d.sync += [rest.eq(level - piece), step.eq(Mux(final, 0, step + 1))]
        with m.Switch(turns.turn):
            for c in range(sizes.cdus):
                m.submodules[f"gatherer_{c}"] = gatherer = Gatherer(sizes)
                wiring.connect(m, wiring.flipped(self.i[c]), gatherer.i)
                chosen = turns.turn == c
                m.d.comb += [gatherer.first.eq(moved & chosen & (step == 0)), gatherer.tail.eq(chosen & (step != 0))]
                with m.Case(c):
                    m.d.comb += [full.eq(gatherer.full), level.eq(Mux(step == 0, gatherer.level, rest))]
                    with m.Switch(step):
                        for k in range(sizes.pieces):
                            with m.Case(k):
                                m.d.comb += shown.eq(gatherer.block[8 * piece * k :][: 8 * piece])

        if packer.o_size == PACKET:
            wiring.connect(m, packer.o, wiring.flipped(self.o))
            return m
        # Two words are a packet: the first one waits for the second one, if there is one.
        word, lone = Signal.like(packer.o.payload, reset_less=True), Signal()
        held = Signal()
        m.d.comb += [
            lone.eq(word.last),
            self.o.valid.eq(held & (lone | packer.o.valid)),
            packer.o.ready.eq(~held | (self.o.ready & ~lone)),
            self.o.payload.data.as_value().eq(Cat(
                word.data.as_value(), Mux(lone, 0, packer.o.payload.data.as_value()))),
            self.o.payload.count.eq(Mux(lone, word.count, packer.o_size + packer.o.payload.count)),
            self.o.payload.last.eq(lone | packer.o.payload.last),
        ]
        with m.If(~held):
            m.d.sync += [word.eq(packer.o.payload), held.eq(packer.o.valid)]
        with m.Elif(self.o.valid & self.o.ready):
            m.d.sync += held.eq(0)
        return m
