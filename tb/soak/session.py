"""Tensors through an accelerator in its world, with everything that comes of them held against golden."""

from dataclasses import dataclass, replace

import numpy as np

from actcodec.codecs import Mode
from actcodec.codecs.compressed import Compressed
from actcodec.driver import AcceleratorError, Driver, Plain, Result, run, view
from actcodec.rtl.offload.register_map import BITS, VALUES, ErrorCode
from actcodec.rtl.offload.setting import width
from actcodec.rtl_engine import planned
from tb.comet.streams import counts
from tb.offload.lanes import drawn, model, stored
from tb.soak.frames import expected, framed
from tb.soak.world import COMPRESSING, DECOMPRESSING, IDLE, SLVERR, Broken, World

__all__ = ["Job", "Session"]

LOCKED = sorted({bits.address for bits in BITS if VALUES[bits.name].locked})

TENSOR, TABLE = 1, 2  # owners of a byte


class GivenUp(Exception):
    """Patience with a tensor is over."""


@dataclass(frozen=True, eq=False)
class Job:
    """A tensor, what it is compressed to, and where it lies; addresses are those that the accelerator sees."""

    x: np.ndarray
    lane: Mode  # the lane's, fallen back to if need be
    told: dict  # what else the driver has to know to compress it
    compressed: Compressed
    address: int = 0
    stride: int = 0
    table: int = 0  # of scales

    @classmethod
    def of(cls, x, name, cdus, random, **given):
        """Of a mode, which has no place yet. ``given`` are options."""
        mode, options = drawn(random, name, cdus, **given)
        compressed = mode.model.compress(x, mode, **options)
        del options["cdus"]
        return cls(x, *planned(x, mode, **options), compressed)

    def at(self, address, stride=None, gap=0):
        """The same at a place. ``gap`` bytes, a multiple of 32, are between the tensor and its table of scales."""
        seen = self.view
        stride = stride or 4 * seen.width
        end = address + (seen.rows - 1) * stride + 4 * seen.width
        return replace(self, address=address, stride=stride, table=-(-end // 32) * 32 + gap)

    @property
    def view(self):
        return view(self.lane, self.x.shape)

    @property
    def payload(self):
        """As it passes the stream."""
        return stored(self.compressed)[0].payload

    @property
    def lengths(self):
        """Of the streams in the payload, which are none if it has blocks."""
        return getattr(stored(self.compressed)[0], "lengths", ())

    @property
    def end(self):
        """Behind the table of scales."""
        return self.table + 4 * self.view.channels

    def index(self, origin):
        """Where its bytes are in memory that begins at ``origin``."""
        row = self.address - origin + self.stride * np.arange(self.view.rows)[:, None]
        return (row + np.arange(4 * self.view.width)).reshape(-1)

    def __str__(self):
        return (f"{self.lane.name} {self.x.shape} at {self.address:#x}, {self.stride} bytes from row to row, "
                f"{len(self.payload)} bytes of payload")


class Contents:
    """The driver's memory."""

    def __init__(self, world):
        self.world = world

    def read(self, address, size):
        at = address - self.world.origin
        return self.world.bytes[at : at + size].tobytes()

    def write(self, address, data):
        at = address - self.world.origin
        self.world.bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)


class Session:
    """An accelerator after reset, and one tensor after the other. ``random`` chooses what is left to chance.

    Everything raises :class:`Broken` when something is not as it must be.
    """

    def __init__(self, accelerator, random, origin=0, size=1 << 17):
        self.random = random
        self.world = World(accelerator, int(random.integers(2**63)), size, origin)
        self.polls = False  # the status is looked at all the time; otherwise the interrupt is waited for
        self.meddles = False  # the host writes what is locked while a tensor is under way
        self.patience = None  # cycles until a tensor is given up
        self.open()

    def open(self):
        """As a driver does that has just been loaded."""
        world = self.world
        self.driver = run(Driver.open(Plain(world), Plain(Contents(world)), self._wait))
        same(self.driver.cdus, world.accelerator.cdus, "CDUs")
        same(set(self.driver.modes), set(world.accelerator.modes), "modes")
        same(self.driver.address_width, world.accelerator.address_width, "bits of an address")

    async def _wait(self):
        world = self.world
        if self.patience is not None:
            if not world.run(self.patience):
                raise GivenUp
        elif self.polls or self.meddles:
            world.run(int(self.random.integers(200)))
            if self.meddles:
                await self._meddle()
        elif not world.run(2_000_000):
            raise Broken(f"cycle {world.cycle}: no end")
        if world.interrupt:
            world.phase(IDLE)  # at once: nothing may come any more
            done, error, *pending = await self.driver.get("done", "error", "done_pending", "error_pending")
            same([done, *pending], [1, 1, int(error != 0)], f"done and what is pending with error {error}")

    async def _meddle(self):
        address = int(self.random.choice(LOCKED))
        response, _ = self.world.access(True, address, int(self.random.integers(1 << 32)))
        busy, = await self.driver.get("busy")
        if busy and response != SLVERR:
            raise Broken(f"{address:#x} can be written while a tensor is under way")
        same(self.world.access(False, 0x1C), (SLVERR, 0), "a register that is none")

    # ---------------------------------------------------------------------------------------------------------- tensors
    def compress(self, job):
        """Has it compressed; the error code."""
        world, c = self.world, job.compressed
        before = self._prepare(job, job.x)
        world.phase(COMPRESSING)
        code, result = self._result(self._compress(job))
        self._same_memory(before, "memory, which was only read")
        frame = world.take()
        if frame is None:
            raise Broken("no frame")
        same(world.take(), None, "a second frame")
        same(code, ErrorCode.READ if world.failures[0] else ErrorCode.NONE, "error")
        if code:
            return code
        same_bytes(frame, job.payload, "payload")
        scaled = job.lane.scaled
        same_counters(result, bytes_in=job.x.nbytes, bytes_out=len(frame), nans=scaled * np.isnan(job.x).sum(),
                      saturated=scaled and model(c).saturated(job.x, c))
        same(result.lengths, job.lengths, "lengths of the streams")
        if job.lane.format.endless and self.random.random() < 0.2:
            same(run(self.driver.histogram()), counts(model(c).encoded(c), job.x), "histogram")
        return code

    def decompress(self, job, frame=None, sent=False, lengths=None):
        """Has a frame decompressed, that of the tensor if there is none; the error code. ``sent``: it waits at the
        stream already. ``lengths`` of streams may be wrong ones."""
        world, c = self.world, job.compressed
        frame = frame or framed(job.payload, self.random)
        lengths = lengths or job.lengths
        codes, tensor, sure = expected(frame, c, job.lane, lengths, 1 if set(self.driver.modes) - {"raw", "zvc"} else 4)
        before = self._prepare(job)
        if not sent:
            world.send(frame.data, frame.keep, frame.last)
        world.phase(DECOMPRESSING)
        code, result = self._result(self._decompress(job, lengths))
        reads, writes = world.failures
        codes = {ErrorCode.READ} if reads else {ErrorCode.WRITE} if writes else codes
        if code not in codes:
            raise Broken(f"error: expected {codes}, got {code!r}")
        index = job.index(world.origin)
        before[index] = np.where(sure.reshape(-1).repeat(4), tensor.view(np.uint8).reshape(-1), world.bytes[index])
        self._same_memory(before, "memory", reads or writes)
        same(int(np.count_nonzero(world.owner == TENSOR)), 0, "bytes of the tensor that were not written")
        same(world.sent, True, "all of the frame taken")
        if not code:
            same_counters(result, bytes_in=len(frame.bytes), bytes_out=tensor.nbytes, nans=0, saturated=0)
        return code

    def give_up(self, job, back, cycles):
        """Starts a tensor, and a soft reset some cycles later; whether it came before the end. A frame at ``s_axis``
        that has not begun is left there."""
        world = self.world
        before, in_time = self._begin(job, back, cycles)
        world.give_up()
        run(self.driver.reset())
        world.phase(IDLE)
        same(run(self.driver.get("busy", "done", "error")), [0] * 3, "busy, done and error after a soft reset")
        self._same_memory(before, "memory outside of the tensor", True)
        while world.take() is not None:
            pass
        return in_time

    def cut_off(self, job, back, cycles):
        """Starts a tensor, and resets everything some cycles later."""
        before, _ = self._begin(job, back, cycles)
        self.world.reset()
        self._same_memory(before, "memory outside of the tensor", True)
        same(run(self.driver.get("busy", "done", "error", "rows")), [0] * 4, "registers after a reset")
        self.open()

    def refuse(self, mode, values, code):
        """Starts a tensor in a lane's mode that cannot be. The world is idle: nothing may move."""
        world, driver = self.world, self.driver
        run(driver.put({"settings": width([mode])}, **values))
        run(driver.put(done_pending=1, error_pending=1))
        run(driver.put(start=1))
        while not run(driver.get("done"))[0]:
            run(self._wait())
        same(world.interrupt, True, "interrupt")
        same(run(driver.get("error")), [code], "error")
        same(run(driver.get("bytes_in", "bytes_out", "nans", "saturated")), [0] * 4, "counters of a refused tensor")
        run(driver.put(done_pending=1, error_pending=1))
        world.run(20)

    # --------------------------------------------------------------------------------------------------------- parts
    def _compress(self, job):
        return self.driver.compress(job.address, job.x.shape, job.lane.name, scale_table=job.table, stride=job.stride,
                                    **job.told)

    def _decompress(self, job, lengths):
        c, settings = stored(job.compressed)
        return self.driver.decompress(job.address, c.shape, c.mode, scales=c.scales, table=c.table, settings=settings,
                                      lengths=lengths, scale_table=job.table, stride=job.stride)

    def _begin(self, job, back, cycles):
        """Starts a tensor and lets it run for some cycles. Memory before, and whether it has not ended."""
        world = self.world
        before = self._prepare(job, None if back else job.x)
        if back:
            frame = framed(job.payload, self.random)
            world.send(frame.data, frame.keep, frame.last)
        world.phase(DECOMPRESSING if back else COMPRESSING)
        self.patience = cycles
        try:
            self._result(self._decompress(job, job.lengths) if back else self._compress(job))
            return before, False
        except GivenUp:
            return before, True
        finally:
            self.patience = None

    def _prepare(self, job, x=None):
        """Memory full of random bytes but for the tensor ``x``; a copy, in which its scales still lack."""
        world, index = self.world, job.index(self.world.origin)
        world.bytes[:] = np.frombuffer(self.random.bytes(world.bytes.size), np.uint8)
        world.owner[:] = 0
        world.owner[index] = TENSOR
        if job.lane.scaled:
            world.owner[job.table - world.origin : job.end - world.origin] = TABLE
        if x is not None:
            world.bytes[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        return world.bytes.copy()

    def _result(self, coroutine):
        """The error code of a tensor, and the driver's :class:`Result` if it has none; nothing moves any more."""
        code, result = ErrorCode.NONE, None
        try:
            result = run(coroutine)
        except AcceleratorError as error:
            code = error.code
        self.world.phase(IDLE)
        same(self.world.interrupt, False, "interrupt")
        return code, result

    def _same_memory(self, expected, what, but_for_the_tensor=False):
        world = self.world
        wrong = (world.bytes != expected) & (world.owner != TABLE)
        if but_for_the_tensor:
            wrong &= world.owner == 0
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise Broken(f"{what}: {wrong.sum()} bytes are wrong, at {at + world.origin:#x} {world.bytes[at]:#04x} in "
                         f"place of {expected[at]:#04x}")


def same(got, expected, what):
    if got != expected:
        raise Broken(f"{what}: expected {expected!r}, got {got!r}")


def same_counters(result: Result, **expected):
    for name, value in expected.items():
        same(result.counters[name], value, name)


def same_bytes(got, expected, what):
    if got != expected:
        at = next((k for k, pair in enumerate(zip(got, expected, strict=False)) if pair[0] != pair[1]), None)
        raise Broken(f"{what}: {len(got)} bytes, expected {len(expected)}; the first wrong one is {at}")
