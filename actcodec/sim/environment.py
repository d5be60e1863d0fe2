"""A simulated accelerator among memory, DMA engine and host, which may all be as unpleasant as their buses allow: C++,
with every rule of its ports checked in every cycle."""

import ctypes
import math
from dataclasses import astuple, dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.sim.accelerator import Accelerator, library
from actcodec.sim.toolchain import SimulationError, uninterrupted

__all__ = ["KINDS", "PATTERNS", "Broken", "Environment", "MemoryBehaviour", "Traffic"]

PATTERNS = ("never", "seldom", "half", "mostly", "bursts", "naps", "shy", "any")
KINDS = ("independent", "shared", "crossbar")
CHANCE, TURNS, ROTATION = range(3)
IDLE, COMPRESSING, DECOMPRESSING, EITHER, SCANNING, RUNNING = range(6)
PAUSED, INTERRUPTED, STUCK = range(3)  # BROKEN has a verdict
PATIENCE = 20_000  # cycles in which nothing moves
SLVERR = 2  # a response


class Broken(SimulationError, AssertionError):
    """The accelerator did what it must not, or does nothing any more."""


class Traffic(NamedTuple):
    """Transfers at one side of the accelerator: the cycles of the first and the last one, and how many they were."""

    first: int
    last: int
    transfers: int


@dataclass(frozen=True)
class MemoryBehaviour:
    """How memory behaves. The fields are those of the structure of the same name in memory.h, in their order, as
    numbers; ``kind`` and ``pauses`` are indices into KINDS and PATTERNS."""

    kind: int = 0
    region: int = 12
    ordered: int = 1
    strict: int = 0
    single: int = 0
    narrow: int = 1
    fair: int = TURNS
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
    spared: int = 0


@cache
def _functions(path):
    library = ctypes.CDLL(str(path))
    pointer, integer, word = ctypes.c_void_p, ctypes.c_int64, ctypes.c_uint64
    for name, result, *arguments in [
            ("create", pointer, word, pointer, pointer, word, word, integer, *3 * [ctypes.c_int]),
            ("destroy", None),
            ("reset", None), ("begin", None, pointer, integer, integer, integer, ctypes.c_double, word),
            ("phase", None, ctypes.c_int), ("give_up", None),
            ("access", ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32, pointer),
            ("run", ctypes.c_int, integer, integer), ("send", None, integer, pointer, pointer, pointer),
            ("take", integer, pointer), ("state", None, pointer), ("traffic", None, ctypes.c_int, pointer),
            ("verdict", ctypes.c_char_p)]:
        function = getattr(library, f"environment_{name}")
        function.restype = result
        function.argtypes = arguments if name == "create" else [pointer, *arguments]
    return library


def _extra(accelerator):
    """Which port moves payloads, and which descriptors; -1 for none."""
    payload = accelerator.payload != "stream"
    return (accelerator.cdus if payload else -1, accelerator.cdus + payload if accelerator.queue else -1)


class Environment:
    """One accelerator, reset. Its flip-flops begin with random bits, or with zeros where ``seed`` is 0.

    ``bytes`` is memory from the address ``origin`` on. With ``owned``, ``owner`` says for each of them whether it
    belongs to nobody (0), to the tensor (1), to the table of scales (2), or to the payload (4): only what they own is
    read, only the tensor, or the payload, is written, each byte once, which makes it a 3. A scan writes scales instead,
    where bytes are 5, which makes them a 2. What owns them while a ring is RUNNING, memory.h says. Otherwise all of it
    may be read and written, and beyond it the answer is an error.
    """

    def __init__(self, accelerator: Accelerator, seed: int, size: int = 1 << 20, origin: int = 0,
                 owned: bool = True) -> None:
        self.accelerator, self.origin = accelerator, origin
        self.bytes, owner = np.zeros(size, np.uint8), np.zeros(size, np.uint8) if owned else None
        self.owner = owner
        self._library = _functions(library(accelerator))
        self._state = np.zeros(7, np.int64)
        self._environment = self._library.environment_create(
            seed, self.bytes.ctypes.data, None if owner is None else owner.ctypes.data, origin, size,
            accelerator.outstanding, *_extra(accelerator), accelerator.memory == "shared")
        self.check()

    def __del__(self) -> None:
        if getattr(self, "_environment", None):
            self._library.environment_destroy(self._environment)

    def _call(self, name, *arguments):
        return getattr(self._library, f"environment_{name}")(self._environment, *arguments)

    def check(self) -> None:
        """Raises :class:`Broken` if a rule was broken."""
        if what := self._call("verdict"):
            raise Broken(f"the simulated accelerator, {what.decode()}")

    # ----------------------------------------------------------------------------------------------- all that is around
    def begin(self, memory: Any, seed: int = 0, sink: int = 0, source: int = 0, host: int = 0,
              rate: float = math.inf) -> None:
        """How memory, streams and host behave from now on; while all is at rest. Streams carry up to ``rate`` bytes a
        cycle in each direction."""
        fields = np.array(astuple(memory), np.int64)
        self._call("begin", fields.ctypes.data, sink, source, host, rate, seed)

    def reset(self) -> None:
        """``rst``, at any moment."""
        self._call("reset")

    def phase(self, phase: int) -> None:
        """What the accelerator is to do. IDLE: nothing, and nothing may be left to do; EITHER: nobody knows."""
        self._call("phase", phase)
        self.check()

    def give_up(self) -> None:
        """A soft reset is on its way."""
        self._call("give_up")

    @property
    def cycle(self) -> int:
        return self._look(0)

    @property
    def interrupt(self) -> bool:
        return bool(self._look(1))

    @property
    def sent(self) -> bool:
        """Whether all frames that were given to :meth:`send` have been taken."""
        return bool(self._look(2))

    @property
    def begun(self) -> bool:
        """Whether a frame has been taken in part."""
        return bool(self._look(3))

    @property
    def failures(self) -> tuple[int, int]:
        """Answers with errors that lanes have got: to reads, to writes."""
        return self._look(4), self._look(5)

    @property
    def ring_failures(self) -> int:
        """Answers with errors that the queue has got."""
        return self._look(6)

    def _look(self, index):
        self._call("state", self._state.ctypes.data)
        return int(self._state[index])

    # --------------------------------------------------------------------------------------------------------- the host
    def access(self, write: bool, address: int, value: int = 0, strobes: int = 15) -> tuple[int, int]:
        """An access to a register: (response, word)."""
        word = ctypes.c_uint32(value)
        response = self._call("access", int(write), address, strobes, ctypes.byref(word))
        self.check()
        if response < 0:
            raise Broken(f"the register at {address:#x} of the simulated accelerator does not answer")
        return response, word.value

    def read(self, address: int) -> int:
        """As the driver's bus."""
        response, word = self.access(False, address)
        if response:
            raise Broken(f"reading {address:#x} of the simulated accelerator is answered with {response}")
        return word

    def write(self, address: int, value: int) -> None:
        """As the driver's bus."""
        if response := self.access(True, address, value)[0]:
            raise Broken(f"writing {address:#x} of the simulated accelerator is answered with {response}")

    def run(self, cycles: int = 1 << 40) -> bool:
        """Runs for some cycles, or until the interrupt, which gives True."""
        outcome = uninterrupted(self._call, "run", cycles, PATIENCE)
        self.check()
        if outcome == STUCK:
            raise Broken(f"the simulated accelerator, cycle {self.cycle}: nothing moves any more")
        return outcome == INTERRUPTED

    # --------------------------------------------------------------------------------------------------------- streams
    def send(self, data: NDArray[np.uint8], keep: NDArray[np.uint8], last: NDArray[np.bool]) -> None:
        """Has the DMA engine send beats: uint8 [beats, 128] of bytes and of which of them count, bool [beats]."""
        data, keep = np.ascontiguousarray(data, np.uint8), np.ascontiguousarray(keep, np.uint8)
        last = np.ascontiguousarray(last, np.uint8)
        self._call("send", len(last), data.ctypes.data, keep.ctypes.data, last.ctypes.data)

    def take(self) -> bytes | None:
        """The oldest frame that has come, as bytes, or None."""
        size = self._call("take", None)
        if size < 0:
            return None
        frame = ctypes.create_string_buffer(max(size, 1))
        self._call("take", frame)
        return frame.raw[:size]

    def traffic(self) -> dict[str, Any]:
        """What has passed since the start: {"read": [...], "written": [...], "sent": ..., "received": ...}, beats of
        memory for each CDU, then for the payload's port and for the queue's if there are; packets of streams, as
        :class:`Traffic`."""
        ports = self.accelerator.cdus + sum(port >= 0 for port in _extra(self.accelerator))
        counts = np.zeros((ports, 4, 3), np.int64)
        for k, part in enumerate(counts):
            self._call("traffic", k, part.ctypes.data)
        read, written, sent, received = ([Traffic(*map(int, row)) for row in column]
                                         for column in counts.swapaxes(0, 1))
        return {"read": read, "written": written, "sent": sent[0], "received": received[0]}
