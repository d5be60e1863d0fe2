"""A codec of the benches, with counted blocks: of a block's 64 int8 it keeps those up to the last that is not zero.

A setting is added to the bytes behind the first: byte k mod 5 of ``key`` to byte k.

Small and slow: 16 cycles a block.
"""

import numpy as np
from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.codecs import Mode, Setting, jpegact
from actcodec.codecs import Stage as Declared
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.offload.control.config import rows_layout
from actcodec.rtl.offload.control.stage import Hop, Stage
from actcodec.rtl.offload.wire.block_format import MASK, BlockFormat

__all__ = ["TRIM", "encode"]

TRIM = Mode("trim", 60, (jpegact.SFPR, Declared("tb.offload.trim:trim", "actcodec.golden.jpegact.path:Coder",
                                                format=BlockFormat("counted", 8),
                                                settings=(Setting("key", 40, 5),))))


def encode(blocks, key=0):
    """Payload (uint8) and sizes of blocks, uint8 [n, 64]."""
    counts = 64 - np.argmax(blocks[:, ::-1] != 0, axis=1)
    counts[~blocks.any(axis=1)] = 0
    keep = np.arange(64) < counts[:, None]
    added = np.resize(np.frombuffer(key.to_bytes(5, "little"), np.uint8), 64)
    whole = np.hstack([counts[:, None].astype(np.uint8), blocks + added])
    return whole[np.hstack([np.ones((len(blocks), 1), bool), keep])], counts + 1


class Trim(wiring.Component):
    """Both directions, with the ports of a :class:`~actcodec.rtl.jpegact.zvc.Zvc` that is not packed."""

    i: In(stream.Signature(vectors_layout(signed(8))))
    chunks: Out(stream.Signature(chunk_layout(MASK + 8)))
    rows: In(stream.Signature(rows_layout(8)))
    empty: In(1)
    key: In(40)
    o: Out(stream.Signature(vectors_layout(signed(8))))

    def elaborate(self, platform):
        m = Module()
        row, full, last = Signal(3), Signal(), Signal()
        block, count = Signal(512), Signal(7)
        key = Array([Cat(self.key.word_select((8 * row + k) % 5, 8) for k in range(8)) for row in range(8)])
        data = Cat((word + key[row].word_select(k, 8))[:8] for k, word in enumerate(self.i.payload.data))
        seen = Signal(7)  # of this row, where the last value that is not zero ends
        for k in range(8):
            with m.If(self.i.payload.data[k] != 0):
                m.d.comb += seen.eq(8 * row + k + 1)
        m.d.comb += self.i.ready.eq(~full)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [block.word_select(row, 64).eq(data), row.eq(row + 1), count.eq(
                Mux(seen != 0, seen, Mux(row == 0, 0, count))), last.eq(self.i.payload.last)]
            with m.If(row == 7):
                m.d.sync += full.eq(1)
        left = Signal(7)
        m.d.comb += [
            left.eq(Mux(count > 8 * row, count - 8 * row, 0)),
            self.chunks.valid.eq(full),
            self.chunks.payload.data.as_value().eq(
                Mux(row == 0, Cat(count, Const(0, 1), block), block.word_select(row, 64))),
            self.chunks.payload.count.eq(Mux(left > 8, 8, left) + (row == 0)),
            self.chunks.payload.last.eq(last & (row == 7)),
        ]
        with m.If(self.chunks.valid & self.chunks.ready):
            m.d.sync += row.eq(row + 1)
            with m.If(row == 7):
                m.d.sync += full.eq(0)

        # The way back needs no more than to know how many values there are.
        place, known = Signal(3), Signal(8)
        size = Signal(8)
        m.d.comb += [
            size.eq(Mux(place == 0, self.rows.payload.mask, known)),
            self.o.valid.eq(self.rows.valid),
            self.rows.ready.eq(self.o.ready),
            self.o.payload.last.eq(self.rows.payload.last),
        ]
        for k in range(8):
            there = ~self.empty & (8 * place + k < size)
            value = (self.rows.payload.data[k] - key[place].word_select(k, 8))[:8]
            m.d.comb += self.o.payload.data[k].eq(Mux(there, value, 0).as_signed())
        with m.If(self.rows.valid & self.rows.ready):
            m.d.sync += [place.eq(place + 1), known.eq(Mux(self.empty, 0, size))]
        return m


def trim(context, here):
    """The stage."""
    unit = context.add("trim", Trim)
    context.m.d.comb += unit.key.eq(context.setting("key"))
    return Stage(Hop(unit.i, unit.chunks), Hop(None, unit.o), coder=unit)
