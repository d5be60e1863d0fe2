"""Simulates the accelerator: its Verilog becomes C++ (Verilator), is compiled once, and runs cycle by cycle.

A lane is verilated and compiled on its own, so that accelerators with any number of CDUs share it.
"""

import ctypes
import dataclasses
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from actcodec.codecs import PAPERS, lane_modes
from actcodec.sim import build
from actcodec.sim.toolchain import SimulationError, uninterrupted
from actcodec.units import UNITS

__all__ = ["HARDWARE", "Simulator", "Traffic", "configuration", "configurations", "library", "prepare"]

WORLD = Path(__file__).with_suffix(".cpp")
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


def _elaborated(name, unit, parameters, what):
    """The Verilog of a unit whose ``parameters`` have modes, some of which may be somebody else's."""
    modes = lane_modes(*parameters["modes"])
    fields = [[getattr(mode, field.name) for field in dataclasses.fields(mode) if field.compare] for mode in modes]
    places = {place.partition(":")[0] for mode in modes for place in mode.path}
    text = build.elaborated(name, lambda: UNITS[unit].build(**parameters), {*UNITS[unit].modules, *places}, unit,
                            parameters | {"modes": fields}, what=f"the Verilog of {what}, some seconds")
    return build.without_initial_values(text)


def library(cdus, hardware, world=WORLD):
    """The shared library of an accelerator with ``cdus`` lanes in the ``world``, a file in C++; built unless it is
    cached. ``hardware`` are the parameters of the accelerator and of its lanes, the same for both."""
    lane, accelerator = f"a lane with {', '.join(hardware['modes'])}", f"an accelerator with {cdus} of its lanes"
    with ThreadPoolExecutor(1) as pool:
        pool.submit(build.runtime)  # beside elaboration, which leaves a core idle; what it raises, compilation raises
        part = _elaborated("top_lane", "lane", hardware, lane)
        top = _elaborated("top", "accelerator", {"cdus": cdus, **hardware}, accelerator)
    objects = build.compiled({"top": top, "top_lane": part}, what={
        "top": f"the simulation of {accelerator}, half a minute or more",
        "top_lane": f"the simulation of {lane}, two minutes or more"})
    pins = "".join(f" PINS(m_axi_{k}_)" for k in range(cdus))
    return build.linked(f"{world.stem}.so", objects, [world], f"-DALL_PINS={pins}", "-DINTERRUPT=__SYM__interrupt")


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
