"""Tensors through an accelerator in its environment, with everything that comes of them held against golden."""

from dataclasses import replace

import numpy as np

from actcodec.driver import LENGTH, Driver, Plain, run
from actcodec.golden.offload import scan
from actcodec.rtl.offload.control.register_map import BITS, COUNTERS, VALUES, ErrorCode
from actcodec.rtl.offload.control.setting import width
from actcodec.sim.environment import (
    COMPRESSING,
    DECOMPRESSING,
    IDLE,
    SCANNING,
    SLVERR,
    Broken,
    Environment,
    MemoryBehaviour,
)
from tb.soak.frames import expected, framed

__all__ = ["Session"]

LOCKED = sorted({bits.address for bits in BITS if VALUES[bits.name].locked})

TENSOR, TABLE, SPACE, FRESH = 1, 2, 4, 5  # owners of a byte
NOTHING = 0x7F800000, 0xFF800000, 0  # minimum, maximum and zeros without a scan


class GivenUp(Exception):
    """Patience with a tensor is over."""


class Contents:
    """The driver's memory."""

    def __init__(self, environment):
        self.environment = environment

    def read(self, address, size):
        at = address - self.environment.origin
        return self.environment.bytes[at : at + size].tobytes()

    def write(self, address, data):
        at = address - self.environment.origin
        self.environment.bytes[at : at + len(data)] = np.frombuffer(data, np.uint8)


class Session:
    """An accelerator after reset, and one tensor after the other. ``random`` chooses what is left to chance.

    Everything raises :class:`Broken` when something is not as it must be.
    """

    def __init__(self, accelerator, random, origin=0, size=1 << 17):
        self.random = random
        self.environment = Environment(accelerator, int(random.integers(2**63)), size, origin)
        self.payload = accelerator.payload  # where payloads are: stream, memory, or both, which is up to chance
        self.polls = False  # the status is looked at all the time; otherwise the interrupt is waited for
        self.meddles = False  # the host writes what is locked while a tensor is under way
        self.patience = None  # cycles until a tensor is given up
        self.open()

    def open(self):
        """As a driver does that has just been loaded; in a polite environment."""
        environment = self.environment
        environment.begin(MemoryBehaviour())
        self.driver = run(Driver.open(Plain(environment), Plain(Contents(environment)), self._wait))
        same(self.driver.cdus, environment.accelerator.cdus, "CDUs")
        same(set(self.driver.modes), set(environment.accelerator.modes), "modes")
        same(set(self.driver.formats), set(environment.accelerator.formats), "formats")
        same(self.driver.scans, environment.accelerator.scan, "whether it scans")
        same(self.driver.queue, environment.accelerator.queue, "descriptors of a ring")
        same(self.driver.address_width, environment.accelerator.address_width, "bits of an address")

    async def _wait(self):
        environment = self.environment
        if self.patience is not None:
            if not environment.run(self.patience):
                raise GivenUp
        elif self.polls or self.meddles:
            environment.run(int(self.random.integers(200)))
            if self.meddles:
                await self._meddle()
        elif not environment.run(2_000_000):
            raise Broken(f"cycle {environment.cycle}: no end")
        if environment.interrupt:
            environment.phase(IDLE)  # at once: nothing may come any more
            done, error, *pending = await self.driver.get("done", "error", "done_pending", "error_pending")
            same([done, *pending], [1, 1, int(error != 0)], f"done and what is pending with error {error}")

    async def _meddle(self):
        address = int(self.random.choice(LOCKED))
        response, _ = self.environment.access(True, address, int(self.random.integers(1 << 32)))
        busy, = await self.driver.get("busy")
        if busy and response != SLVERR:
            raise Broken(f"{address:#x} can be written while a tensor is under way")
        same(self.environment.access(False, 0x1C), (SLVERR, 0), "a register that is none")

    # ---------------------------------------------------------------------------------------------------------- tensors
    def compress(self, job):
        """Has it compressed; the error code."""
        environment, encoded = self.environment, job.encoded
        before = self._prepare(job, job.words, job.x)
        space = self._space(job)
        environment.phase(SCANNING if job.scan else COMPRESSING)
        code = self._tensor(job.registers(False) | self._resident(space), job.mode)
        reads, writes = environment.failures
        fault = ErrorCode.READ if reads else ErrorCode.WRITE if writes else ErrorCode.NONE
        if space:
            size = min(len(job.payload), space.stop - space.start)
            fault = fault or (ErrorCode.OVERFLOW if size < len(job.payload) else ErrorCode.NONE)
            at = slice(space.start, space.start + size)
            if reads or writes:  # of what was read instead the payload may be longer
                before[space] = environment.bytes[space]
            else:
                before[at] = np.frombuffer(job.payload[:size], np.uint8)
        if job.scan:
            self._expect_table(job, before, fault not in (ErrorCode.NONE, ErrorCode.OVERFLOW))
        self._same_memory(before, "memory, of which only the payload and a scan's table were written")
        frame = environment.take()
        if (frame is None) != (space is not None) and not (job.scan and frame is None and (reads or writes)):
            raise Broken("a frame, or none")
        same(environment.take(), None, "a second frame")
        same(code, fault, "error")
        if code and code != ErrorCode.OVERFLOW:
            return code
        if not space:
            same_bytes(frame, job.payload, "payload")
        self._same_counters(bytes_in=job.x.nbytes, bytes_out=len(job.payload), saturated=encoded.saturated,
                            **({} if job.scan else {"nans": encoded.nans}))
        self._same_statistics(job)
        if job.mode.format.segmented:
            same(run(self.driver.get("clipped")), [encoded.clipped], "clipped")
        if job.mode.format.endless:
            together, = run(self.driver.get("lengths_out", sizes={"lengths_out": LENGTH * self.driver.cdus}))
            same(together, job.registers(True, job.lengths)["lengths_in"], "lengths of the streams")
            if self.random.random() < 0.2:
                same(run(self.driver.histogram()), encoded.histogram, "histogram")
        return code

    def scan(self, job, **registers):
        """Has it scanned, and no more, whatever is in other registers; the error code."""
        environment = self.environment
        before = self._prepare(job, job.words, job.x)
        environment.phase(SCANNING)
        code = self._tensor(job.registers(False) | {"scan_only": 1} | registers, job.mode)
        reads, writes = environment.failures
        same(code, ErrorCode.READ if reads else ErrorCode.WRITE if writes else ErrorCode.NONE, "error")
        self._expect_table(job, before, bool(code))
        self._same_memory(before, "memory, of which only the table was written")
        same(environment.take(), None, "a frame")
        if not code:
            self._same_counters(bytes_in=0, bytes_out=0, saturated=0)
            self._same_statistics(job)
        return code

    def decompress(self, job, frame=None, sent=False, lengths=None, outcome=None):
        """Has a frame decompressed, that of the tensor if there is none; the error code. ``sent``: it waits at the
        stream already. ``lengths`` of streams may be wrong ones. ``outcome`` is what :func:`expected` would give."""
        environment = self.environment
        frame = frame or framed(job.payload, self.random)
        lengths = lengths or job.lengths
        granule = 1 if set(self.driver.modes) - {"raw", "zvc"} or len(self.driver.formats) > 1 else 4
        inverse = self.driver.scans and not outcome and self.random.random() < 0.5  # the table has k
        if inverse:
            job = replace(job, back=scan.reciprocal(job.words).view(np.uint32))
        codes, rows, sure = outcome or expected(frame, job, lengths, granule)
        before = self._prepare(job, job.words if inverse else job.back)
        space = None if sent or frame.malformed else self._space(job, frame.bytes, before)
        if not space and self.payload == "memory":
            raise ValueError("a payload that is in memory alone has no beats, and has to have room there")
        if not sent and not space:
            environment.send(frame.data, frame.keep, frame.last)
        environment.phase(DECOMPRESSING)
        code = self._tensor(job.registers(True, lengths) | self._resident(space)
                            | ({"reciprocal": 1} if inverse else {}), job.mode)
        reads, writes = environment.failures
        codes = {ErrorCode.READ} if reads else {ErrorCode.WRITE} if writes else codes
        if code not in codes:
            raise Broken(f"error: expected {codes}, got {code!r}")
        index = job.index(environment.origin)
        sure = sure.reshape(-1).repeat(job.descriptor.bytes)
        before[index] = np.where(sure, rows.view(np.uint8).reshape(-1), environment.bytes[index])
        self._same_memory(before, "memory", reads or writes)
        same(int(np.count_nonzero(environment.owner == TENSOR)), 0, "bytes of the tensor that were not written")
        same(environment.sent, True, "all of the frame taken")
        if not code:
            self._same_counters(bytes_in=len(frame.bytes), bytes_out=rows.nbytes, nans=0, saturated=0)
        return code

    def both(self, job):
        """There and back, without an error."""
        same(self.compress(job), ErrorCode.NONE, "error of compression")
        same(self.decompress(job), ErrorCode.NONE, "error of decompression")

    def give_up(self, job, back, cycles):
        """Starts a tensor, and a soft reset some cycles later: whether it came before the end, and the frame that has
        left until then, or None. One at ``s_axis`` that has not begun is left there."""
        environment = self.environment
        before, in_time = self._begin(job, back, cycles)
        environment.give_up()
        run(self.driver.reset())
        environment.phase(IDLE)
        same(run(self.driver.get("busy", "done", "error")), [0] * 3, "busy, done and error after a soft reset")
        self._same_memory(before, "memory outside of the tensor", True)
        frame = environment.take()
        if frame is not None and (back or not job.payload.startswith(frame)):
            raise Broken("a frame that was given up is no part of the payload")
        same(environment.take(), None, "a second frame")
        return in_time, frame

    def cut_off(self, job, back, cycles):
        """Starts a tensor, and resets everything some cycles later."""
        before, _ = self._begin(job, back, cycles)
        self.environment.reset()
        self._same_memory(before, "memory outside of the tensor", True)
        same(run(self.driver.get("busy", "done", "error", "rows")), [0] * 4, "registers after a reset")
        self.open()

    def refuse(self, mode, values, code):
        """Starts a tensor in a lane's mode that cannot be. The environment is idle: nothing may move."""
        environment = self.environment
        begun = environment.begun, environment.sent
        same(self._run(values, mode), code, "error")
        self._same_counters(bytes_in=0, bytes_out=0, nans=0, saturated=0)
        environment.run(20)
        same((environment.begun, environment.sent), begun, "a frame that waits, begun or taken")

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
        same(self.environment.interrupt, True, "interrupt")
        run(driver.put(done_pending=1, error_pending=1))
        return ErrorCode(error)

    def _tensor(self, values, mode):
        """The same; then nothing moves any more."""
        code = self._run(values, mode)
        self.environment.phase(IDLE)
        same(self.environment.interrupt, False, "interrupt")
        return code

    def _begin(self, job, back, cycles):
        """Starts a tensor and lets it run for some cycles. Memory before, and whether it has not ended."""
        environment = self.environment
        before = self._prepare(job, job.back if back else job.words, None if back else job.x)
        space = self._space(job, job.payload if back else None, before)
        if back and not space:
            frame = framed(job.payload, self.random)
            environment.send(frame.data, frame.keep, frame.last)
        environment.phase(DECOMPRESSING if back else SCANNING if job.scan else COMPRESSING)
        self.patience = cycles
        try:
            self._tensor(job.registers(back, job.lengths) | self._resident(space), job.mode)
            return before, False
        except GivenUp:
            return before, True
        finally:
            self.patience = None

    def _prepare(self, job, words, x=None):
        """Memory full of random bytes but for the scales and the tensor ``x``; a copy."""
        environment, index = self.environment, job.index(self.environment.origin)
        environment.bytes[:] = np.frombuffer(self.random.bytes(environment.bytes.size), np.uint8)
        environment.owner[:] = 0
        environment.owner[index] = TENSOR
        table = slice(job.table - environment.origin, job.table - environment.origin + words.nbytes)
        environment.owner[table] = TABLE
        environment.bytes[table] = words.view(np.uint8)
        if job.scan and x is not None:  # still what it was before
            table = slice(table.start, job.end - environment.origin)
            environment.owner[table] = FRESH
            environment.bytes[table] = np.frombuffer(self.random.bytes(table.stop - table.start), np.uint8)
        if x is not None:
            environment.bytes[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        return environment.bytes.copy()

    def _space(self, job, payload=None, before=None):
        """Where in memory the payload is, or None if it passes the streams: of one to compress the space that it gets,
        which may be too small; one to decompress is put there, and into the copy ``before``."""
        environment, random = self.environment, self.random
        where = self.payload
        if where == "stream" or (where == "both" and random.random() < 0.4):
            return None
        first, behind = job.address - environment.origin, -(-(job.end - environment.origin) // 32) * 32
        start, room = max((0, first), (behind, environment.bytes.size - behind), key=lambda span: span[1])
        size = len(job.payload if payload is None else payload)
        shift = 32 * int(random.integers(8)) if room > 256 + size else 0
        start, room = start + shift, room - shift
        if payload is None:
            size = min(max(size + int(random.choice([0, 0, 1, 500, -1, -100, -size, -random.integers(size)])), 0), room)
        elif size > room:
            return None
        space = slice(start, start + size)
        environment.owner[space] = SPACE
        if payload is not None:
            environment.bytes[space] = before[space] = np.frombuffer(payload, np.uint8)
        return space

    def _resident(self, space):
        """The registers of a payload in that space, if there is one."""
        if not space:
            return {}
        both = {"payload_memory": 1} if self.environment.accelerator.payload == "both" else {}
        return both | {"payload": space.start + self.environment.origin, "payload_size": space.stop - space.start}

    def _expect_table(self, job, before, fault):
        """Puts into the copy ``before`` of memory the table of a scan, or, after a ``fault``, whatever is there."""
        table = slice(job.table - self.environment.origin, job.end - self.environment.origin)
        before[table] = self.environment.bytes[table] if fault else job.descriptor.scan(job.x)[0].view(np.uint8)

    def _same_statistics(self, job):
        """Those of a tensor that was scanned, and nothing's of any other."""
        if not self.driver.scans:
            return
        wanted = NOTHING
        if job.scan:
            of = job.descriptor.scan(job.x)[1]
            wanted = int(of.minimum.view(np.uint32)), int(of.maximum.view(np.uint32)), of.zeros
            self._same_counters(nans=of.nans)
        same(tuple(run(self.driver.get("minimum", "maximum", "zeros"))), wanted, "minimum, maximum and zeros")

    def _same_counters(self, **expected):
        counters = dict(zip(COUNTERS, run(self.driver.get(*COUNTERS)), strict=True))
        for name, value in expected.items():
            same(counters[name], value, name)

    def _same_memory(self, expected, what, but_for_the_tensor=False):
        environment = self.environment
        wrong = environment.bytes != expected
        if but_for_the_tensor:
            wrong &= environment.owner == 0
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise Broken(f"{what}: {wrong.sum()} bytes are wrong, at {at + environment.origin:#x} "
                         f"{environment.bytes[at]:#04x} in place of {expected[at]:#04x}")


def same(got, expected, what):
    if got != expected:
        raise Broken(f"{what}: expected {expected!r}, got {got!r}")


def same_bytes(got, expected, what):
    if got != expected:
        at = next((k for k, pair in enumerate(zip(got, expected, strict=False)) if pair[0] != pair[1]), None)
        raise Broken(f"{what}: {len(got)} bytes, expected {len(expected)}; the first wrong one is {at}")
