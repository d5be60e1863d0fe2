"""JPEG-ACT (Evans, Liu, Aamodt, ISCA 2020), with cDMA+ (Rhu et al., HPCA 2018) as it appears there."""

from actcodec.codecs.mode import Mode, Option
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
DIVISORS = Option("dqt", "actcodec.codecs.dqt:Divisors", "jpeg80",
                  "The same for division: a name, or a file of 64 whole numbers, 1 to 255.",
                  metavar="jpeg80|jpeg60|optL-div|optH-div|FILE")
SIGNS = Option("signs", bool, False, "No positive value becomes 0, so that a ReLU's gradient keeps its mask.",
               stored=False)
TABLES = ("optL", "optH", "jpeg80", "jpeg60")
DENSE = (("dense", {}),)
RELU = (("ReLU", {}),)


def units(*names):
    return tuple(f"actcodec.rtl.jpegact.path:{name}" for name in names)


MODES = (
    Mode("raw", 0, BlockFormat("fixed", 32), golden=GOLDEN, options=(CDUS,), shown=RELU,
         summary="as it is", tensors="anything", source=f"{PAPER}, section III-G"),
    Mode("sfpr", 1, BlockFormat("fixed", 8), units("sfpr"), scaled=True, golden=GOLDEN, options=(SIGNS, CDUS),
         lossy=True, shown=DENSE, summary="8 bits a value, scaled by channel", tensors="anything",
         source=f"{PAPER}, section III-B"),
    Mode("sfpr-zvc", 2, BlockFormat("mask", 8), units("sfpr", "whole", "zvc8"), scaled=True, golden=GOLDEN,
         options=(SIGNS, CDUS), lossy=True, shown=RELU, summary="8 bits a value that is not zero, and a mask",
         tensors="ReLU to conv, pool, dropout", source=f"{PAPER}, Table II"),
    Mode("jpeg-act", 3, BlockFormat("mask", 8), units("sfpr", "align", "dct", "shift", "zvc8"), scaled=True,
         tiled=True, golden=GOLDEN, options=(DQT, CDUS), lossy=True, fallback="sfpr-zvc",
         shown=tuple(("dense", {"dqt": name}) for name in TABLES), summary="DCT of 8x8 tiles, quantized by a table",
         tensors="dense activations (conv, sum)", source=f"{PAPER}, section III"),
    Mode("brc", 4, BlockFormat("fixed", 1), units("binarize"), golden=GOLDEN, options=(CDUS,), lossy=True, shown=RELU,
         summary="keeps only whether x > 0", tensors="ReLU to anything else", source=f"{PAPER}, section II-B1"),
    Mode("zvc", 5, BlockFormat("mask", 32), units("zvc32"), golden=GOLDEN, options=(CDUS,), shown=RELU,
         summary="cDMA+: words that are not zero, and a mask", tensors="ReLU, dropout",
         source=f"{PAPER}, section II-B4, and cDMA (Rhu et al., HPCA 2018)"),
    Mode("jpeg-base", 20, scaled=True, tiled=True, golden="actcodec.codecs.models.jpeg_base", options=(DIVISORS, CDUS),
         lossy=True, fallback="sfpr", shown=DENSE, summary="the paper's baseline: division, and JPEG's codes",
         tensors="dense activations (conv, sum)", source=f"{PAPER}, section III-E"),
)
