"""A2DTWP (Zhuang, Malossi, Casas): Bitpack, for weights."""

from actcodec.codecs.gist import top
from actcodec.codecs.jpegact import CDUS
from actcodec.codecs.mode import Mode
from actcodec.codecs.unit import Unit

__all__ = ["MODES", "units"]

MODES = tuple(
    Mode(f"bitpack-{size}", 13 + size, (top(8 * size),), golden="actcodec.codecs.models.a2dtwp:Bitpack",
         torch="actcodec.torch.bitpack:Bitpack",
         options=(CDUS,), lossy=True, parameters=(("roundto", size),), summary=f"the top {8 * size} bits of each value",
         tensors="weights", source="A2DTWP (Zhuang, Malossi, Casas), section III")
    for size in (1, 2, 3))


def units() -> tuple[Unit, ...]:
    """The hardware."""
    return (
        Unit("bitpack", "a2dtwp.bitpack:Bitpack", "top bits of each value, packed", {"widths": (8, 16, 24, 32)},
             bench="a2dtwp/bitpack::test_bitpack"),
        Unit("bitunpack", "a2dtwp.bitunpack:Bitunpack", "packed values, taken apart", {"widths": (8, 16, 24, 32)},
             bench="a2dtwp/bitpack::test_bitunpack"),
    )
