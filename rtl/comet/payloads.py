"""Payloads that the units of COMET's codec share, and what a tensor's configuration is."""

from amaranth.hdl import signed
from amaranth.lib import data

from actcodec.rtl.common.vectors import edges

__all__ = ["LANES", "Config", "Error", "finished", "integers", "marked", "rounds", "sectors", "symbols"]

LANES = 8
BITS = 12  # of an integer, and of a symbol; all sums are modulo 2**12

sectors = data.StructLayout({"data": data.ArrayLayout(32, LANES), "edges": edges})
# The same with the lanes of outliers: their words mean nothing.
marked = data.StructLayout({"data": data.ArrayLayout(32, LANES), "outliers": LANES, "edges": edges})
finished = data.StructLayout({"data": data.ArrayLayout(32, LANES), "outliers": LANES, "count": range(LANES + 1),
                              "last": 1})
integers = data.StructLayout({"data": data.ArrayLayout(signed(BITS), LANES), "outliers": LANES, "edges": edges})
symbols = data.StructLayout({"data": data.ArrayLayout(BITS, LANES), "outliers": LANES, "edges": edges})

# Symbols of eight consecutive values. ``end`` comes after the last round of a tensor, in a beat
# whose symbols are zero, and mean nothing.
rounds = data.StructLayout({"data": data.ArrayLayout(BITS, LANES), "outliers": LANES, "end": 1})


class Config(data.Struct):
    """What a tensor needs to be told before it starts."""

    decompress: 1
    step: 16  # s, a bfloat16 from 2^-125 to 2^112
    tiled: 1
    horizontal: 1  # predict from the left
    vertical: 1  # predict from above; only if tiled
    signed: 1
    counts: data.ArrayLayout(8, 7)  # of the codes of 1 to 7 bits


class Error(data.Struct):
    """Why a tensor is not what it should be; stands until the next one starts."""

    config: 1  # a step out of range, vertical prediction without tiles, or an incomplete book
    short: 1  # the byte stream ended early; zeros stand for what was missing
    excess: 1  # the byte stream went on after the last round; the rest was dropped
