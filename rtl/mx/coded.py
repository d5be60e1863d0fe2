"""JPEG-ACT's coders behind MX's elements on a tensor's way through a CDU (see :mod:`~actcodec.rtl.jpegact.path`): their
units are those of JPEG-ACT's modes, and one more takes the scales past them."""

from amaranth.hdl import Cat, Const, Mux, Signal, Value

from actcodec.rtl.jpegact import path
from actcodec.rtl.mx.element import FORMATS
from actcodec.rtl.mx.scales import CODERS, Scales
from actcodec.rtl.offload.control.config import Chosen
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["nibble", "rice", "zvc"]


def zvc(context, here):
    """ZVC of bytes."""
    return _stage(context, path.zvc8(context, here))


def nibble(context, here):
    """Nibble planes."""
    return _stage(context, path.nibble(context, here))


def rice(context, here):
    """The Rice code."""
    return _stage(context, path.rice(context, here))


def _scales(context):
    """The unit, and what it does to the heads of rows on their way to a coder."""
    modes, config = context.ports.modes, context.config
    coders = {mode: name for mode in modes for name in CODERS if f"{__name__}:{name}" in mode.path}
    formats = {mode: form for mode in coders for form in FORMATS if mode.path[0].endswith(f":{form}")}
    elements, names = (tuple(dict.fromkeys(one.values())) for one in (formats, coders))
    scales = context.add("mx_scales", lambda: Scales(elements, names))
    mode = Chosen(modes, config.mode)
    here = Signal(name="coded", reset_less=True)
    context.m.d.sync += here.eq(mode(lambda mode: mode in coders))
    context.m.d.comb += [
        scales.coder.eq(mode.choose(lambda mode: names.index(coders[mode]) if mode in coders else len(names))),
        scales.format.eq(mode.choose(lambda mode: elements.index(formats[mode]) if mode in coders else 0)),
        scales.decompress.eq(config.decompress), scales.start.eq(context.start),
    ]

    def head(mask, empty, moves):
        context.m.d.comb += [scales.moves.eq(moves & here), scales.mask.eq(mask), scales.empty.eq(empty),
                             scales.halves.eq(context.ports.rows_i.p.halves)]
        return scales.mask_o, Mux(here, scales.empty_o, empty)

    return scales, head


def _stage(context, coder):
    unit, (scales, head) = coder.coder, context.once(_scales)
    malformed = scales.malformed if coder.malformed is None else scales.malformed | coder.malformed
    inner = (scales.codes, unit.i, None), (unit.chunks, scales.coded, _chunk), (unit.o, scales.values, None)
    return Stage(Hop(scales.i, scales.chunks, _codes), Hop(None, scales.rows), inner=inner, coder=unit,
                 malformed=malformed, head=head)


def _codes(chunk):
    return {"codes": Cat(Cat(code, Const(0, 8 - len(code))) for code in chunk.codes), "scales": chunk.scales,
            "last": chunk.last}


def _chunk(chunk):
    return {"data": Value.cast(chunk.data), "count": chunk.count, "last": chunk.last}
