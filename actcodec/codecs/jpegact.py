"""JPEG-ACT (Evans, Liu, Aamodt, ISCA 2020), with cDMA+ (Rhu et al., HPCA 2018) as it appears there."""

from dataclasses import replace

from actcodec.codecs.mode import Mode, Option, Setting
from actcodec.rtl.offload.block_format import BlockFormat

__all__ = ["CDMA", "CDUS", "JPEG_ACT", "MODES"]

JPEG_ACT = ("sfpr", "sfpr-zvc", "jpeg-act", "brc")
"""The modes of the paper's CDU."""

CDMA = ("zvc",)
"""That of cDMA+."""

PAPER = "JPEG-ACT (Evans, Liu, Aamodt, ISCA 2020)"
GOLDEN = "actcodec.codecs.models.cdu"

CDUS = Option("cdus", int, 1, "Compression units that share the work.", range=(1, 8))
DQT = Option("dqt", "actcodec.codecs.dqt:Dqt", "optL",
             "Quantization table: a name, or a file of 64 values, 1 or more (text or .npy), each taken to the nearest "
             "power of two up to 128.", metavar="optL|optH|jpeg80|jpeg60|FILE")
SIGNS = Option("signs", bool, False, "No positive value becomes 0, so that a ReLU's gradient keeps its mask.",
               stored=False)
CODER = Option("coder", str, "zvc", "Code of the blocks: ZVC, as in the paper; nibble planes; Golomb-Rice in planes.",
               choices=("zvc", "nibble", "rice"))
TOLD = {
    "nibble": Setting("nibble_table", 81, meaning="the nibble code: for each of 16 groups a base (3 bits) and a "
                      "family (2 bits) of widths; then whether values have no sign"),
    "rice": Setting("rice_table", 64, meaning="the Rice code: k of 15 anti-diagonals (3 bits each), how many groups "
                    "have a flag (5 bits), four e (3 bits each), whether values have no sign, 0"),
}
TABLES = ("optL", "optH", "jpeg80", "jpeg60")
DENSE = (("dense", {}),)
RELU = (("ReLU", {}),)


def units(*names):
    return tuple(f"actcodec.rtl.jpegact.path:{name}" for name in names)


def coded(name, codes, mode):
    """A mode with ZVC, with variants that have another coder in its place; their names begin with ``name``."""
    variants = []
    for (coder, told), code in zip(TOLD.items(), codes, strict=True):
        variants.append(({"coder": coder}, replace(
            mode, name=f"{name}-{coder}", code=code, format=BlockFormat("counted", 8), told=(told,),
            path=(*mode.path[:-1], *units(coder)), fallback=mode.fallback and f"sfpr-{coder}", shown=())))
    return replace(mode, variants=tuple(variants))


MODES = (
    Mode("raw", 0, BlockFormat("fixed", 32), golden=GOLDEN, options=(CDUS,), shown=RELU,
         summary="as it is", tensors="anything", source=f"{PAPER}, section III-G"),
    Mode("sfpr", 1, BlockFormat("fixed", 8), units("sfpr"), scaled=True, golden=GOLDEN, options=(SIGNS, CDUS),
         lossy=True, shown=DENSE, summary="8 bits a value, scaled by channel", tensors="anything",
         source=f"{PAPER}, section III-B"),
    coded("sfpr", (26, 27), Mode(
        "sfpr-zvc", 2, BlockFormat("mask", 8), units("sfpr", "whole", "zvc8"), scaled=True, golden=GOLDEN,
        options=(SIGNS, CODER, CDUS), lossy=True, shown=RELU, summary="8 bits a value that is not zero, and a mask",
        tensors="ReLU to conv, pool, dropout", source=f"{PAPER}, Table II")),
    coded("jpeg-act", (24, 25), Mode(
        "jpeg-act", 3, BlockFormat("mask", 8), units("sfpr", "align", "dct", "shift", "zvc8"), scaled=True,
        tiled=True, golden=GOLDEN, options=(DQT, CODER, CDUS), lossy=True, fallback="sfpr-zvc",
        shown=tuple(("dense", {"dqt": name}) for name in TABLES), summary="DCT of 8x8 tiles, quantized by a table",
        tensors="dense activations (conv, sum)", source=f"{PAPER}, section III")),
    Mode("brc", 4, BlockFormat("fixed", 1), units("binarize"), golden=GOLDEN, options=(CDUS,), lossy=True, shown=RELU,
         summary="keeps only whether x > 0", tensors="ReLU to anything else", source=f"{PAPER}, section II-B1"),
    Mode("zvc", 5, BlockFormat("mask", 32), units("zvc32"), golden=GOLDEN, options=(CDUS,), shown=RELU,
         summary="cDMA+: words that are not zero, and a mask", tensors="ReLU, dropout",
         source=f"{PAPER}, section II-B4, and cDMA (Rhu et al., HPCA 2018)"),
)
