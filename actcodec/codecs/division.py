"""DIVISION (Wang et al., ICML 2023): the mean of each block, and codes of a few bits for what is left without it."""

from dataclasses import replace

from actcodec.codecs.jpegact import ALIGN, CDUS, SFPR
from actcodec.codecs.mode import Mode, Option, Setting, Stage
from actcodec.codecs.unit import Unit
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["LANE", "MODES", "units"]

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

SETTINGS = (
    Setting("seed", 32, stored=False, meaning="seed of the random numbers"),
    Setting("lfc", 1, 32, stored=False, meaning="an offset is subtracted from each block"),
    Setting("minimum", 1, 33, stored=False, meaning="the offset is the block's minimum, not its mean"),
    Setting("nearest", 1, 34, stored=False, meaning="codes are rounded to nearest, not stochastically"),
)
AVERAGE = Stage("actcodec.rtl.division.path:average", settings=SETTINGS)


def stages(bits: int, tiled: bool) -> tuple[Stage, ...]:
    """Codes of so many ``bits``, in blocks that are tiles, or eight sectors in memory's order."""
    return SFPR, AVERAGE, ALIGN, Stage("actcodec.rtl.division.path:codes", tiled=tiled,
                                       format=BlockFormat("segment" if tiled else "segments", bits))


TILED = Mode(
    "division", 22, stages(BITS.default, True),
    golden="actcodec.codecs.models.division:Division", torch="actcodec.torch.division:Division",
    options=(BITS, SEED, ROUNDING, LFC, OFFSET, CDUS), lossy=True,
    fallback="division-flat", summary="block averages, and codes of 1, 2 or 4 bits",
    tensors="inputs of conv, bn, linear", source=f"{PAPER}, section 4", demo_cases=(("dense", {}), ("ReLU", {})))


def lane(bits: int, tiled: bool, code: int) -> Mode:
    """Another mode of the lane."""
    name = "division" if bits == BITS.default else f"division-{bits}"
    own, fallback = (name, f"{name}-flat") if tiled else (f"{name}-flat", "")
    return replace(TILED, name=own, fallback=fallback, code=code, stages=stages(bits, tiled), demo_cases=())


MODES = (replace(TILED, variants=(
    ({"bits": 1}, lane(1, True, 28)), ({"bits": 4}, lane(4, True, 29)), ({}, lane(2, False, 30)),
    ({"bits": 1}, lane(1, False, 31)), ({"bits": 4}, lane(4, False, 32)))),)

LANE = (TILED.name, *(mode.name for _, mode in MODES[0].variants))
"""The modes of the lane."""


def units() -> tuple[Unit, ...]:
    """The hardware. In a CDU, one of them counts the rows for both directions."""
    return (
        Unit("division_encode", "division.encode:Encode", "DIVISION behind SFPR: averages, and codes for the rest",
             {"bits": (1, 2, 4)},
             variants={"in a CDU": {"align": False}}),
        Unit("division_decode", "division.decode:Decode", "DIVISION in front of SFPR: averages and codes to values",
             {"bits": (1, 2, 4)},
             variants={"in a CDU": {"align": False}}),
    )
