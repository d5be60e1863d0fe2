"""From a component to what simulates it: Verilog, C++ by Verilator, objects by a C++ compiler, a library or a program.

A design is the Verilog of its modules by their names, the top first; the others are parts that it has several of
(:mod:`actcodec.rtl.common.shared_module`). Each is compiled once for all designs that have the same text of it. Verilog
itself is kept as well, by the sources that make it, since most changes of these do not show in it.
"""

import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from actcodec.elaboration import module
from actcodec.sim.imports import files
from actcodec.sim.toolchain import build_once, cache_folder, call, compiler, key, verilator

__all__ = ["FAST", "SLOW", "compiled", "elaborated", "linked", "runtime", "without_initial_values"]

# What runs in every cycle, and at the start. -Og compiles in 0.6 of -O1's time, but long simulations take longer.
FAST, SLOW = "-O1", "-O0"
# A model's functions are thousands of stores long. Without these limits, most of GCC's time goes into asking of each
# load which of them it may see, and what comes out is no faster.
LIMITS = ("--param=sccvn-max-alias-queries-per-access=10", "--param=dse-max-alias-queries-per-store=4")
VERILATE = ("--cc", "-O3", "-Wno-fatal", "-Wno-lint", "--x-assign", "fast", "--timescale", "1ns/1ps")
COMPILE = ("-std=c++17", "-fPIC", *LIMITS, "-DVM_COVERAGE=0", "-DVM_SC=0")
LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}  # Verilator walks through 1 GB: takes 0.85 of the time
HIDDEN = "-fvisibility=hidden"  # a process may load several libraries
RUNTIME = ("verilated", "verilated_dpi", "verilated_threads")
TOP = "Vtop"
STARTED = time.time()  # before most of what makes Verilog is imported
FEW = 1 << 19  # bytes of C++ that are compiled at once: the headers of several files would take longer


def elaborated(name: str, build: Callable[[], str], modules: Iterable[str], *known: Any,
               what: str | None = None, target: str = "cells") -> str:
    """The Verilog of the component that ``build()`` returns as the module ``name``, without its parts. It is kept by
    what is ``known`` of the component, by its ``target``, and by the files of ``modules`` and of all that they
    import; it is not kept if one of these has changed since this process started, which may have imported it before."""
    sources = files(__name__, *modules)
    if any(source.stat().st_mtime > STARTED for source in sources):
        with TemporaryDirectory() as folder:
            return _elaborate(Path(folder), name, build, target).read_text()
    yosys = os.environ.get("AMARANTH_USE_YOSYS")
    path = cache_folder() / f"{name}-{key(name, known, target, yosys, files=sources)}.v"
    return build_once(path, _elaborate, name, build, target, what=what).read_text()


def _elaborate(folder, name, build, target):
    from amaranth.hdl import UnusedElaboratable

    warnings.simplefilter("ignore", UnusedElaboratable)  # the parts are left out
    path = folder / f"{name}.v"
    path.write_text(module(build(), name, target)[0])
    return path


def without_initial_values(text: str) -> str:
    """Verilog whose flip-flops and memories begin with what Verilator's context says: zeros unless somebody asks for
    random bits. What needs a value has a reset."""
    text = re.sub(r"^(  reg (?:\[\S+\] )?(?:\\\S+ |\w+)) = \d+'[hd]\w+;", r"\1;", text, flags=re.MULTILINE)
    return re.sub(r"^  initial begin\n(?:    [\w\\$]+ ?\[\d+\] = \d+'h0+;\n)+  end\n", "", text, flags=re.MULTILINE)


def compiled(design: Mapping[str, str], level: str = FAST, arguments: Sequence[str] = (), control: str = "",
             what: Mapping[str, str] | None = None) -> list[Path]:
    """Folders with the objects of a design, first the top's, which has its header ``Vtop.h``, too.

    ``level`` is how hard the compiler tries for the top, ``arguments`` and ``control`` (a file's text) are Verilator's
    for it; ``what`` has, by the names of modules, what each is to somebody who waits for it.
    """
    (top, text), *parts = design.items()
    what = what or {}
    objects = [build_once(cache_folder() / f"{name}-{key('part', VERILATE, COMPILE, FAST, name, part)}", _compile_part,
                          name, part, what=what.get(name)) for name, part in parts]
    content = key("top", VERILATE, COMPILE, design, [folder.name for folder in objects], level, arguments, control)
    return [build_once(cache_folder() / f"{top}-{content}", _compile_top, top, text, objects, level, arguments, control,
                 what=what.get(top)), *objects]


def _compile_part(folder, name, text):
    _verilate(folder, name, text, f"V{name}", "--lib-create", name)
    _compile_all(folder, FAST)
    return _products(folder, f"{name}.sv", "*.o")


def _compile_top(folder, name, text, parts, level, arguments, control):
    (folder / "control.vlt").write_text(f"`verilator_config\n{control}")
    _verilate(folder, name, text, TOP, *arguments, folder / "control.vlt", *(sv for part in parts
                                                                             for sv in part.glob("*.sv")))
    _compile_all(folder, level, "--trace" in arguments)
    return _products(folder, f"{TOP}*.h", "*.v", "*.o")


def _verilate(folder, name, text, prefix, *arguments):
    """C++ of a module."""
    root, source = verilator(), folder / f"{name}.v"
    source.write_text(text)
    call([root / "bin" / "verilator", *VERILATE, "--Mdir", folder, "--prefix", prefix, "--top-module", name, source,
          *arguments], env={**os.environ, "VERILATOR_ROOT": str(root), **LARGE_PAGES})


def _compile_all(folder, level, traced=False):
    """Objects of all C++ in a folder. What runs only at the start need not be fast."""
    sources = sorted(folder.glob("*.cpp"))
    if sum(source.stat().st_size for source in sources) < FEW:
        (folder / "all.cc").write_text("".join(f'#include "{source}"\n' for source in sources))
        sources = [folder / "all.cc"]
    _compile(folder, [(source, SLOW if "Slow" in source.stem else level) for source in sources], traced, HIDDEN)


def _compile(folder, sources, traced, *arguments):
    """Objects of pairs of a source and its level."""
    command = [*compiler(), *_options(traced), "-include", runtime(traced) / "headers.h", f"-I{folder}", *arguments]
    _at_once([[*command, level, "-c", source, "-o", folder / f"{source.stem}.o"] for source, level in sources])


def _at_once(commands):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(call, commands))


def _options(traced):
    include = verilator() / "include"
    return [*COMPILE, f"-I{include}", f"-I{include / 'vltstd'}", f"-DVM_TRACE={int(traced)}",
            f"-DVM_TRACE_VCD={int(traced)}", "-DVM_TRACE_FST=0"]


def runtime(traced: bool = False) -> Path:
    """A folder with the objects of Verilator's own parts, and with its headers as ``headers.h``, precompiled: most
    units are shorter."""
    return build_once(cache_folder() / f"verilated-{key(COMPILE, RUNTIME, FAST, SLOW, traced)}", _make_runtime, traced)


def _make_runtime(folder, traced):
    result = folder / "made"
    precompiled = result / "headers.h.gch"  # the compiler takes the one whose level is its own
    precompiled.mkdir(parents=True)
    (result / "headers.h").write_text('#include "verilated.h"\n#include "verilated_dpi.h"\n')
    command = [*compiler(), *_options(traced), HIDDEN]
    parts = (*RUNTIME, *(["verilated_vcd_c"] if traced else ()))
    _at_once([*([*command, FAST, "-c", _part(name), "-o", result / f"{name}.o"] for name in parts),
              *([*command, level, "-x", "c++-header", result / "headers.h", "-o", precompiled / level[1:]]
                for level in (FAST, SLOW))])
    return result


def _part(name):
    return verilator() / "include" / f"{name}.cpp"


def _vpi():
    """The object of the part that only libraries like cocotb's want, which have to see it."""
    def make(folder):
        call([*compiler(), *_options(False), FAST, "-c", _part("verilated_vpi"), "-o", folder / "vpi.o"])
        return folder / "vpi.o"

    return build_once(cache_folder() / f"verilated_vpi-{key(COMPILE, FAST)}.o", make)


def linked(name: str, objects: Sequence[Path], sources: Sequence[Path], *options: Any, library: Path | None = None,
           traced: bool = False) -> Path:
    """The file ``name``, a shared library or a program: compiled objects, and ``sources`` in C++ around them, which
    the compiler gets with ``options``. ``library``, a shared one, is looked for only when the program starts."""
    headers = [header for source in sources for header in sorted(source.parent.glob("*.h"))]
    content = key(COMPILE, name, [folder.name for folder in objects], options, traced,
                  files=[*sources, *headers, *([library] if library else ())])
    return build_once(cache_folder() / f"{Path(name).stem}-{content}", _link, name, objects, sources, options, library,
                traced) / name


def _link(folder, name, objects, sources, options, library, traced):
    _compile(folder, [(source, FAST) for source in sources], traced, HIDDEN, f"-I{objects[0]}", *options)
    call([*compiler(), *(["-shared"] if name.endswith(".so") else ()), "-pthread", "-o", folder / name,
          *(path for place in (folder, *objects, runtime(traced)) for path in place.glob("*.o")),
          *([_vpi(), "-L", library.parent, f"-l:{library.name}"] if library else ())])
    return _products(folder, name)


def _products(folder, *patterns):
    """A folder inside of ``folder`` with the files that are still needed."""
    result = folder / "made"
    result.mkdir()
    for path in [path for pattern in patterns for path in folder.glob(pattern)]:
        path.replace(result / path.name)
    return result
