"""Byte chunks, and the packer that turns a stream of partly filled ones into full words."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.target import target

__all__ = ["Packer", "check_sizes", "chunk_layout"]


def chunk_layout(size):
    """Payload of a byte stream: ``count`` valid bytes (0 to ``size``) from lane 0 up, and ``last`` on the last beat of
    a tensor. Bytes beyond ``count`` are zero; the sender of a chunk ensures it."""
    return data.StructLayout({"data": data.ArrayLayout(8, size), "count": range(size + 1), "last": 1})


def check_sizes(granule, power_of_two, **sizes):
    """Raises ValueError unless ``granule`` is a power of two that divides all ``sizes`` (bytes), and the size named
    ``power_of_two`` is one."""
    if not isinstance(granule, int) or granule < 1 or granule & granule - 1:
        raise ValueError(f"granule must be a power of two of bytes, not {granule!r}")
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1 or size % granule:
            raise ValueError(f"{name} must be a positive multiple of the granule of {granule} bytes, not {size!r}")
    size = sizes[power_of_two]
    if size < 2 * granule or size & size - 1:
        raise ValueError(f"{power_of_two} must be a power of two of at least two granules of {granule} bytes, "
                         f"not {size!r}")


class Packer(wiring.Component):
    """Packs chunks of a variable number of bytes into full words.

    A chunk is shifted up to the end of the bytes that wait (the *rest*) and merged into them. As soon as there is more
    than a word, a word moves to the output register. A rest of exactly one word waits for the next chunk: if that one
    is empty and the last of its tensor, the word itself must say ``last``.

    Throughput: one chunk a cycle, as long as the output is not stalled and, if ``i_size`` exceeds ``o_size``, no more
    than 2 (``i_size`` - ``o_size``) bytes have come beyond ``o_size`` a cycle. A tensor whose last chunk fills more
    than a word takes one more cycle. Latency: one cycle from the chunk that completes a word to that word. Buffering:
    a word at the output, and a rest of ``o_size`` bytes, or 2 ``i_size`` - ``o_size`` where that is more.
    Combinational path: ``o.ready`` to ``i.ready`` (without it, another chunk would have to be stored).

    Source: JPEG-ACT, section III-G (the input FIFO of the collector, pushed a variable number of bytes).

    Parameters
    ----------
    granule : int
        Bytes come in multiples of it. A power of two.
    i_size : int
        Most bytes of a chunk, less than 1.5 ``o_size``.
    o_size : int
        Bytes of a word, a power of two.

    Ports
    -----
    i : stream of :func:`chunk_layout` of ``i_size``
        Any number of bytes in each; ``last`` on the last chunk of a tensor, which may be empty.
    o : stream of :func:`chunk_layout` of ``o_size``
        Full words, the last one of a tensor with 1 to ``o_size`` bytes and ``last``. A tensor of no bytes at all gives
        one empty word. Not ready in the first cycle after reset.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, granule=1, i_size=16, o_size=16):
        check_sizes(granule, "o_size", i_size=i_size, o_size=o_size)
        if 2 * i_size >= 3 * o_size:
            raise ValueError(f"i_size must be less than 1.5 o_size = {1.5 * o_size:g} bytes, not {i_size!r}")
        self.granule, self.i_size, self.o_size = granule, i_size, o_size
        super().__init__(
            {
                "i": In(stream.Signature(chunk_layout(i_size))),
                "o": Out(stream.Signature(chunk_layout(o_size))),
            }
        )

    def elaborate(self, platform):
        m = Module()

        # From here on, all is counted in granules.
        unit = 8 * self.granule
        i_size, word = self.i_size // self.granule, self.o_size // self.granule
        capacity = max(word, 2 * i_size - word)

        rest = Signal(unit * capacity, reset_less=True)
        level = Signal(range(capacity + 1))  # granules in it; what lies beyond them is zero
        # The last chunk is in, only the rest must leave. Reset enters this state with nothing left, which clears the
        # rest: its registers need no reset of their own.
        closing = Signal(init=1)

        free, taking, fits = Signal(), Signal(), Signal()
        i_count = self.i.p.count >> (self.granule.bit_length() - 1)
        total, grown = (Signal(range(capacity + i_size + 1), name=name) for name in ("total", "grown"))
        beyond, ends, load = Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            fits.eq(level <= capacity + word - i_size),
            self.i.ready.eq(free & fits & ~closing),
            taking.eq(self.i.valid & fits & ~closing),
            grown.eq(level + i_count),
            total.eq(Mux(taking, grown, level)),
            beyond.eq(Mux(taking, grown > word, level > word)),
            ends.eq(Mux(taking, self.i.p.last, closing)),
            load.eq(beyond | ends),
        ]

        # The chunk, moved up by the level modulo a word. A level of a word and more puts it one word higher.
        # For LUTs, of which that takes fewer, it is turned within a word: lanes below the level are of the next one.
        turns = target(platform) == "lut" and capacity == word
        shifted = self.i.p.data.as_value()
        if turns:
            shifted = Cat(shifted, Const(0, unit * (word - i_size)))
        for bit in range((word - 1).bit_length()):
            step = Signal(len(shifted) + (0 if turns else unit << bit), name=f"shifted_{1 << bit}")
            moved = shifted.rotate_left(unit << bit) if turns else shifted << (unit << bit)
            m.d.comb += step.eq(Mux(level[bit], moved, shifted))
            shifted = step
        high = level >= word

        def only(condition, value):
            return Mux(condition, value, 0)

        o = Signal(chunk_layout(self.o_size), reset_less=True)
        m.d.comb += self.o.p.eq(o)
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(load & ~(closing & (level == 0))),
                o.count.eq(Mux(beyond, word, total) << (self.granule.bit_length() - 1)),
                o.last.eq(ends & ~beyond),
                closing.eq(ends & beyond),
                level.eq(Mux(beyond, total - word, only(~ends, total))),
            ]
            if turns:
                stays, wraps = taking & ~load, taking & (beyond | ~load)
                for k in range(word):
                    below, waits, comes = level > k, rest.word_select(k, unit), shifted.word_select(k, unit)
                    m.d.sync += [
                        o.data.as_value().word_select(k, unit).eq(Mux(taking & ~below, comes, waits)),
                        waits.eq(only(~load, waits) | only(Mux(below, wraps, stays), comes)),
                    ]
                return m
            m.d.sync += [
                o.data.as_value().eq(rest | only(taking & ~high, shifted)),
                rest.eq(only(~load, rest) | only(beyond, rest >> unit * word)
                        | only(taking & (high | ~load), shifted)
                        | only(taking & beyond & ~high, shifted >> unit * word)),
            ]
        return m
