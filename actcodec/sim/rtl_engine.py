"""The rtl engine: the same tensors and files as the golden model, through a simulation of the accelerator.

What drives it is the driver of real hardware (driver.py); only memory, DMA engine and bus are simulated with it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs import find, host_mode, lane_modes
from actcodec.codecs.codec import LanePayload
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.mode import Mode
from actcodec.descriptors import SIZE
from actcodec.driver import MOST, AcceleratorError, Driver, Plain, Result, check_scan, run
from actcodec.golden.offload.memory import formats
from actcodec.ring import Ring
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.accelerator import configuration, prepare
from actcodec.sim.simulator import BEAT, PACKET, Simulator, aligned
from actcodec.sim.toolchain import SimulationError

__all__ = ["QUEUE", "Cycles", "SimulatedHost", "SimulationError", "compress", "compress_many", "decompress",
           "decompress_many", "driver_of", "prepare"]

QUEUE = 256  # descriptors of a ring
BAD_PAYLOAD = (ErrorCode.SHORT, ErrorCode.EXCESS, ErrorCode.BLOCK)


@dataclass(frozen=True)
class Cycles:
    """What the accelerator's counters and the simulation say of a tensor."""

    cycles: int  # the accelerator's counter: from its start to its end
    blocks: int  # of the CDU that has most of them; the others work side by side with it
    latency: int | None  # from the host's start to the first beat out; None of a ring
    bytes: int  # of the whole payload
    nans: int = 0
    saturated: int = 0

    @property
    def cycles_per_block(self) -> float:
        return self.cycles / self.blocks


class SimulatedHost:
    """A tensor of ``shape`` and ``dtype`` in the memory of an accelerator of its own, simulated for ``mode``.

    An accelerator for tensors of 16 bits or 8 has all formats. ``options`` go to
    :class:`~actcodec.sim.simulator.Simulator`.
    With ``payload="memory"`` the payload lies after the table, in room for twice the tensor.
    """

    def __init__(self, shape: Sequence[int], mode: str, cdus: int, dtype: str = "float32", **options: Any) -> None:
        self.shape, self.cdus, self.dtype = shape, cdus, dtype
        self.size = formats.bytes_of(dtype) * int(np.prod(shape))
        if dtype != "float32":
            options = {"formats": formats.FORMATS, **options}
        self.table = aligned(self.size)  # of scales, behind the tensor
        self.place = self.table + aligned(self.size) + BEAT  # of the payload, if that is in memory
        self.room = 2 * self.size + PACKET if options.get("payload", "stream") != "stream" else 0
        self.simulator = Simulator(configuration(mode), cdus, self.place + self.room, **options)
        simulator, memory = self.simulator, Contents(self.simulator.bytes)

        async def wait():
            self.started = simulator.cycle
            simulator.run()

        self.driver = run(Driver.open(Plain(simulator), Plain(memory), wait))

    def compress(self, x: np.ndarray, mode: str, **job: Any) -> tuple[Result, bytes]:
        """The driver's result, and the payload, of float32 values, words of 16 bits or codes. ``job`` are other
        parameters of the driver's."""
        self.simulator.bytes[: self.size] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        space = (self.place, self.room) if self.room else None
        result = self._run(self.driver.compress(0, self.shape, mode, scale_table=self.table, dtype=self.dtype,
                                                payload=space, **job))
        if not space:
            frame = self.simulator.take()
            if frame is None:
                raise SimulationError("the simulated accelerator is done, and no frame came")
            return result, frame
        return result, self.simulator.bytes[self.place :][: result.counters["bytes_out"]].tobytes()

    def decompress(self, stored: LanePayload) -> tuple[Result, np.ndarray]:
        """The driver's result, and the tensor of a :class:`~actcodec.codecs.codec.LanePayload`: float32, words of 16
        bits, or codes."""
        c = stored
        if self.room:
            Contents(self.simulator.bytes).write(self.place, c.payload)
        else:
            self.simulator.send_payload(c.payload)
        result = self._run(self.driver.decompress(
            0, c.shape, host_mode(c.mode).name, scales=c.scales, settings=c.settings, scale_table=self.table,
            lengths=c.lengths, dtype=self.dtype, payload=(self.place, len(c.payload)) if self.room else None))
        return result, self.simulator.bytes[: self.size].view(_type(self.dtype)).reshape(c.shape).copy()

    def _run(self, coroutine):
        try:
            return run(coroutine)
        except AcceleratorError as error:
            raise _raised(error) from error

    def cycles(self, result: Result, stored: LanePayload, decompressing: bool) -> Cycles:
        """:class:`Cycles` of the tensor that was done last, the first one of this host."""
        passed = self.simulator.traffic()
        out = passed["written"][: self.cdus] if decompressing else [passed["sent"], *passed["written"][self.cdus :]]
        first = min(traffic.first for traffic in out if traffic.transfers)
        return _cycles(result, stored, first - self.started)


def driver_of(simulator: Simulator, bus: Any = None) -> Driver:
    """A driver, by way of its own bus or another one, that waits as long as the accelerator works."""
    async def wait():
        simulator.run()

    return run(Driver.open(Plain(bus or simulator), Plain(Contents(simulator.bytes)), wait))


class Contents:
    """The driver's view of an array."""

    def __init__(self, array: NDArray[np.uint8]) -> None:
        self.array = array

    def read(self, address: int, size: int) -> bytes:
        return self.array[address : address + size].tobytes()

    def write(self, address: int, data: bytes) -> None:
        self.array[address : address + len(data)] = np.frombuffer(data, np.uint8)


def compress(x: np.ndarray, mode: Mode, cdus: int = 1, dtype: str = "float32", scan: bool = False,
             **options: Any) -> tuple[Compressed, Cycles]:
    """As the model's ``compress``, by simulated hardware: (``Compressed``, :class:`Cycles`). A ``dtype`` of 16 bits is
    that of the words ``x``, uint16, int8 that of codes. With ``scan`` the hardware finds the scales; raises ValueError
    for a mode without, and for one whose scales have more than a scan finds."""
    lane, job = _planned(x, mode, dtype, options)
    if scan and (not lane.scaled or lane.format.segmented):
        raise ValueError(f"mode {mode.name} has no scales that a scan finds")
    if scan:
        check_scan(options)
        job |= {"scales": "hardware"}
    host = SimulatedHost(x.shape, job["mode"], cdus, dtype, scan=scan)
    result, payload = host.compress(x, **job)
    stored = _stored(mode, lane, x, payload, result, cdus, dtype)
    return mode.model.pack(stored, **options), host.cycles(result, stored, False)


def decompress(compressed: Compressed, dtype: str = "float32") -> tuple[np.ndarray, Cycles]:
    """As the model's ``decompress``, by simulated hardware: (tensor, :class:`Cycles`), a tensor of 16 bits as words,
    uint16, one of codes as int8. Raises ValueError for a payload that ends too soon or goes on too long, and for a
    malformed block."""
    stored = find(compressed.mode).model.unpack(compressed)
    host = SimulatedHost(stored.shape, host_mode(stored.mode).name, stored.cdus, dtype)
    result, x = host.decompress(stored)
    return x, host.cycles(result, stored, True)


def compress_many(tensors: Sequence[tuple[np.ndarray, Mapping[str, Any]]],
                  mode: Mode) -> list[tuple[Compressed, Cycles]]:
    """As :func:`compress` of each of (tensor, its parameters), from memory to memory; one ring has all of them done
    that need the same accelerator."""
    lanes, jobs = [], []
    for x, parameters in tensors:
        options = {"cdus": 1, "dtype": "float32", **parameters}
        cdus, dtype = options.pop("cdus"), options.pop("dtype")
        lane, job = _planned(x, mode, dtype, options)
        lanes.append((lane, options))
        blocks = mode.model.view(x.shape).blocks(lane.tiled) + 4 * cdus
        jobs.append(_Job(cdus, {"shape": x.shape, "dtype": dtype, **job}, x.tobytes(), MOST * 64 * blocks))
    results = []
    for (x, _), (lane, options), job, (result, payload) in zip(tensors, lanes, jobs, _by_rings(jobs, False),
                                                               strict=True):
        stored = _stored(mode, lane, x, payload, result, job.cdus, job.parameters["dtype"])
        results.append((mode.model.pack(stored, **options), _cycles(result, stored)))
    return results


def decompress_many(tensors: Sequence[tuple[Compressed, str]]) -> list[tuple[np.ndarray, Cycles]]:
    """As :func:`decompress` of each of (compressed, dtype), as :func:`compress_many`."""
    jobs, unpacked = [], [find(compressed.mode).model.unpack(compressed) for compressed, _ in tensors]
    for c, (_, dtype) in zip(unpacked, tensors, strict=True):
        parameters = {"shape": c.shape, "mode": host_mode(c.mode).name, "dtype": dtype, "scales": c.scales,
                      "settings": c.settings, "lengths": c.lengths}
        jobs.append(_Job(c.cdus, parameters, c.payload, formats.bytes_of(dtype) * math.prod(c.shape)))
    return [(np.frombuffer(data, _type(dtype)).reshape(c.shape).copy(), _cycles(result, c))
            for c, (_, dtype), (result, data) in zip(unpacked, tensors, _by_rings(jobs, True), strict=True)]


class _Job(NamedTuple):
    """A tensor one way: parameters of the driver, what is read, and the bytes that there is room for."""

    cdus: int
    parameters: dict[str, Any]
    data: bytes
    room: int


def _by_rings(jobs, back):
    """What became of each, (result, bytes written): a ring for each accelerator that they need."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    results = [None] * len(jobs)
    for index, job in enumerate(jobs):
        narrow = job.parameters["dtype"] != "float32"
        groups.setdefault((configuration(job.parameters["mode"]), job.cdus, narrow), []).append(index)
    for (modes, cdus, narrow), some in groups.items():
        hardware = {"formats": formats.FORMATS} if narrow else {}
        for index, one in zip(some, _by_ring(modes, cdus, hardware, [jobs[k] for k in some], back), strict=True):
            results[index] = one
    return results


def _by_ring(modes, cdus, hardware, jobs, back):
    todo, places, at = [], [], QUEUE * SIZE
    for _, parameters, data, room in jobs:
        tensor, payload = (room, len(data)) if back else (len(data), room)
        table = at + aligned(tensor)
        channels = lane_modes(parameters["mode"])[0].model.view(parameters["shape"]).channels
        space = table + aligned(4 * channels)
        todo.append({**parameters, "address": at, "scale_table": table, "payload": (space, payload)})
        places.append((space, at) if back else (at, space))
        at = space + aligned(payload)
    simulator = Simulator(modes, cdus, at, payload="memory", queue=QUEUE, **hardware)
    memory = Contents(simulator.bytes)
    for (place, _), job in zip(places, jobs, strict=True):
        memory.write(place, job.data)
    driver = driver_of(simulator)
    ring = run(Ring.open(driver, 0, driver.queue))
    results = run((ring.decompress_many if back else ring.compress_many)(todo))
    for result in results:
        if isinstance(result, AcceleratorError):
            raise _raised(result)
    return [(result, memory.read(place, result.counters["bytes_out"]))
            for (_, place), result in zip(places, results, strict=True)]


def _planned(x, mode, dtype, options):
    """The mode of a lane, and parameters of the driver."""
    values = formats.widen(x, dtype) if dtype in formats.HALVES and not mode.halves else x
    lane, words, settings = mode.model.plan(values, dtype, **options)
    return lane, {"mode": host_mode(lane).name, "signs": options.get("signs", False), "scales": words,
                  "settings": settings}


def _stored(mode, lane, x, payload, result, cdus, dtype):
    return LanePayload(lane, x.shape, payload, result.scales, result.settings, cdus, result.lengths,
                       dtype if mode.halves or dtype == formats.CODES else "float32")


def _cycles(result, stored, latency=None):
    counters, most = result.counters, 4 * -(-stored.blocks // 4 // stored.cdus)
    return Cycles(counters["cycles"], min(stored.blocks, most), latency, stored.payload_bytes, counters["nans"],
                  counters["saturated"])


def _raised(error):
    """The exception for an accelerator's error."""
    return (ValueError if error.code in BAD_PAYLOAD else SimulationError)(str(error))


def _type(dtype):
    """Of an array of a tensor's words."""
    return {"float32": np.float32, formats.CODES: np.int8}.get(dtype, np.uint16)
