"""Payload of the streams that carry eight values a beat: a row or column of a block, or a sector."""

from amaranth.hdl import unsigned
from amaranth.lib import data

__all__ = ["vectors", "words"]


def vectors(shape):
    """Eight values of ``shape``, and ``last`` on the last beat of a tensor."""
    return data.StructLayout({"data": data.ArrayLayout(shape, 8), "last": 1})


words = vectors(unsigned(32))  # of float32, mostly; int8 in their low bytes
