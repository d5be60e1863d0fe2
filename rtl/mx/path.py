"""MX on a tensor's way through a CDU (see :mod:`~actcodec.rtl.jpegact.path`): one stage for each element format, all of
them the same two units, which have the formats that the CDU's modes want."""

from types import SimpleNamespace

from amaranth.hdl import Mux, Signal, Value
from amaranth.lib import stream

from actcodec.rtl.mx.decode import Decode
from actcodec.rtl.mx.element import FORMATS
from actcodec.rtl.mx.encode import Encode
from actcodec.rtl.offload.control.config import Chosen
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["e2m1", "e2m3", "e3m2", "e4m3", "e5m2", "int8"]


def int8(context, here):
    """Integers."""
    return context.once(_stage)


e4m3 = e5m2 = e3m2 = e2m3 = e2m1 = int8


def _stage(context):
    config, modes = context.config, context.ports.modes
    found = {mode: form for mode in modes for form in FORMATS if f"{__name__}:{form}" in mode.path}
    formats = tuple(dict.fromkeys(found.values()))
    coded = [mode for mode in found if len(mode.path) > 1]  # a coder follows
    encode = context.add("mx_encode", lambda: Encode(formats, coded=bool(coded)))
    decode = context.add("mx_decode", lambda: Decode(formats))
    mode = Chosen(modes, config.mode)
    number = mode.choose(lambda mode: formats.index(found[mode]) if mode in found else 0)
    # Of a name in two places, a tensor's mode has one.
    rules = {name: context.setting(name)[:2] for name in dict.fromkeys(_rule(mode) for mode in found)}
    context.m.d.comb += [encode.rule.eq(mode.choose(lambda mode: rules[_rule(mode)] if mode in found else 0)
                                        if len(rules) > 1 else next(iter(rules.values()))),
                         encode.clear.eq(context.start), *(unit.format.eq(number) for unit in (encode, decode))]
    context.count(encode.nans, encode.saturated)
    if not coded:
        return Stage(Hop(encode.i, encode.chunks), Hop(None, decode.o), coder=decode)
    # Rows of elements come from what takes blocks apart, or from a coder.
    rows = stream.Signature(decode.rows.p.shape())
    behind, direct = (rows.create(path=[name]) for name in ("behind", "direct"))
    front, is_coded = SimpleNamespace(rows=direct, empty=Signal(name="empty")), Signal(name="is_coded", reset_less=True)
    context.m.d.sync += is_coded.eq(mode(lambda mode: mode in coded))
    context.m.d.comb += [
        decode.empty.eq(front.empty & ~is_coded),
        Value.cast(decode.rows.p).eq(Mux(is_coded, Value.cast(behind.p), Value.cast(direct.p))),
        decode.rows.valid.eq(Mux(is_coded, behind.valid, direct.valid)),
        behind.ready.eq(decode.rows.ready), direct.ready.eq(decode.rows.ready),
    ]
    return Stage(Hop(encode.i, encode.chunks), Hop(behind, decode.o, _row), coder=front)


def _rule(mode):
    """The name of the setting that a mode has for the rule."""
    return next(setting.name for setting in mode.settings if setting.name.endswith("rule"))


def _row(row):
    return {"data": Value.cast(row.data), "mask": row.mask, "last": row.last}
