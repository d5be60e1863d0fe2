"""The accelerator, LiteDRAM and DDR3 in Verilator, and the project's own driver on them."""

import ctypes
import logging
from functools import cache
from pathlib import Path

import numpy as np

from actcodec.bus import Plain, run
from actcodec.driver import Driver
from actcodec.sim import build
from actcodec.sim.accelerator import Accelerator, design
from examples.dram import controller

__all__ = ["DEPTH", "Machine"]

HERE = Path(__file__).parent
DEPTH = 16  # commands a bank
BEAT = 32  # bytes
PATIENCE = 2_000_000  # cycles for a tensor
PHY_SELECT = 0x800  # the controller's register that takes memory over from software


@cache
def library(modes, formats, outstanding, depth):
    """The library of an accelerator of one lane and its memory; kept for next time."""
    logging.disable(logging.INFO)  # LiteX tells a lot
    parts = design(Accelerator(1, modes, formats=formats, outstanding=outstanding, payload="memory", scan=True))
    dram = controller.controller(depth)
    board = controller.board(parts["top"], "top", dram) + parts["top"] + dram
    objects = build.compiled({"board": board, "top_lane": parts["top_lane"]}, what={
        "board": "the simulation of a DDR3 and its controller, a minute",
        "top_lane": f"the simulation of a lane with {', '.join(modes)}, a minute or two"})
    library = ctypes.CDLL(str(build.linked("dram.so", objects, [HERE / "simulation.cpp"])))
    pointer, word = ctypes.c_void_p, ctypes.c_uint32
    for name, result, *arguments in [
            ("create", pointer), ("destroy", None, pointer), ("cycle", ctypes.c_long, pointer),
            ("control", ctypes.c_int, pointer, word, word),
            ("register", ctypes.c_int, pointer, ctypes.c_int, word, pointer),
            ("memory", ctypes.c_int, pointer, ctypes.c_int, word, ctypes.c_int64, pointer),
            ("wait", ctypes.c_int, pointer, ctypes.c_long)]:
        function = getattr(library, f"dram_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Machine:
    """An accelerator with ``modes``, in front of a memory of :data:`~examples.dram.controller.SIZE` bytes.

    Parameters
    ----------
    modes, formats : tuple of str
    outstanding : int
        The accelerator's.
    depth : int
        Commands that the controller holds for each bank.
    """

    def __init__(self, modes, outstanding=384, depth=DEPTH, formats=("float32",)):
        self.library = library(tuple(modes), formats, outstanding, depth)
        self.world = self.library.dram_create()
        self._done(self.library.dram_control(self.world, PHY_SELECT, 1), "the controller")

        async def wait():
            self._done(self.library.dram_wait(self.world, PATIENCE), "the accelerator")

        self.driver = run(Driver.open(Plain(Registers(self)), Plain(self), wait))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.library.dram_destroy(self.world)

    def _done(self, code, whose):
        if code:
            raise RuntimeError(f"{whose} does not answer, or with an error: {code}")

    def _memory(self, write, address, data):
        self._done(self.library.dram_memory(self.world, write, address, len(data) // BEAT, data.ctypes.data), "memory")

    def read(self, address, size):
        """Bytes of memory; ``address`` is a multiple of 32."""
        data = np.zeros(-(-size // BEAT) * BEAT, np.uint8)
        self._memory(0, address, data)
        return data[:size].tobytes()

    def write(self, address, data):
        """Bytes to memory, by whole beats: what is behind them in the last one becomes 0."""
        self._memory(1, address, np.frombuffer(data.ljust(-(-len(data) // BEAT) * BEAT, b"\0"), np.uint8))


class Registers:
    """The accelerator's."""

    def __init__(self, machine):
        self.machine = machine

    def read(self, address):
        value = ctypes.c_uint32()
        self.machine._done(self.machine.library.dram_register(
            self.machine.world, 0, address, ctypes.byref(value)), "a register")
        return value.value

    def write(self, address, value):
        self.machine._done(self.machine.library.dram_register(
            self.machine.world, 1, address, ctypes.byref(ctypes.c_uint32(value))), "a register")
