"""How the address generator and the plan see a tensor: its geometry, places in it, and distances between them."""

from amaranth.hdl import Mux, signed
from amaranth.lib import data

from actcodec.rtl.offload.control.limits import RANGES

__all__ = ["FAR", "NEAR", "ROW_BITS", "SIZE", "TILES", "check_address_width", "distance_layout", "geometry_layout",
           "near", "of_size", "position_layout"]

SIZE = RANGES["height"][1].bit_length()  # bits of a width, of a channel's height, of the number of channels
TILES = SIZE - 3  # bits of the number of sectors in a row
ROW_BITS = RANGES["rows"][1].bit_length()  # of the number of rows
FAR = 9  # bits of what is counted over the groups of all CDUs: 256 sectors
NEAR = 6  # bits of what is counted in a group: it has 32 sectors, so 63 is as good as anything beyond


def check_address_width(address_width):
    """Raises ValueError unless ``address_width`` is 32 to 64."""
    if not isinstance(address_width, int) or not 32 <= address_width <= 64:
        raise ValueError(f"address_width must be 32 to 64 bits, not {address_width!r}")


def position_layout(address_width):
    """Where a sector is: ``tile`` in its row; rows ``left``, from this one to the end of the tensor (none or less in
    the padding); the row's place in its ``channel``, ``height``; the address of the row's first value, ``line``."""
    return data.StructLayout({"tile": TILES, "left": signed(ROW_BITS + 1), "height": SIZE, "channel": SIZE,
                              "line": address_width})


def distance_layout(address_width):
    """What is added to a position, with carries from ``tile`` and ``height``. Not more than 256 sectors; rows count
    negative."""
    return data.StructLayout({"tile": FAR, "left": signed(FAR + 1), "height": FAR, "channel": FAR,
                              "line": address_width})


def geometry_layout(address_width, halves=False, codes=False):
    """What all CDUs know of a tensor.

    ``raster``: the sectors of a group follow each other in memory's order. Otherwise a group is four tiles of a row of
    tiles, as far as it goes, and of the next one, and they pass row by row. ``tiles`` are the sectors of a row, of
    which the last one has ``tail`` values; ``top`` is the highest channel. ``group`` is the distance from one of a
    CDU's groups to its next one, ``unit`` that of the rows (or rows of tiles) that a carry from ``tile`` stands for.
    ``half``, only with ``halves``: values have 2 bytes, in place of 4. ``byte``, only with ``codes``: they have one.
    """
    return data.StructLayout({
        "raster": 1, "base": address_width, "rows": ROW_BITS, "tiles": TILES, "tail": 4, "stride": 32, "height": SIZE,
        "top": SIZE, "group": distance_layout(address_width), "unit": distance_layout(address_width)}
        | ({"half": 1} if halves else {}) | ({"byte": 1} if codes else {}))


def of_size(about, four, two, one):
    """What goes for values of 4 bytes, or for such of 2 if ``about`` has a ``half`` that says so, or of one by its
    ``byte``."""
    result = four
    if hasattr(about, "half"):
        result = Mux(about.half, two, result)
    if hasattr(about, "byte"):
        result = Mux(about.byte, one, result)
    return result


def near(value):
    """A number as a count within a group: all that is beyond 63 is 63."""
    high = (1 << NEAR) - 1
    return Mux(value[NEAR:].any(), high, value[:NEAR])
