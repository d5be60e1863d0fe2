"""Netlists with many mutants: faults that Yosys draws and puts into one unit, of which an input chooses one.

A mutant is a bit of a port of a cell that is inverted, constant, or inverted while another bit of the port is 0 or 1.
They are drawn in the RTL as it is written, before anything is mapped, so that names and lines of the source tell where
a mutant is. Yosys spreads them evenly over lines, cells and wires.
"""

import hashlib
import json
import pkgutil
import re
from dataclasses import dataclass, field
from pathlib import Path

from amaranth.back import rtlil
from amaranth.lib import data

from actcodec.codecs import lane_modes
from actcodec.elaboration import netlist
from actcodec.rtl.common import compaction
from actcodec.synth.flow import yosys
from actcodec.synth.library import SynthesisError, version
from actcodec.units import UNITS, benches

__all__ = ["BUILD", "REGRESS", "SUBJECTS", "Mutant", "Subject", "draw", "drawn", "key", "verdicts"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "mutate"
WIDTH = 16  # bits of the input that chooses


@dataclass(frozen=True)
class Subject:
    """What gets mutants: the class of a component, or where that is, and its parameters. ``files`` of the RTL: if there
    are any, only cells that come from these get mutants. ``bench``: what pytest runs, from the root of a checkout on,
    if not the bench of its name."""

    name: str
    place: object
    parameters: dict = field(default_factory=dict)
    files: tuple = ()
    bench: str = ""

    @property
    def component(self):
        return pkgutil.resolve_name(self.place) if isinstance(self.place, str) else self.place

    @property
    def bench_node(self):
        """What pytest runs."""
        return self.bench or benches([self.name])[0]


@dataclass(frozen=True)
class Mutant:
    """A line of Yosys's ``mutate -list``, with the type of the cell, by the number that chooses it."""

    number: int
    line: str

    def __str__(self):
        """What it does, and where."""
        words = re.findall(r"-(\w+) (\S+)", self.line)
        known = dict(words)
        name = f"{known['wire']}[{known['wirebit']}]" if "wire" in known else known["cell"].replace("\\", "")
        what = {"inv": "is inverted", "const0": "is 0", "const1": "is 1"}.get(known["mode"]) or (
            f"is inverted while [{known['ctrlbit']}] is {known['mode'][-1]}")
        lines = [text for word, text in words if word == "src" and not text.startswith(".")]
        return f"{name}: {known['port']}[{known['portbit']}] of a {known['type']} {what} ({', '.join(lines)})"


# Where mutants are in hardware with other parameters than the catalogue's, by the name of the subject.
DIFFERENT = {
    "counter": {"width": 16, "digit": 4},  # or else a carry comes after 2 to the 32 cycles
    "histogram": {"width": 6},  # so that every bin saturates
    # Or else a bench has to run 512 tensors until numbers wrap.
    "queue": {"size": 8, "lines": (0, 1, 3, 4, 7, 8, 10), "wait": 10},
    "payload": {"outstanding": 32},  # or else no proof is made of 98,688 flip-flops
    "neighbours": {"edges": True},  # or else there are none
    # As a lane has it: a row cutter in front sees most bad streams before it does.
    "feed": {"packed": False, "modes": ("raw", "sfpr", "sfpr-zvc", "jpeg-act", "brc", "zvc")},
}
REGRESS = ("feed", "payload")  # whose parameters only make regress has
# Parts without a bench of their own, and the unit in which they are: its bench is theirs.
INSIDE = {"offload/wire/dispenser": "splitter", "offload/wire/streams/turns": "stream_splitter",
          "offload/memory/neighbours": "address_generator", **dict.fromkeys(
              ("jpegact/feed", "offload/wire/packing", "offload/wire/row_cutter"), "cdu")}
# Units that are mostly others put together, which are subjects themselves: only what is their own has mutants.
OWN = {unit: tuple(f"rtl/{file}.py" for file in files) for unit, files in {
    "reader": ["offload/memory/reader"], "writer": ["offload/memory/writer"], "collector": ["offload/wire/collector"],
    "splitter": ["offload/wire/splitter"], "cdu": ["jpegact/cdu", "jpegact/path"], "comet": ["comet/comet"],
    "maxpool_backward": ["gist/maxpool_backward", "gist/pooling"], "plan_ahead": ["offload/queue/plan_ahead"]}.items()}
# Nothing but other units; or a bench that does not end in time, as it is that of whole accelerators.
WITHOUT = ("scan", "lane", "accelerator")


SUBJECTS = {
    subject.name: subject for subject in (
        Subject("skid", "actcodec.rtl.common.skid:Skid", {"shape": 16}),
        Subject("pipeline", "tb.common.test_pipeline:Increment", {"stages": 5}, ("rtl/common/pipeline.py",)),
        Subject("gearbox", "tb.common.test_gearbox:Both", {"size": 8}, ("rtl/common/gearbox.py",)),
        Subject("compaction", "tb.common.test_compaction:Both", {"zeros": compaction.zeros},
                ("rtl/common/compaction.py",)),
        Subject("fifo", "actcodec.rtl.common.fifo:Fifo", {
            "shape": data.StructLayout({"content": 15, "last": 1}), "depth": 13, "packets": True}),
        Subject("axis", "tb.common.test_axis:Edges", {"size": 16}, ("rtl/common/axis.py",)),
        *(Subject(name, f"tb.common.test_carrysave:{place}", parameters, ("rtl/common/carrysave.py",),
                  "tb/common/test_carrysave.py")
          for name, place, parameters in (("carrysave", "Dot", {"constant": -77}), ("columns", "Bits", {"single": 6}))),
        Subject("minifloat", "tb.common.test_minifloat:Convert", {}, ("rtl/common/minifloat.py",)),
        Subject("round_robin", "actcodec.rtl.offload.wire.round_robin:RoundRobin", {"cdus": 3}),
        Subject("control", "actcodec.rtl.jpegact.control:Control", {
            "modes": lane_modes("raw", "sfpr-zvc", "jpeg-act", "brc", "division")}),
        *(Subject(unit.name, unit.component, unit.resolved(**(unit.synth or {}), **DIFFERENT.get(unit.name, {})),
                  OWN.get(unit.name, ()))
          for unit in UNITS.values() if unit.name not in WITHOUT),
        *(Subject(name, f"actcodec.rtl.offload.scan.{name}:{part}", {"address_width": 40},
                  bench=f"tb/offload/scan/test_{name}.py")
          for name, part in (("walk", "ChannelWalk"), ("table", "Table"))),
        Subject("stream_mux", "tb.common.test_stream_mux:Partners", {}, ("rtl/common/stream_mux.py",)),
        *(Subject(Path(file).name, UNITS[unit].component,
                  UNITS[unit].resolved(**(UNITS[unit].synth or {}), **DIFFERENT.get(Path(file).name, {})),
                  (f"rtl/{file}.py",), UNITS[unit].bench_node)
          for file, unit in INSIDE.items()),
    )
}


def drawn(folder):
    """The mutants in the netlist of a folder, in the order of their numbers; none in one of mapped cells."""
    path = Path(folder, "mutants")
    lines = path.read_text().splitlines() if path.exists() else []
    return [Mutant(number, line) for number, line in enumerate(lines, 1)]


def verdicts(path):
    """What a file knows: [(run, number of the mutant, what failed, seconds)]."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def _commands(subject, count, seed):
    """RTLIL of a subject, the commands for Yosys that draw its mutants, and a hash of both.

    Raises
    ------
    SynthesisError
        If it has several of one component, which would get the same mutants.
    """
    name = subject.name
    text, parts = netlist(subject.component(**subject.parameters), name)
    if parts:
        raise SynthesisError(f"{name}: it has several of {', '.join(parts)}")
    choice = " ".join(f"a:src=*{file}*" for file in subject.files) or "*"
    choice += " %u" * (len(subject.files) - 1)
    commands = [
        "read_rtlil sources.il", f"hierarchy -check -top {name}", "proc", "flatten", "opt", "write_rtlil flat.il",
        # Some more, as those that tamper with the clock are left out: no bench can promise anything of these.
        f"mutate -list {count + count // 4 + 8} -seed {seed} -o drawn {choice} t:$meminit* %d",
    ]
    inputs = (text, commands, version("pyosys", "Yosys"))
    return text, commands, hashlib.sha256(repr(inputs).encode()).hexdigest()[:16]


def key(subject, count, seed):
    """Sixteen characters that change with the mutants that :func:`draw` makes."""
    return _commands(subject, count, seed)[-1]


def draw(subject, count, seed, build=BUILD):
    """Makes a netlist with ``count`` mutants (fewer if there are not as many), or remembers that it did; returns its
    folder.

    Raises
    ------
    SynthesisError
        If Yosys fails, or if there is nothing to mutate.
    """
    name = subject.name
    text, commands, digest = _commands(subject, count, seed)
    folder = Path(build, f"{name}-{digest}")
    if (folder / "net.v").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text(text)
    sources = rtlil.convert(subject.component(**subject.parameters), name=name)
    (folder / "sources.il").write_text(sources.replace(f"{ROOT}/", ""))
    yosys(commands, folder, name, "draw")
    lines = [line for line in (folder / "drawn").read_text().splitlines() if " -port CLK " not in line][:count]
    if not lines:
        raise SynthesisError(f"{name}: there is nothing to mutate")
    yosys([
        "read_rtlil flat.il",
        *(f"{line} -ctrl mutant {WIDTH} {number}" for number, line in enumerate(lines, 1)),
        "write_rtlil mutated.il", "write_verilog -noattr net.part",
    ], folder, name, "insert")
    kinds = {cell: kind for kind, cell in re.findall(r"^ *cell (\S+) (\S+)$", (folder / "flat.il").read_text(), re.M)}
    (folder / "mutants").write_text("".join(
        f"{line} -type {kinds[re.search(r'-cell (.*?) -port', line)[1]]}\n" for line in lines))
    (folder / "net.part").replace(folder / "net.v")
    return folder
