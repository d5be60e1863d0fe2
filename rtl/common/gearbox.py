"""Full words cut into pieces of a fixed size, and such pieces joined to words.

Packer and Unpacker do this for pieces of any size, with three times the registers and a shifter.
"""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.packer import chunk_layout

__all__ = ["Join", "Split"]

WORD = 32  # bytes


def _check(size):
    if size not in (1, 2, 4, 8, 16):
        raise ValueError(f"size must be 1, 2, 4, 8 or 16 bytes, not {size!r}")


class Join(wiring.Component):
    """Joins pieces to words of 32 bytes.

    Throughput: one piece a cycle. Latency: one cycle from the piece that completes a word. Buffering: a word.
    Combinational path: ``o.ready`` to ``i.ready``.

    Parameters
    ----------
    size : int
        Bytes of a piece: 1, 2, 4, 8 or 16.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of ``size``
        Full pieces, but the last one of a tensor, which may be partial or empty.
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32
        Full words, but the last one of a tensor; empty if the last piece was, after pieces that had filled words.

    Raises
    ------
    ValueError
        If ``size`` is not one of those.
    """

    def __init__(self, size):
        _check(size)
        self.size = size
        super().__init__({"i": In(stream.Signature(chunk_layout(size))),
                          "o": Out(stream.Signature(chunk_layout(WORD)))})

    def elaborate(self, platform):
        m = Module()
        pieces, width = WORD // self.size, 8 * self.size
        index = Signal(range(pieces))
        o = Signal(chunk_layout(WORD), reset_less=True)
        free, accepted, first, full = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(free),
            accepted.eq(self.i.valid & free),
            first.eq(index == 0),
            full.eq(self.i.p.last | index.all()),
            self.o.p.eq(o),
        ]
        # The first piece clears the places of the others.
        for k in range(pieces):
            here = index == k
            with m.If(accepted & (first | here)):
                m.d.sync += o.data.as_value().word_select(k, width).eq(
                    Mux(here, self.i.p.data.as_value(), 0))
        with m.If(free):
            m.d.sync += self.o.valid.eq(accepted & full)
        with m.If(accepted):
            m.d.sync += [
                index.eq(Mux(full, 0, index + 1)),
                o.count.eq(self.i.p.count + (index << (self.size.bit_length() - 1))),
                o.last.eq(self.i.p.last),
            ]
        return m


class Split(wiring.Component):
    """Cuts words of 32 bytes into pieces. It has no register for them: a word waits at the input.

    Throughput: one piece a cycle. Latency and buffering: none. Combinational paths: ``i`` to ``o``, ``o.ready`` to
    ``i.ready``.

    Parameters
    ----------
    size : int
        Bytes of a piece: 1, 2, 4, 8 or 16.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 32
        Full words, but the last one of a tensor, which may be partial or empty.
    o : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of ``size``
        Full pieces, but the last one of a tensor; empty if that tensor's last word is.

    Raises
    ------
    ValueError
        If ``size`` is not one of those.
    """

    def __init__(self, size):
        _check(size)
        self.size = size
        super().__init__({"i": In(stream.Signature(chunk_layout(WORD))),
                          "o": Out(stream.Signature(chunk_layout(size)))})

    def elaborate(self, platform):
        m = Module()
        pieces, log = WORD // self.size, self.size.bit_length() - 1
        index = Signal(range(pieces))
        # Pieces, and bytes in an incomplete one behind them.
        whole, rest = Signal(range(pieces + 1)), Signal(range(max(self.size, 2)))
        end, final = Signal(), Signal()
        i, o = self.i.p, self.o.p
        m.d.comb += [
            Cat(rest[:log], whole).eq(i.count) if log else whole.eq(i.count),
            # The piece at hand is the last of its word: the one after it would be empty.
            end.eq((whole < index + 1) | ((whole == index + 1) & (rest == 0))),
            final.eq(index.all() | (i.last & end)),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready & final),
            o.data.as_value().eq(Array(i.data.as_value().word_select(k, 8 * self.size) for k in range(pieces))[index]),
            o.count.eq(Mux(i.last & (whole <= index), rest, self.size)),
            o.last.eq(i.last & final),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += index.eq(Mux(final, 0, index + 1))
        return m
