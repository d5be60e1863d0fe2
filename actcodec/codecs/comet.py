"""COMET (Jin et al., VLDB 2022): every value within an error bound, by prediction and Huffman codes."""

from dataclasses import replace

from actcodec.codecs.jpegact import CDUS
from actcodec.codecs.mode import Mode, Option, Setting, Stage
from actcodec.codecs.unit import Unit
from actcodec.rtl.offload.control.setting import Limit, entries
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["FLAT", "MODES", "units"]

BOUNDS = (
    Option("error_bound", float, None, "Largest error that a value may have.", range=(1.2e-38, 1e38), metavar="EB",
           stored=False),
    Option("relative_bound", float, 0.01, "The same as a share of the tensor's range, the largest finite value less "
           "the smallest; unless another bound is given.", range=(1e-7, 1.0), metavar="R", stored=False),
    Option("l2", float, None, "Relative L2 error that the tensor may have: the largest bound that keeps it.",
           range=(1e-7, 1.0), metavar="E", stored=False),
)
PREDICTOR = Option("predictor", str, "auto", "What each value is predicted from: its left neighbour in memory (line) "
                   "or in the row, the one above, or both (plane); auto takes what costs least.",
                   choices=("auto", "none", "line", "row", "column", "plane"), stored=False)

SETTINGS = (
    Setting("step", 16, limits=entries(16, least=127 - 125 << 7, most=127 + 112 << 7), default=127 << 7,
            meaning="step of the quantizer, a bfloat16, 2^-125 (256) to 2^112 (30592); half of it bounds the error"),
    Setting("horizontal", 1, 16, meaning="values are predicted from their left neighbours"),
    Setting("vertical", 1, 17, meaning="values are predicted from those above; only in tiles"),
    Setting("signed", 1, 18, default=1, meaning="residuals may be negative"),
    Setting("counts", 56, 19,
            meaning="n_1 to n_7, a byte each: number of codes of 1 to 7 bits; the remaining codes have 8",
            default=int.from_bytes(bytes((0, 1, 0, 4, 8, 6, 5)), "little"),
            limits=(Limit(tuple((8 * k, 8, 1, 7 - k) for k in range(7)), 256,
                          "the sum of n_l 2^(8-l), l = 1 to 7, at most 256"),)),
)
STAGE = Stage("actcodec.rtl.comet.lane:LaneCodec", format=BlockFormat("stream", 8), tiled=True, settings=SETTINGS)

TILED = Mode(
    "comet", 21, (STAGE,), golden="actcodec.codecs.models.comet:Comet", torch="actcodec.torch.comet:Comet",
    options=(*BOUNDS, PREDICTOR, CDUS), exclusive=tuple(option.name for option in BOUNDS), lossy=True,
    fallback="comet-flat", summary="differences to neighbours in Huffman codes, each value within a bound",
    tensors="anything", steady=False, source="COMET (Jin et al., VLDB 2022), section 3.4",
    demo_cases=(("dense", {"l2": 0.05}), ("ReLU", {"l2": 0.05})))

FLAT = replace(
    TILED, name="comet-flat", code=23, torch="", fallback="", demo_cases=(),
    stages=(replace(STAGE, tiled=False, settings=tuple(
        replace(one, limits=entries(1, most=0)) if one.name == "vertical" else one for one in SETTINGS)),))
"""A mode of lanes, for predictors that need no tiles. The values of a tensor decide, and files name the predictor."""

MODES = (replace(TILED, variants=(({}, FLAT),)),)


def units() -> tuple[Unit, ...]:
    """The hardware."""
    return (
        Unit("places", "comet.places:Places", "places of sectors ahead, and how many rounds they begin"),
        Unit("dock", "comet.dock:Dock", "sectors that come and go, and the bytes of their outliers"),
        Unit("prequantise", "comet.prequantise:Prequantise", "float32 to multiples of a step, half away from zero"),
        Unit("lorenzo", "comet.lorenzo:Lorenzo", "differences to neighbours, and sums, both directions"),
        Unit("outliers", "comet.outliers:Outliers", "bytes of outliers past prediction, both directions"),
        Unit("rounds", "comet.rounds:Rounds", "symbols of sectors to rounds of eight, and back"),
        Unit("histogram", "comet.histogram:Histogram", "32 bins of one symbol in eight", {"width": 24}),
        Unit("book", "comet.book:Book", "a code book's tables from its lengths"),
        Unit("huffman", "comet.huffman:Huffman", "eight symbols to eight codes and escapes, and back"),
        Unit("interleave", "comet.interleave:Interleave", "eight lanes of bits to bytes in the decoder's order",
             {"bytes": 23, "steps": 24}),
        Unit("reconstruct", "comet.reconstruct:Reconstruct", "multiples of a step to float32"),
        Unit("comet", "comet.comet:Comet", "COMET's codec, both directions",
             apart=("prequantise", "interleave", "huffman")),
    )
