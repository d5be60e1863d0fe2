"""What takes MX's scales past a coder of elements, in both directions."""

from functools import partial

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import wires
from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.shift_fifo import shift_fifo
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.mx.element import HALF, check_elements
from actcodec.rtl.offload.control.config import rows_layout
from actcodec.rtl.offload.wire.block_format import HALVES, MASK

__all__ = ["CHUNK", "CODERS", "MOST", "Scales", "codes_layout"]

CODERS = ("zvc", "nibble", "rice")
CHUNK = MASK + 8  # bytes, of a coder
BLOCKS = 3  # whose scales wait
# Rows that a coder, with skid buffers around it, holds at most when it decompresses: a block's second scale leaves with
# its fifth row. Compressing, both leave with the first one, so that it may hold as many as the blocks have.
MOST = 8 * BLOCKS - HALF


def codes_layout(width=8):
    """Codes of a row, of ``width`` bits in each lane; the block's scales, which count with its first row; ``last``."""
    return data.StructLayout({"codes": data.ArrayLayout(width, 8), "scales": 8 * HALVES, "last": 1})


class Scales(wiring.Component):
    """Stands around a coder of bytes, one of JPEG-ACT's, that MX's elements pass.

    Compressing, the codes go on to the coder and the scales wait, until the first chunk of their block comes back: they
    leave in front of it, or of a counted block behind the first byte, which counts them then. Decompressing, they come
    with the first row that goes to the coder, of whose first byte they are taken off; its values leave as rows of
    elements as :class:`~actcodec.rtl.mx.decode.Decode` takes them, with their scales::

        compress    i -> codes -> coder -> coded -> chunks
                    i ---------- scales -----------> chunks
        decompress  row -> coder -> values -> rows
                    row -- scales ----------> rows

    A first byte that counts less than the scales is malformed; its block is zeros.

    Throughput: a row a cycle. Latency: none from ``i`` to ``codes`` and from ``mask`` to ``mask_o``, 1 cycle from
    ``coded`` to ``chunks`` and from ``values`` to ``rows``. Buffering: the scales of three blocks, as no coder holds
    more than 22 rows, of 24 that could be, and when it decompresses 20 of 20; and a row. Combinational paths: ``i`` to
    ``codes``, ``codes.ready`` to ``i.ready``, ``chunks.ready`` to ``coded.ready``, ``rows.ready`` to ``values.ready``,
    ``mask`` and ``empty`` to ``mask_o`` and ``empty_o``.

    Source: docs/formats.md, "MX".

    Parameters
    ----------
    elements : tuple of {"int8", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}
        Element formats, one or more.
    coders : tuple of {"zvc", "nibble", "rice"}
        Coders of the elements, one or more.

    Ports
    -----
    i : stream of :func:`codes_layout`
        Eight rows a block, of codes in the low bits of bytes.
    codes : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8, to the coder
    coded : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 16, from the coder
        Eight chunks a block, of a counted one the first with 14 bytes at most.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 18
    moves, mask, empty, halves : input
        A row goes to the coder, eight a block; and of the row what
        :func:`~actcodec.rtl.offload.control.config.rows_layout` says, and that it is missing.
    mask_o, empty_o : output
        What the coder gets in place of ``mask`` and ``empty``.
    values : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8, from the coder
    rows : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout` of as many bytes as an element has bits
        The scales in ``mask``, with the first row and the fifth.
    format, coder : input
        Places of the elements' format among ``elements``, and of the coder among ``coders``; one more where a tensor
        passes none of them, whose rows stay as they are.
    decompress : input
        All constant while a tensor is under way.
    start : input
        Pulse, before a tensor's first row.
    malformed : output
        A block of this tensor was. Until ``start``.

    Raises
    ------
    ValueError
        If ``elements`` or ``coders`` are not such.
    """

    def __init__(self, elements=("int8", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1"), coders=CODERS):
        self.formats = check_elements(elements)
        if not isinstance(coders, tuple | list) or not coders or any(name not in CODERS for name in coders):
            raise ValueError(f"coders must be one or more of {', '.join(CODERS)}, in a tuple, not {coders!r}")
        self.coders = tuple(dict.fromkeys(coders))
        self.width = max(form.width for form in self.formats)
        vectors = vectors_layout(signed(8))
        super().__init__({
            "i": In(stream.Signature(codes_layout())), "codes": Out(stream.Signature(vectors)),
            "coded": In(stream.Signature(chunk_layout(CHUNK))),
            "chunks": Out(stream.Signature(chunk_layout(HALVES + CHUNK))),
            "moves": In(1), "mask": In(8), "empty": In(1), "halves": In(8 * HALVES),
            "mask_o": Out(8), "empty_o": Out(1),
            "values": In(stream.Signature(vectors)), "rows": Out(stream.Signature(rows_layout(self.width))),
            "format": In(range(max(len(self.formats), 2))), "coder": In(range(len(self.coders) + 1)),
            "decompress": In(1), "start": In(1), "malformed": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        wire = partial(wires.wire, m)

        def register(value, name):
            # The settings stand: where they are decoded costs no time.
            flag = Signal(name=name, reset_less=True)
            m.d.sync += flag.eq(value)
            return flag

        counts = {name: register(self.coder == self.coders.index(name), f"is_{name}")
                  for name in self.coders if name != "zvc"}
        counted = Cat(counts.values()).any()
        rice = counts.get("rice", Const(0, 1))

        def changed(byte, by):
            """A first byte that counts more, or less: by 2, or -2."""
            upper = wire((byte[1:] + by // 2)[:7])
            return Cat(byte[0], upper[:5], Mux(rice, byte[6:], upper[5:]))

        # ---------------------------------------------------------------------------------------------- to the coder
        into, out = Signal(3), Signal(3)  # rows of a block that have gone to the coder, and come from it
        enters, leaves = Signal(), Signal()
        void = wire(counts.get("nibble", Const(0, 1)) & (into == 0) & ~self.mask[1:].any())
        m.d.comb += [
            self.codes.valid.eq(self.i.valid), self.i.ready.eq(self.codes.ready),
            self.codes.p.last.eq(self.i.p.last),
            *(value.eq(code) for value, code in zip(self.codes.p.data, self.i.p.codes, strict=True)),
            self.mask_o.eq(Mux(counted, changed(self.mask, -HALVES), self.mask)),
            self.empty_o.eq(self.empty | void),
            enters.eq(Mux(self.decompress, self.moves, self.i.valid & self.i.ready)),
        ]
        with m.If(enters):
            m.d.sync += into.eq(into + 1)
        with m.If(self.moves & void & ~self.empty):
            m.d.sync += self.malformed.eq(1)
        with m.If(self.start):
            m.d.sync += self.malformed.eq(0)
        given = Mux(self.decompress, Mux(self.empty_o, 0, self.halves), self.i.p.scales)
        scales, *_ = shift_fifo(m, BLOCKS, wire(given), enters & (into == 0), leaves, "scales")

        # ---------------------------------------------------------------------------------------------- from the coder
        valid, free, some = Signal(), Signal(), Signal()
        result = Signal(8 * (HALVES + CHUNK), reset_less=True)
        count, last = Signal.like(self.chunks.p.count, reset_less=True), Signal(reset_less=True)
        first = wire(out == 0)
        content = self.coded.p.data.as_value()
        front = Mux(counted, Cat(changed(content[:8], HALVES), scales, content[8:]), Cat(scales, content))
        rows = choose((self._is(register, width), Cat(value[:width] for value in self.values.p.data))
                      for width in sorted({form.width for form in self.formats}))
        row = Cat(rows, Const(0, 8 * self.width - len(rows)), Mux(out[2], scales[8:], scales[:8]))
        m.d.comb += [
            free.eq(~valid | Mux(self.decompress, self.rows.ready, self.chunks.ready)),
            some.eq(Mux(self.decompress, self.values.valid, self.coded.valid)),
            self.values.ready.eq(free & self.decompress), self.coded.ready.eq(free & ~self.decompress),
            leaves.eq(some & free & Mux(self.decompress, out == HALF, first)),
        ]
        with m.If(some & free):
            m.d.sync += out.eq(out + 1)
        with m.If(free):
            m.d.sync += [
                valid.eq(some), result.eq(Mux(self.decompress, row, Mux(first, front, content))),
                count.eq(self.coded.p.count + Mux(first, HALVES, 0)),
                last.eq(Mux(self.decompress, self.values.p.last, self.coded.p.last)),
            ]
        m.d.comb += [
            self.chunks.valid.eq(valid & ~self.decompress), self.rows.valid.eq(valid & self.decompress),
            self.chunks.p.data.as_value().eq(result), self.chunks.p.count.eq(count), self.chunks.p.last.eq(last),
            Cat(self.rows.p.data.as_value(), self.rows.p.mask).eq(result), self.rows.p.last.eq(last),
        ]
        return m

    def _is(self, register, width):
        """Whether the format has so many bits."""
        places = [place for place, form in enumerate(self.formats) if form.width == width]
        if len(places) == len(self.formats):
            return Const(1, 1)
        return register(Cat(self.format == place for place in places).any(), f"has_{width}_bits")
