"""Of sectors: the largest magnitude of each channel, and minimum, maximum, zeros and NaNs of the tensor."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import carrysave
from actcodec.rtl.common.numbers import INFINITY, MINUS_INFINITY
from actcodec.rtl.common.numbers import below as is_below
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.common.vectors import sectors
from actcodec.rtl.common.wires import wire

__all__ = ["Statistics"]

GROUP = 4  # values of which all pairs are compared at once


class Statistics(wiring.Component):
    """What the values of a tensor are like, channel by channel.

    Least and greatest of four values come from all their pairs at once, since a comparison of two serves both; a pair
    of groups follows, then what was there before. Only finite numbers count. The largest magnitude of a channel is that
    of its least or of its greatest number, so no value has a comparator for that.

    Throughput: one sector per cycle; after a channel's last one the next waits until ``o`` has moved. Latency: 3 cycles
    from a channel's last sector to ``o``, by when ``minimum`` and ``maximum`` have it, too; 2 to ``zeros`` and
    ``nans``. Buffering: two sectors and a magnitude. Combinational path: ``o.ready`` to ``i.ready``.

    Source: this project; JPEG-ACT, section III-B, for the largest magnitude.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.common.vectors.sectors`
        float32; ``last`` is on the last sector of a channel. Words beyond ``count`` may be anything.
    o : stream of 31 bits
        Of each channel, the largest finite magnitude: a float32 word without its sign, 0 without a finite number.
    minimum, maximum : output, 32 bits
        The least and the greatest finite number since ``clear``; infinite and minus infinite without one.
    zeros, nans : output, 0 to 8
        Zeros of either sign, and NaNs, of one sector: each counts in a single cycle, before its channel is at ``o``.
    clear : input
        Pulse in front of each tensor, while no sector is inside.
    """

    i: In(stream.Signature(sectors))
    o: Out(stream.Signature(31))
    minimum: Out(32, init=INFINITY)
    maximum: Out(32, init=MINUS_INFINITY)
    zeros: Out(range(9))
    nans: Out(range(9))
    clear: In(1)

    def elaborate(self, platform):
        m = Module()
        ended = stream.Signature(0).create(path=["ended"])  # of the pipeline in front of the accumulators
        pipe = Pipeline(m, self.i, ended)

        source, finite, zeros, nans = self.i.p, [], [], []
        for k, word in enumerate(source.data):
            there, special, some = source.count > k, word[23:31].all(), wire(m, word[:23].any(), "some")
            finite.append(wire(m, there & ~special, "finite"))
            zeros.append(there & ~word[23:31].any() & ~some)
            nans.append(there & special & some)
        groups = [self._extremes(m, source.data[low : low + GROUP], finite[low : low + GROUP])
                  for low in range(0, 8, GROUP)]
        registers = pipe.stage(*(value for group in groups for value in group), Cat(zeros), Cat(nans), source.last)
        *registers, zeros, nans, last = registers
        groups = registers[:3], registers[3:]

        passes = pipe.valid & pipe.advance
        m.d.sync += [counter.eq(Mux(passes, carrysave.count(flags), 0))
                     for counter, flags in ((self.zeros, zeros), (self.nans, nans))]

        (low, high, some), (other_low, other_high, others) = groups
        less = others & (~some | is_below(m, other_low, low))
        more = others & (~some | is_below(m, high, other_high))
        low, high, some, last = pipe.stage(Mux(less, other_low, low), Mux(more, other_high, high), some | others, last)
        pipe.finish()

        # The accumulators: of the tensor, and of the channel, whose first sector replaces what is there.
        first, full, magnitude = Signal(init=1), Signal(), Signal(31, reset_less=True)
        enters = Signal()
        m.d.comb += [
            self.o.p.eq(magnitude), self.o.valid.eq(full),
            ended.ready.eq(~full | self.o.ready),
            enters.eq(ended.valid & ended.ready),
        ]
        least, most = low[:31], high[:31]
        above, below, beyond = (wire(m, a > b, "larger") for a, b in (
            (most, least), (least, magnitude), (most, magnitude)))
        kept = ~first & Mux(some, ~below & ~beyond, 1)
        m.d.sync += full.eq(ended.valid & last | full & ~self.o.ready)
        with m.If(enters):
            m.d.sync += first.eq(last)
            with m.If(~kept):
                m.d.sync += magnitude.eq(choose([(some & above, most), (some & ~above, least)]))
            with m.If(some & is_below(m, low, self.minimum)):
                m.d.sync += self.minimum.eq(low)
            with m.If(some & is_below(m, self.maximum, high)):
                m.d.sync += self.maximum.eq(high)
        with m.If(self.clear):
            m.d.sync += [first.eq(1), full.eq(0), self.minimum.eq(INFINITY), self.maximum.eq(MINUS_INFINITY)]
        return m

    @staticmethod
    def _extremes(m, words, finite):
        """Least and greatest of some words, and whether any of them is finite."""
        places = range(len(words))
        below = {(i, j): is_below(m, words[j], words[i]) for i in places for j in places if i < j}
        least, most = [], []
        for i in places:
            under = [~finite[j] | (below[j, i] if j < i else ~below[i, j]) for j in places if j != i]
            over = [~finite[j] | (~below[j, i] if j < i else below[i, j]) for j in places if j != i]
            least.append((finite[i] & Cat(under).all(), words[i]))
            most.append((finite[i] & Cat(over).all(), words[i]))
        return choose(least), choose(most), Cat(finite).any()
