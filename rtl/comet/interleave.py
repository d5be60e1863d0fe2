"""Interleaving: the bits of eight lanes to bytes, in the order in which a decoder asks for them."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.comet import huffman
from actcodec.rtl.comet.payloads import LANES
from actcodec.rtl.common import compaction
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.shift_fifo import shift_fifo

__all__ = ["BYTES", "SPARE", "STEPS", "Interleave"]

BYTES, STEPS = 22, 23  # of a lane, and of all lanes, that have to be kept
SPARE = 1  # more of either, with which it takes a step a cycle whatever the lengths are


class Interleave(wiring.Component):
    """Keeps the bytes of each lane until the decoder will ask for them.

    The stream begins with a byte of each lane. Then, in each step, a lane that holds fewer than 16 bits asks for one
    more. So what a step asks for depends on the lengths of earlier steps alone: a lane that has given n bits before has
    asked for 2 + ceil(n / 8) bytes when the step ends. With r = n mod 8, a step of l bits makes the next one ask if
    r = 0 or r + l > 8, and completes a byte if r + l >= 8.

    The byte asked for may be complete as late as 22 steps later, so a FIFO for each lane keeps bytes, another one what
    the steps ask for. A step leaves when all it asks for is there; in the end, zeros stand for what is not.

    Depth: when a step j waits after step k, some lane a has completed fewer than 2 + ceil(n_a(j) / 8) bytes, so it has
    given n_a(k+1) - n_a(j) <= 22 bits since, at least one a step: at most 22 steps wait, and another lane has given
    8 bits in each of 23 at most since step j - 1, for which it has been asked 2 + ceil(n(j-1) / 8) bytes, so that 21 of
    its bytes wait at most. With room for one more of each, 22 and 23, the FIFOs never both wait and are full. With one
    less of either they lock up: one bit a step in one lane, 8 in another.

    Throughput: a step a cycle; with less than ``SPARE`` beyond the least depths it pauses now and then, where a lane
    has given one bit a step for long. Latency: 3 cycles beyond those for which a step has to wait. Buffering: ``bytes``
    bytes for each lane, ``steps`` steps, two steps on their way out. Combinational path: none.

    Source: F. Giesen, "Interleaved entropy coders", 2014.

    Parameters
    ----------
    bytes, steps : int
        Depths of the FIFOs, at least 3. With fewer than ``BYTES`` and ``STEPS`` it locks up.

    Ports
    -----
    i : stream of :data:`~actcodec.rtl.comet.huffman.steps`
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 8
        What the decoder asks for in each step, lanes in order; ``last`` on an empty chunk.

    Raises
    ------
    ValueError
        If a depth is not an int of at least 3.
    """

    def __init__(self, bytes=BYTES + SPARE, steps=STEPS + SPARE):
        for name, depth in (("bytes", bytes), ("steps", steps)):
            if type(depth) is not int or depth < 3:
                raise ValueError(f"{name} must be an integer of at least 3, not {depth!r}")
        self.bytes, self.steps = bytes, steps
        super().__init__({"i": In(stream.Signature(huffman.steps)),
                          "o": Out(stream.Signature(chunk_layout(LANES)))})

    def elaborate(self, platform):
        m = Module()
        i = self.i.p
        full = Signal(init=1)
        takes, closes = Signal(), Signal()
        ending = Signal()  # all steps are in
        # After a tensor, and after a reset, when no step is taken: what the bits of the next one are counted from.
        # Its registers need no reset of their own, with which they would get no clock gate.
        clear = Signal(init=1)
        m.d.comb += [
            self.i.ready.eq(~full & ~ending),
            takes.eq(self.i.valid & self.i.ready & ~i.end), closes.eq(self.i.valid & self.i.ready & i.end),
        ]
        m.d.sync += clear.eq(closes)
        with m.If(closes):
            m.d.sync += ending.eq(1)

        # ------------------------------------------------------------------------------------- bits to bytes
        asks = Signal(LANES, reset_less=True)  # for a byte, in the step that comes
        requests = Signal(LANES)  # in the step that leaves
        goes = Signal()  # a step leaves
        opening = Signal(init=1)  # the first bytes have not yet left
        shown, real, there, filled = [], [], [], []
        for lane in range(LANES):
            bits, part = (Signal(width, reset_less=True, name=f"{name}_{lane}")
                          for name, width in (("bits", 7), ("part", 3)))
            total, merged = Signal(4, name=f"total_{lane}"), Signal(15, name=f"merged_{lane}")
            m.d.comb += [total.eq(part + i.size[lane] + 1),
                         merged.eq(bits << 8 | (i.data[lane] << ~total)[:15])]
            with m.If(takes | clear):
                m.d.sync += [
                    bits.eq(Mux(clear, 0, Mux(total[3], merged[:7], merged[8:]))),
                    part.eq(Mux(clear, 0, total[:3])),
                    asks[lane].eq(clear | (part == 0) | (total[3] & total[:3].any())),
                ]
            # What is left in the end is a byte, too.
            push = (takes & total[3]) | (closes & part.any())
            pop = goes & requests[lane]
            head, some, behind, more = shift_fifo(m, self.bytes, merged[7:], push, pop, f"byte_{lane}")
            shown.append(head)
            # In the end zeros stand for bytes that do not come.
            there.append(some | (ending & ~behind))
            real.append(some)
            filled.append(more)

        # ------------------------------------------------------------------------------------- what leaves
        record, waiting, behind, more = shift_fifo(m, self.steps, asks, takes, goes & ~opening, "step")
        m.d.sync += full.eq(Cat(*filled, more).any())
        free, advance = Signal(), Signal()
        finished = Signal()
        m.d.comb += [
            requests.eq(record | opening.replicate(LANES)),
            goes.eq(advance & waiting & (Cat(there) | ~requests).all()),
            finished.eq(advance & ending & ~waiting & ~behind),
        ]
        with m.If(goes):
            m.d.sync += opening.eq(0)
        with m.If(finished):
            m.d.sync += [ending.eq(0), opening.eq(1)]
        left = [Signal(8, reset_less=True, name=f"left_{lane}") for lane in range(LANES)]
        mask = Signal(LANES)
        leaving = Signal()
        final = Signal()
        with m.If(advance):
            m.d.sync += [leaving.eq(goes | finished), final.eq(finished), mask.eq(requests & goes.replicate(LANES))]
            m.d.sync += [byte.eq(head & (some & requests[lane]).replicate(8))
                         for lane, (byte, head, some) in enumerate(zip(left, shown, real, strict=True))]
        # Bytes close up to chunks.
        closed = compaction.close(m, left, compaction.moves(m, compaction.zeros(m, mask)))
        o, valid = Signal(chunk_layout(LANES), reset_less=True), Signal()
        m.d.comb += [free.eq(~valid | self.o.ready), advance.eq(free | ~leaving),
                     self.o.valid.eq(valid), self.o.p.eq(o)]
        with m.If(free):
            m.d.sync += [valid.eq(leaving), Value.cast(o.data).eq(Cat(closed)), o.last.eq(final),
                         o.count.eq(sum(mask[k] for k in range(LANES)))]
        return m
