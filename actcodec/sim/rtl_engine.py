"""The rtl engine: the same tensors and files as the golden model, through a simulation of the accelerator.

What drives it is the driver of real hardware (driver.py); only memory, DMA engine and bus are simulated with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs import find, host_mode
from actcodec.codecs.codec import LanePayload
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.mode import Mode
from actcodec.driver import AcceleratorError, Driver, Plain, Result, check_scan, run
from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.accelerator import configuration, prepare
from actcodec.sim.simulator import PACKET, Simulator
from actcodec.sim.toolchain import SimulationError

__all__ = ["Cycles", "SimulatedHost", "SimulationError", "compress", "decompress", "prepare"]

BAD_PAYLOAD = (ErrorCode.SHORT, ErrorCode.EXCESS, ErrorCode.BLOCK)


@dataclass(frozen=True)
class Cycles:
    """What the accelerator's counters and the simulation say of a tensor."""

    cycles: int  # the accelerator's counter: from its start to its end
    blocks: int  # of the CDU that has most of them; the others work side by side with it
    latency: int  # from the host's start to the first beat out: memory's, the plan's and that of the units
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
        self.table = -(-self.size // 32) * 32  # of scales, behind the tensor
        self.place = self.table + -(-self.size // 32) * 32 + 32  # of the payload, if that is in memory
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
        kind = {"float32": np.float32, formats.CODES: np.int8}.get(self.dtype, np.uint16)
        return result, self.simulator.bytes[: self.size].view(kind).reshape(c.shape).copy()

    def _run(self, coroutine):
        try:
            return run(coroutine)
        except AcceleratorError as error:
            if error.code in BAD_PAYLOAD:
                raise ValueError(str(error)) from error
            raise SimulationError(str(error)) from error

    def cycles(self, result: Result, stored: LanePayload, decompressing: bool) -> Cycles:
        """:class:`Cycles` of the tensor that was done last, the first one of this host."""
        passed = self.simulator.traffic()
        out = passed["written"][: self.cdus] if decompressing else [passed["sent"], *passed["written"][self.cdus :]]
        first = min(traffic.first for traffic in out if traffic.transfers)
        most = 4 * -(-stored.blocks // 4 // self.cdus)
        counters = result.counters
        return Cycles(counters["cycles"], min(stored.blocks, most), first - self.started, stored.payload_bytes,
                      counters["nans"], counters["saturated"])


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
    values = formats.widen(x, dtype) if dtype in formats.HALVES and not mode.halves else x
    lane, words, settings = mode.model.plan(values, dtype, **options)
    if scan and (not lane.scaled or lane.format.segmented):
        raise ValueError(f"mode {mode.name} has no scales that a scan finds")
    if scan:
        check_scan(options)
    host = SimulatedHost(x.shape, host_mode(lane).name, cdus, dtype, scan=scan)
    result, payload = host.compress(x, host_mode(lane).name, signs=options.get("signs", False),
                                    scales="hardware" if scan else words, settings=settings)
    stored = LanePayload(lane, x.shape, payload, result.scales, result.settings, cdus, result.lengths,
                         dtype if mode.halves or dtype == formats.CODES else "float32")
    return mode.model.pack(stored, **options), host.cycles(result, stored, False)


def decompress(compressed: Compressed, dtype: str = "float32") -> tuple[np.ndarray, Cycles]:
    """As the model's ``decompress``, by simulated hardware: (tensor, :class:`Cycles`), a tensor of 16 bits as words,
    uint16, one of codes as int8. Raises ValueError for a payload that ends too soon or goes on too long, and for a
    malformed block."""
    stored = find(compressed.mode).model.unpack(compressed)
    host = SimulatedHost(stored.shape, host_mode(stored.mode).name, stored.cdus, dtype)
    result, x = host.decompress(stored)
    return x, host.cycles(result, stored, True)
