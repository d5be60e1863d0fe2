"""Payloads that many units share: eight values (a row or column of a block, or a sector), and where a sector lies."""

from amaranth.hdl import unsigned
from amaranth.lib import data

__all__ = ["edges", "place_layout", "sectors", "vectors_layout", "words"]


def vectors_layout(shape):
    """Eight values of ``shape``, and ``last`` on the last beat of a tensor."""
    return data.StructLayout({"data": data.ArrayLayout(shape, 8), "last": 1})


words = vectors_layout(unsigned(32))  # of float32, mostly; int8 in their low bytes

# A sector of a flat array of float32: ``count`` valid values from lane 0 up, 8 in all but the last sector, where there
# may be any number of them, 0 included. Values beyond are zero; the sender of a sector ensures it.
sectors = data.StructLayout({"data": data.ArrayLayout(32, 8), "count": range(9), "last": 1})


def place_layout(address_width):
    """Where a sector lies: byte address of its first value (a multiple of its bytes), how many values it has (0 to 8;
    a sector of padding has none and touches no memory), the index of its scale, which of the two scales at hand it
    uses, and ``last`` on the last sector of a tensor."""
    return data.StructLayout({"address": address_width, "words": 4, "channel": 32, "slot": 1, "last": 1})


# A sector's place among those that pass with it: how many values it has (0 to 8, from lane 0 up); whether lane 0 has a
# left neighbour (the last value of the sector before); whether the values have neighbours above, and in which of up to
# four sectors a row of the group that is; ``last`` on the last sector of a tensor.
edges = data.StructLayout({"count": range(9), "left": 1, "above": 1, "tile": 2, "last": 1})
