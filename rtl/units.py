"""The catalogue of units: what there is to simulate, to synthesise and to take away as Verilog.

``python -m rtl.units FOLDER`` writes the Verilog of all of them, a file for each.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from amaranth.back import rtlil
from amaranth.back import verilog as back_verilog

from rtl.common import axi
from rtl.common.bursts import Bursts
from rtl.common.counter import Counter
from rtl.common.fadd import Fadd
from rtl.common.packer import Packer
from rtl.common.shared import collect
from rtl.common.unpacker import Unpacker
from rtl.gist.binarize import Binarize, Unbinarize
from rtl.gist.bitpack import Bitpack, Bitunpack
from rtl.gist.dpr import DprDecode, DprEncode, Format
from rtl.gist.maxpool import MaxPool
from rtl.gist.maxpool_backward import MaxPoolBackward
from rtl.gist.ssdc import SsdcEncode
from rtl.gist.ssdc_decode import SsdcDecode
from rtl.jpegact.accelerator import Accelerator
from rtl.jpegact.address import Walk
from rtl.jpegact.align import Align
from rtl.jpegact.beats import Beats
from rtl.jpegact.cdu import JPEG_ACT, Cdu
from rtl.jpegact.collector import Collector
from rtl.jpegact.dct import Dct, Dct8
from rtl.jpegact.lane import Lane
from rtl.jpegact.plan import Plan
from rtl.jpegact.quantize import Round, Shift
from rtl.jpegact.reader import Reader
from rtl.jpegact.registers import Registers
from rtl.jpegact.sfpr import Sfpr
from rtl.jpegact.splitter import Splitter
from rtl.jpegact.transpose import Transpose
from rtl.jpegact.writer import Writer
from rtl.jpegact.zvc import Zvc

__all__ = ["UNITS", "Unit", "verilog", "write"]

ADDRESS = {"address_width": 40}
MEMORY = {**ADDRESS, "outstanding": 384, "memory": "shared"}
LANES = (1, 4)  # of the accelerators that are written besides the units


@dataclass(frozen=True)
class Unit:
    """A unit of the design: its name on the command line, its class, and its parameters with their defaults."""

    name: str
    component: Callable
    summary: str
    parameters: dict = field(default_factory=dict)
    paper: str | None = None  # the row of the paper's area table that it stands beside
    synth: dict | None = field(default_factory=dict)  # parameters that differ when mapped; None: not by itself

    def build(self, **overrides):
        """An instance, with the default parameters but for ``overrides``."""
        return self.component(**{**self.parameters, **overrides})


UNITS = {
    unit.name: unit
    for unit in (
        Unit("sfpr", Sfpr, "SFPR, eight processing elements, both directions", paper="SFPR"),
        Unit("align", Align, "alignment buffer between sectors and tiles"),
        Unit("transpose", Transpose, "8x8 transpose buffer", {"width": 18, "transposes": True}),
        Unit("dct8", Dct8, "8-point DCT and iDCT, one pass",
             {"width": 8, "coefficient_width": 12, "fraction": 3, "direction": "both", "half": False}),
        Unit("dct", Dct, "8x8 DCT and iDCT", {"direction": "both"}, "DCT + iDCT"),
        Unit("quantize", Shift, "SH, quantization by shifts"),
        Unit("round", Round, "SH, rounding after the shift"),
        Unit("zvc", Zvc, "ZVC and ZVD, zeros squeezed out and put back", {"word": 1}, "Coding (ZVC + ZVD)"),
        Unit("packer", Packer, "chunks of bytes to full words", {"granule": 1, "i_size": 16, "o_size": 16}),
        Unit("unpacker", Unpacker, "full words to pieces of bytes", {"granule": 1, "i_size": 16, "o_size": 16}),
        Unit("binarize", Binarize, "one bit for each positive value"),
        Unit("unbinarize", Unbinarize, "1.0 or 0.0 for each bit"),
        Unit("bitpack", Bitpack, "top bits of each value, packed", {"widths": (8, 16, 24, 32)}),
        Unit("bitunpack", Bitunpack, "packed values, taken apart", {"widths": (8, 16, 24, 32)}),
        Unit("dpr_encode", DprEncode, "float32 to FP16, FP10 or FP8, packed", {"formats": tuple(Format)}),
        Unit("dpr_decode", DprDecode, "FP16, FP10 or FP8 to float32", {"formats": tuple(Format)}),
        Unit("ssdc_encode", SsdcEncode, "a dense tensor to narrow CSR"),
        Unit("ssdc_decode", SsdcDecode, "narrow CSR to a dense tensor"),
        Unit("maxpool", MaxPool, "max pooling with a map of where the maxima were", {"width": 256},
             synth={"width": 16}),
        Unit("maxpool_backward", MaxPoolBackward, "gradients through max pooling, by that map", {"width": 256},
             synth={"width": 16}),
        Unit("fadd", Fadd, "float32 adder"),
        Unit("counter", Counter, "sum with carries that take their time", {"amount_width": 1, "width": 64}),
        Unit("bursts", Bursts, "beats to AXI bursts", ADDRESS),
        Unit("beats", Beats, "places of sectors to beats of memory", ADDRESS),
        Unit("walk", Walk, "the order in which a CDU passes a tensor", ADDRESS),
        Unit("plan", Plan, "a tensor's description to what each lane needs", {"cdus": 4, **ADDRESS}),
        Unit("reader", Reader, "places to sectors and scales, read over AXI", MEMORY),
        Unit("writer", Writer, "sectors to their places, written over AXI", MEMORY),
        Unit("registers", Registers, "registers on AXI4-Lite", {"cdus": 1, "modes": JPEG_ACT, "address_width": 64}),
        Unit("collector", Collector, "blocks of all CDUs to packets", {"cdus": 4, "modes": JPEG_ACT}),
        Unit("splitter", Splitter, "packets to blocks for all CDUs", {"cdus": 4, "modes": JPEG_ACT}),
        Unit("cdu", Cdu, "compression/decompression unit", {"modes": JPEG_ACT, "packed": True}, "CDU"),
        Unit("lane", Lane, "a CDU with its port to memory", {"modes": JPEG_ACT, **MEMORY}, synth=None),
        Unit("accelerator", Accelerator, "offload accelerator, all of JPEG-ACT's units",
             {"cdus": 4, "modes": JPEG_ACT, **MEMORY}),
    )
}


def verilog(component, name, flatten=False):
    """The Verilog of a component as a string. The module is called ``name``; a stream ``i`` becomes ``i__payload``,
    ``i__valid`` and ``i__ready``. What the component has several of and calls shared is written once, as a module
    ``name_part``. ``flatten`` merges everything into one module. What the design asks of its surroundings stands at the
    top."""
    # The default would prefer whatever Yosys happens to be installed, and its version shows in the text.
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    if not flatten:
        with collect(f"{name}_") as parts:
            text = back_verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)
        asks = getattr(component, "memory", None) == "independent"
        head = f"// Made for independent memory: {axi.CONDITION}.\n" if asks else ""
        return "".join([head, text, *(verilog(part, module) for module, part in parts.items())])
    from amaranth._toolchain.yosys import find_yosys

    text = rtlil.convert(component, name=name, emit_src=False)
    script = f"read_rtlil <<rtlil\n{text}\nrtlil\nproc -norom\nflatten\nwrite_verilog -noattr\n"
    return find_yosys(lambda version: version >= (0, 40)).run(["-q", "-"], script)


def write(folder):
    """Writes the Verilog of every unit, with its default parameters, into ``folder``, and accelerators of one lane and
    of four as ``actcodec_n1`` and ``actcodec_n4``. Files are named after their modules."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    units = [(unit.name, unit, {}) for unit in UNITS.values() if unit.name != "accelerator"]
    for name, unit, parameters in units + [(f"actcodec_n{n}", UNITS["accelerator"], {"cdus": n}) for n in LANES]:
        text = verilog(unit.build(**parameters), name)
        part = folder / f"{name}.part"
        part.write_text(text)
        part.replace(folder / f"{name}.v")


if __name__ == "__main__":
    write(*sys.argv[1:])
