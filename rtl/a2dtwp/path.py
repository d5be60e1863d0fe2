"""Bitpack on a tensor's way through a CDU (see :mod:`~actcodec.rtl.jpegact.path`): the top bits of each word, which are
a row's bytes, and back. Nothing but wires."""

from amaranth.hdl import Cat, Const, Value
from amaranth.lib import stream

from actcodec.rtl.common.vectors import words
from actcodec.rtl.offload.control.stage import Hop, Stage

__all__ = ["top8", "top10", "top16", "top24"]


def _top(bits):
    def stage(context, here):
        low, high = (stream.Signature(words).create(path=[f"{name}_{bits}"]) for name in ("low", "high"))
        return Stage(
            Hop(low, low, lambda row: {"data": _moved(row, lambda word: word[-bits:]), "last": row.last}),
            Hop(high, high, lambda row: {"data": _moved(row, lambda word: word << 32 - bits), "last": row.last}))
    return stage


def _moved(row, move):
    return Cat(Cat(move(Value.cast(word)), Const(0, 32))[:32] for word in row.data)


top8, top10, top16, top24 = map(_top, (8, 10, 16, 24))
