"""The unpacker: gives a stream of full words back in pieces of any number of bytes."""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import Digits, window
from actcodec.rtl.common.packer import check_sizes, chunk_layout
from actcodec.rtl.common.target import target

__all__ = ["Unpacker", "window_layout"]


def window_layout(size):
    """Payload of an unpacker's output: the next ``size`` bytes of the stream, lane 0 first, and ``short`` if fewer
    than were asked for are left of it."""
    return data.StructLayout({"data": data.ArrayLayout(8, size), "short": 1})


class Unpacker(wiring.Component):
    """Shows the next bytes of a stream and moves on by as many of them as are taken: the reverse of the packer.

    Words stay as they came, in a row of registers; one shifter finds the next byte's place among them. When that passes
    the end of words, the others move down, but only in the next cycle, in which the shifter still finds them where they
    were: all that ``take`` has to reach within its own cycle is the place, and a decoder can compute it from the bytes
    of the cycle before.

    Throughput: one piece a cycle, ``i_size`` bytes a cycle on average; where ``o_size`` is more than 1.25 ``i_size``,
    pieces of different sizes may wait for a word now and then. Latency: one cycle from a word to its bytes.
    Buffering: as many words as a piece of ``o_size`` bytes can touch, and one that makes up for their moving late.
    Combinational path: ``take`` to ``short``.

    Source: JPEG-ACT, section III-G (the output FIFO of the splitter, popped a variable number of bytes).

    Parameters
    ----------
    granule : int
        Bytes are taken in multiples of it. A power of two.
    i_size : int
        Bytes of a word, a power of two.
    o_size : int
        Most bytes of a piece.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of ``i_size``
        Full words; the last one of a tensor carries ``last`` and may be partial.
    take : input
        Bytes that a transfer at ``o`` consumes, 0 to ``o_size``.
    o : stream of :func:`window_layout` of ``o_size``
        Valid when ``o_size`` bytes are there, however many are taken, or when the last word is: then missing bytes are
        zero, and ``short`` says that some of the ``take`` bytes are missing.
    next : input
        Pulse: forget what is left of this tensor's stream. A transfer at ``o`` in the same cycle still counts. If the
        stream's last word has not been received by the end of this cycle, further words are taken and dropped up to
        that one. What follows is the next tensor, and its first word is not taken before the pulse.
    excess : output
        Bytes are left (a part of a granule among them), or the last word has not been received.
    discarding : output
        Words of a stream that was given up are still to come, and are taken to be dropped.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, granule=1, i_size=16, o_size=16):
        check_sizes(granule, "i_size", i_size=i_size, o_size=o_size)
        self.granule, self.i_size, self.o_size = granule, i_size, o_size
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(i_size))),
                "take": In(range(o_size + 1)),
                "o": Out(stream.Signature(window_layout(o_size))),
                "next": In(1),
                "excess": Out(1),
                "discarding": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()

        # From here on, all is counted in granules.
        unit, fine = 8 * self.granule, self.granule.bit_length() - 1
        word, piece = self.i_size // self.granule, self.o_size // self.granule
        most = (word - 1 + piece) // word  # words that a piece can pass
        count = -(-(word - 1 + piece) // word) + 1

        # Words beyond those that are stored are zero, but for those that the first word of a tensor will clear.
        words = [Signal(unit * word, reset_less=True, name=f"word_{k}") for k in range(count)]
        stored = Signal(range(count + 1))  # words, with those that the last piece passed
        # The place of the next granule, from the first word on. Its top digit, of ``step`` values for each word, says
        # how many words the last piece passed.
        bits = word.bit_length() - 1
        # A LUT chooses one of two: of four, it takes three LUTs and as many levels as two digits of one bit.
        sizes = [1] * bits if target(platform) == "lut" else [2] * (bits // 2)
        step = 1 << bits - sum(sizes)
        place = Digits([*sizes, (step * (most + 1) - 1).bit_length()], word * (most + 1), "place")
        top = place.signals[-1]
        passed = [top[j * step :][:step].any() for j in range(most + 1)]
        within = Cat(top[k::step].any() for k in range(step))  # the top digit, words left out
        offset = Cat(Cat(digit[1::2].any(), *([digit[2:].any()] if len(digit) > 2 else []))
                     for digit in place.signals[:-1])
        if step == 2:
            offset = Cat(offset, within[1])
        # Granules from that place on; less than none where zeros were taken for what the stream had no more of.
        level, known = Signal(range(-piece, count * word + 1)), Signal(range(count * word + 1))
        closed = Signal()  # the last word is in
        ragged = Signal()  # and with it a part of a granule, which nobody can take

        take, moved = self.take >> fine, Signal(range(word + piece))
        fired, accepted = Signal(), Signal()
        m.d.comb += [
            moved.eq(offset + take),
            known.eq(Mux(level < 0, 0, level)),
            self.o.valid.eq((known >= piece) | closed),
            self.o.p.short.eq(known < take),
            self.excess.eq(~closed | (known != 0) | ragged),
            fired.eq(self.o.valid & self.o.ready),
            self.i.ready.eq(self.discarding | (~closed & ((stored != count) | ~passed[0]))),
            accepted.eq(self.i.valid & self.i.ready & ~self.discarding),
        ]
        m.d.sync += top.eq(within)
        # A new word goes after those that stay.
        stay = Signal.like(stored)
        m.d.comb += stay.eq(stored - sum(j * passed[j] for j in range(1, most + 1)))
        for k in range(count):
            arrivals = [Mux(passed[j], words[k + j], 0) for j in range(1, min(most, count - 1 - k) + 1)]
            with m.If(~passed[0] | (accepted & ((stored == k) | (stored == 0)))):
                m.d.sync += words[k].eq(reduce(or_, arrivals, Mux(
                    accepted & (stay == k), self.i.p.data.as_value(), 0)))

        grown = Signal.like(known)
        m.d.comb += grown.eq(known + Mux(accepted, self.i.p.count >> fine, 0))
        m.d.sync += [
            stored.eq(stay + accepted),
            level.eq(grown),
            closed.eq(closed | (accepted & self.i.p.last)),
            ragged.eq(ragged | (accepted & self.i.p.count[:fine].any())),
        ]
        with m.If(fired):
            m.d.sync += [*place.eq(moved), level.eq(grown - take)]
        received = self.i.valid & self.i.ready & self.i.p.last
        with m.If(received):
            m.d.sync += self.discarding.eq(0)
        with m.If(self.next):
            m.d.sync += [
                *place.eq(Const(0)), stored.eq(0), level.eq(0), closed.eq(0), ragged.eq(0),
                self.discarding.eq(~(closed | received)),
            ]

        granules = [granule for one in words for granule in data.View(data.ArrayLayout(unit, word), one)]
        m.d.comb += self.o.p.data.as_value().eq(Cat(window(m, granules, place[:], piece)))
        return m
