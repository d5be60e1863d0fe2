"""JPEG-ACT (Evans, Liu, Aamodt, ISCA 2020), with cDMA+ (Rhu et al., HPCA 2018) as it appears there."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from actcodec.codecs.mode import Mode, Option, Setting, Stage
from actcodec.codecs.unit import Paper, Unit
from actcodec.golden.jpegact import sfpr
from actcodec.rtl.offload.control.setting import Limit, entries
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["CDMA", "CDUS", "JPEG_ACT", "JPEG_ACT_CODED", "METHODS", "MODES", "ROWS", "TABLE_2", "units"]

JPEG_ACT = ("sfpr", "sfpr-zvc", "jpeg-act", "brc")
"""The modes of the paper's CDU."""

CDMA = ("zvc",)
"""That of cDMA+."""

METHODS = {"cDMA+": ("zvc", "zvc"), "JPEG-BASE": ("jpeg-base", "sfpr"), "JPEG-ACT": ("jpeg-act", "sfpr-zvc")}
"""The modes of dense tensors and of ReLUs' in the paper's comparisons (Table II)."""

TABLE_2 = {"cDMA+": ("raw", "zvc", "zvc"), "SFPR": ("sfpr", "sfpr", "sfpr"), "JPEG-BASE": ("jpeg-base", "sfpr", "brc"),
           "JPEG-ACT": ("jpeg-act", "sfpr-zvc", "brc")}
"""Table II itself: the modes of conv and sum, of ReLU to conv, pool and dropout, and of ReLU to other."""

PAPER = "JPEG-ACT (Evans, Liu, Aamodt, ISCA 2020)"
TORCH = "actcodec.torch.lane:Lane"

CDUS = Option("cdus", int, 1, "Compression units that share the work.", range=(1, 8))
DQT = Option("dqt", "actcodec.codecs.dqt:Dqt", "optL",
             "Quantization table: a name, or a file of 64 values, 1 or more (text or .npy), each taken to the nearest "
             "power of two up to 128.", metavar="optL|optH|jpeg80|jpeg60|FILE")
DIVISORS = Option("dqt", "actcodec.codecs.dqt:Divisors", "jpeg80",
                  "The same for division: a name, or a file of 64 whole numbers, 1 to 255.",
                  metavar="jpeg80|jpeg60|optL-div|optH-div|FILE")
STEPS = Option("dqt", "actcodec.codecs.dqt:Steps", "optL",
               "The same with quantizer div: a name, a step for all frequencies, or a file of 64 steps, 0.5 or more, "
               "each taken to the nearest quarter up to 63.75.",
               metavar="optL|optH|jpeg80|jpeg60|optL-div|optH-div|STEP|FILE")
QUANTIZER = Option("quantizer", str, "sh", "Shifts, as in the paper; or division, by steps in quarters.",
                   choices=("sh", "div"))
DEAD_ZONE = Option("dead_zone", int, 1, "With quantizer div: magnitudes are rounded up from 1/2 + this/16 on.",
                   range=(0, 3), stored=False, needs=("quantizer", "div"))
SIGNS = Option("signs", bool, False, "No positive value becomes 0, so that a ReLU's gradient keeps its mask.",
               stored=False)
SCALING = Option("scaling", str, "channel", "A scale for each channel, as in the paper; one for the tensor; or a cap "
                 "on those of small channels.", choices=sfpr.SCALINGS, stored=False)
CAP = Option("cap", float, sfpr.CAP, "With scaling cap: how many times as large as the smallest scale others may be.",
             range=sfpr.CAPS, stored=False, needs=("scaling", "cap"))
CLIP = Option("clip", float, sfpr.S, "The largest value over what 8 bits express, the paper's S: above 1 it clips.",
              range=sfpr.CLIPS, stored=False)
SCALES = (SCALING, CAP, CLIP)
CODER = Option("coder", str, "zvc", "Code of the blocks: ZVC, as in the paper; nibble planes; Golomb-Rice in planes.",
               choices=("zvc", "nibble", "rice"))

def every(entry: int) -> int:
    """A table of 64 bytes that are all the same, as a number."""
    return int.from_bytes(bytes([entry] * 64), "little")


def nibble_table(base: Sequence[int], family: int, straight: int) -> int:
    """A table of the nibble code as a number: a base for each of 16 groups, one family for all."""
    return sum((b | family << 3) << 5 * g for g, b in enumerate(base)) | straight << 80


def rice_table(k: Sequence[int], flags: int, e: Sequence[int], straight: int) -> int:
    """A table of the Rice code as a number."""
    return (sum(one << 3 * d for d, one in enumerate(k)) | flags << 45
            | sum(one << 50 + 3 * j for j, one in enumerate(e)) | straight << 62)


RICE = (
    Limit(((45, 5, 1, 0),), 16, "flags at most 16"),
    *(Limit(((low, 3, 1, 0), (low + 3, 3, -1, 0)), 0, "e ascending, or equal") for low in (50, 53, 56)),
    Limit(((63, 1, 1, 0),), 0, "bit 63 is 0"),
    *(Limit(((3 * d, 3, 1, 0), (59, 3, 1, 0)), 8, "compressing, k + the last e at most 8 but for the first k",
            compressing=True) for d in range(1, 15)),
)
SETTINGS = {
    "nibble": Setting("nibble_table", 81, default=nibble_table((5, 3, 3, 2, 3, 2, 3, 2, 2, 2, 2, 2, 2, 1, 2, 1), 0, 0),
                      meaning="the nibble code: for each of 16 groups a base (3 bits) and a "
                      "family (2 bits) of widths; then whether values are unsigned"),
    "rice": Setting("rice_table", 64, limits=RICE,
                    default=rice_table((5, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 0, 0, 0, 0), 2, (1, 2, 3, 5), 0),
                    meaning="the Rice code: k of 15 anti-diagonals (3 bits each), number of groups with a flag "
                    "(5 bits), four e (3 bits each), whether values are unsigned, 0"),
}
STRAIGHT = {"nibble": nibble_table([5] * 16, 3, 1), "rice": rice_table([5] * 15, 0, (0, 1, 2, 3), 1)}  # of ReLUs
STEPPED = (
    Setting("steps", 512, 96, stored=False, limits=entries(8, 64, least=2), default=every(8),
            meaning="the DQT: 64 steps in quarters (8 bits each), row-major, vertical frequency first"),
    Setting("dead_zone", 2, 608, meaning="when compressing, magnitudes round up from 1/2 + this/16", stored=False),
)
TABLES = ("optL", "optH", "jpeg80", "jpeg60")
DENSE: tuple[tuple[str, dict], ...] = (("dense", {}),)
RELU: tuple[tuple[str, dict], ...] = (("ReLU", {}),)

# JPEG-ACT's modes with another coder in ZVC's place
JPEG_ACT_CODED = {coder: ("sfpr", f"sfpr-{coder}", f"jpeg-act-{coder}", "brc") for coder in SETTINGS}


def stage(name: str, *settings: Any, **properties: Any) -> Stage:
    """A stage of rtl/jpegact/path.py and golden/jpegact/path.py, of the same name in both."""
    return Stage(f"actcodec.rtl.jpegact.path:{name}", f"actcodec.golden.jpegact.path:{name.title()}",
                 settings=settings, **properties)


SFPR = stage("sfpr", format=BlockFormat("fixed", 8), scaled=True, codes="actcodec.golden.jpegact.path:Codes")
ALIGN = stage("align")
TILES = (SFPR, ALIGN, stage("dct", tiled=True))
ZVC8 = stage("zvc8", format=BlockFormat("mask", 8))
CODERS = {"nibble": stage("nibble", SETTINGS["nibble"], format=BlockFormat("counted", 8)),
          "rice": stage("rice", SETTINGS["rice"], format=BlockFormat("counted", 8, bits=6))}


def coded(name: str, codes: Iterable[int], mode: Mode, **values: Any) -> Iterator[tuple[dict[str, Any], Mode]]:
    """Variants of a mode with ZVC, by ``values`` of its options, that have another coder in ZVC's place; their names
    begin with ``name``."""
    for (coder, one), code in zip(CODERS.items(), codes, strict=True):
        if not mode.tiled:
            one = replace(one, settings=(replace(SETTINGS[coder], default=STRAIGHT[coder]),))
        yield values | {"coder": coder}, replace(
            mode, name=f"{name}-{coder}", code=code, stages=(*(mode.stages or ())[:-1], one),
            fallback=mode.fallback and f"sfpr-{coder}", demo_cases=())


RELUS = Mode(
    "sfpr-zvc", 2, (SFPR, stage("whole"), ZVC8), torch=TORCH,
    options=(SIGNS, CODER, *SCALES, CDUS), lossy=True, demo_cases=(*RELU, ("ReLU", {"coder": "rice"})),
    summary="8 bits a value that is not zero, and a mask", tensors="ReLU to conv, pool, dropout", relu=True,
    source=f"{PAPER}, Table II")
SHIFTED = Mode(
    "jpeg-act", 3, (*TILES, stage("shift", shifts=True), ZVC8), torch=TORCH,
    options=(DQT, CODER, QUANTIZER, DEAD_ZONE, *SCALES, CDUS), lossy=True,
    fallback="sfpr-zvc", demo_cases=tuple(("dense", {"dqt": name} | coder) for coder in ({}, {"coder": "rice"})
                                     for name in TABLES),
    summary="DCT of 8x8 tiles, quantized by a table", tensors="dense activations (conv, sum)",
    source=f"{PAPER}, section III")
DIVIDED = replace(
    SHIFTED, name="jpeg-act-div", code=33, stages=(*TILES, stage("steps", *STEPPED), ZVC8),
    options=(STEPS, *SHIFTED.options[1:]), demo_cases=())

# Of 16-bit tensors. Hosts and files have the codes of raw and zvc.
RAW16 = Mode("raw-16", 48, (stage("halves", format=BlockFormat("fixed", 16), plain=True),))
ZVC16 = Mode("zvc-16", 49, (stage("zvc16", format=BlockFormat("mask", 16), plain=True),))

MODES = (
    Mode("raw", 0, (), halves=RAW16, torch=TORCH, options=(CDUS,), demo_cases=RELU,
         summary="as it is", tensors="anything", source=f"{PAPER}, section III-G"),
    Mode("sfpr", 1, (SFPR,), torch=TORCH,
         options=(SIGNS, *SCALES, CDUS), lossy=True, demo_cases=DENSE, summary="8 bits a value, scaled by channel",
         tensors="anything", source=f"{PAPER}, section III-B"),
    replace(RELUS, variants=tuple(coded("sfpr", (26, 27), RELUS))),
    replace(SHIFTED, variants=(*coded("jpeg-act", (24, 25), SHIFTED), ({"quantizer": "div"}, DIVIDED),
                               *coded("jpeg-act-div", (34, 35), DIVIDED, quantizer="div"))),
    Mode("brc", 4, (stage("binarize", format=BlockFormat("fixed", 1)),), torch=TORCH, options=(CDUS,), lossy=True,
         demo_cases=RELU, summary="keeps only whether x > 0", tensors="ReLU to anything else",
         relu=True, source=f"{PAPER}, section II-B1, and Gist's Binarize", aliases=("binarize",),
         old_codes=((6, "actcodec.codecs.models.gist:of_bits"),)),
    Mode("zvc", 5, (stage("zvc32", format=BlockFormat("mask", 32)),), halves=ZVC16, torch=TORCH, options=(CDUS,),
         demo_cases=RELU, summary="cDMA+: words that are not zero, and a mask", tensors="ReLU, dropout", relu=True,
         source=f"{PAPER}, section II-B4, and cDMA (Rhu et al., HPCA 2018)"),
    Mode("jpeg-base", 20,
         (*TILES, stage("divide", Setting("divisors", 512, limits=entries(8, 64, least=1), stored=False,
                                          default=every(8), meaning="the DQT: 64 divisors (8 bits each), row-major, "
                                          "vertical frequency first")),
          stage("rle", format=BlockFormat("counted", 18))),
         torch=TORCH, options=(DIVISORS, *SCALES, CDUS), lossy=True, steady=False, fallback="sfpr", demo_cases=DENSE,
         summary="the paper's baseline: division, and JPEG's codes",
         tensors="dense activations (conv, sum)", source=f"{PAPER}, section III-E"),
)

DIVISION = ("division", "division-1", "division-4", "division-flat", "division-1-flat", "division-4-flat")
"""DIVISION's modes, which a CDU can have beside the paper's."""

# Source: JPEG-ACT, Tables IV and V. The paper gives no figure for a CDU; this is the sum of the parts that its JPEG-ACT
# configuration has.
PARTS = (Paper("SFPR", 44924, 34.3, target=20000), Paper("DCT + iDCT", 229118, 273.4, target=45000),
         Paper("Quantize (SH)", 1593, 2.5, target=1000), Paper("Coding (ZVC + ZVD)", 21519, 17.1, target=12000))
ROWS = (
    *PARTS,
    Paper("Quantize (DIV)", 12507, 14.4, target=9000),
    Paper("Coding (RLE + RLD)", 125890, 176.0, target=60000),
    Paper("Collector + Splitter", 173445, 170.3, target=60000),
    Paper("JPEG-ACT, 4 CDUs", 1_480_000, 1360.0, target=500_000),
    Paper("CDU", sum(part.area for part in PARTS), sum(part.power for part in PARTS)),
)


def units() -> tuple[Unit, ...]:
    """The hardware."""
    return (
        Unit("sfpr", "jpegact.sfpr:Sfpr", "SFPR, eight processing elements, both directions", paper="SFPR"),
        Unit("align", "jpegact.align:Align", "alignment buffer between sectors and tiles"),
        Unit("transpose", "jpegact.transpose:Transpose", "8x8 transpose buffer", {"width": 18, "transposes": True}),
        Unit("dct8", "jpegact.dct:Dct8", "8-point DCT and iDCT, one pass",
             {"width": 8, "coefficient_width": 12, "fraction": 3, "direction": "both", "half": False}),
        Unit("dct", "jpegact.dct:Dct", "8x8 DCT and iDCT", {"direction": "both"}, "DCT + iDCT",
             variants={"forward": {"direction": "forward"}, "inverse": {"direction": "inverse"}}),
        Unit("quantize", "jpegact.quantize:Shift", "SH, quantization by shifts"),
        Unit("round", "jpegact.quantize:Round", "SH, rounding after the shift"),
        Unit("zvc", "jpegact.zvc:Zvc", "ZVC and ZVD, zeros squeezed out and put back",
             {"word": 1}, "Coding (ZVC + ZVD)"),
        Unit("rle", "jpegact.runlength:RunLength", "RLE and RLD, JPEG's run lengths and Huffman codes, both directions",
             {"coders": 4},
             "Coding (RLE + RLD)"),
        Unit("div", "jpegact.div:Div", "DIV, quantization by division", paper="Quantize (DIV)"),
        Unit("steps", "jpegact.steps:Steps", "DIV in quarters, with a dead zone, for --quantizer div"),
        Unit("nibble", "jpegact.nibble:Nibble", "nibble planes, a denser code than ZVC, both directions"),
        Unit("rice", "jpegact.rice:Rice", "Golomb-Rice codes in planes, the densest code of blocks, both directions"),
        Unit("cdu", "jpegact.cdu:Cdu", "compression/decompression unit",
             {"modes": JPEG_ACT, "packed": True, "coders": 4}, "CDU",
             variants={"in a lane": {"packed": False}, "cDMA+": {"modes": CDMA},
                       "in a lane, DIVISION": {"packed": False, "modes": (*JPEG_ACT, *DIVISION)},
                       "in a lane, JPEG-BASE": {"packed": False, "modes": (*JPEG_ACT, "jpeg-base")},
                       **{f"in a lane, {coder}": {"packed": False, "modes": modes}
                          for coder, modes in JPEG_ACT_CODED.items()}},
             by_name=("in a lane, DIVISION", "in a lane, JPEG-BASE", *(f"in a lane, {one}" for one in JPEG_ACT_CODED)),
             apart=("rice", "rle", "div")),
    )
