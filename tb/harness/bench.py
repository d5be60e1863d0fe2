"""Inside the simulator: clock, reset, and all streams of a component at once."""

import inspect
import json
import os
import zlib
from dataclasses import dataclass

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, FallingEdge

from tb.harness.native import Streams
from tb.harness.streams import PATTERNS

SEED = int(os.environ.get("COCOTB_RANDOM_SEED", 0))  # of the run; cocotb.RANDOM_SEED is another one for each test


def parameters():
    """What :func:`simulate` was given."""
    return json.loads(os.environ.get("TB_PARAMETERS", "{}"))


def target():
    """What the component is made for, cells or LUTs."""
    return os.environ["TB_TARGET"]


def rng():
    """A generator that depends on the run's seed and on the test that asks."""
    caller = inspect.stack()[1].function
    return np.random.default_rng([SEED, zlib.crc32(caller.encode())])


def after(cycles):
    """For :meth:`Bench.run`, whether so many cycles have passed."""
    left = iter(range(cycles))
    return lambda: next(left, None) is None


@dataclass
class Run:
    """What :meth:`Bench.run` saw: the beats of each output and the cycle of each transfer of every port."""

    beats: dict
    cycles: dict

    def __getitem__(self, port):
        return self.beats[port]


class Bench:
    """Drives the streams of ``dut`` (ports named ``NAME__payload``, ``NAME__valid``, ``NAME__ready``).

    In every cycle of :meth:`run` it checks the stream rule on the ports in ``sinks``, and on no others: a beat that was
    offered stays as it is until taken. That valid does not wait for ready shows with the stall "shy" alone, as a run
    without an end.
    """

    def __init__(self, dut):
        self.dut = dut
        self.clk = dut.clk

    @classmethod
    async def started(cls, *arguments):
        """One that has started."""
        self = cls(*arguments)
        await self.start()
        return self

    async def start(self):
        """Sets all inputs to zero, starts the clock, and resets."""
        for name in json.loads(os.environ["TB_INPUTS"]):
            getattr(self.dut, name).value = 0
        cocotb.start_soon(Clock(self.clk, 2, "ns").start())
        await self.reset()

    async def reset(self, cycles=2):
        """Holds ``rst`` for some cycles."""
        await FallingEdge(self.clk)
        self.dut.rst.value = 1
        await ClockCycles(self.clk, cycles)
        await FallingEdge(self.clk)
        self.dut.rst.value = 0

    async def pulse(self, name):
        """Sets an input for a cycle."""
        getattr(self.dut, name).value = 1
        await FallingEdge(self.clk)
        getattr(self.dut, name).value = 0

    async def run(self, sources, sinks, random, idle="never", stall="never", limit=None, until=None):
        """Sends the integers ``sources[port]`` and collects ``sinks[port]`` beats, all ports at once.

        ``idle`` names one of :data:`PATTERNS` for the sources and ``stall`` one of :data:`STALLS` for the sinks, or
        they map ports to names. A sink whose count is None collects until all others are done. ``until`` is a function
        of no argument that ends the run early when true; it sees the end of a cycle, and changes nothing in the dut.
        Fails after ``limit`` cycles (default: generous) without completion.
        """
        limit = limit or 2000 + 100 * (sum(map(len, sources.values())) + sum(count or 0 for count in sinks.values()))
        streams = Streams(self.dut, limit, until)
        for port, what in (*sources.items(), *sinks.items()):
            choice = idle if port in sources else stall
            name = choice if isinstance(choice, str) else choice.get(port, "never")
            generator = np.random.default_rng(random.integers(2**63))
            add = streams.source if port in sources else streams.sink
            add(port, what, PATTERNS[name](generator) if name != "shy" else None)
        await self.clk.falling_edge
        await streams
        await self.clk.falling_edge
        beats, cycles = streams.results()
        return Run({port: beats[port] for port in sinks}, cycles)

    def equal(self, got, expected, what):
        """Compares lists beat by beat; a mismatch names the seed, the index, and both values."""
        for index, (one, other) in enumerate(zip(got, expected, strict=False)):
            assert one == other, f"{what}: SEED={SEED} index {index}: expected {other}, got {one}"
        assert len(got) == len(expected), (
            f"{what}: SEED={SEED}: expected {len(expected)} beats, got {len(got)}")
