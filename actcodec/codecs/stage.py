"""A stage of a lane: the unit of hardware and its model, which only the registry puts side by side."""

from dataclasses import dataclass, field

from actcodec.rtl.offload.control.setting import Setting
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["Stage"]


@dataclass(frozen=True)
class Stage:
    """One unit that a tensor passes in a lane, in both directions.

    ``hardware`` names the function that places the unit in a CDU ("package.module:function", see
    :mod:`actcodec.rtl.jpegact.path`), ``model`` the class of its NumPy model (likewise, see
    :mod:`actcodec.golden.jpegact.path`). A mode's blocks have the ``format`` of its last stage.
    """

    hardware: str
    model: str | type = field(default="", repr=False, compare=False)
    format: BlockFormat | None = None  # of the blocks that leave it, if a mode can end with it
    scaled: bool = False  # takes a scale for each sector
    tiled: bool = False  # works on tiles of 8x8
    shifts: bool = False  # takes a DQT of shifts, which has registers of its own
    # What stands in its place, a model likewise, for tensors of int8 that have passed it elsewhere; none: they cannot.
    codes: str | type = field(default="", repr=False)
    plain: bool = False  # takes values of 16 bits as the words that they are, each in the low half of one of 32
    settings: tuple[Setting, ...] = ()
