"""DIVISION on a tensor's way through a CDU (see :mod:`~actcodec.rtl.jpegact.path`): behind SFPR, around the alignment
buffer."""

from amaranth.hdl import Cat, Mux, Signal, Value

from actcodec.rtl.common.target import target
from actcodec.rtl.division.decode import Decode
from actcodec.rtl.division.encode import Encode
from actcodec.rtl.division.segments import Segments
from actcodec.rtl.jpegact.sfpr import LATENCY, Sfpr
from actcodec.rtl.offload.control.config import Chosen
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["average", "codes"]


def average(context, here):
    """What compression takes from the rows in front of the alignment buffer; and what counts them, for both ways."""
    m, config = context.m, context.config
    segments, encode, decode = _units(context)
    layout = Signal(2, reset_less=True)
    m.d.sync += layout.eq(Mux(config.decompress | ~context.tiled, 0, config.layout))
    m.d.comb += [
        segments.start.eq(context.start & here),
        segments.layout.eq(layout),
        encode.start.eq(segments.start & ~config.decompress),
        segments.next.eq(encode.next | decode.next),
        context.ports.clipped.eq(encode.clipped & here & ~config.decompress),
    ]
    for unit in (encode, decode):
        m.d.comb += [unit.config.eq(segments.config), unit.ready.eq(segments.ready), unit.place.eq(segments.place)]
    _configure(context, segments.config)
    # The offset of a row's plane, in the low byte of the scale, passes beside SFPR, whose stages all move together.
    sfpr, delta = context.add("sfpr", Sfpr), context.ports.scales.p[:8]
    for k in range(LATENCY[target(context.platform)]):
        stage = Signal(8, reset_less=True, name=f"delta_{k}")
        with m.If(sfpr.i.ready):
            m.d.sync += stage.eq(delta)
        delta = stage
    return Stage(Hop(encode.i, encode.sectors, lambda row: {
        "data": Cat(Value.cast(word)[:8] for word in row.data), "delta": delta, "last": row.last}))


def codes(context, here):
    """Behind the alignment buffer: rows to chunks, and rows of bytes to those of values."""
    _, encode, decode = _units(context)
    most = max(encode.bits)
    return Stage(
        Hop(encode.tiles, encode.chunks),
        Hop(decode.bytes, decode.o, lambda row: {"data": Cat(word[:8] for word in row.data)[: 8 * (1 + most)]}),
        chunk=lambda chunk: {"data": Value.cast(chunk.data), "count": chunk.count, "last": chunk.last})


def _units(context):
    bits = tuple(sorted({mode.format.row for mode in context.ports.modes if mode.format.segmented}))
    return (context.add("segments", Segments), context.add("encode", lambda: Encode(bits, align=False, segments=False)),
            context.add("decode", lambda: Decode(bits, align=False, segments=False)))


def _configure(context, config):
    """The units' configuration, of a tensor's."""
    share, mode = context.config.share, Chosen(context.ports.modes, context.config.mode)
    # What follows from the mode comes from registers, a cycle after ``start``, when no unit looks at it yet.
    bits, tiled = Signal.like(config.bits, reset_less=True), Signal(reset_less=True)
    context.m.d.sync += [
        bits.eq(mode.choose(lambda mode: mode.format.row - 1 if mode.format.segmented else 0)),
        tiled.eq(context.tiled),
    ]
    context.m.d.comb += [
        config.bits.eq(bits), config.tiled.eq(tiled), config.layout.eq(context.config.layout),
        config.blocks.eq(context.config.blocks),
        *(config[name].eq(share[name]) for name in share.shape().members),
        *(config[name].eq(context.setting(name)) for name in ("lfc", "minimum", "nearest", "seed")),
    ]
