"""Tensors through an accelerator in its world, with everything that comes of them held against golden."""

import numpy as np

from actcodec.driver import LENGTH, Driver, Plain, run
from actcodec.rtl.offload.control.register_map import BITS, COUNTERS, VALUES, ErrorCode
from actcodec.rtl.offload.control.setting import width
from tb.soak.frames import expected, framed
from tb.soak.world import COMPRESSING, DECOMPRESSING, IDLE, SLVERR, Broken, World

__all__ = ["Session"]

LOCKED = sorted({bits.address for bits in BITS if VALUES[bits.name].locked})

TENSOR, TABLE = 1, 2  # owners of a byte


class GivenUp(Exception):
    """Patience with a tensor is over."""


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
        world, encoded = self.world, job.encoded
        before = self._prepare(job, job.words, job.x)
        world.phase(COMPRESSING)
        code = self._tensor(job.registers(False), job.mode)
        self._same_memory(before, "memory, which was only read")
        frame = world.take()
        if frame is None:
            raise Broken("no frame")
        same(world.take(), None, "a second frame")
        same(code, ErrorCode.READ if world.failures[0] else ErrorCode.NONE, "error")
        if code:
            return code
        same_bytes(frame, job.payload, "payload")
        self._same_counters(bytes_in=job.x.nbytes, bytes_out=len(frame), nans=encoded.nans,
                            saturated=encoded.saturated)
        if job.mode.format.segmented:
            same(run(self.driver.get("clipped")), [encoded.clipped], "clipped")
        if job.mode.format.endless:
            together, = run(self.driver.get("lengths_out", sizes={"lengths_out": LENGTH * self.driver.cdus}))
            same(together, job.registers(True, job.lengths)["lengths_in"], "lengths of the streams")
            if self.random.random() < 0.2:
                same(run(self.driver.histogram()), encoded.histogram, "histogram")
        return code

    def decompress(self, job, frame=None, sent=False, lengths=None):
        """Has a frame decompressed, that of the tensor if there is none; the error code. ``sent``: it waits at the
        stream already. ``lengths`` of streams may be wrong ones."""
        world = self.world
        frame = frame or framed(job.payload, self.random)
        lengths = lengths or job.lengths
        codes, rows, sure = expected(frame, job, lengths, 1 if set(self.driver.modes) - {"raw", "zvc"} else 4)
        before = self._prepare(job, job.back)
        if not sent:
            world.send(frame.data, frame.keep, frame.last)
        world.phase(DECOMPRESSING)
        code = self._tensor(job.registers(True, lengths), job.mode)
        reads, writes = world.failures
        codes = {ErrorCode.READ} if reads else {ErrorCode.WRITE} if writes else codes
        if code not in codes:
            raise Broken(f"error: expected {codes}, got {code!r}")
        index = job.index(world.origin)
        before[index] = np.where(sure.reshape(-1).repeat(4), rows.view(np.uint8).reshape(-1), world.bytes[index])
        self._same_memory(before, "memory", reads or writes)
        same(int(np.count_nonzero(world.owner == TENSOR)), 0, "bytes of the tensor that were not written")
        same(world.sent, True, "all of the frame taken")
        if not code:
            self._same_counters(bytes_in=len(frame.bytes), bytes_out=rows.nbytes, nans=0, saturated=0)
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
        world = self.world
        begun = world.begun, world.sent
        same(self._run(values, mode), code, "error")
        self._same_counters(bytes_in=0, bytes_out=0, nans=0, saturated=0)
        world.run(20)
        same((world.begun, world.sent), begun, "a frame that waits, begun or taken")

    # --------------------------------------------------------------------------------------------------------- parts
    def _run(self, values, mode):
        """Writes registers, starts, and waits for the end: the error code."""
        driver = self.driver
        run(driver.put({"settings": width([mode]), "lengths_in": LENGTH * driver.cdus}, **values))
        run(driver.put(done_pending=1, error_pending=1))
        run(driver.put(start=1))
        done = 0
        while not done:
            run(self._wait())
            done, error = run(driver.get("done", "error"))
        same(self.world.interrupt, True, "interrupt")
        run(driver.put(done_pending=1, error_pending=1))
        return ErrorCode(error)

    def _tensor(self, values, mode):
        """The same; then nothing moves any more."""
        code = self._run(values, mode)
        self.world.phase(IDLE)
        same(self.world.interrupt, False, "interrupt")
        return code

    def _begin(self, job, back, cycles):
        """Starts a tensor and lets it run for some cycles. Memory before, and whether it has not ended."""
        world = self.world
        before = self._prepare(job, job.back if back else job.words, None if back else job.x)
        if back:
            frame = framed(job.payload, self.random)
            world.send(frame.data, frame.keep, frame.last)
        world.phase(DECOMPRESSING if back else COMPRESSING)
        self.patience = cycles
        try:
            self._tensor(job.registers(back, job.lengths), job.mode)
            return before, False
        except GivenUp:
            return before, True
        finally:
            self.patience = None

    def _prepare(self, job, words, x=None):
        """Memory full of random bytes but for the scales and the tensor ``x``; a copy."""
        world, index = self.world, job.index(self.world.origin)
        world.bytes[:] = np.frombuffer(self.random.bytes(world.bytes.size), np.uint8)
        world.owner[:] = 0
        world.owner[index] = TENSOR
        table = slice(job.table - world.origin, job.end - world.origin)
        world.owner[table] = TABLE
        world.bytes[table] = words.view(np.uint8)
        if x is not None:
            world.bytes[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        return world.bytes.copy()

    def _same_counters(self, **expected):
        counters = dict(zip(COUNTERS, run(self.driver.get(*COUNTERS)), strict=True))
        for name, value in expected.items():
            same(counters[name], value, name)

    def _same_memory(self, expected, what, but_for_the_tensor=False):
        world = self.world
        wrong = world.bytes != expected
        if but_for_the_tensor:
            wrong &= world.owner == 0
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise Broken(f"{what}: {wrong.sum()} bytes are wrong, at {at + world.origin:#x} {world.bytes[at]:#04x} in "
                         f"place of {expected[at]:#04x}")


def same(got, expected, what):
    if got != expected:
        raise Broken(f"{what}: expected {expected!r}, got {got!r}")


def same_bytes(got, expected, what):
    if got != expected:
        at = next((k for k, pair in enumerate(zip(got, expected, strict=False)) if pair[0] != pair[1]), None)
        raise Broken(f"{what}: {len(got)} bytes, expected {len(expected)}; the first wrong one is {at}")
