"""The catalogue of units: what there is to simulate, to synthesise and to take away as Verilog.

``python -m actcodec.units FOLDER`` writes the Verilog of all of them, a file for each.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from amaranth.back import rtlil
from amaranth.back import verilog as back_verilog

from actcodec.codecs import JPEG_ACT, lane_modes
from actcodec.header import check_name, header
from actcodec.rtl.a2dtwp.bitpack import Bitpack
from actcodec.rtl.a2dtwp.bitunpack import Bitunpack
from actcodec.rtl.comet.book import Book
from actcodec.rtl.comet.comet import Comet
from actcodec.rtl.comet.histogram import Histogram
from actcodec.rtl.comet.huffman_decode import Decode as HuffmanDecode
from actcodec.rtl.comet.huffman_encode import Encode as HuffmanEncode
from actcodec.rtl.comet.interleave import BYTES, SPARE, STEPS, Interleave
from actcodec.rtl.comet.lorenzo import Lorenzo
from actcodec.rtl.comet.outliers import Outliers
from actcodec.rtl.comet.prequantise import Prequantise
from actcodec.rtl.comet.reconstruct import Reconstruct
from actcodec.rtl.comet.rounds import Gather, Scatter
from actcodec.rtl.common import axi
from actcodec.rtl.common.bursts import Bursts
from actcodec.rtl.common.counter import Counter
from actcodec.rtl.common.fadd import Fadd
from actcodec.rtl.common.packer import Packer
from actcodec.rtl.common.shared_module import Parts
from actcodec.rtl.common.unpacker import Unpacker
from actcodec.rtl.division.decode import Decode
from actcodec.rtl.division.encode import Encode
from actcodec.rtl.gist.binarize import Binarize, Unbinarize
from actcodec.rtl.gist.dpr import DprDecode, DprEncode, Format
from actcodec.rtl.gist.maxpool import MaxPool
from actcodec.rtl.gist.maxpool_backward import MaxPoolBackward
from actcodec.rtl.gist.ssdc import SsdcEncode
from actcodec.rtl.gist.ssdc_decode import SsdcDecode
from actcodec.rtl.jpegact.align import Align
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.jpegact.dct import Dct, Dct8
from actcodec.rtl.jpegact.div import Div
from actcodec.rtl.jpegact.nibble import Nibble
from actcodec.rtl.jpegact.quantize import Round, Shift
from actcodec.rtl.jpegact.sfpr import Sfpr
from actcodec.rtl.jpegact.transpose import Transpose
from actcodec.rtl.jpegact.zvc import Zvc
from actcodec.rtl.offload.accelerator import Accelerator
from actcodec.rtl.offload.address import AddressGenerator
from actcodec.rtl.offload.beat_planner import BeatPlanner
from actcodec.rtl.offload.collector import Collector
from actcodec.rtl.offload.lane import Lane
from actcodec.rtl.offload.reader import Reader
from actcodec.rtl.offload.registers import Registers
from actcodec.rtl.offload.splitter import Splitter
from actcodec.rtl.offload.tensor_plan import TensorPlan
from actcodec.rtl.offload.writer import Writer

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
        """An instance, with the default parameters but for ``overrides``; ``modes`` are given by their names."""
        parameters = {**self.parameters, **overrides}
        if "modes" in parameters:
            parameters["modes"] = parameters["modes"] and lane_modes(*parameters["modes"])
        return self.component(**parameters)

    def verilog(self, name=None, **overrides):
        """The Verilog of such an instance, with a header. All its modules' names begin with ``name``, which is the
        unit's by default, so units with other parameters may be in one design under other names. Raises ValueError
        for a name that is no identifier, and as the unit does."""
        name = check_name(self.name if name is None else name)
        text = verilog(self.build(**overrides), name)
        return header(self.name, self.summary, name, {**self.parameters, **overrides}) + text


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
        Unit("div", Div, "DIV, quantization by division", paper="Quantize (DIV)"),
        Unit("nibble", Nibble, "nibble planes, a denser code than ZVC, both directions"),
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
        Unit("division_encode", Encode, "DIVISION behind SFPR: averages, and codes for the rest", {"bits": (1, 2, 4)}),
        Unit("division_decode", Decode, "DIVISION in front of SFPR: averages and codes to values", {"bits": (1, 2, 4)}),
        Unit("prequantise", Prequantise, "float32 to multiples of a step, half away from zero"),
        Unit("lorenzo", Lorenzo, "differences to neighbours, and sums, both directions"),
        Unit("outliers", Outliers, "bytes of outliers past prediction, both directions"),
        Unit("gather", Gather, "symbols of sectors to rounds of eight"),
        Unit("scatter", Scatter, "rounds of eight symbols to sectors"),
        Unit("histogram", Histogram, "32 bins of one symbol in eight"),
        Unit("book", Book, "a code book's tables from its lengths"),
        Unit("huffman_encode", HuffmanEncode, "eight symbols to eight codes, and escapes"),
        Unit("interleave", Interleave, "eight lanes of bits to bytes in the decoder's order",
             {"bytes": BYTES + SPARE, "steps": STEPS + SPARE}),
        Unit("huffman_decode", HuffmanDecode, "bytes to eight lanes of bits to eight symbols"),
        Unit("reconstruct", Reconstruct, "multiples of a step to float32"),
        Unit("comet", Comet, "COMET's codec, both directions"),
        Unit("fadd", Fadd, "float32 adder"),
        Unit("counter", Counter, "sum with carries that take their time", {"amount_width": 1, "width": 64}),
        Unit("bursts", Bursts, "beats to AXI bursts", ADDRESS),
        Unit("beat_planner", BeatPlanner, "places of sectors to beats of memory", ADDRESS),
        Unit("address_generator", AddressGenerator, "the order in which a CDU passes a tensor", ADDRESS),
        Unit("tensor_plan", TensorPlan, "a tensor's description to what each lane needs", {"cdus": 4, **ADDRESS}),
        Unit("reader", Reader, "places to sectors and scales, read over AXI", MEMORY),
        Unit("writer", Writer, "sectors to their places, written over AXI", MEMORY),
        Unit("registers", Registers, "registers on AXI4-Lite", {"cdus": 1, "modes": JPEG_ACT, "address_width": 64}),
        Unit("collector", Collector, "blocks of all CDUs to packets", {"cdus": 4, "modes": JPEG_ACT}),
        Unit("splitter", Splitter, "packets to blocks for all CDUs", {"cdus": 4, "modes": JPEG_ACT}),
        Unit("cdu", Cdu, "compression/decompression unit", {"modes": JPEG_ACT, "packed": True}, "CDU"),
        Unit("lane", partial(Lane, codec=Cdu), "a CDU with its port to memory", {"modes": JPEG_ACT, **MEMORY},
             synth=None),
        Unit("accelerator", partial(Accelerator, codec=Cdu), "offload accelerator, all of JPEG-ACT's units",
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
        parts = Parts(f"{name}_")
        text = back_verilog.convert(component, name=name, platform=parts, emit_src=False, strip_internal_attrs=True)
        asks = getattr(component, "memory", None) == "independent"
        head = f"// Made for independent memory: {axi.CONDITION}.\n" if asks else ""
        return "".join([head, text, *(verilog(part, module) for module, part in parts.components.items())])
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
        text = unit.verilog(name, **parameters)
        part = folder / f"{name}.part"
        part.write_text(text)
        part.replace(folder / f"{name}.v")


if __name__ == "__main__":
    write(*sys.argv[1:])
