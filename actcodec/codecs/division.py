"""DIVISION (Wang et al., ICML 2023): the mean of each block, and codes of a few bits for what is left without it."""

from actcodec.codecs.jpegact import CDUS
from actcodec.codecs.mode import Mode, Option
from actcodec.codecs.unit import Unit

__all__ = ["MODES", "units"]

PAPER = "DIVISION (Wang et al., ICML 2023)"

BITS = Option("bits", int, 2, "Bits of a code, one for each value.", choices=(1, 2, 4))
SEED = Option("seed", int, 0, "Of the random numbers that stochastic rounding adds.", range=(0, 2**32 - 1),
              stored=False)
ROUNDING = Option("rounding", str, "stochastic", "Unbiased for every value, or with the least error.",
                  choices=("stochastic", "nearest"), stored=False)
LFC = Option("lfc", str, "auto", "Whether to take an offset off each block of 64 values: auto does where it makes the "
             "steps finer.", choices=("auto", "on", "off"), stored=False)
OFFSET = Option("offset", str, "mean", "That offset: the block's mean, the paper's, or its minimum, which has less "
                "error.", choices=("mean", "min"), stored=False)

MODES = (
    Mode("division", 22, golden="actcodec.codecs.models.division", options=(BITS, SEED, ROUNDING, LFC, OFFSET, CDUS),
         lossy=True, summary="block averages, and codes of 1, 2 or 4 bits", tensors="inputs of conv, bn, linear",
         source=f"{PAPER}, section 4", shown=(("dense", {}), ("ReLU", {}))),
)


def units():
    """The hardware, imported only when it is asked for."""
    from actcodec.rtl.division.decode import Decode
    from actcodec.rtl.division.encode import Encode

    return (
        Unit("division_encode", Encode, "DIVISION behind SFPR: averages, and codes for the rest", {"bits": (1, 2, 4)},
             variants={"in a CDU": {"align": False}}),
        Unit("division_decode", Decode, "DIVISION in front of SFPR: averages and codes to values", {"bits": (1, 2, 4)},
             variants={"in a CDU": {"align": False}}),
    )
