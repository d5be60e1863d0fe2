"""The units on a tensor's way through a CDU, each with the streams by which a :class:`~actcodec.rtl.jpegact.cdu.Cdu`
links it.

A function gets the CDU's :class:`~actcodec.rtl.offload.control.stage.StageContext`, to which it adds its unit, and
``here``, whether the mode of the tensor that starts passes it. It returns a
:class:`~actcodec.rtl.offload.control.stage.Stage`, or several.
"""

from amaranth.hdl import Cat, Const, Mux, Value, signed
from amaranth.lib import stream

from actcodec.rtl.common.pipeline import Register
from actcodec.rtl.common.skid import Skid
from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import vectors_layout, words
from actcodec.rtl.gist.binarize import Binarize, Unbinarize
from actcodec.rtl.jpegact.align import Align
from actcodec.rtl.jpegact.dct import Dct, coefficients
from actcodec.rtl.jpegact.div import Div
from actcodec.rtl.jpegact.nibble import Nibble
from actcodec.rtl.jpegact.quantize import Round, Shift, mirror
from actcodec.rtl.jpegact.rice import Rice
from actcodec.rtl.jpegact.runlength import RunLength
from actcodec.rtl.jpegact.sfpr import Sfpr
from actcodec.rtl.jpegact.steps import Steps
from actcodec.rtl.jpegact.zvc import Zvc
from actcodec.rtl.offload.control.config import Chosen
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["align", "binarize", "dct", "divide", "halves", "nibble", "rice", "rle", "sfpr", "shift", "steps",
           "whole", "zvc8", "zvc16", "zvc32"]


def sfpr(context, here):
    """SFPR; a scale goes with each sector. Codes that have passed one elsewhere pass a register beside it."""
    unit, ports = context.add("sfpr", Sfpr), context.ports
    operands = stream.Signature(words).create(path=["operands"])
    context.m.d.comb += [
        unit.decompress.eq(context.config.decompress),
        unit.signs.eq(context.config.signs),
        unit.clear.eq(context.start),
        unit.i.valid.eq(operands.valid & ports.scales.valid),
        operands.ready.eq(unit.i.ready & ports.scales.valid),
        ports.scales.ready.eq(unit.i.ready & operands.valid),
        unit.i.p.scale.eq(ports.scales.p),
        unit.i.p.last.eq(operands.p.last),
    ]
    context.count(unit.nans, unit.saturated)
    # Decompressing, SFPR looks at the low byte alone: the others need no multiplexer, unless a skid comes before it.
    upper = operands.p.data if target(context.platform) == "lut" else ports.sectors_i.p
    for k in range(8):
        context.m.d.comb += unit.i.p.data[k].eq(Cat(operands.p.data[k][:8], upper[k][8:]))
    both = Hop(*(_beside(context, operands, unit.o) if hasattr(ports, "codes") else (operands, unit.o)))
    return Stage(both, both, registered=True)


def align(context, here):
    """The alignment buffer."""
    unit, config, layout = context.add("align", Align), context.config, context.config.layout
    if not all(mode.tiled for mode in context.passing):  # the others keep their blocks
        layout &= context.tiled.replicate(2)
    context.m.d.comb += [unit.decompress.eq(config.decompress), unit.layout.eq(layout),
                      unit.blocks.eq(config.blocks), unit.start.eq(context.start & here)]
    both = Hop(unit.i, unit.o)
    return Stage(both, both)


def dct(context, here):
    """The DCT, and the iDCT behind SH's mirror."""
    unit = context.add("dct", Dct)
    context.m.d.comb += unit.inverse.eq(context.config.decompress)
    return Stage(Hop(unit.i, unit.o), Hop(unit.i, unit.o, _mirrored))


def shift(context, here):
    """SH, which wants a fraction of one bit, or numbers as in a mirror; a register; and its rounding."""
    unit, config = context.add("shift", Shift), context.config
    context.m.d.comb += [unit.decompress.eq(config.decompress), unit.start.eq(context.start),
                         unit.table.eq(config.table)]
    skid, rounding = _rounding(context)
    return (Stage(Hop(unit.i, skid.o, _halves), Hop(unit.i, skid.o, _mirrored), inner=((unit.o, skid.i, None),)),
            Stage(Hop(rounding.i, rounding.o)))


def divide(context, here):
    """DIV."""
    return _divided(context, context.add("div", Div), "divisors")


def steps(context, here):
    """DIV in quarters; a coder behind it finds quotients of 8 bits, as behind SH."""
    unit = context.add("steps", Steps)
    context.m.d.comb += unit.dead_zone.eq(context.setting("dead_zone"))
    quotients = stream.Signature(vectors_layout(signed(8))).create(path=["quotients"])
    return _divided(context, unit, "steps"), Stage(Hop(quotients, quotients, _quotients))


def whole(context, here):
    """SFPR's int8 without the DCT: they pass SH's rounding as numbers without a fraction."""
    skid, rounding = _rounding(context)
    return Stage(Hop(skid.i, skid.o, _whole)), Stage(Hop(rounding.i, rounding.o))


def zvc8(context, here):
    """ZVC of bytes."""
    return _zvc(context, "zvc8", 1)


def zvc32(context, here):
    """ZVC of words, which is cDMA+; with words of 2 bytes as well if there are modes for them."""
    return _zvc(context, "zvc32", 4, any(mode.plain for mode in context.ports.modes))


def zvc16(context, here):
    """ZVC of words of 2 bytes, by the unit of :func:`zvc32`."""
    return zvc32(context, here)


def halves(context, here):
    """Words of 2 bytes as they are: the low halves of a row's words are all that there is of it."""
    return Stage()


def nibble(context, here):
    """Nibble planes, in place of ZVC."""
    return _counted(context, "nibble", Nibble)


def rice(context, here):
    """The Rice code, in place of ZVC."""
    return _counted(context, "rice", Rice)


def rle(context, here):
    """RLE and RLD, behind DIV."""
    unit, config = context.add("rle", lambda: RunLength(context.coders)), context.config
    context.m.d.comb += [unit.decompress.eq(config.decompress), unit.start.eq(context.start)]
    return Stage(Hop(unit.i, unit.chunks, _quotients), Hop(None, unit.o), coder=unit,
                 malformed=unit.faults.as_value().any())


def binarize(context, here):
    """BRC."""
    one, other = context.add("binarize", Binarize), context.add("unbinarize", Unbinarize)
    context.uncut += [one.i, other.i]
    return Stage(Hop(one.i, one.o),
                 Hop(other.i, other.o, lambda row: {"bits": row.data[0][:8], "last": row.last}), registered=True,
                 chunk=lambda mask: {"data": mask.bits, "count": 1, "last": mask.last})


def _beside(context, operands, results):
    # The streams in front of SFPR and behind it, and the register that codes pass in its place.
    m, codes = context.m, context.ports.codes
    register = context.add("beside", lambda: Register(vectors_layout(8)))
    before, behind = (stream.Signature(words).create(path=[f"{side}_sfpr"]) for side in ("before", "behind"))
    m.d.comb += [
        operands.valid.eq(before.valid & ~codes), operands.p.eq(before.p),
        register.i.valid.eq(before.valid & codes), register.i.p.last.eq(before.p.last),
        *(code.eq(word[:8]) for code, word in zip(register.i.p.data, before.p.data, strict=True)),
        before.ready.eq(Mux(codes, register.i.ready, operands.ready)),
        behind.valid.eq(results.valid | register.o.valid),  # the other one is empty
        behind.p.last.eq(Mux(codes, register.o.p.last, results.p.last)),
        *(word.eq(Cat(Mux(codes, code, value[:8]), value[8:]))
          for word, code, value in zip(behind.p.data, register.o.p.data, results.p.data, strict=True)),
        register.o.ready.eq(behind.ready), results.ready.eq(behind.ready),
    ]
    return before, behind


def _skid(context):
    # SFPR and ZVC, and likewise SH and the DCT, follow each other one way in one direction and the other way in the
    # other: without a register on the way, their chains of `ready` would close to rings. It also parts the two halves
    # of quantization.
    return context.add("skid", lambda: Skid(coefficients))


def _rounding(context):
    skid, rounding = _skid(context), context.add("round", Round)
    context.uncut += [skid.i, rounding.i]
    return skid, rounding


def _divided(context, unit, table):
    # DIV wants a fraction of one bit, or numbers of which one is 16. It has no time for what chooses between these, so
    # a register stands in front of it, the same for all that divide. Behind it another has what is left in a mirror as
    # behind SH, so that the DCT finds there what it finds with SH.
    config, skid = context.config, _skid(context)
    front = context.add("front", lambda: Register(coefficients))
    context.m.d.comb += [unit.decompress.eq(config.decompress), unit.start.eq(context.start),
                      unit.table.eq(context.setting(table))]
    return Stage(Hop(front.i, skid.o, _halves), Hop(front.i, skid.o, _sixteenths),
                 inner=((front.o, unit.i, None), (unit.o, skid.i, _mirrored)))


def _zvc(context, name, word, halves=False):
    unit = context.add(name, lambda: Zvc(word, halves))
    if halves:
        context.m.d.comb += unit.half.eq(Chosen(context.ports.modes, context.config.mode)(lambda mode: mode.plain))
    context.m.d.comb += [unit.decompress.eq(context.config.decompress), unit.straight.eq(~context.tiled)]
    return Stage(Hop(unit.i, unit.chunks), Hop(None, unit.o), coder=unit)


def _counted(context, name, build):
    # A DCT gives and takes columns, which is the order that these coders want.
    unit = context.add(name, build)
    context.m.d.comb += [unit.decompress.eq(context.config.decompress), unit.start.eq(context.start),
                      unit.table.eq(context.setting(f"{name}_table"))]
    return Stage(Hop(unit.i, unit.chunks), Hop(None, unit.o), coder=unit, malformed=unit.faults.as_value().any())


def _halves(vector):
    return {"data": Cat(word[5:] for word in vector.data), "last": vector.last}


def _mirrored(vector):
    return {"data": Cat(mirror(word) for word in vector.data), "last": vector.last}


def _sixteenths(vector):
    return {"data": Cat(Cat(Const(0, 4), Value.cast(word)[:8]) for word in vector.data), "last": vector.last}


def _quotients(vector):
    return {"data": Cat(mirror(word)[4:] for word in vector.data), "last": vector.last}


def _whole(vector):
    words_ = (Value.cast(word) for word in vector.data)
    return {"data": Cat(Cat(Const(0, 1), word[:8], word[7].replicate(3)) for word in words_), "last": vector.last}
