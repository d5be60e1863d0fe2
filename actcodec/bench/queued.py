"""What a queue of descriptors is worth: a network's tensors from memory to memory, by one ring, and one by one."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from actcodec import codecs
from actcodec.bench.cycles import CLOCK, LATENCY, sparse
from actcodec.golden.common.networks import resnet50

__all__ = ["ACCESS", "SIZE", "SMALL", "Queued", "queued", "shapes"]

SMALL = 60_000  # values: the most that a small tensor has
SIZE = 256  # descriptors of a ring
ACCESS = (0, 50)  # cycles between two accesses to registers, which take some 3 themselves


@dataclass(frozen=True)
class Queued:
    """Tensors of a ResNet-50, of one sample each, compressed from memory to memory in a mode, on memory of LATENCY
    cycles. Cycles are those from the host's first access to the last tensor's end. It sees an interrupt at once."""

    mode: str
    cdus: int
    tensors: int
    bytes: int
    ring: int  # cycles, by one ring
    alone: tuple[int, ...]  # cycles, by one start after the other: with each of ACCESS between two accesses of the host

    @property
    def rates(self) -> tuple[float, ...]:
        """GB/s by a ring, and without."""
        return tuple(self.bytes / cycles * CLOCK for cycles in (self.ring, *self.alone))


def shapes(most: int | None = SMALL) -> list[tuple[int, ...]]:
    """Those of the outputs of a ResNet-50's layers that have maps, in their order, up to so many values."""
    return [(1, *node.shape) for node in resnet50()
            if node.op != "input" and node.shape[1] > 1 and (most is None or node.size <= most)]


def queued(mode: str, cdus: int, most: int | None = SMALL) -> Queued:
    """:class:`Queued` of synthetic values, half of them zero, in the shapes of a ResNet-50's tensors. Raises
    SimulationError if a payload is not golden's."""
    from actcodec.driver import Driver, Plain, run
    from actcodec.ring import Ring
    from actcodec.sim.accelerator import configuration
    from actcodec.sim.rtl_engine import Contents, SimulationError
    from actcodec.sim.simulator import Simulator

    all_of = [(shape, *_planned(mode, shape, cdus)) for shape in dict.fromkeys(shapes(most))]
    known = {shape: planned for shape, *planned in all_of}
    jobs, contents, at = [], [], SIZE * 512
    for shape in shapes(most):
        x, payload, lane, job = known[shape]
        table, space = at + x.nbytes, at + x.nbytes + -(-4 * shape[1] // 32) * 32
        jobs.append({"address": at, "shape": shape, "mode": lane, "scale_table": table,
                     "payload": (space, x.nbytes), **job})
        contents.append((at, x, space, payload))
        at = space + x.nbytes
    simulator = Simulator(configuration(known[jobs[0]["shape"]][2]), cdus, at, LATENCY, payload="memory", queue=SIZE)

    async def wait():
        simulator.run()

    memory, bus = Contents(simulator.bytes), Bus(simulator)
    driver = run(Driver.open(Plain(bus), Plain(memory), wait))
    cycles = []

    def checked(start):
        cycles.append(simulator.cycle - start)
        for _, x, space, payload in contents:
            if memory.read(space, len(payload)) != payload:
                raise SimulationError(f"{mode} {x.shape}, {cdus} CDUs: the hardware differs from the golden model")
            simulator.bytes[space : space + len(payload)] = 0

    for place, x, *_ in contents:
        memory.write(place, x.tobytes())
    ring, start = run(Ring.open(driver, 0, SIZE)), simulator.cycle
    run(ring.compress_many(jobs))
    checked(start)
    run(ring.wait())
    for bus.rest in ACCESS:
        start = simulator.cycle
        for job in jobs:
            run(driver.compress(**job))
        checked(start)
    together, *alone = cycles
    return Queued(mode, cdus, len(jobs), sum(x.nbytes for _, x, *_ in contents), together, tuple(alone))


class Bus:
    """A simulator's, to whose registers the host has an access every ``rest`` cycles."""

    def __init__(self, simulator: Any) -> None:
        self.simulator, self.rest = simulator, 0

    def read(self, address):
        self._pause()
        return self.simulator.read(address)

    def write(self, address, value):
        self._pause()
        self.simulator.write(address, value)

    def _pause(self):
        end = self.simulator.cycle + self.rest
        while self.simulator.cycle < end and not self.simulator.interrupt:
            self.simulator.run(end - self.simulator.cycle)


def _planned(name: str, shape: tuple[int, ...], cdus: int) -> tuple[Any, ...]:
    """Values for a tensor, golden's payload, the lane's mode, and what the driver takes besides."""
    x = sparse(shape, 0.5, math.prod(shape))
    mode, chosen = codecs.by_code(codecs.lane_modes(name)[0].code)
    assert mode is not None, f"mode {name} has no code of a file"
    chosen = mode.option_values(chosen | {"cdus": cdus})
    whole = mode.model.compress(x, **chosen)
    stored = codecs.find(whole.mode).model.unpack(whole)
    lane, words, settings = mode.model.plan(x, **chosen)
    job = {"scales": None if words is None else np.asarray(words), "settings": settings}
    return x, stored.payload, codecs.host_mode(lane).name, job
