"""An accelerator among memory, DMA engine and host of tb/soak/world.cpp: as fast as C++, with every rule checked."""

import ctypes
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from actcodec.sim import simulator

__all__ = ["KINDS", "PATTERNS", "Accelerator", "Broken", "Manners", "World"]

PATTERNS = ("never", "seldom", "half", "mostly", "bursts", "naps", "shy", "any")
KINDS = ("independent", "shared", "crossbar")
IDLE, COMPRESSING, DECOMPRESSING = range(3)
PAUSED, INTERRUPTED, STUCK = range(3)  # BROKEN has a verdict
PATIENCE = 20_000  # cycles in which nothing moves
OKAY, SLVERR = 0, 2
SOURCE = Path(__file__).with_suffix(".cpp")


class Broken(AssertionError):
    """The accelerator did what it must not, or does nothing any more."""


@dataclass(frozen=True)
class Accelerator:
    """What is built."""

    cdus: int
    modes: tuple
    memory: str = simulator.HARDWARE["memory"]
    outstanding: int = simulator.HARDWARE["outstanding"]
    address_width: int = simulator.HARDWARE["address_width"]
    coders: int = simulator.HARDWARE["coders"]

    def __str__(self):
        return (f"{self.cdus} x {'+'.join(self.modes)}, {self.memory} memory, {self.outstanding} beats, "
                f"{self.address_width} bits")

    def build(self):
        """Its library, built unless it is cached: the path."""
        hardware = {name: getattr(self, name) for name in simulator.HARDWARE}
        return simulator.library(self.cdus, {"modes": self.modes, **hardware}, SOURCE)


@dataclass(frozen=True)
class Manners:
    """How memory behaves. The fields are those of the structure of the same name in tb/soak/memory.h, in their order,
    as numbers; ``kind`` and ``pauses`` are indices into KINDS and PATTERNS."""

    kind: int = 0
    region: int = 12
    ordered: int = 1
    strict: int = 0
    single: int = 0
    narrow: int = 1
    fair: int = 1
    stalls: int = 0
    reads: int = 1 << 20
    writes: int = 1 << 20
    early: int = 0
    needs: int = 0
    latency: int = 4
    jitter: int = 0
    read_errors: int = 0
    write_errors: int = 0
    pauses: int = 0


@cache
def _functions(path):
    library = ctypes.CDLL(str(path))
    pointer, integer, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64
    for name, result, *arguments in [
            ("create", pointer, word, pointer, pointer, word, word, integer, ctypes.c_int), ("destroy", None),
            ("reset", None), ("begin", None, pointer, integer, integer, integer, word), ("phase", None, ctypes.c_int),
            ("give_up", None), ("access", ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, pointer),
            ("run", ctypes.c_int, integer, integer), ("send", None, integer, pointer, pointer, pointer),
            ("take", integer, pointer), ("state", None, pointer), ("verdict", ctypes.c_char_p)]:
        function = getattr(library, f"world_{name}")
        function.restype = result
        function.argtypes = arguments if name == "create" else [pointer, *arguments]
    return library


class World:
    """One accelerator, reset, with random bits in its flip-flops.

    ``bytes`` is memory from the address ``origin`` on, ``owner`` says for each of them whether it belongs to nobody
    (0), to the tensor (1), or to the table of scales (2): only what they own is read, only the tensor is written, each
    byte once, which makes it a 3.
    """

    def __init__(self, accelerator, seed, size=1 << 20, origin=0):
        self.accelerator, self.origin = accelerator, origin
        self.bytes, self.owner = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        self._library = _functions(accelerator.build())
        self._state = np.zeros(6, np.int64)
        self._world = self._library.world_create(
            seed, self.bytes.ctypes.data, self.owner.ctypes.data, origin, size, accelerator.outstanding,
            accelerator.memory == "shared")
        self.check()

    def __del__(self):
        if getattr(self, "_world", None):
            self._library.world_destroy(self._world)

    def _call(self, name, *arguments):
        return getattr(self._library, f"world_{name}")(self._world, *arguments)

    def check(self):
        """Raises :class:`Broken` if a rule was broken."""
        if what := self._call("verdict"):
            raise Broken(what.decode())

    # ----------------------------------------------------------------------------------------------- all that is around
    def begin(self, manners, seed=0, sink=0, source=0, host=0):
        """How memory, streams and host behave from now on; while all is at rest."""
        fields = np.array(astuple(manners), np.int64)
        self._call("begin", fields.ctypes.data, sink, source, host, seed)

    def reset(self):
        """``rst``, at any moment."""
        self._call("reset")

    def phase(self, phase):
        """What the accelerator is to do. IDLE: nothing, and nothing may be left to do."""
        self._call("phase", phase)
        self.check()

    def give_up(self):
        """A soft reset is on its way."""
        self._call("give_up")

    @property
    def cycle(self):
        return self._look(0)

    @property
    def interrupt(self):
        return bool(self._look(1))

    @property
    def sent(self):
        """Whether all frames that were given to :meth:`send` have been taken."""
        return bool(self._look(2))

    @property
    def begun(self):
        """Whether a frame has been taken in part."""
        return bool(self._look(3))

    @property
    def failures(self):
        """Answers with errors that lanes have got: to reads, to writes."""
        return self._look(4), self._look(5)

    def _look(self, index):
        self._call("state", self._state.ctypes.data)
        return int(self._state[index])

    # --------------------------------------------------------------------------------------------------------- the host
    def access(self, write, address, value=0, strobes=15):
        """An access to a register: (response, word)."""
        word = ctypes.c_uint32(value)
        response = self._call("access", int(write), address, strobes, ctypes.byref(word))
        self.check()
        if response < 0:
            raise Broken(f"the register at {address:#x} does not answer")
        return response, word.value

    def read(self, address):
        """As the driver's bus."""
        response, word = self.access(False, address)
        if response:
            raise Broken(f"reading {address:#x} is answered with {response}")
        return word

    def write(self, address, value):
        """As the driver's bus."""
        if response := self.access(True, address, value)[0]:
            raise Broken(f"writing {address:#x} is answered with {response}")

    def run(self, cycles=1 << 40):
        """Runs for some cycles, or until the interrupt, which gives True."""
        outcome = self._call("run", cycles, PATIENCE)
        self.check()
        if outcome == STUCK:
            raise Broken(f"cycle {self.cycle}: nothing moves any more")
        return outcome == INTERRUPTED

    # --------------------------------------------------------------------------------------------------------- streams
    def send(self, data, keep, last):
        """Has the DMA engine send beats: uint8 [beats, 128] of bytes and of which of them count, bool [beats]."""
        data, keep = np.ascontiguousarray(data, np.uint8), np.ascontiguousarray(keep, np.uint8)
        last = np.ascontiguousarray(last, np.uint8)
        self._call("send", len(last), data.ctypes.data, keep.ctypes.data, last.ctypes.data)

    def take(self):
        """The oldest frame that has come, as bytes, or None."""
        size = self._call("take", None)
        if size < 0:
            return None
        frame = ctypes.create_string_buffer(max(size, 1))
        self._call("take", frame)
        return frame.raw[:size]
