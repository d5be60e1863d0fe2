"""Simulates the accelerator: its Verilog becomes C++ (Verilator), is compiled once, and runs cycle by cycle.

A lane is verilated and compiled on its own, so that accelerators with any number of CDUs share it.
"""

import ctypes
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actcodec.codecs import PAPERS, lane_modes
from actcodec.sim.toolchain import (
    SimulationError,
    cache_folder,
    call,
    compile_objects,
    compiler,
    kept,
    key,
    made,
    runtime,
    uninterrupted,
    verilate,
    verilog,
    without_initial_values,
)

__all__ = ["HARDWARE", "Simulator", "Traffic", "configuration", "configurations", "library", "prepare"]

SOURCE = Path(__file__)
WORLD = SOURCE.with_suffix(".cpp")
HARDWARE = {"address_width": 40, "outstanding": 384, "memory": "shared", "coders": 4}
PATIENCE = 20_000  # cycles in which nothing moves


class Traffic(NamedTuple):
    """Transfers at one side of the accelerator: the cycles of the first and the last one, and how many they were."""

    first: int
    last: int
    count: int


def configurations():
    """Modes that share a simulated accelerator, by name: those whose blocks pass in rows of at most 8 bytes, as in the
    paper's CDU; those whose units are told, first of all, the same; and those of 18 and of 32. Modes that others
    register are in none."""
    found = {}
    for mode in (mode for paper in PAPERS for mode in paper.MODES):
        for one in (mode, *(variant for _, variant in mode.variants)):
            if one.format:
                told = tuple(setting.name for setting in one.told[:1])
                found.setdefault((max(one.format.row, 8), told), []).append(one.name)
    return tuple(tuple(found[key]) for key in sorted(found))


def configuration(mode):
    """The one of :func:`configurations` that has ``mode``; a mode that none has is built by itself."""
    return next((modes for modes in configurations() if mode in modes), (mode,))


def _make_lane(folder, hardware):
    """A folder with the object files of a lane, and with lane.sv, which stands for it."""
    from actcodec.units import UNITS

    (folder / "lane.v").write_text(without_initial_values(verilog(UNITS["lane"].build(**hardware), "lane")))
    verilate(folder, "lane", "--lib-create", "lane", folder / "lane.v")
    compile_objects(folder, folder.glob("*.cpp"))
    return kept(folder, "lane.sv", "*.o")


def _make_accelerator(folder, cdus, hardware):
    """A folder with the object files of all but the lanes, and with the header that stands for all of it."""
    from actcodec.units import UNITS

    accelerator = verilog(UNITS["accelerator"].build(cdus=cdus, **hardware), "accelerator")
    (folder / "accelerator.v").write_text(without_initial_values(accelerator))
    verilate(folder, "accelerator", folder / "accelerator.v", _lane(hardware) / "lane.sv")
    compile_objects(folder, folder.glob("*.cpp"))
    return kept(folder, "Vaccelerator.h", "*.o")


def _sources(hardware):
    """The files that make the units of the modes, some of which may be somebody else's."""
    places = {place.partition(":")[0] for mode in lane_modes(*hardware["modes"]) for place in mode.path}
    return [Path(import_module(place).__file__) for place in sorted(places)]


def _make_library(folder, cdus, hardware, world):
    """The shared library."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(runtime)  # beside the lane's elaboration, which leaves a core idle; compile_objects has its errors
        lane = _lane(hardware)
    path = cache_folder() / f"accelerator-{key(cdus, hardware, sources=[SOURCE, *_sources(hardware)])}"
    accelerator = made(path, _make_accelerator, cdus, hardware,
                       what=f"the simulation of an accelerator with {cdus} of its lanes, half a minute or more")
    pins = "".join(f" PINS(m_axi_{k}_)" for k in range(cdus))
    compile_objects(folder, [world], f"-I{accelerator}", f"-DALL_PINS={pins}", "-DINTERRUPT=__SYM__interrupt")
    call([*compiler(), "-shared", "-pthread", "-o", folder / "made.so", *folder.glob("*.o"), *accelerator.glob("*.o"),
          *lane.glob("*.o"), *runtime().glob("*.o")])
    return folder / "made.so"


def _lane(hardware):
    return made(cache_folder() / f"lane-{key(hardware, sources=[SOURCE, *_sources(hardware)])}", _make_lane, hardware,
                what=f"the simulation of a lane with {', '.join(hardware['modes'])}, two minutes or more")


def library(cdus, hardware, world=WORLD):
    """The shared library of an accelerator with ``cdus`` lanes in the ``world``, a file in C++; built unless it is
    cached. ``hardware`` are the parameters of the accelerator and of its lanes, the same for both."""
    sources = [SOURCE, *_sources(hardware)]
    sources += [path for path in sorted(world.parent.glob("*")) if path == world or path.suffix == ".h"]
    path = cache_folder() / f"{world.stem}-{key(cdus, hardware, sources=sources)}.so"
    return made(path, _make_library, cdus, hardware, world)


@cache
def _library(modes, cdus, **hardware):
    library_ = ctypes.CDLL(str(library(cdus, {"modes": modes, **HARDWARE, **hardware})))
    world, integer, pointer = ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p
    for name, result, *arguments in [
            ("create", world, pointer, ctypes.c_uint64, integer, ctypes.c_double, ctypes.c_int),
            ("destroy", None, world), ("access", ctypes.c_int, world, ctypes.c_int, ctypes.c_uint32, pointer),
            ("send", None, world, ctypes.c_char_p, ctypes.c_uint64), ("take", integer, world, pointer),
            ("wait", ctypes.c_int, world, integer), ("cycle", integer, world),
            ("traffic", None, world, ctypes.c_int, pointer)]:
        function = getattr(library_, f"world_{name}")
        function.restype, function.argtypes = result, arguments
    return library_


def prepare(cdus=1, chosen=None, **hardware):
    """Builds whatever is not cached yet of the ``chosen`` ones of :func:`configurations`, all of them without, so that
    a caller can show that it takes a while. ``hardware`` differs from :data:`HARDWARE`."""
    for modes in chosen or configurations():
        _library(modes, cdus, **hardware)


class Simulator:
    """A simulated accelerator with ``cdus`` CDUs that have ``modes``, a memory, and a DMA engine at its streams.

    ``memory`` is a uint8 array, from address 0 on, in which ``size`` bytes count, rounded up to beats; beyond it the
    answer is an error. It answers a burst after ``latency`` cycles, with a beat a cycle at each port, or, ``shared``,
    at all of them together, in the order in which the bursts of all ports came. The streams carry up to ``rate`` bytes
    a cycle in each direction. ``hardware`` differs from :data:`HARDWARE`. :meth:`read` and :meth:`write` access
    registers.
    """

    def __init__(self, modes, cdus, size, latency=20, rate=math.inf, shared=False, **hardware):
        self.cdus = cdus
        self._library = _library(modes, cdus, **hardware)
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

    def cycle(self):
        """How many cycles have passed since the start."""
        return self._library.world_cycle(self._world)

    def traffic(self):
        """What has passed since the start: {"read": [...], "written": [...], "sent": ..., "received": ...}, beats of
        memory for each CDU, packets of the streams, each as :class:`Traffic`."""
        found = np.zeros((self.cdus, 4, 3), np.int64)
        for k, part in enumerate(found):
            self._library.world_traffic(self._world, k, part.ctypes.data)
        read, written, sent, received = ([Traffic(*map(int, row)) for row in column] for column in found.swapaxes(0, 1))
        return {"read": read, "written": written, "sent": sent[0], "received": received[0]}
