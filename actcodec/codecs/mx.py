"""MX (OCP Microscaling Formats v1.0, 2023): 32 values share a power of two, and have 4, 6 or 8 bits each."""

from dataclasses import replace

from actcodec.codecs.jpegact import CDUS, CODERS, SETTINGS, STRAIGHT
from actcodec.codecs.mode import Mode, Option, Setting, Stage
from actcodec.codecs.unit import Unit
from actcodec.rtl.offload.control.setting import entries
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["LANE", "MODES", "units"]

SPECIFICATION = "OCP Microscaling Formats (MX) v1.0"
CODES = {"int8": 56, "e4m3": 55, "e5m2": 54, "e3m2": 53, "e2m3": 52, "e2m1": 51}
CODED = {("int8", "zvc"): 36, ("e4m3", "zvc"): 37, ("e5m2", "zvc"): 38, ("e3m2", "zvc"): 39, ("e2m3", "zvc"): 40,
         ("e2m1", "zvc"): 41, ("int8", "nibble"): 42, ("int8", "rice"): 43}
WIDTHS = {"int8": 8, "e4m3": 8, "e5m2": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4}
RULES = ("rceil", "floor", "even")  # in the order of their codes

FORMAT = Option("format", str, "int8", "Element format: 8-bit integers, or floats of so many bits of exponent and "
                "mantissa.", choices=tuple(CODES))
RULE = Option("rule", str, RULES[0], "Scale of 32 values: the least power of two with which none saturates; that of "
              "OCP's text; or that of the largest value, rounded.", choices=RULES, stored=False)
CODER = Option("coder", str, "none", "Code of the elements, for maps with zeros: none, ZVC; or, of int8, nibble planes "
               "or Golomb-Rice in planes.", choices=("none", "zvc", "nibble", "rice"))
SCALES = Option("scales", str, "inline", "Where a file has the scales: in front of each block of 64 values, as "
                "hardware has them, or all in front of all elements, which a coder does not allow.",
                choices=("inline", "apart"))
SETTING = Setting("rule", 2, limits=entries(2, most=len(RULES) - 1), stored=False,
                  meaning=f"how scales are chosen: {', '.join(f'{n} {rule}' for n, rule in enumerate(RULES))}")
FORMATS = {"zvc": BlockFormat("mask", 8, halves=True)} | {
    name: replace(stage.format, halves=True) for name, stage in CODERS.items() if stage.format}


def stages(form: str, coder: str = "none") -> tuple[Stage, ...]:
    """From sectors to blocks of elements; and, with a coder, to its blocks."""
    path = "actcodec.{}.mx.path:{}".format
    if coder == "none":
        return (Stage(path("rtl", form), path("golden", form.title()), BlockFormat("halves", WIDTHS[form]),
                      settings=(SETTING,)),)
    table = tuple(replace(SETTINGS[name], default=STRAIGHT[name]) for name in (coder,) if name in SETTINGS)
    # A table stands where the rule would.
    rule = replace(SETTING, name="coded_rule", low=max(one.width for one in SETTINGS.values())) if table else SETTING
    return (Stage(path("rtl", form), path("golden", "CodedInt8" if table else form.title()), settings=(rule,)),
            Stage(f"actcodec.rtl.mx.coded:{coder}", f"actcodec.golden.mx.coded:{coder.title()}", FORMATS[coder],
                  settings=table))


MX = Mode(
    "mx", CODES["int8"], stages("int8"), golden="actcodec.codecs.models.mx:Mx", torch="actcodec.torch.mx:Mx",
    options=(FORMAT, RULE, CODER, SCALES, CDUS), lossy=True, summary="4, 6 or 8 bits a value, scaled by 32",
    tensors="anything", source=f"{SPECIFICATION}, section 5",
    demo_cases=(("dense", {}), ("dense", {"format": "e2m1"}), ("ReLU", {"coder": "rice"})))
INLINE = replace(SCALES, choices=("inline",))  # blocks of any length have nowhere else for theirs
MODES = (replace(MX, variants=(
    *(({"format": form}, replace(MX, name=f"mx-{form}", code=code, stages=stages(form), demo_cases=()))
      for form, code in CODES.items() if form != FORMAT.default),
    *(({"format": form, "coder": coder},
       replace(MX, name="-".join(("mx", *[form] * (form != FORMAT.default), coder)), code=code,
               stages=stages(form, coder), options=(FORMAT, RULE, CODER, INLINE, CDUS), demo_cases=()))
      for (form, coder), code in CODED.items()))),)

LANE = (MX.name, *(mode.name for _, mode in MODES[0].variants))
"""The modes of the lane."""


def units() -> tuple[Unit, ...]:
    """The hardware."""
    elements = tuple(CODES)
    return (
        Unit("mx_encode", "mx.encode:Encode", "MX: float32 to blocks of two scales and 64 elements",
             {"elements": elements}, variants={one: {"elements": (one,)} for one in ("e4m3", "int8", "e2m1")}),
        Unit("mx_decode", "mx.decode:Decode", "MX: blocks of two scales and 64 elements to float32",
             {"elements": elements}, variants={one: {"elements": (one,)} for one in ("e4m3", "int8", "e2m1")}),
        Unit("mx_scales", "mx.scales:Scales", "MX: the scales past a coder of elements, both directions",
             {"elements": elements, "coders": ("zvc", "nibble", "rice")}),
    )
