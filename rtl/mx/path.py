"""MX on a tensor's way through a CDU (see :mod:`~actcodec.rtl.jpegact.path`): one stage for each element format, all of
them the same two units, which have the formats that the CDU's modes want."""

from actcodec.rtl.mx.decode import Decode
from actcodec.rtl.mx.element import FORMATS
from actcodec.rtl.mx.encode import Encode
from actcodec.rtl.offload.control.config import Chosen
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "int8"]


def int8(context, here):
    """Integers."""
    return _stage(context)


e4m3 = e5m2 = e3m2 = e2m3 = e2m1 = int8


def _stage(context):
    config, modes = context.config, context.ports.modes
    found = {mode: form for mode in modes for form in FORMATS if f"{__name__}:{form}" in mode.path}
    formats = tuple(dict.fromkeys(found.values()))
    encode = context.add("mx_encode", lambda: Encode(formats))
    decode = context.add("mx_decode", lambda: Decode(formats))
    number = Chosen(modes, config.mode).choose(lambda mode: formats.index(found[mode]) if mode in found else 0)
    context.m.d.comb += [encode.rule.eq(context.setting("rule")), encode.clear.eq(context.start),
                         *(unit.format.eq(number) for unit in (encode, decode))]
    context.count(encode.nans, encode.saturated)
    return Stage(Hop(encode.i, encode.chunks), Hop(None, decode.o), coder=decode)
