"""The library of ``streams.cpp``: built outside of the simulator, used inside."""

import ctypes
import os
from ctypes import CFUNCTYPE, c_char_p, c_int, c_int64, c_void_p
from itertools import islice
from pathlib import Path

import numpy as np
from cocotb.triggers import GPITrigger

__all__ = ["ENVIRONMENT", "Streams", "library"]

SOURCE = Path(__file__).with_name("streams.cpp")
ENVIRONMENT = "TB_STREAMS"  # where the simulator finds the library
RESTS = 1024  # cycles of a pattern that the library asks for at once
UNTIL, REFILL, END = CFUNCTYPE(c_int), CFUNCTYPE(None, c_int, c_void_p), CFUNCTYPE(None)
FUNCTIONS = {
    "new": (c_void_p, [c_char_p, c_int64, c_void_p, c_void_p, c_void_p]),
    "add": (c_int, [c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int, c_int64, c_char_p]),
    "start": (None, [c_void_p]), "delete": (None, [c_void_p]), "state": (c_int, [c_void_p]),
    "culprit": (c_int, [c_void_p]), "cycle": (c_int64, [c_void_p]), "count": (c_int64, [c_void_p, c_int]),
    "cycles": (c_void_p, [c_void_p, c_int]), "beats": (c_void_p, [c_void_p, c_int]),
}
FAULTS = {4: "payload changed before it was taken", 5: "valid withdrawn before the beat was taken",
          6: "a payload with unknown bits"}
LIMIT = 3


def library():
    """The path of the library, which is built if there is none. Its VPI is the simulator's, whichever that is."""
    from actcodec.sim.toolchain import build_once, cache_folder, call, compiler, key, verilator

    command = [*compiler(), "-std=c++17", "-O2", "-shared", "-fPIC", "-Wall", "-Wextra"]

    def make(folder):
        call([*command, "-isystem", verilator() / "include" / "vltstd", SOURCE, "-o", folder / "streams.so"])
        return folder / "streams.so"

    return build_once(cache_folder() / f"streams-{key(command, files=[SOURCE])}.so", make)


def _loaded():
    loaded = ctypes.CDLL(os.environ[ENVIRONMENT])
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(loaded, f"streams_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded


class Streams(GPITrigger):
    """Streams of ``dut`` that the library drives: awaited after a falling edge of the clock, it runs them, and fires
    at the rising edge that ends the last cycle.

    ``until``, if it is not None, is asked in every cycle whether to stop; ``limit`` is how many there may be.
    """

    _library = None

    def __init__(self, dut, limit, until):
        super().__init__()
        Streams._library = Streams._library or _loaded()
        self._dut, self._until, self._patterns, self._alive, self._error = dut, until, [], [], None
        # The library calls these for as long as the object lives.
        self._calls = (UNTIL(self._stop) if until else None, REFILL(self._refill), END(self._react))
        self._run = self._call("new", f"{dut._name}.clk".encode(), limit,
                               *(ctypes.cast(one, c_void_p) if one else None for one in self._calls))

    def _call(self, name, *arguments):
        return getattr(self._library, f"streams_{name}")(*arguments)

    def source(self, port, beats, pattern):
        """Sends integers, but offers no new one in cycles in which ``pattern`` yields true."""
        width = len(getattr(self._dut, f"{port}__payload"))
        size, beats = 4 * -(-width // 32), [int(one) for one in beats]
        if any(one < 0 or one >> width for one in beats):
            raise ValueError(f"{port}: a beat that has not {width} bits")
        self._alive.append(b"".join(one.to_bytes(size, "little") for one in beats))
        self._add(port, False, len(beats), pattern, self._alive[-1])

    def sink(self, port, count, pattern):
        """Receives ``count`` integers, or what comes (None); not ready in cycles in which ``pattern`` yields true, or
        without one only after a cycle in which a beat was offered."""
        self._add(port, True, -1 if count is None else count, pattern, None)

    def _add(self, port, sink, left, pattern, beats):
        names = [f"{self._dut._name}.{port}__{part}".encode() for part in ("payload", "valid", "ready")]
        self._patterns.append((port, pattern))
        if not self._call("add", self._run, *names, sink, pattern is None, pattern is not None, left, beats):
            raise AttributeError(f"{self._dut._name} has no stream {port}")

    def _stop(self):
        return self._guarded(lambda: bool(self._until()), 1)

    def _refill(self, port, target):
        def fill():
            rests = np.fromiter(islice(self._patterns[port][1], RESTS), bool, RESTS).tobytes()
            ctypes.memmove(target, rests, RESTS)

        self._guarded(fill, None)

    def _guarded(self, function, otherwise):
        """The library cannot pass an exception on."""
        try:
            return function()
        except Exception as error:
            self._error = error
            return otherwise

    def _prime(self):
        self._call("start", self._run)

    def _unprime(self):
        self._close()

    def _close(self):
        if self._run:
            self._call("delete", self._run)
            self._run = None

    def results(self):
        """The beats of the sinks and the cycles of each transfer, {port: list} each; raises AssertionError for what
        went wrong. From here on, no port offers or takes anything."""
        try:
            if self._error:
                raise self._error
            state, cycle = self._call("state", self._run), self._call("cycle", self._run)
            if state in FAULTS:
                port = self._patterns[self._call("culprit", self._run)][0]
                raise AssertionError(f"{port}: {FAULTS[state]}, cycle {cycle}")
            cycles = {port: self._array("cycles", k, 8).view(np.int64).tolist()
                      for k, (port, _) in enumerate(self._patterns)}
            if state == LIMIT:
                progress = {port: len(one) for port, one in cycles.items()}
                raise AssertionError(f"no end after {cycle} cycles; transfers so far: {progress}")
            return {port: self._beats(k, port) for k, (port, _) in enumerate(self._patterns)}, cycles
        finally:
            self._close()

    def _array(self, name, port, size):
        """What the library has of a port, ``size`` bytes for each transfer."""
        count = self._call("count", self._run, port)
        return np.frombuffer(ctypes.string_at(self._call(name, self._run, port), count * size), np.uint8)

    def _beats(self, k, port):
        size = 4 * -(-len(getattr(self._dut, f"{port}__payload")) // 32)
        data = self._array("beats", k, size).tobytes()
        return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
