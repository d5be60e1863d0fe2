"""The splitter: a stream of packets dealt out to several CDUs, block by block."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.common.packer import chunk
from rtl.common.skid import Skid
from rtl.jpegact.cdu import JPEG_ACT
from rtl.jpegact.config import MODES, Mode
from rtl.jpegact.turns import GROUP, MASK, PACKET, Sizes, Turns
from rtl.jpegact.zvc import rows

__all__ = ["Splitter"]

MASKED = ("sfpr-zvc", "jpeg-act", "zvc")
BANKS = 8
# Bytes of a row of the modes in which all rows have the same.
ROWS = {"raw": 32, "sfpr": 8, "brc": 1}


class Modes:
    """Signals that tell modes apart, for a unit that can do some of them."""

    def __init__(self, modes, mode):
        self._modes, self._mode = modes, mode

    def __call__(self, *names):
        """Whether the mode is one of ``names``."""
        names = [name for name in names if name in self._modes]
        if set(names) == set(self._modes):
            return Const(1, 1)
        return Cat(self._mode == MODES[name] for name in names).any() if names else Const(0, 1)

    def choose(self, values):
        """The value of the mode, of ``values`` by name."""
        result = Const(0)
        for name, value in values.items():
            if name in self._modes:
                result = result | Mux(self(name), value, 0)
        return result


class Dispenser(wiring.Component):
    """Holds a block of one CDU and gives it row by row.

    Throughput: a row a cycle; the next block's first piece comes in while the last row leaves. Combinational path:
    ``o.ready`` to ``free``.

    Parameters
    ----------
    sizes : :class:`~rtl.jpegact.turns.Sizes`

    Ports
    -----
    piece : input
    load : input
        Bit k: ``piece`` is the block's k-th. The first one only when ``free``.
    whole, final : input
        With a piece: it is the block's last one. With the first one: it is the tensor's last block for this CDU.
    free : output
    mode : input
    start, waits : input
        Pulse, and whether there will be a block at all.
    ended : input
        No piece will come any more.
    waiting : output
        The row with ``last`` has not left.
    o : stream of :func:`~rtl.jpegact.zvc.rows`
        Eight rows a block; if the stream has ended too soon, one with ``last`` follows that means nothing.
    """

    def __init__(self, sizes):
        self.sizes = sizes
        super().__init__({"piece": In(8 * sizes.piece), "load": In(sizes.pieces), "whole": In(1), "final": In(1),
                          "free": Out(1), "mode": In(Mode), "start": In(1), "waits": In(1), "ended": In(1),
                          "waiting": Out(1), "o": Out(stream.Signature(rows(sizes.row)))})

    def elaborate(self, platform):
        m = Module()
        sizes, granule = self.sizes, self.sizes.granule
        mode = Modes(sizes.modes, self.mode)

        block = Signal(8 * sizes.block, reset_less=True)
        part = 8 * sizes.piece
        for k in range(sizes.pieces):
            with m.If(self.load[k]):
                m.d.sync += block[part * k :][:part].eq(self.piece)

        some, whole, final = Signal(), Signal(), Signal(reset_less=True)  # of the block is here
        row, place = Signal(3), Signal(range(sizes.block // granule + 1), reset_less=True)  # of its words, in granules
        cut, moved, ends = Signal(), Signal(), Signal()
        mask = Signal(8, reset_less=True)  # of the row
        m.d.comb += [
            cut.eq(self.waiting & self.ended & ~some),
            moved.eq(self.o.valid & self.o.ready),
            ends.eq(row == 7),
            self.free.eq(~some | (moved & ends)),
            self.o.valid.eq(whole | (some & (row < sizes.early)) | cut),
            self.o.payload.mask.eq(mask),
            self.o.payload.last.eq(cut | (ends & final)),
        ]
        masked = mode(*MASKED)
        words = sum(mask)
        step = mode.choose({"sfpr-zvc": words, "jpeg-act": words, "zvc": words << 2, **ROWS})
        with m.If(moved):
            m.d.sync += [place.eq(place + (step if granule == 1 else step >> 2)),
                         mask.eq(block.word_select((row + 1)[:3], 8))]
            with m.If(~cut):
                m.d.sync += row.eq(row + 1)
            with m.If(ends):
                m.d.sync += [some.eq(0), whole.eq(0)]
            with m.If(self.o.payload.last):
                m.d.sync += self.waiting.eq(0)
        with m.If(self.load[0]):
            m.d.sync += [some.eq(1), final.eq(self.final), mask.eq(self.piece[:8]),
                         place.eq(Mux(masked, MASK // granule, 0))]
        with m.If(self.load.any()):
            m.d.sync += whole.eq(self.whole)
        with m.If(self.start):
            m.d.sync += self.waiting.eq(self.waits)

        shown = block
        for bit in reversed(range(len(place))):
            step = Signal(min(len(shown), 8 * (sizes.row + granule * ((1 << bit) - 1))), name=f"shown_{1 << bit}")
            m.d.comb += step.eq(Mux(place[bit], shown[8 * granule << bit :], shown))
            shown = step
        m.d.comb += self.o.payload.data.as_value().eq(shown)
        return m


class Splitter(wiring.Component):
    """Deals the blocks of a stream of packets out to the CDUs in turn.

    Packets lie in a ring of eight banks, each of which is filled anew as soon as it has been passed; the ring is just
    long enough that this may take a cycle. One barrel shifter shows the next piece of a block (see
    :class:`~rtl.jpegact.turns.Sizes`), which moves through a skid buffer into the block register of its CDU, from where
    it leaves row by row. A block's length is known from its mask: with up to 4 CDUs there is a cycle for that, beyond
    it has to be found in the cycle in which the mask shows. This takes the place of the paper's FIFO of 256 bytes and
    of the unpackers of the CDUs.

    Throughput: up to 4 CDUs, a block in two cycles, beyond that a block a cycle; a row a cycle and CDU. With modes raw
    or zvc: 128 bytes a cycle, a block in up to three. Latency: 3 cycles from a packet to the first row that lies in it.
    Buffering: the ring, which is a packet (two with more than 4 CDUs, four with modes raw or zvc), two pieces, and a
    block for each CDU. Combinational paths: ``i.payload`` to ``i.ready``.

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
        base = Signal(range(2 * ring))  # where the block begins; the top bit tells an empty ring from a full one
        fill = Signal(range(2 * BANKS))  # the next bank to be filled, likewise
        free = Signal(range(BANKS + 1))
        parts = packet // bank
        part = Signal(range(parts))  # of the packet that goes there
        come, room = Signal(range(packet + 1)), Signal(range(packet + 1))
        left, load, filling, finished = Signal(range(parts + 1)), Signal(range(parts + 1)), Signal(), Signal()
        m.d.comb += [
            free.eq((base[(bank - 1).bit_length() :] - fill + BANKS)[: len(fill)]),
            # Parts that are nothing but padding do not count.
            come.eq(self.i.payload.count >> fine),
            left.eq(Mux(self.i.payload.last, (come + bank - 1) >> (bank - 1).bit_length(), parts) - part),
            load.eq(Mux(left <= free, left, free)),
            finished.eq(self.i.payload.last & (left <= free)),
            room.eq(load * bank - Mux(finished, (-come)[: (bank - 1).bit_length()], 0)),
            filling.eq(self.i.valid & running & ~closed & ~stop),
            self.i.ready.eq(discarding | (running & ~closed & ~stop & (left <= free))),
        ]
        banks = [Signal(unit * bank, reset_less=True, name=f"bank_{k}") for k in range(BANKS)]
        source = self.i.payload.data.as_value()
        for k in range(BANKS):
            with m.If(filling & ((k - fill)[: len(fill) - 1] < load)):
                m.d.sync += banks[k].eq(source.word_select(k % parts, unit * bank))
        with m.If(filling):
            m.d.sync += [fill.eq(fill + load), part.eq(part + load), closed.eq(finished)]

        # ---------------------------------------------------------------------------------------- the blocks
        look = Signal(range(ring))  # where the block's next piece begins
        # From the block's beginning to the stream's end, as far as known; negative once that has proved to lie inside
        # of the block.
        level = Signal(range(-most, ring + 1))
        shown = Cat(banks, banks)
        for bit in reversed(range(len(look))):
            window = Signal(unit * (piece + (1 << bit) - 1), name=f"shown_{1 << bit}")
            m.d.comb += window.eq(Mux(look[bit], shown[unit << bit :], shown))
            shown = window

        m.submodules.skid = skid = Skid(data.StructLayout({
            "data": unit * piece, "load": sizes.pieces, "whole": 1, "final": 1, "turn": len(turns.turn)}))
        step = Signal(range(max(sizes.pieces, 2)))
        moved = Signal()
        # A block's length is a constant of the mode and what its mask adds.
        masked, words = mode(*MASKED), Signal(range(65))
        fixed = Signal(range(sizes.block + 1))
        m.d.sync += fixed.eq(mode.choose({name: 8 * ROWS.get(name, 1) for name in sizes.modes}))
        counts = [Signal(4, name=f"count_{k}") for k in range(MASK)]
        for k, count in enumerate(counts):
            bits = Mux(masked, sum(shown[8 * k : 8 * k + 8]), 0)
            kept = Signal(4, name=f"kept_{k}")
            with m.If(step == 0):
                m.d.sync += kept.eq(bits)
            m.d.comb += count.eq(Mux(step == 0, bits, kept) if sizes.hurried else kept)
        words = sum(counts)
        if sizes.wide:
            words = Mux(mode("zvc"), words << 2, words)
        length = (fixed >> fine) + (words >> fine)

        whole, there = Signal(), Signal()
        with m.Switch(step):
            for k in range(sizes.pieces):
                with m.Case(k):
                    m.d.comb += there.eq(level >= piece * (k + 1))
                    if k == sizes.pieces - 1:
                        m.d.comb += whole.eq(1)
                    elif k or sizes.hurried:
                        m.d.comb += whole.eq(length <= piece * (k + 1))
        lacking = Signal()  # not even the shortest block is there, or one was not
        m.d.comb += [
            lacking.eq(running & (step == 0) & closed & ((level < 0) | (turns.active & (level < MASK // granule)))),
            skid.i.valid.eq(running & turns.active & ~stop & (there | closed) & ~lacking),
            skid.i.payload.data.eq(shown),
            skid.i.payload.load.eq(1 << step),
            skid.i.payload.whole.eq(whole),
            skid.i.payload.final.eq(turns.final),
            skid.i.payload.turn.eq(turns.turn),
            moved.eq(skid.i.valid & skid.i.ready),
            turns.next.eq(moved & whole),
        ]
        grown = Signal.like(level)
        m.d.comb += grown.eq(level + Mux(filling, room, 0))
        m.d.sync += level.eq(grown)
        with m.If(moved):
            m.d.sync += [step.eq(step + 1), look.eq(look + piece)]
            with m.If(whole):
                m.d.sync += [step.eq(0), base.eq(base + length), look.eq(base + length), level.eq(grown - length)]

        # ------------------------------------------------------------------------------------------- the CDUs
        waiting = Signal(sizes.cdus)
        with m.Switch(skid.o.payload.turn):
            for c in range(sizes.cdus):
                m.submodules[f"dispenser_{c}"] = dispenser = Dispenser(sizes)
                wiring.connect(m, dispenser.o, wiring.flipped(self.o[c]))
                m.d.comb += [
                    dispenser.piece.eq(skid.o.payload.data),
                    dispenser.whole.eq(skid.o.payload.whole),
                    dispenser.final.eq(skid.o.payload.final),
                    dispenser.mode.eq(self.mode),
                    dispenser.start.eq(self.start),
                    dispenser.waits.eq(self.blocks > GROUP * c),
                    dispenser.ended.eq(self.short & ~skid.o.valid),
                    waiting[c].eq(dispenser.waiting),
                ]
                with m.Case(c):
                    m.d.comb += skid.o.ready.eq(dispenser.free | ~skid.o.payload.load[0])
                    with m.If(skid.o.valid & skid.o.ready):
                        m.d.comb += dispenser.load.eq(skid.o.payload.load)

        # --------------------------------------------------------------------------------------------- control
        m.d.comb += [stop.eq(running & (~turns.active | self.short)),
                     self.busy.eq(running | discarding | waiting.any())]
        with m.If(lacking):
            m.d.sync += self.short.eq(1)
        with m.If(stop):
            m.d.sync += [running.eq(0), discarding.eq(~closed),
                         self.excess.eq(~self.short & (~closed | (level > 0)))]
        with m.If(discarding & self.i.valid & self.i.payload.last):
            m.d.sync += discarding.eq(0)
        with m.If(self.start):
            m.d.sync += [running.eq(1), closed.eq(0), fill.eq(0), part.eq(0), base.eq(0), look.eq(0),
                         level.eq(0), step.eq(0), self.short.eq(0), self.excess.eq(0)]
        return m
