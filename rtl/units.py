"""The catalogue of units: what there is to simulate, to synthesise and to take away as Verilog."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from amaranth.back import rtlil
from amaranth.back import verilog as back_verilog

from rtl.common.packer import Packer
from rtl.common.shared import collect
from rtl.common.unpacker import Unpacker
from rtl.gist.binarize import Binarize, Unbinarize
from rtl.jpegact.align import Align
from rtl.jpegact.cdu import JPEG_ACT, Cdu
from rtl.jpegact.dct import Dct, Dct8
from rtl.jpegact.quantize import Shift
from rtl.jpegact.sfpr import Sfpr
from rtl.jpegact.transpose import Transpose
from rtl.jpegact.zvc import Zvc

__all__ = ["UNITS", "Unit", "verilog"]


@dataclass(frozen=True)
class Unit:
    """A unit of the design: its name on the command line, its class, and its parameters with their defaults."""

    name: str
    component: Callable
    summary: str
    parameters: dict = field(default_factory=dict)
    paper: str | None = None  # the row of the paper's area table that it stands beside

    def build(self, **overrides):
        """An instance, with the default parameters but for ``overrides``."""
        return self.component(**{**self.parameters, **overrides})


UNITS = {
    unit.name: unit
    for unit in (
        Unit("sfpr", Sfpr, "SFPR, eight processing elements, both directions", paper="SFPR"),
        Unit("binarize", Binarize, "one bit for each positive value"),
        Unit("unbinarize", Unbinarize, "1.0 or 0.0 for each bit"),
        Unit("align", Align, "alignment buffer between sectors and tiles"),
        Unit("transpose", Transpose, "8x8 transpose buffer", {"width": 18, "transposes": True}),
        Unit("dct8", Dct8, "8-point DCT and iDCT, one pass",
             {"width": 8, "coefficient_width": 12, "fraction": 3, "direction": "both", "half": False}),
        Unit("dct", Dct, "8x8 DCT and iDCT", {"direction": "both"}, "DCT + iDCT"),
        Unit("quantize", Shift, "SH, quantization by shifts", paper="Quantize (SH)"),
        Unit("zvc", Zvc, "ZVC and ZVD, zeros squeezed out and put back", {"word": 1}, "Coding (ZVC + ZVD)"),
        Unit("packer", Packer, "chunks of bytes to full words", {"granule": 1, "i_size": 16, "o_size": 16}),
        Unit("unpacker", Unpacker, "full words to pieces of bytes", {"granule": 1, "i_size": 16, "o_size": 16}),
        Unit("cdu", Cdu, "compression/decompression unit, all of the above", {"modes": JPEG_ACT}, "CDU"),
    )
}


def verilog(component, name, flatten=False):
    """The Verilog of a component as a string. The module is called ``name``; a stream ``i`` becomes ``i__payload``,
    ``i__valid`` and ``i__ready``. What the component has several of and calls shared is written once, as a module
    ``name_part``. ``flatten`` merges everything into one module."""
    # The default would prefer whatever Yosys happens to be installed, and its version shows in the text.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    if not flatten:
        with collect(f"{name}_") as parts:
            text = back_verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)
        return "".join([text, *(verilog(part, module) for module, part in parts.items())])
    from amaranth._toolchain.yosys import find_yosys

    text = rtlil.convert(component, name=name, emit_src=False)
    script = f"read_rtlil <<rtlil\n{text}\nrtlil\nproc -norom\nflatten\nwrite_verilog -noattr\n"
    return find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], script)
