"""One end of a stream each: sources that send, sinks that receive, and how often they rest.

:meth:`Bench.run <tb.harness.bench.Bench.run>` has a library do the same in a tenth of the time (``native.py``). These
are for benches whose ends depend on each other, and what the library is held against.
"""

from collections import deque
from itertools import repeat

from cocotb.types import Logic

ONE = Logic(1)  # to compare with a number, one of these is made each time


# How often a port rests: name -> function of a generator that yields True in cycles in which it rests.
def _bursts(random):
    resting = False
    while True:
        for _ in range(int(random.integers(1, 24))):
            yield resting
        resting = not resting


def _chance(probability):
    def pattern(random):
        while True:
            yield from random.random(256) < probability
    return pattern


def _never(random):
    return repeat(False)


PATTERNS = {"never": _never, "seldom": _chance(0.1), "half": _chance(0.5), "mostly": _chance(0.9), "bursts": _bursts}
STALLS = [*PATTERNS, "shy"]  # a shy sink is ready only once it has seen valid: a source that waits for ready never ends


class Source:
    """Sends beats into the stream ``port`` of ``dut``, signals named ``PORT__payload``, ``PORT__valid``,
    ``PORT__ready``.

    It has no coroutine of its own, of which each would take as long as all that :meth:`Bench.run` does in a cycle:
    the owner of sources and sinks calls :meth:`drive` between the edges, and :meth:`sample` at the rising one.

    ``cycles`` are those of the transfers, as :meth:`sample` was told.
    """

    def __init__(self, dut, port):
        self._payload, self._valid, self._ready = (
            getattr(dut, f"{port}__{part}") for part in ("payload", "valid", "ready"))
        self._queue, self._offered, self._pause, self._driven = deque(), None, repeat(False), None
        self.cycles = []

    def send_nowait(self, beats):
        """Has integers sent, after those it was given before."""
        self._queue.extend(beats)

    def set_pause_generator(self, generator):
        """It offers no new beat in cycles in which the generator yields true."""
        self._pause = generator

    def idle(self):
        """All beats have been taken."""
        return self._offered is None and not self._queue

    def drive(self):
        """Offers a beat in the cycle that begins, or none."""
        if self._offered is None and not next(self._pause) and self._queue:
            self._offered = self._queue.popleft()
            self._payload.value = self._offered
        if self._driven != (valid := self._offered is not None):  # a write takes as long as all the rest of this
            self._valid.value = self._driven = valid

    def sample(self, cycle):
        """Sees at the end of ``cycle`` whether the beat was taken."""
        if self._offered is not None and self._ready.value == ONE:
            self.cycles.append(cycle)
            self._offered = None

    def clear(self):
        """Offers nothing any more."""
        self._valid.value = self._driven = False


class Sink:
    """Receives the beats of the stream ``port`` of ``dut``, in ``beats``, and checks that one that was offered stays as
    it is until taken. Otherwise as :class:`Source`."""

    def __init__(self, dut, port):
        self._port = port
        self._payload, self._valid, self._ready = (
            getattr(dut, f"{port}__{part}") for part in ("payload", "valid", "ready"))
        self._offered, self._taking, self._pause, self._driven = None, False, repeat(False), None
        self.beats, self.cycles = [], []

    def set_pause_generator(self, generator):
        """It is not ready in cycles in which the generator yields true; without one (None), only after a cycle in
        which a beat was offered: a source that waits for ready never ends."""
        self._pause = generator

    def count(self):
        return len(self.beats)

    def drive(self):
        """Is ready in the cycle that begins, or not."""
        self._taking = self._offered is not None if self._pause is None else not next(self._pause)
        if self._driven != self._taking:
            self._ready.value = self._driven = self._taking

    def sample(self, cycle):
        """Sees at the end of ``cycle`` what was offered, and has it if it was ready."""
        if self._valid.value == ONE:
            beat = int(self._payload.value)
            assert self._offered is None or self._offered == beat, (
                f"{self._port}: payload changed before it was taken, cycle {cycle}")
            self._offered = None if self._taking else beat
            if self._taking:
                self.beats.append(beat)
                self.cycles.append(cycle)
        else:
            assert self._offered is None, f"{self._port}: valid withdrawn before the beat was taken, cycle {cycle}"

    def clear(self):
        """Is not ready any more."""
        self._ready.value = self._driven = False
