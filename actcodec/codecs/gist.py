"""Gist (Jain et al., ISCA 2018): encodings of a flat tensor. Binarize is JPEG-ACT's ``brc``; SSDC has units, but no
lane: an encoder and a decoder alone are 26,000 um2."""

from dataclasses import replace
from typing import Any

from actcodec.codecs.jpegact import CDUS
from actcodec.codecs.mode import Mode, Stage
from actcodec.codecs.unit import Unit
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["MODES", "top", "units"]

PAPER = "Gist (Jain et al., ISCA 2018)"
UNSHARED = replace(CDUS, range=(1, 1), help="These modes have no CDUs.")  # one unit does all of a tensor
FORMATS = {"fp16": 16, "fp10": 10, "fp8": 8}  # bits


def top(bits: int) -> Stage:
    """The last stage of values of so many ``bits``: those at the top of each word."""
    return Stage(f"actcodec.rtl.a2dtwp.path:top{bits}", f"actcodec.golden.a2dtwp.path:Top{bits}",
                 BlockFormat("fixed", bits))


def dpr(form: str, bits: int) -> tuple[Stage, ...]:
    """The stages of a format."""
    return Stage("actcodec.rtl.gist.path:dpr", f"actcodec.golden.gist.path:{form.title()}"), top(bits)


def ssdc(name: str, code: int, form: str | None, **more: Any) -> Mode:
    return Mode(name, code, golden="actcodec.codecs.models.gist:Ssdc", torch="actcodec.torch.gist:Ssdc",
                options=(UNSHARED,), parameters=(("form", form),), tensors="ReLU to conv", relu=True,
                source=f"{PAPER}, section III-A", **more)


MODES = (
    ssdc("ssdc", 7, None, summary="values that are not zero, and where; lossless but for -0"),
    *(ssdc(f"ssdc-{form}", 8 + number, form, lossy=True, summary=f"ssdc, and its values as {form}")
      for number, form in enumerate(FORMATS)),
    *(Mode(f"dpr-{form}", 11 + number, dpr(form, bits), golden="actcodec.codecs.models.gist:Dpr",
           torch="actcodec.torch.gist:Dpr", options=(CDUS,), parameters=(("form", form),), lossy=True,
           summary=f"floats of {bits} bits", tensors="anything", source=f"{PAPER}, section III-A")
      for number, (form, bits) in enumerate(FORMATS.items())),
)


def units() -> tuple[Unit, ...]:
    """The hardware."""
    return (
        Unit("binarize", "gist.binarize:Binarize", "one bit for each positive value"),
        Unit("unbinarize", "gist.binarize:Unbinarize", "1.0 or 0.0 for each bit"),
        Unit("dpr_reduce", "gist.dpr:DprReduce", "float32 to FP16, FP10 or FP8", {"formats": ("fp16", "fp10", "fp8")},
             bench="gist/dpr::test_reduce"),
        Unit("dpr_expand", "gist.dpr:DprExpand", "FP16, FP10 or FP8 to float32", {"formats": ("fp16", "fp10", "fp8")},
             bench="gist/dpr::test_expand"),
        Unit("dpr_encode", "gist.dpr:DprEncode", "float32 to FP16, FP10 or FP8, packed",
             {"formats": ("fp16", "fp10", "fp8")}, bench="gist/dpr::test_encode"),
        Unit("dpr_decode", "gist.dpr:DprDecode", "packed FP16, FP10 or FP8 to float32",
             {"formats": ("fp16", "fp10", "fp8")}, bench="gist/dpr::test_decode"),
        Unit("ssdc_encode", "gist.ssdc_encode:SsdcEncode", "a dense tensor to narrow CSR"),
        Unit("ssdc_decode", "gist.ssdc_decode:SsdcDecode", "narrow CSR to a dense tensor"),
        Unit("maxpool", "gist.maxpool:MaxPool", "max pooling with a map of where the maxima were", {"width": 256},
             synth={"width": 16}),
        Unit("maxpool_backward", "gist.maxpool_backward:MaxPoolBackward", "gradients through max pooling, by that map",
             {"width": 256},
             synth={"width": 16}),
    )
