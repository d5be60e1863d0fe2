"""Gist (Jain et al., ISCA 2018): encodings of a flat tensor, each by a pair of stream units."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from actcodec.codecs.jpegact import CDUS, TORCH
from actcodec.codecs.mode import Mode, Streams
from actcodec.codecs.unit import Unit

__all__ = ["MODES", "UNSHARED", "units"]

PAPER = "Gist (Jain et al., ISCA 2018)"
UNSHARED = replace(CDUS, range=(1, 1), help="These modes have no CDUs.")  # one unit does all of a tensor
GIST = "actcodec.torch.gist"
FORMATS = {"fp16": 0, "fp10": 1, "fp8": 2}  # by the codes of rtl/common/minifloat.py


def model(name: str) -> str:
    return f"actcodec.codecs.models.gist:{name}"


def streams(module: Sequence[str], encoder: str, decoder: str, **inputs: Any) -> Streams:
    return Streams(f"actcodec.rtl.gist.{module[0]}:{encoder}", f"actcodec.rtl.gist.{module[-1]}:{decoder}",
                   tuple(inputs.items()))


MODES = (
    Mode("binarize", 6, golden=model("Binarize"), torch=TORCH, options=(UNSHARED,), lossy=True,
         summary="as brc, but without padding", tensors="ReLU to pool", relu=True,
         source=f"{PAPER}, section III-A",
         streams=streams(["binarize"], "Binarize", "Unbinarize")),
    Mode("ssdc", 7, golden=model("Ssdc"), torch=f"{GIST}:Ssdc", options=(UNSHARED,), parameters=(("form", None),),
         summary="values that are not zero, and where; lossless but for -0", tensors="ReLU to conv",
         relu=True, source=f"{PAPER}, section III-A",
         streams=streams(["ssdc_encode", "ssdc_decode"], "SsdcEncode", "SsdcDecode")),
    *(Mode(f"ssdc-{form}", 8 + number, golden=model("Ssdc"), torch=f"{GIST}:Ssdc", options=(UNSHARED,),
           parameters=(("form", form),), lossy=True, summary=f"ssdc, and its values as {form}", tensors="ReLU to conv",
           relu=True, source=f"{PAPER}, section III-A", streams=streams(["ssdc_dpr"], "SsdcDprEncode", "SsdcDprDecode",
                                                             format=FORMATS[form]))
      for number, form in enumerate(FORMATS)),
    *(Mode(f"dpr-{form}", 11 + number, golden=model("Dpr"), torch=f"{GIST}:Dpr", options=(UNSHARED,),
           parameters=(("form", form),), lossy=True, summary=f"floats of {form[2:]} bits", tensors="anything",
           source=f"{PAPER}, section III-A", streams=streams(["dpr"], "DprEncode", "DprDecode", format=FORMATS[form]))
      for number, form in enumerate(FORMATS)),
)


def units() -> tuple[Unit, ...]:
    """The hardware."""
    return (
        Unit("binarize", "gist.binarize:Binarize", "one bit for each positive value"),
        Unit("unbinarize", "gist.binarize:Unbinarize", "1.0 or 0.0 for each bit"),
        Unit("dpr_encode", "gist.dpr:DprEncode", "float32 to FP16, FP10 or FP8, packed",
             {"formats": ("fp16", "fp10", "fp8")}, bench="gist/dpr::test_encode"),
        Unit("dpr_decode", "gist.dpr:DprDecode", "FP16, FP10 or FP8 to float32", {"formats": ("fp16", "fp10", "fp8")},
             bench="gist/dpr::test_decode"),
        Unit("ssdc_encode", "gist.ssdc_encode:SsdcEncode", "a dense tensor to narrow CSR"),
        Unit("ssdc_decode", "gist.ssdc_decode:SsdcDecode", "narrow CSR to a dense tensor"),
        Unit("maxpool", "gist.maxpool:MaxPool", "max pooling with a map of where the maxima were", {"width": 256},
             synth={"width": 16}),
        Unit("maxpool_backward", "gist.maxpool_backward:MaxPoolBackward", "gradients through max pooling, by that map",
             {"width": 256},
             synth={"width": 16}),
    )
