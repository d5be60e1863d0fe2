"""From an Amaranth component to Nangate45 cells with their timing, cached by what went into it.

Yosys brings the unit down to flip-flops and gates once; ABC maps those with one recipe after the other, all cells get
their sizes, OpenSTA times the result, and the smallest netlist that meets the clock is kept (the fastest if none does).
"""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import monotonic

from actcodec.synth import fanout, memories, sizing, timing
from actcodec.synth.complement import complement
from actcodec.synth.hierarchy import breakdown, constants, signals
from actcodec.synth.library import BUILD, PERIOD, SynthesisError, areas, liberty, version
from actcodec.synth.sources import fingerprint

__all__ = ["RECIPES", "Figures", "synthesise"]

FLOW = ("flow.py", "timing.py", "fanout.py", "complement.py", "sizing.py", "relaxation.py", "delays.py", "netlist.py",
        "tables.py", "judge.py", "cells.tcl", "order.tcl", "hierarchy.py", "library.py",
        "memories.py")  # whose change makes results void
GATED = 4  # flip-flops that must share an enable before a clock gate is worth its area

# What ABC sees at a port.
CONSTRAINTS = f"set_driving_cell {timing.DRIVER}\nset_load {timing.LOAD} [all_outputs]\n"
# Three-state cells and those that only a layout needs; deep stacks of transistors, which ABC picks for their area and
# then finds on the slowest path.
UNWANTED = ("TBUF*", "TINV*", "TLAT*", "LOGIC*", "ANTENNA*", "FILL*", "TAP*")
STACKS = ("AOI211*", "AOI221*", "AOI222*", "OAI211*", "OAI221*", "OAI222*", "OAI33*", "NAND4*", "NOR4*")
# A recipe restructures and maps. The mapper that knows gains (map -B) finds much faster circuits than the one for area
# (&nf), and more so after dch; dc2 saves area where logic is irregular, but makes the carry trees of adders chains.
CLEAN, AREA = "strash; ifraig; scorr", "&get -n; &dch -f; &nf; &put"
RECIPES = {
    "fast": (f"{CLEAN}; dch -f; map -B 0.9; topo; buffer -c -N 16", UNWANTED),
    "twice": (f"{CLEAN}; dch; map -B 0.9; strash; dch; map -B 0.9; topo; buffer -c -N 16", UNWANTED),
    "wide": (f"{CLEAN}; dch -f; map -B 0.9; topo; buffer -p -N 16", UNWANTED),
    "flat": (f"{CLEAN}; dch -f; map -B 0.5; topo; buffer -c -N 16", UNWANTED),
    "spare": (f"{CLEAN}; dch; amap -m; strash; dch; map -B 0.5; topo; buffer -c -N 16", UNWANTED),
    "area": (f"{CLEAN}; {AREA}; buffer -c -N 16", (*UNWANTED, *STACKS)),
    "small": (f"{CLEAN}; dc2; strash; {AREA}; buffer -c -N 16", UNWANTED),
    "least": (f"{CLEAN}; {'; strash; '.join(4 * ['dch; amap -m'])}; topo; buffer -c -N 16", UNWANTED),
}
TARGET = 480  # ps that ABC's sizing aims at; how much hardly matters, as another one follows
SMALL = 1000  # cells of a module that is not worth being sized by itself
FOR_LARGE = ("fast", "twice", "flat")  # recipes for what has more cells than that
LARGE = 40000


@dataclass(frozen=True)
class Figures:
    """What one mapping of a unit came to.

    ``area`` and ``sequential`` (flip-flops and clock gates alone) in um2, without memories, of which ``memory`` has the
    bits and ``macros`` the um2, estimated; ``slack`` in ps and ``fmax`` in MHz by OpenSTA, for 1.455 GHz with 5 %
    uncertainty and an ideal clock; ``path`` from ``start`` to ``end`` as pairs of a name and the ps since the clock's
    edge; ``slacks`` of all endpoints; ``parts``: area of each sub-unit as (registers, logic); ``seconds`` that the flow
    took.
    """

    area: float
    sequential: float
    cells: int
    flops: int
    gates: int
    slack: float
    fmax: float
    start: str
    end: str
    path: tuple
    slacks: tuple
    parts: dict
    recipe: str
    memory: int = 0
    macros: float = 0.0
    seconds: float = 0.0


def yosys(commands, folder, name, log):
    """Runs Yosys on a list of commands in ``folder``, in a process of its own.

    Raises
    ------
    SynthesisError
        If it fails; with the reason.
    """
    (folder / f"{log}.ys").write_text("\n".join(commands) + "\n")
    program = f"from pyosys import libyosys; libyosys.run_pass('script {log}.ys', libyosys.Design())"
    with open(folder / f"{log}.log", "w") as file:
        done = subprocess.run([sys.executable, "-c", program], cwd=folder, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode:
        text = (folder / f"{log}.log").read_text(errors="replace")
        reasons = re.findall(r"^(?:ERROR|Warning): (?!Found).*", text, re.MULTILINE)[:3] or text.splitlines()[-1:]
        raise SynthesisError(f"{name}: {'; '.join(reasons)} (log: {folder / log}.log)")


def prepare(name, library, folder, parts, apart=()):
    """Down to flip-flops, clock gates and generic gates: ``unit.il`` to ``generic.json``. The ``parts`` are boxes; what
    has such keeps its submodules, as does any unit those that are to be mapped ``apart``."""
    text = (folder / "unit.il").read_text()
    inner = [f"{name}.{module}" for module in apart]
    if parts:
        inner = re.findall(rf"^module \\({name}\.[^.\s]+)$", text, re.MULTILINE)
    macros = memories.large(text)
    if macros:
        (folder / "memories.v").write_text("".join(map(memories.techmap, sorted(set(macros)))))
    yosys([
        f"read_liberty -lib -ignore_miss_func {library}",
        *(f"read_liberty -lib {memories.liberty(kind)}" for kind in sorted(set(macros))),
        *(f"read_rtlil {part}.il\nblackbox {part}" for part in parts),
        "read_rtlil unit.il",
        f"hierarchy -check -top {name}",
        "proc", *(f"setattr -mod -set keep_hierarchy 1 {module}" for module in inner),
        "flatten", "check -assert -nolatches",
        # Flip-flops wake up with any value; only resets and writes give them one.
        "setattr -unset init w:*",
        f"synth -top {name} -run coarse:fine -nofsm -noshare",
        "opt -fast -full",
        *(["techmap -map memories.v", f"select -assert-count {len(macros)} t:RAM_*"] if macros else ()),
        "memory_map", "opt -full", "setattr -unset init w:*", "techmap", "opt -fast",
        # Undefined bits are zero from here on, and a flip-flop of nothing else goes.
        "setundef -zero", "opt -fast -full",
        "check -assert -nolatches",
        f"dfflegalize -cell $_DFF_P_ x -cell $_DFFE_PP_ x -mince {GATED}", "opt_clean",
        f"clockgate -liberty {library} -min_net_size {GATED} -dont_use CLKGATETST_*",
        f"dfflibmap -liberty {library}", "opt -fast", "opt_clean",
        "write_json generic.json",
    ], folder, name, "generic")
    design = json.loads((folder / "generic.json").read_text())
    for module in (name, *inner):
        fanout.duplicate(design["modules"][module])
        fanout.gate(design["modules"][module])
        fanout.buffer(design["modules"][module])
    (folder / "generic.json").write_text(json.dumps(design))


def cover(name, library, folder, recipe):
    """Maps ``generic.json`` with a recipe, to ``RECIPE.json``: each module by itself, lest ABC takes what is fast
    enough beside something slower for fast enough."""
    commands, unwanted = RECIPES[recipe]
    (folder / f"{recipe}.abc").write_text(f"{commands}; topo; upsize -D {TARGET}; dnsize -D {TARGET}; stime -p\n")
    (folder / "constraints").write_text(CONSTRAINTS)
    avoid = " ".join(f"-dont_use {cell}" for cell in unwanted)
    yosys([
        "read_json generic.json",
        f"abc -liberty {library} -constr constraints -D {PERIOD} -script {recipe}.abc {avoid}",
        "hilomap -singleton -hicell LOGIC1_X1 Z -locell LOGIC0_X1 Z",
        "opt_clean -purge",
        f"write_json {recipe}.json",
    ], folder, name, recipe)


def whole(name, folder, source, parts):
    """The module ``name`` of ``SOURCE.json`` with the netlists of ``parts``, {module: its folder}, in it: the name of
    the file that has it."""
    if not parts:
        return source
    design = json.loads((folder / f"{source}.json").read_text())
    for part, place in parts.items():  # with all kinds of cells that it has
        inner = json.loads((place / "net.json").read_text())["modules"]
        design["modules"] = inner | design["modules"] | {part: inner[part]}
    (folder / "boxes.json").write_text(json.dumps(design))
    yosys(["read_json boxes.json", f"hierarchy -top {name}",
           *(f"setattr -mod -unset blackbox {part}" for part in parts),
           "flatten -noscopeinfo", "write_json whole.json"], folder, name, "whole")
    return "whole"


def flat(name, library, folder, source, stem, module, parts, arrival=timing.ARRIVAL):
    """Flattens a module of ``SOURCE.json`` and sizes its cells, beside ``parts``, {module: its folder}: to
    ``STEM.json`` and ``STEM.v``. Returns the module."""
    yosys([
        f"read_json {source}.json", f"hierarchy -top {module}",
        "setattr -mod -unset keep_hierarchy *", "flatten", "opt_clean -purge",
        "check -mapped -assert -nolatches",
        # OpenSTA reads no assignments but to a port as a whole, which is how opt_clean leaves them.
        "splitnets", "opt_clean -purge",
        "rename -hide c:g* c:*.g*", "rename -enumerate -pattern g% c:*",  # the same names in all that is written
        f"write_json {stem}.json",
        f"write_verilog -noattr -noexpr -nohex -nodec -simple-lhs {stem}.v",
    ], folder, name, f"{stem}-flat")
    path = folder / f"{stem}.json"
    design = json.loads(path.read_text())
    kinds, pins = sizing.apart(library, folder, stem, module, whole(module, folder, stem, parts), arrival)
    cells = design["modules"][module]["cells"]
    for cell, kind in kinds.items():
        cells[cell]["type"] = kind
    for cell, places in pins.items():
        cells[cell]["connections"] = {places.get(pin, pin): net for pin, net in cells[cell]["connections"].items()}
    path.write_text(json.dumps(design))
    return design["modules"][module]


def finish(name, library, folder, recipe, parts, arrival):
    """Does what ABC cannot, as it sees no flip-flops, first in modules by themselves and then in all of it: changes
    ``RECIPE.json``, and makes ``RECIPE.v`` of it. ``parts``: {module: its folder} of the boxes."""
    path = folder / f"{recipe}.json"
    design = json.loads(path.read_text())
    modules = {module: content for module, content in design["modules"].items() if len(content["cells"]) > 1}
    for content in modules.values():
        complement(content)
    path.write_text(json.dumps(design))
    inner = [module for module, content in modules.items() if module != name and len(content["cells"]) > SMALL]
    with ThreadPoolExecutor() as pool:
        mapped = pool.map(lambda module: flat(name, library, folder, recipe, f"{recipe}-{module}", module, {}), inner)
        design["modules"].update(zip(inner, mapped, strict=True))
    path.write_text(json.dumps(design))
    flat(name, library, folder, recipe, recipe, name, parts, arrival)


def measure(top, library, folder, recipe, parts, arrival):
    """The figures of one mapping, with those of its parts, {module: (figures, folder)}."""
    module = json.loads((folder / f"{recipe}.json").read_text())["modules"][top]
    area, kinds = areas(library), [cell["type"] for cell in module["cells"].values() if cell["type"] not in parts]
    macros = [kind for kind in kinds if memories.bits(kind)]
    kinds = [kind for kind in kinds if not memories.bits(kind)]
    for kind in sorted(set(kinds)):
        if kind not in area:
            raise SynthesisError(f"{top}: {kinds.count(kind)} cells of type {kind} are not in the library")
        if kind.startswith(("DLH", "DLL", "TLAT")):
            raise SynthesisError(f"{top}: {kinds.count(kind)} latches ({kind})")
    registers = [kind for kind in kinds if kind.startswith(("DFF", "SDFF", "CLKGATE"))]
    names, shares = signals(module), breakdown(module, area)
    inside = {cell: parts[kind["type"]] for cell, kind in module["cells"].items() if kind["type"] in parts}
    modules = {part: json.loads((place / "net.json").read_text())["modules"][part]
               for part, (_, place) in parts.items()}
    for cell, (figures, _) in inside.items():
        whole = modules[module["cells"][cell]["type"]]
        name = cell.removesuffix(".instance")  # which is all that rtl.common.shared_module's component has
        names |= {f"{cell}/{one}": f"{name}.{signal}" for one, signal in signals(whole).items()}
        shares |= {f"{name}.{unit}".rstrip("."): share for unit, share in figures.parts.items()}
    timed = timing.analyse(library, folder, recipe, top, names, constants(module, modules),
                           [place / "net.v" for _, place in parts.values()], arrival)
    if timed.overloads:
        raise SynthesisError(f"{top}: {len(timed.overloads)} outputs drive more than they may: "
                             f"{', '.join(timed.overloads[:3])}")
    within = [figures for figures, _ in inside.values()]
    return Figures(
        area=round(sum(area[kind] for kind in kinds) + sum(one.area for one in within), 3),
        sequential=round(sum(area[kind] for kind in registers) + sum(one.sequential for one in within), 3),
        cells=len(kinds) + sum(one.cells for one in within),
        flops=sum("DFF" in kind for kind in registers) + sum(one.flops for one in within),
        gates=sum("CLKGATE" in kind for kind in registers) + sum(one.gates for one in within),
        slack=timed.slack, fmax=round(timed.fmax, 1), start=timed.path[0][0] if timed.path else "",
        end=timed.path[-1][0] if timed.path else "", path=timed.path, slacks=timed.slacks, parts=shares, recipe=recipe,
        memory=sum(map(memories.bits, macros)) + sum(one.memory for one in within),
        macros=round(sum(map(memories.area, macros)) + sum(one.macros for one in within), 3))


def best(figures):
    """The smallest that meets the clock, or else the fastest."""
    meeting = [one for one in figures if one.slack >= 0]
    return min(meeting, key=lambda one: one.area) if meeting else max(figures, key=lambda one: one.slack)


def search(attempt):
    """The best recipe; ``attempt`` gives the figures of each."""
    first, *others = RECIPES
    attempts = [attempt(first)]
    large = attempts[0].cells > LARGE
    return best(attempts + [attempt(kind) for kind in others if kind in FOR_LARGE or not large])


def synthesise(name, text, build=BUILD, recipe=None, parts=None, arrival=timing.ARRIVAL, apart=()):
    """Maps RTLIL, the text of :func:`actcodec.elaboration.netlist`, to cells with a recipe (default: searches for the
    best one), or remembers that it did. ``parts``: {module: what this function has returned for it} of what it has
    several of. If it has such, all its submodules are mapped by themselves, otherwise those named in ``apart``. For
    ``arrival`` see :func:`~actcodec.synth.timing.constraints`.

    Returns ``(figures, folder, cached)``. The folder, in ``build``, is named after the unit and the hash of everything
    that went into the run. In it lie the netlist, ``net.v`` and ``net.json``, and all scripts, logs and other tries.

    Raises
    ------
    SynthesisError
        If Yosys or OpenSTA fail or are missing, if a wire has no driver or several, at a latch or a combinational loop,
        at a cell that the library does not have, at a path without constraint, at an output that drives more than the
        library allows, or without a library.
    """
    start, library, parts = monotonic(), liberty(build), parts or {}
    digest = fingerprint([Path(__file__).with_name(file) for file in FLOW], text, library.name,
                         version("pyosys", "Yosys"), name, recipe, arrival, apart,
                         {part: place.name for part, (_, place, _) in parts.items()})
    folder = Path(build, f"{name}-{digest}")
    summary = folder / "figures.json"
    if summary.exists():
        return Figures(**json.loads(summary.read_text())), folder, True

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text(text)
    for part, (_, place, _) in parts.items():
        shutil.copy(place / "unit.il", folder / f"{part}.il")
    prepare(name, library, folder, parts, apart)

    def attempt(recipe):
        cover(name, library, folder, recipe)
        finish(name, library, folder, recipe, {part: place for part, (_, place, _) in parts.items()}, arrival)
        return measure(name, library, folder, recipe, {part: result[:2] for part, result in parts.items()}, arrival)

    figures = attempt(recipe) if recipe else search(attempt)
    for kind in ("v", "json"):
        (folder / f"{figures.recipe}.{kind}").replace(folder / f"net.{kind}")
    figures = replace(figures, seconds=round(monotonic() - start, 1))
    summary.write_text(json.dumps(asdict(figures)))
    return figures, folder, False
