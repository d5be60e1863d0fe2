"""Bitpack and Bitunpack: the most significant bits of each value, packed into sectors, and back."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk
from actcodec.rtl.common.pipeline import Pipeline

__all__ = ["Bitpack", "Bitunpack", "Error", "values"]

SECTOR = 256  # bits
LEGAL = (8, 10, 16, 24, 32)


class Error(data.Struct):
    """Why a tensor is not what it should be; stands until the next one starts."""

    short: 1  # the encoded array ended early; zeros stand for what was missing
    excess: 1  # the encoded array went on; the rest was dropped


def values(width):
    """Eight values of ``width`` bits as in :data:`~actcodec.rtl.common.vectors.sectors`, which are those of 32 bits."""
    return data.StructLayout({"data": data.ArrayLayout(width, 8), "count": range(9), "last": 1})


def check_widths(widths):
    """``widths`` without repetitions; raises ValueError unless it is a tuple of one or more legal ones."""
    if not isinstance(widths, tuple | list) or not widths or any(width not in LEGAL for width in widths):
        raise ValueError(f"widths must be one or more of {', '.join(map(str, LEGAL))}, in a tuple, not {widths!r}")
    return tuple(dict.fromkeys(widths))


class Piece:
    """Where eight values of ``width`` bits lie in the array, if they are the piece number ``phase`` of a period, which
    is the least number of pieces that fill whole sectors."""

    def __init__(self, width, phase):
        self.width, self.phase = width, phase
        self.sector = self._bit(0) // SECTOR  # that it starts in
        self.start = self._bit(0) % SECTOR  # bit of that sector
        self.beyond = max(0, self.bit(7) + width - SECTOR)  # bits in the next one
        end = self.bit(7) + width + (2 if width == 10 else 0) * ((8 * phase + 8) % 3 == 0)
        self.fills = end >= SECTOR  # it takes the last bit of its sector
        self.closes = end == SECTOR  # and none of the next one, so that a period ends

    @property
    def leaves(self):
        """Nothing that comes behind it lies in the last sector that it lies in, but in its upper half."""
        return self.closes or Piece(self.width, self.phase + 1)._reach > self._reach

    @property
    def _reach(self):
        return self.sector + bool(self.beyond)

    def _bit(self, lane):
        value = 8 * self.phase + lane
        return 32 * (value // 3) + 10 * (value % 3) if self.width == 10 else self.width * value

    def bit(self, lane):
        """First bit of a lane's value, from the start of the sector that the piece starts in."""
        return self._bit(lane) - SECTOR * self.sector

    def end(self, count):
        """Bytes of ``count`` of its values and of what lies before them in the sector that it starts in."""
        if self.width == 10:  # whole 32-bit words
            ends = Array(Const(4 * -(-(8 * self.phase + n) // 3), 6) for n in range(9))
            return ends[count]
        return self.start // 8 + count * (self.width // 8)


def period(width):
    """The pieces of a period."""
    pieces = [Piece(width, 0)]
    while not pieces[-1].closes:
        pieces.append(Piece(width, len(pieces)))
    return pieces


class Phases:
    """Which piece of a period comes next: one bit for each piece of each of ``widths``."""

    def __init__(self, m, widths, width):
        self.phase = Signal(2)
        self._chosen = []
        named = [width == index for index in range(len(widths) - 1)]
        named.append(~Cat(named).any())  # what names none is the last one
        for is_width, bits in zip(named, widths, strict=True):
            pieces = period(bits)
            for piece in pieces:
                chosen = Signal(name=f"piece_{bits}_{piece.phase}")
                m.d.comb += chosen.eq(is_width & (self.phase == piece.phase if len(pieces) > 1 else 1))
                self._chosen.append((chosen, piece))

    def __iter__(self):
        return iter(self._chosen)

    def any(self, what):
        """Whether the next piece is one that ``what`` is true of."""
        return Cat(Const(0, 1), *(chosen for chosen, piece in self if what(piece))).any()

    def select(self, value):
        """``value(piece)`` for the next one, or zero."""
        return reduce(or_, (Mux(chosen, value(piece), 0) for chosen, piece in self))

    def advance(self, restart):
        """Moves on by a piece, or to the first one."""
        return self.phase.eq(Mux(restart | self.any(lambda piece: piece.closes), 0, self.phase + 1))


class Bitpack(wiring.Component):
    """Keeps the top bits of each value and packs them, the first value in the least significant bits.

    Values of 8, 16, 24 and 32 bits stand back to back, those of 10 bits three to a word of 32 bits with two zeros on
    top. With the default widths, RoundTo is 8 bits times ``width`` + 1, and the bytes of a value are in the order of
    memory, little endian.

    Every value has its place in the sector from the start, but for those of 24 bits, which may have it in the next one:
    no barrel shifter, and one register, the output's, that fills up in one to four cycles.

    Throughput: one sector of values a cycle; of 24 bits, a tensor whose last values end beyond a sector takes one more.
    Latency: one cycle from the values that fill a sector to that sector. Buffering: a sector, and 16 bytes if there are
    24 bits. Combinational path: ``o.ready`` to ``i.ready``.

    Source: A2DTWP, section III, Bitpack; Gist, section III-A, for three values of 10 bits in a word.

    Parameters
    ----------
    widths : tuple of int
        Bits that a value can be cut to: of 8, 10, 16, 24 and 32.

    Ports
    -----
    i : stream of :func:`values` of the largest width
        8 of them in all beats but the last of a tensor, which may have any number; values beyond it are zero.
    o : stream of :func:`~actcodec.rtl.common.packer.chunk` of 32 bytes
        Sectors of the packed array. The last one may be partial; a tensor of no values gives one of no bytes, and so
        does a last beat of no values behind a full sector.
    width : input
        Index of the width in ``widths``, constant while any value is inside. Beyond them it means the last one.

    Raises
    ------
    ValueError
        If ``widths`` are not legal.
    """

    def __init__(self, widths=(8, 16, 24, 32)):
        self.widths = check_widths(widths)
        super().__init__({
            "i": In(stream.Signature(values(max(self.widths)))),
            "o": Out(stream.Signature(chunk(32))),
            "width": In(range(max(len(self.widths), 2))),
        })

    def elaborate(self, platform):
        m = Module()
        i = self.i.payload
        pieces = Phases(m, self.widths, self.width)
        room = SECTOR + max(piece.beyond for _, piece in pieces)

        o = Signal(chunk(32), reset_less=True)
        carry = Signal(room - SECTOR, reset_less=True)  # what goes beyond the sector
        closing = Signal()  # the last piece is in, and what went beyond must leave
        left = Signal(range((room - SECTOR) // 8 + 1), reset_less=True)  # bytes of that
        free, taking = Signal(), Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(free & ~closing),
            taking.eq(self.i.valid & ~closing),
            self.o.payload.eq(o),
        ]

        def image(piece):
            bits = [Const(0, 1)] * room
            for lane in range(8):
                first = piece.bit(lane)
                bits[first : first + piece.width] = i.data[lane][-piece.width :]
            return Cat(bits)

        placed, end, over = Signal(room), Signal(6), Signal()
        m.d.comb += [
            placed.eq(pieces.select(image)),
            end.eq(pieces.select(lambda piece: piece.end(i.count))),
            over.eq(pieces.any(lambda piece: piece.beyond) & (end > SECTOR // 8)),
        ]
        follows = pieces.any(lambda piece: piece.start and not piece.sector)  # others came into this sector before
        carried = pieces.any(lambda piece: piece.sector)  # the one before went beyond its sector
        with m.If(free):
            m.d.sync += self.o.valid.eq(closing | (taking & (i.last | pieces.any(lambda piece: piece.fills))))
            with m.If(taking | closing):
                m.d.sync += [
                    o.data.as_value().eq(Mux(closing, 0, placed) | Mux(closing | carried, carry, 0)
                                         | Mux(follows & ~closing, o.data.as_value(), 0)),
                    o.count.eq(Mux(closing, left, Mux(over, SECTOR // 8, end))),
                    o.last.eq(closing | (i.last & ~over)),
                    closing.eq(taking & i.last & over),
                    carry.eq(placed[SECTOR:]),
                    left.eq(end),
                    pieces.advance(restart=i.last | closing),
                ]
        return m


class Bitunpack(wiring.Component):
    """Takes packed values apart and fills up their low bits with zeros: the reverse of :class:`Bitpack`.

    A transfer at ``length`` starts a tensor. The unit gives as many values as it was told. If the array ends before,
    what is missing is zero, and ``error.short`` is set; if bytes follow behind the sector that has the last value, they
    are dropped up to the stream's ``last``, and ``error.excess`` is set. What lies in that sector behind the last value
    is not looked at, since an array in memory is filled up to a whole sector.

    A sector of the array waits at the port while it is read; only 24 bits need a register for the half of one.

    Throughput: one sector of values a cycle; a tensor takes two more to start and to end. Latency: one cycle from a
    packed sector to the values that it completes; two from ``length``. Buffering: a sector of values, and 16 bytes if
    there are 24 bits. Combinational paths: ``o.ready`` to ``i.ready``; ``i`` to nothing.

    Source: A2DTWP, section III, Bitunpack; Gist, section III-A, for three values of 10 bits in a word.

    Parameters
    ----------
    widths : tuple of int
        As for :class:`Bitpack`.

    Ports
    -----
    length : stream of 32 bits
        Values of the tensor that starts; taken when the one before has left. None at all give one sector of none.
    i : stream of :func:`~actcodec.rtl.common.packer.chunk` of 32 bytes
        The packed array; of no bytes, one empty chunk.
    o : stream of :func:`values` of the largest width
    width : input
        Index of the width in ``widths``, constant from ``length`` to the last sector. Beyond them it means the last.
    error : output, :class:`Error`

    Raises
    ------
    ValueError
        If ``widths`` are not legal.
    """

    def __init__(self, widths=(8, 16, 24, 32)):
        self.widths = check_widths(widths)
        super().__init__({
            "length": In(stream.Signature(32)),
            "i": In(stream.Signature(chunk(32))),
            "o": Out(stream.Signature(values(max(self.widths)))),
            "width": In(range(max(len(self.widths), 2))),
            "error": Out(Error),
        })

    def elaborate(self, platform):
        m = Module()
        i, length = self.i.payload, self.length.payload
        pieces = Phases(m, self.widths, self.width)

        left = Signal(32, reset_less=True)  # values, those of the next piece among them
        count = Signal(4, reset_less=True)  # of the next piece
        final = Signal(reset_less=True)  # it is the last one
        end = Signal(6)
        m.d.comb += end.eq(pieces.select(lambda piece: piece.end(count)))

        # A piece that goes beyond its sector finds the upper part of that in a register, and the next one at the port,
        # if it needs it at all.
        back = max(piece.beyond for _, piece in pieces)
        here, before = Signal(SECTOR), Signal(back, reset_less=True)
        bytes_before = Signal(6, reset_less=True)  # of that sector
        running = Signal()
        ended = Signal()  # the array is over
        split, needs, missing, taken, passed = Signal(), Signal(), Signal(), Signal(), Signal()
        o = stream.Signature(values(max(self.widths))).create(path=["taken"])
        m.d.comb += [
            split.eq(pieces.any(lambda piece: piece.beyond)),
            needs.eq(Mux(split, end > SECTOR // 8, count.any())),
            missing.eq((needs & (ended | (Mux(split, end[:5], end) > i.count)))
                       | (split & (Mux(needs, SECTOR // 8, end) > bytes_before))),
            o.valid.eq(running & (self.i.valid | ended | ~needs)),
            o.payload.count.eq(count),
            o.payload.last.eq(final),
            taken.eq(o.valid & o.ready),
            passed.eq(running & o.ready & needs & ~ended & (final | pieces.any(lambda piece: piece.leaves))),
        ]

        m.d.comb += here.eq(Mux(ended, 0, i.data.as_value()))

        def lane(k):
            def bits(piece):
                first = piece.bit(k)
                near = Cat(before, here) if piece.beyond else here
                first -= (SECTOR - back) if piece.beyond else 0
                value = near[first : first + piece.width]
                return Cat(Const(0, len(o.payload.data[k]) - piece.width), value)
            return Mux(count > k, pieces.select(bits), 0)

        m.d.comb += [o.payload.data[k].eq(lane(k)) for k in range(8)]
        with m.If(taken):
            m.d.sync += [
                left.eq(left - 8),
                final.eq(left <= 16),
                count.eq(Mux(left <= 16, left[:4] - 8, 8)),
                pieces.advance(restart=final),
                before.eq(here[SECTOR - back :]),
                bytes_before.eq(Mux(ended, 0, i.count)),
            ]
            with m.If(missing):
                m.d.sync += self.error.short.eq(1)
        with m.If(passed & self.i.valid & i.last):
            m.d.sync += ended.eq(1)

        pipe = Pipeline(m, o, self.o)
        *registers, stage_count, stage_last = pipe.stage(*o.payload.data, count, final)
        pipe.finish()
        m.d.comb += [target.eq(word) for target, word in zip(self.o.payload.data, registers, strict=True)]
        m.d.comb += [self.o.payload.count.eq(stage_count), self.o.payload.last.eq(stage_last)]

        m.d.comb += self.i.ready.eq(passed)
        with m.FSM():
            with m.State("idle"):
                m.d.comb += self.length.ready.eq(~self.o.valid)
                m.d.sync += [left.eq(length), final.eq(length <= 8), count.eq(Mux(length <= 8, length[:4], 8)),
                             ended.eq(0)]
                with m.If(self.length.valid & self.length.ready):
                    m.d.sync += self.error.eq(0)
                    m.next = "run"
            with m.State("run"):
                m.d.comb += running.eq(1)
                with m.If(taken & final):
                    m.next = "drain"
                    with m.If(ended | (passed & self.i.valid & i.last)):
                        m.next = "idle"
            with m.State("drain"):
                m.d.comb += self.i.ready.eq(1)
                with m.If(self.i.valid):
                    with m.If(i.count.any()):
                        m.d.sync += self.error.excess.eq(1)
                    with m.If(i.last):
                        m.next = "idle"
        return m
