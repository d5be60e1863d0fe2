"""DPR on a tensor's way through a CDU (see :mod:`~actcodec.rtl.jpegact.path`): in front of what keeps the top bits of
each word."""

from amaranth.hdl import Signal

from actcodec.rtl.common.minifloat import WIDTH
from actcodec.rtl.gist.dpr import DprExpand, DprReduce, Format
from actcodec.rtl.offload.control.config import Chosen
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["dpr"]


def dpr(context, here):
    """Codes at the top of their words, of as many bits as a row of the mode has bytes."""
    forms = {mode.code: form for mode in context.passing for form in Format if WIDTH[form] == mode.format.row}
    formats = tuple(form for form in Format if form in forms.values())
    reduce = context.add("reduce", lambda: DprReduce(formats))
    expand = context.add("expand", lambda: DprExpand(formats))
    # A register: the tensor's mode stands a cycle before its first value can come.
    form, mode = Signal(Format, reset_less=True), Chosen(context.ports.modes, context.config.mode)
    context.m.d.sync += form.eq(mode.choose(lambda mode: forms.get(mode.code, formats[0]).value))
    context.m.d.comb += [reduce.format.eq(form), expand.format.eq(form)]
    return Stage(Hop(reduce.i, reduce.o), Hop(expand.i, expand.o))
