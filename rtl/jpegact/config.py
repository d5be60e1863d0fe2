"""What a CDU is told of a tensor, and what it tells about it afterwards."""

from amaranth.lib import data, enum

__all__ = ["MODES", "Config", "Error", "Mode"]


class Mode(enum.Enum, shape=3):
    """What becomes of a block; the numbers are those of the ``.act`` file."""

    RAW = 0
    SFPR = 1
    SFPR_ZVC = 2
    JPEG_ACT = 3
    BRC = 4
    ZVC = 5


MODES = {"raw": Mode.RAW, "sfpr": Mode.SFPR, "sfpr-zvc": Mode.SFPR_ZVC, "jpeg-act": Mode.JPEG_ACT, "brc": Mode.BRC,
         "zvc": Mode.ZVC}


class Config(data.Struct):
    """What a tensor needs to be told before it starts."""

    decompress: 1
    mode: Mode
    layout: 2  # tiles in a row of the tensor: 0 for one, 1 for two, 2 for more (only jpeg-act looks at it)
    blocks: 32  # of this tensor in this unit
    table: data.ArrayLayout(3, 64)  # log2 of the DQT (only jpeg-act looks at it)


class Error(data.Struct):
    """Why a tensor is not what it should be; stands until the next one starts."""

    config: 1  # no block, a mode that this unit was built without, layout 3, or an odd number of blocks in layout 1
    short: 1  # the byte stream ended early; zeros stand for what was missing
    excess: 1  # the byte stream went on after the last block; the rest was dropped
