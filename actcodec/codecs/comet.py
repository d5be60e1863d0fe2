"""COMET (Jin et al., VLDB 2022): every value within an error bound, by prediction and Huffman codes."""

from actcodec.codecs.jpegact import CDUS
from actcodec.codecs.mode import Mode, Option

__all__ = ["MODES"]

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

MODES = (
    Mode("comet", 21, golden="actcodec.codecs.models.comet", options=(*BOUNDS, PREDICTOR, CDUS),
         exclusive=tuple(option.name for option in BOUNDS), lossy=True,
         summary="differences to neighbours in Huffman codes, each value within a bound", tensors="anything",
         source="COMET (Jin et al., VLDB 2022), section 3.4",
         shown=(("dense", {"l2": 0.05}), ("ReLU", {"l2": 0.05}))),
)
