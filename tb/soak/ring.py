"""Tensors of a ring of descriptors through an accelerator in its environment, held against golden: every byte of
memory, every frame, every report, and what is pending."""

from dataclasses import dataclass, field, replace

import numpy as np

from actcodec import descriptors as ring
from actcodec.codecs import lane_modes
from actcodec.driver import run
from actcodec.golden.offload import scan
from actcodec.rtl.offload.control import limits
from actcodec.rtl.offload.control.register_map import BITS, DESCRIPTOR, ErrorCode
from actcodec.rtl.offload.control.registers import ADDRESSES, described
from actcodec.sim.environment import IDLE, RUNNING, Broken
from tb.soak.frames import framed
from tb.soak.session import FRESH, NOTHING, SPACE, TABLE, TENSOR, same, same_bytes

__all__ = ["Entry", "Ring", "judged"]

DESCRIBED, REPORT, GOAL, ROOM = 6, 7, 8, 9  # owners of a byte
FAULTS = ErrorCode.READ, ErrorCode.WRITE
REFUSED = ErrorCode.MODE, ErrorCode.FORMAT, ErrorCode.DESCRIPTOR


@dataclass
class Entry:
    """A descriptor, and what has to come of it."""

    what: str
    content: bytes
    code: ErrorCode
    notify: bool = False
    frame: bytes | None = None  # that leaves
    memory: list = field(default_factory=list)  # (place, bytes that are there afterwards)
    report: dict = field(default_factory=dict)  # values of it, if there is no error


def judged(content, accelerator):
    """Why the accelerator refuses a descriptor of any bytes; None if it does not."""
    places = [bits for bits in BITS if described(bits)]
    values = dict.fromkeys((bits.name for bits in places), 0)
    for bits in places:
        at = bits.address - DESCRIPTOR.start
        word = int.from_bytes(content[at : at + 4], "little")
        values[bits.name] |= (word >> bits.low & (1 << bits.width) - 1) << bits.part
    mode = next((mode for mode in lane_modes(*accelerator.modes) if mode.code == values["mode"]), None)
    if mode is None:
        return ErrorCode.MODE
    form = values["format"] if len(accelerator.formats) > 1 else 0
    if form >= len(limits.FORMATS) or limits.FORMATS[form] not in accelerator.formats:
        return ErrorCode.FORMAT
    held = [name for name in ADDRESSES if name in values
            and (accelerator.payload != "stream" or not name.startswith("payload"))]
    if any(values[name] >> accelerator.address_width for name in held):
        return ErrorCode.DESCRIPTOR
    resident = accelerator.payload == "memory" or (accelerator.payload == "both" and values["payload_memory"])
    drop = [] if resident else ["payload", "payload_size"]
    drop += [] if accelerator.scan else ["scan"]
    seen = {name: value for name, value in values.items() if name not in drop} | {"format": form}
    return ErrorCode.DESCRIPTOR if limits.violated(seen, mode, accelerator.address_width) else None


class Ring:
    """A ring of ``size`` descriptors at the beginning of a session's memory, or ``at`` another place; room for tensors
    is behind it. ``driver`` numbers go on where they are."""

    def __init__(self, session, size=8, stop_on_error=False, at=0):
        self.session, self.environment, self.random = session, session.environment, session.random
        self.size, self.stop, self.origin = size, stop_on_error, session.environment.origin
        self.accelerator = session.environment.accelerator
        self.numbers = 2 * self.accelerator.queue
        self.entries, self.at = [], at
        self.resident = None  # whether payloads are in memory, if that is not up to chance
        self.plain = False  # nothing of places is: all begin at multiples of 256, rows have no gaps, and there is room
        environment = self.environment
        environment.bytes[:] = np.frombuffer(self.random.bytes(environment.bytes.size), np.uint8)
        environment.owner[:] = 0
        self.free = at + size * ring.SIZE
        run(session.driver.put(ring=self.origin + at))
        run(session.driver.put(ring_size=size, stop_on_error=int(stop_on_error)))
        self.number, = run(session.driver.get("tail"))

    # ------------------------------------------------------------------------------------------------------ descriptors
    def compress(self, job, alone=False, notify=None):
        """Adds a tensor to compress, or only to scan; whether there was room."""
        space = self._place(job)
        if space is None:
            return False
        job, values = space, space.registers(False)
        start, end = job.table - self.origin, job.end - self.origin
        index, owner, content = job.index(self.origin), self.environment.owner, self.environment.bytes
        owner[index] = TENSOR
        content[index] = np.ascontiguousarray(job.x).view(np.uint8).reshape(-1)
        entry = Entry("scan" if alone else "compress", b"", ErrorCode.NONE)
        if job.scan:
            owner[start:end] = FRESH
            table, statistics = job.descriptor.scan(job.x)
            entry.memory.append((start, table.view(np.uint8).tobytes()))
            entry.report |= {"minimum": int(statistics.minimum.view(np.uint32)), "zeros": statistics.zeros,
                             "maximum": int(statistics.maximum.view(np.uint32)), "nans": statistics.nans}
        else:
            owner[start : start + job.words.nbytes] = TABLE
            content[start : start + job.words.nbytes] = job.words.view(np.uint8)
            entry.report |= {"nans": job.encoded.nans}
            entry.report |= dict(zip(("minimum", "maximum", "zeros"), NOTHING, strict=True)) \
                if self.accelerator.scan else {}
        entry.report |= {"bytes_in": job.x.nbytes, "bytes_out": len(job.payload),
                         "saturated": job.encoded.saturated, "clipped": int(job.encoded.clipped)}
        if alone:
            values |= {"scan_only": 1}
            entry.report |= {"bytes_in": 0, "bytes_out": 0, "saturated": 0, "clipped": 0}
        else:
            values |= self._room(job, entry)
            if job.mode.format.endless:
                entry.report = {name: value for name, value in entry.report.items() if name.startswith("bytes")}
                entry.report["lengths_out"] = job.registers(True, job.lengths)["lengths_in"]
        return self._add(entry, values, notify)

    def decompress(self, job, notify=None):
        """Adds a payload to decompress; whether there was room."""
        space = self._place(job)
        if space is None:
            return False
        job, values = space, space.registers(True, space.lengths)
        inverse = self.accelerator.scan and self.random.random() < 0.5  # the table has k
        words = job.words if inverse else job.back
        if inverse:
            job = replace(job, back=scan.reciprocal(job.words).view(np.uint32))
            values |= {"reciprocal": 1}
        start, owner, content = job.table - self.origin, self.environment.owner, self.environment.bytes
        index = job.index(self.origin)
        owner[index] = GOAL
        owner[start : start + words.nbytes] = TABLE
        content[start : start + words.nbytes] = words.view(np.uint8)
        d = job.descriptor
        endless, payload = job.mode.format.endless, job.payload
        rows = d.restore(payload, job.lengths)[0] if endless else d.decompress(payload, job.back)
        entry = Entry("decompress", b"", ErrorCode.NONE)
        data = np.ascontiguousarray(rows).view(np.uint8).reshape(-1)
        entry.memory.append((index, data))
        entry.report |= {"bytes_in": len(job.payload), "bytes_out": data.size, "nans": 0, "saturated": 0}
        if self._in_memory():
            start = self._take(len(job.payload))
            if start is None:
                return False
            owner[start : start + len(job.payload)] = SPACE
            content[start : start + len(job.payload)] = np.frombuffer(job.payload, np.uint8)
            values |= self._payload(start, len(job.payload))
        else:
            frame = framed(job.payload, self.random)
            self.environment.send(frame.data, frame.keep, frame.last)
        return self._add(entry, values, notify)

    def garbage(self, content, notify=None):
        """Adds a descriptor that the accelerator refuses; whether it does."""
        code = judged(content, self.accelerator)
        if code is None:
            return False
        notify = bool(self._bit(content, "notify"))
        return self._append(Entry("garbage", content, code, notify))

    def _add(self, entry, values, notify):
        entry.notify = bool(self.random.random() < 0.2) if notify is None else notify
        entry.content = ring.descriptor(values | {"notify": int(entry.notify)})
        if self.random.random() < 0.5:  # what does not count may be anything
            entry.content = self._noisy(entry.content)
        return self._append(entry)

    def _append(self, entry):
        self.entries.append(entry)
        return True

    @staticmethod
    def _bit(content, name):
        bits, = (bits for bits in BITS if bits.name == name)
        return int.from_bytes(content[bits.address - DESCRIPTOR.start :][:4], "little") >> bits.low & 1

    def _noisy(self, content):
        """Random bytes where no accelerator looks: what registers only tell, and behind them."""
        known = {bits.address for bits in BITS if described(bits)}
        content = bytearray(content)
        for at in range(0, ring.AT, 4):
            if at + DESCRIPTOR.start not in known:
                content[at : at + 4] = self.random.bytes(4)
        return bytes(content)

    # ---------------------------------------------------------------------------------------------------------- places
    def _take(self, size, alignment=32):
        start = -(-self.free // alignment) * alignment
        if start + size + 64 > self.environment.bytes.size:
            return None
        self.free = start + size
        return start

    def _place(self, job):
        """The job somewhere behind all others, in rows with gaps or without; None if there is no room."""
        d, random = job.descriptor, self.random
        gap = 0 if self.plain else d.bytes * int(random.choice([0, 0, random.integers(40)]))
        stride = d.bytes * d.width + gap
        size = (d.rows - 1) * stride + d.bytes * d.width + 160 + 4 * (d.channels if job.scan else d.scales)
        start = self._take(size, 256 if self.plain else d.bytes * int(random.choice([1, 8])))
        if start is None:
            return None
        job = job.at(self.origin + start, stride, 0 if self.plain else 32 * int(random.integers(3)))
        job = job.within(self.accelerator.address_width)
        self.free = -(-(job.end - self.origin) // 32) * 32
        return job

    def _in_memory(self):
        where = self.accelerator.payload
        if self.resident is not None:
            return self.resident
        return where == "memory" or (where == "both" and self.random.random() < 0.7)

    def _payload(self, start, size):
        both = {"payload_memory": 1} if self.accelerator.payload == "both" else {}
        return both | {"payload": start + self.origin, "payload_size": size}

    def _room(self, job, entry):
        """Registers of a payload's space, of which there may be too little."""
        if self._in_memory():
            size = len(job.payload)
            room = max(size + int(self.random.choice([0, 0, 0, 1, 100, -1, -size // 2])), 0)
            room = size if self.plain else room
            if (start := self._take(room, 256 if self.plain else 32)) is not None:
                self.environment.owner[start : start + room] = ROOM
                entry.memory.append((start, job.payload[:room]))
                entry.code = ErrorCode.OVERFLOW if room < size else ErrorCode.NONE
                return self._payload(start, room)
        if self.accelerator.payload == "memory":
            entry.code = ErrorCode.OVERFLOW
            return self._payload(0, 0)
        entry.frame = job.payload
        return {}

    # ------------------------------------------------------------------------------------------------------------ a run
    def write(self, count=None):
        """Writes descriptors into the ring, all of them or the first ``count``, with room for their reports."""
        count = len(self.entries) if count is None else count
        for number in range(count):
            place = self._place_of(number)
            self.environment.bytes[place : place + ring.AT] = np.frombuffer(
                self.entries[number].content[: ring.AT], np.uint8)
            self.environment.bytes[place + ring.AT : place + ring.SIZE] = 0
            self.environment.owner[place : place + ring.AT] = DESCRIBED
            self.environment.owner[place + ring.AT : place + ring.SIZE] = REPORT
        self.before = self.environment.bytes.copy()
        self.environment.phase(RUNNING)
        run(self.session.driver.put(done_pending=1, error_pending=1))
        self.pending = [0, 0]
        return count

    def doorbell(self, count):
        """The first ``count`` descriptors are ready."""
        run(self.session.driver.put(head=(self.number + count) % self.numbers))

    def publish(self, count=None):
        """The same, and rings the doorbell: how many there are."""
        count = self.write(count)
        self.doorbell(count)
        return count

    def _place_of(self, number):
        return self.at + (self.number + number) % self.size * ring.SIZE

    def wait(self, most=400_000):
        """Until nothing is left to do. ``tail`` as a number of descriptors from the first one on."""
        environment, driver = self.environment, self.session.driver
        end, ended, busy = environment.cycle + most, 0, 1
        while busy:
            if environment.cycle > end:
                raise Broken(f"cycle {environment.cycle}: the ring does not end")
            environment.run(int(self.random.choice([1, 50, 1000])))
            busy, = run(driver.get("busy"))
            ended = self.look(ended)
        environment.phase(IDLE)
        self.look(ended)
        return ended

    def reset(self, cycles):
        """A soft reset after so many ``cycles``. Returns the arguments of :meth:`check`: how many have ended, and
        whether the last one was given up."""
        environment, driver = self.environment, self.session.driver
        environment.run(cycles)
        environment.give_up()
        run(driver.reset())
        environment.phase(IDLE)
        ended = self.look(0)
        return ended, bool(ended) and ring.report(self.content(ended - 1))["error"] == ErrorCode.ABORTED

    def look(self, ended):
        """How many have ended: no fewer than before, and all of these are reported, if memory did not fail."""
        tail, failed, *pending = run(self.session.driver.get("tail", "ring_failed", "done_pending", "error_pending"))
        self.pending = [one | other for one, other in zip(self.pending, pending, strict=True)]
        now = (tail - self.number) % self.numbers
        if not ended <= now <= len(self.entries):
            raise Broken(f"the tail has gone from {ended} to {now}")
        for number in range(ended, now):
            if not ring.reported(self.content(number)) and not failed:
                raise Broken(f"descriptor {number} has ended without a report")
        if any(pending) and self.random.random() < 0.5:
            run(self.session.driver.put(done_pending=pending[0], error_pending=pending[1]))
        return now

    def content(self, number):
        place = self._place_of(number)
        return self.environment.bytes[place : place + ring.SIZE].tobytes()

    def check(self, ended, aborted=None):
        """Whether the first ``ended`` ones did what they should, and the others nothing. Codes, by number. After a soft
        reset, ``aborted`` says whether the last one was, so that nothing of it is sure, and pending is at most what
        would be without."""
        environment, expected, codes = self.environment, self.before, []
        faults = sum(environment.failures)
        for number, entry in enumerate(self.entries[:ended]):
            report = ring.report(self.content(number))
            place = self._place_of(number)
            expected[place + ring.AT : place + ring.SIZE] = environment.bytes[place + ring.AT : place + ring.SIZE]
            code = ErrorCode(report["error"])
            codes.append(code)
            what = f"descriptor {number}, {entry.what}"
            fault = faults and code in FAULTS and entry.code not in REFUSED
            lost = not report["done"] and environment.ring_failures  # the report
            if aborted and number == ended - 1:
                same(code, ErrorCode.ABORTED, f"error of {what}")
                fault = True
            if not fault:
                if not lost:
                    same(code, entry.code, f"error of {what}")
                for where, data in entry.memory:
                    data = np.frombuffer(data, np.uint8)
                    expected[where if isinstance(where, np.ndarray) else slice(where, where + data.size)] = data
            else:
                for where, data in entry.memory:
                    where = where if isinstance(where, np.ndarray) else slice(where, where + len(data))
                    expected[where] = environment.bytes[where]
            if not lost:
                same((report["done"], report["number"]), (1, (self.number + number) % self.numbers),
                     f"report of {what}")
            if code in (ErrorCode.NONE, ErrorCode.OVERFLOW) and not lost:
                for name, value in entry.report.items():
                    same(report[name], value, f"{name} of {what}")
            # Where memory fails a scan, nothing is compressed.
            some = entry.frame is not None and (not fault or lost or report["bytes_out"] > 0)
            frame = environment.take() if some else None
            if some and not fault:
                if frame is None:
                    raise Broken(f"{what}: no frame")
                same_bytes(frame, entry.frame, f"frame of {what}")
        same(environment.take(), None, "a frame more")
        if faults:  # of what was read instead a payload may be longer
            expected = np.where(environment.owner == 3, environment.bytes, expected)
        if not environment.ring_failures:
            errors = codes[: ended - bool(aborted)]
            notified = any(entry.notify or code for entry, code in zip(self.entries, errors, strict=False))
            most = [int(notified), int(any(errors))]
            same(self.pending if aborted is None else [min(pair) for pair in zip(self.pending, most, strict=True)],
                 most if aborted is None else self.pending, "what is pending")
        wrong = np.flatnonzero(environment.bytes != expected)
        if wrong.size:
            raise Broken(f"memory: {wrong.size} bytes are wrong, at {wrong[0] + self.origin:#x} "
                         f"{environment.bytes[wrong[0]]:#04x} in place of {expected[wrong[0]]:#04x}")
        self.number = (self.number + ended) % self.numbers
        self.entries = self.entries[ended:]
        return codes
