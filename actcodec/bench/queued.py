"""What a queue of descriptors is worth: what a training step of a ResNet-50 offloads, from memory to memory and back,
by one ring, and by one start after the other; and how near to the lanes' limit a ring brings the best ratio."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec import codecs
from actcodec.bench.cycles import CLOCK, DENSE, LATENCY, SECTOR, choice, options_of, real
from actcodec.demo import sample
from actcodec.golden.common import overlap
from actcodec.golden.common.footprint import MASK, MAXIMA
from actcodec.golden.common.networks import NETWORKS

__all__ = ["ACCESS", "BATCHES", "BEST", "NETWORK", "SIZE", "SMALL", "WAYS", "Queued", "dense", "queued", "tensors"]

NETWORK, METHOD = "resnet-50", "JPEG-ACT"
SMALL = 60_000  # values: the most that a small tensor has
SIZE = 256  # descriptors of a ring
BEST, BATCHES = f"{METHOD} optH rice{DENSE}", (16, 64)
"""The policy whose ratio lets the lanes be the limit, and the batches it is measured with."""
ACCESS = (0, 50)  # cycles between two accesses to registers, which take some 3 themselves
WAYS = ("compress", "decompress")


@dataclass(frozen=True)
class Queued:
    """Tensors that a step offloads, from memory to memory on memory of LATENCY cycles. Cycles, of each of WAYS, are
    those from the host's first access to the last tensor's end. It sees an interrupt at once."""

    cdus: int
    minibatch: int | None  # None: the small ones of one sample
    policy: str  # of the sample's tensors, which take the place of a step's; or ""
    tensors: int
    bytes: int
    payload: int  # bytes
    ring: tuple[int, ...]  # cycles, by one ring
    alone: tuple[tuple[int, ...], ...]  # cycles, by one start after the other: with each of ACCESS between two accesses

    @property
    def limit(self) -> float:
        """GB/s: a sector a cycle and CDU."""
        return SECTOR * self.cdus * CLOCK

    def rates(self, way: int) -> tuple[float, ...]:
        """GB/s by a ring, and without."""
        return tuple(self.bytes / cycles[way] * CLOCK for cycles in (self.ring, *self.alone))


class Job(NamedTuple):
    """A tensor, its place in memory, and what golden makes of it."""

    x: NDArray[np.float32]
    address: int
    space: int
    payload: bytes
    restored: NDArray[np.float32]
    forward: dict[str, Any]  # parameters of the driver


def tensors(minibatch: int | None) -> list[tuple[tuple[int, ...], str, str]]:
    """What a step offloads, in its order, or the small tensors of one sample: shape, kind, and the paper's mode for it
    (Table II)."""
    dense, sparse, mask = codecs.TABLE_2[METHOD]
    moving = overlap.tensors(NETWORKS[NETWORK]((3, 224, 224)), minibatch or 1)
    return [(one.shape, one.kind, mask if one.form == MASK else dense if one.kind == overlap.DENSE else sparse)
            for one in moving if one.form != MAXIMA and (minibatch or one.values <= SMALL)]


def values(todo: list[tuple[tuple[int, ...], str, str]]) -> Iterator[NDArray[np.float32]]:
    """Real values for each: those of the sample's tensors of its kind in turn, repeated."""
    kinds = [[x for name, x in sample().items() if name.startswith("ReLU") == sparse] for sparse in (False, True)]
    turns = count(), count()
    for shape, kind, _ in todo:
        sparse = kind != overlap.DENSE
        x = kinds[sparse][next(turns[sparse]) % len(kinds[sparse])]
        shape = (*shape, 1, 1)[:4]
        yield x[np.ix_(*(np.arange(size) % own for size, own in zip(shape, x.shape, strict=True)))]


def dense(policy: str = "") -> str:
    """The dense mode of a policy, or of a step, which has the modes that an accelerator needs for all tensors."""
    return choice(policy)[0] if policy else codecs.METHODS[METHOD][0]


def chosen(minibatch: int | None, policy: str) -> Iterable[tuple[NDArray[np.float32], str, str | None]]:
    """Tensors with their modes and DQTs."""
    if policy:
        return real(policy, minibatch)
    todo = tensors(minibatch)
    return ((x.reshape(shape), mode, None) for (shape, _, mode), x in zip(todo, values(todo), strict=True))


def queued(cdus: int, minibatch: int | None = None, policy: str = "") -> Queued:
    """:class:`Queued`; of a policy, or a ``minibatch`` beyond 1, by a ring alone, since what a host takes for a tensor
    does not grow. Raises SimulationError if a byte of a payload or a tensor is not golden's."""
    from actcodec.driver import run
    from actcodec.ring import Ring
    from actcodec.sim.accelerator import configuration
    from actcodec.sim.rtl_engine import Contents, SimulationError, driver_of
    from actcodec.sim.simulator import Simulator, aligned

    jobs, at = list[Job](), SIZE * 512
    for x, mode, dqt in chosen(minibatch, policy):
        jobs.append(planned(x, mode, dqt, cdus, at))
        at = jobs[-1].space + aligned(len(jobs[-1].payload))
    simulator = Simulator(configuration(dense(policy)), cdus, at, LATENCY, payload="memory", queue=SIZE)

    async def each(one, todo):
        return [await one(**job) for job in todo]

    memory, bus = Contents(simulator.bytes), Bus(simulator)
    driver = driver_of(simulator, bus)
    ring = run(Ring.open(driver, 0, SIZE))
    arguments = [[job.forward for job in jobs], list[dict[str, Any]]()]

    def measured(way, many, rest=0):
        """Results of all tensors, and cycles. What was written is golden's, and is gone before the next time."""
        for job in jobs:
            memory.write(*((job.space, job.payload) if way else (job.address, job.x.tobytes())))
        bus.rest, start = rest, simulator.cycle
        results = run(many(arguments[way]))
        cycles = simulator.cycle - start
        for job in jobs:
            place, expected = (job.address, job.restored) if way else (job.space, np.frombuffer(job.payload, np.uint8))
            written = simulator.bytes[place :][: expected.nbytes]
            if not np.array_equal(written, expected.reshape(-1).view(np.uint8)):
                raise SimulationError(f"{job.forward['mode']} {job.x.shape}, {cdus} CDUs: the hardware differs from "
                                      "the golden model")
            written[:] = 0
        run(ring.wait())
        return results, cycles

    results, there = measured(0, ring.compress_many)
    arguments[1] = [{name: job.forward[name] for name in ("address", "shape", "mode", "scale_table", "payload")}
                    | {"scales": result.scales, "settings": result.settings}
                    for job, result in zip(jobs, results, strict=True)]
    together = there, measured(1, ring.decompress_many)[1]
    alone = [tuple(measured(way, partial(each, one), rest)[1]
                   for way, one in enumerate((driver.compress, driver.decompress)))
             for rest in (ACCESS if not policy and (minibatch or 1) == 1 else ())]
    return Queued(cdus, minibatch, policy, len(jobs), sum(job.x.nbytes for job in jobs),
                  sum(len(job.payload) for job in jobs), together, tuple(alone))


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


def planned(x: NDArray[np.float32], name: str, dqt: str | None, cdus: int, address: int) -> Job:
    """The job of a tensor in a mode, with a DQT if it has one, at an address; behind it are its scales, and the space
    of just its payload."""
    from actcodec.sim.simulator import aligned

    mode, options = options_of(name, dqt, cdus)
    whole = mode.model.compress(x, **options)
    used = codecs.find(whole.mode).model
    payload = used.unpack(whole).payload
    lane, words, settings = mode.model.plan(x, **options)
    table = address + aligned(x.nbytes)
    space = table + aligned(4 * math.prod(x.shape[1:2]))
    job = {"address": address, "shape": x.shape, "mode": codecs.host_mode(lane).name, "scale_table": table,
           "scales": None if words is None else np.asarray(words), "settings": settings,
           "payload": (space, len(payload))}
    return Job(x, address, space, payload, used.decompress(whole), job)
