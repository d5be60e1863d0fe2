"""Gist (Jain et al., ISCA 2018): encodings of a flat tensor, each by a pair of stream units."""

from dataclasses import replace

from actcodec.codecs.jpegact import CDUS
from actcodec.codecs.mode import Mode, Streams

__all__ = ["MODES", "UNSHARED"]

PAPER = "Gist (Jain et al., ISCA 2018)"
UNSHARED = replace(CDUS, range=(1, 1), help="These modes have no CDUs.")  # one unit does all of a tensor
FORMATS = {"fp16": 0, "fp10": 1, "fp8": 2}  # by the codes of rtl/common/minifloat.py


def model(name):
    return f"actcodec.codecs.models.gist:{name}"


def streams(module, encoder, decoder, **inputs):
    return Streams(f"actcodec.rtl.gist.{module[0]}:{encoder}", f"actcodec.rtl.gist.{module[-1]}:{decoder}",
                   tuple(inputs.items()))


MODES = (
    Mode("binarize", 6, golden=model("Binarize"), options=(UNSHARED,), lossy=True,
         summary="as brc, but without padding", tensors="ReLU to pool", source=f"{PAPER}, section III-A",
         streams=streams(["binarize"], "Binarize", "Unbinarize")),
    Mode("ssdc", 7, golden=model("Ssdc"), options=(UNSHARED,), parameters=(("form", None),),
         summary="values that are not zero, and where; lossless but for -0", tensors="ReLU to conv",
         source=f"{PAPER}, section III-A", streams=streams(["ssdc", "ssdc_decode"], "SsdcEncode", "SsdcDecode")),
    *(Mode(f"ssdc-{form}", 8 + number, golden=model("Ssdc"), options=(UNSHARED,), parameters=(("form", form),),
           lossy=True, summary=f"ssdc, and its values as {form}", tensors="ReLU to conv",
           source=f"{PAPER}, section III-A", streams=streams(["ssdc_dpr"], "SsdcDprEncode", "SsdcDprDecode",
                                                             format=FORMATS[form]))
      for number, form in enumerate(FORMATS)),
    *(Mode(f"dpr-{form}", 11 + number, golden=model("Dpr"), options=(UNSHARED,), parameters=(("form", form),),
           lossy=True, summary=f"floats of {form[2:]} bits", tensors="anything",
           source=f"{PAPER}, section III-A", streams=streams(["dpr"], "DprEncode", "DprDecode", format=FORMATS[form]))
      for number, form in enumerate(FORMATS)),
)
