"""The ring of the driver in C against the simulated accelerator: tensors in all modes both ways, as golden and as the
ring in Python have them, bit for bit; wrong descriptors, memory that fails, resets, and misuse.

As in ``test_actcodec``, the processor's cache is coherent with nothing. After each write of a register hardware has
many cycles, so that it has gone on by whatever the driver does too late.
"""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from actcodec.descriptors import SIZE as DESCRIPTOR
from actcodec.driver import Driver, Plain, run
from actcodec.ring import Ring as PythonRing
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode
from actcodec.sim.environment import MemoryBehaviour
from actcodec.sim.rtl_engine import Contents
from tb.drivers.world import SHAPES, Golden, Host, Outcome, form_for, four, pointer, u32, u64, word
from tb.harness import regress
from tb.offload.lanes import selectable
from tb.soak import chance
from tb.soak.frames import framed

EVERY = replace(chance.LANE, cdus=2, payload="both", queue=2)
SLOT, SLOTS = 0x3000, 16  # bytes of memory for a tensor, its table and its payload; how many of them there are
TABLE, PAYLOAD = 0x1000, 0x1200
RING = SLOTS * SLOT
LAG = 300  # cycles
ADDED = ("bytes_in", "bytes_out", "saturated", "nans")


class Struct(ctypes.Structure):
    _fields_ = [("device", pointer), ("jobs", pointer), ("descriptors", pointer), ("address", u64),
                *((name, u32) for name in ("size", "added", "started", "ended", "collected"))]


class Ring:
    """A ring of the driver, and its jobs by their addresses."""

    def __init__(self, host, size=None, address=RING, stop=False):
        self.host, self.ring, self.known = host, Struct(), {}
        self.size = host.device.queue if size is None else size
        self.jobs = (pointer * min(max(self.size, 1), 1 << 15))()
        self.outcome = self("open", ctypes.byref(host.device), u64(address), u32(self.size), self.jobs, int(stop))

    def __call__(self, name, *arguments):
        return self.host.checked(getattr(self.host.c, f"actcodec_ring_{name}")(ctypes.byref(self.ring), *arguments))

    def add(self, job, decompress=False):
        outcome = self("decompress" if decompress else "compress", ctypes.byref(job))
        if outcome == 0:
            assert job.decompress == decompress
            self.known[ctypes.addressof(job)] = job
        return outcome

    def take(self, name="collect"):
        """What poll or collect gives: (job or None, outcome)."""
        outcome = ctypes.c_int(77)
        job = self(name, ctypes.byref(outcome))
        return self.known.pop(ctypes.addressof(job.contents)) if job else None, outcome.value

    def rest(self):
        """All that are left, to the end: their outcomes, and why there are no more."""
        outcomes = []
        while True:
            job, outcome = self.take()
            if job is None:
                return outcomes, outcome
            outcomes.append(outcome)


@pytest.fixture(params=[chance.EQUIPPED, *regress(EVERY)],
                ids=lambda one: f"{one.cdus}-{len(one.modes)}-{one.queue}")
def host(request, c, random):
    host = Host(c, request.param, int(random.integers(2**63)))
    host.world.lag = LAG
    around(host, random)
    return host


def around(host, random, **errors):
    """Memory that rests at random. Of ``errors`` the ring has all."""
    rests, others = int(random.integers(3)), host.environment.accelerator.cdus + 1
    memory = MemoryBehaviour(latency=int(random.integers(1, 40)), pauses=rests, spared=(1 << others) - 1, **errors)
    host.environment.begin(memory, int(random.integers(99)), rests, rests, rests)


def names_of(host, random, count):
    """As many modes, any."""
    return [str(one) for one in random.choice(selectable(host.environment.accelerator.modes), count)]


def draw(host, random, names, resident=None):
    """Tensors in memory, one for each name of a mode, and their jobs: [(Golden, job)]."""
    host.bytes[:] = np.frombuffer(random.bytes(host.bytes.size), np.uint8)
    host.cached[:] = host.bytes
    cases = []
    assert len(names) <= SLOTS
    for slot, name in enumerate(names):
        golden = Golden.draw(random, name, SHAPES[random.integers(len(SHAPES))],
                             str(random.choice(["normal", "relu", "wild"])), form_for(random, name), host.device.cdus)
        job = golden.job(host, 4 * int(random.integers(3)), bool(random.integers(2)) if resident is None else resident)
        job.address, job.scales, job.payload = (slot * SLOT + one for one in (0, TABLE, PAYLOAD))
        job.room = SLOT - PAYLOAD
        host.rows(job, host.cached)[:] = golden.x.reshape(job.rows, job.width).view(word(job))
        cases.append((golden, job))
    return cases


def payload_of(host, golden, job):
    """What has become of a tensor that was compressed, which has just been collected."""
    assert job.size == len(golden.payload) and tuple(job.lengths[: len(golden.lengths)]) == golden.lengths
    counters = dict(zip(COUNTERS, job.counters, strict=True))
    assert (counters["bytes_in"], counters["bytes_out"]) == (golden.x.nbytes, job.size) and counters["cycles"] > 0
    payload = host.cached[job.payload : job.payload + job.size].tobytes() if job.resident else host.environment.take()
    assert payload == golden.payload, (golden.name, golden.shape, golden.form)


def empty(host, golden, job):
    """Memory has the payload, and no tensor any more."""
    place = slice(job.address, job.address + SLOT)
    host.cached[place] = host.bytes[place] = 0x5A
    host.cached[job.payload : job.payload + job.size] = np.frombuffer(golden.payload, np.uint8)


def send(host, random, golden):
    frame = framed(golden.payload, random)
    host.environment.send(frame.data, frame.keep, frame.last)


def tensor_of(host, golden, job):
    """What has become of a tensor that was decompressed: no other byte before the table is another one."""
    expected = np.full(TABLE, 0x5A, np.uint8)
    rows = np.lib.stride_tricks.as_strided(expected.view(word(job)), (job.rows, job.width),
                                           (job.stride, word(job).itemsize))
    rows[:] = golden.back.reshape(job.rows, job.width).view(word(job))
    for memory in (host.cached, host.bytes):
        assert np.array_equal(memory[job.address : job.address + TABLE], expected), (golden.name, golden.form)


def through(host, random, ring, cases, decompress, check):
    """All of them through the ring, by whatever moves are possible, once it is full; each is checked as soon as it is
    collected."""
    waiting, inside, started, full = list(cases), [], 0, False
    while waiting or inside:
        move = random.integers(4 if full or not waiting else 3)
        if move < 2 and waiting:
            golden, job = waiting[0]
            outcome = ring.add(job, decompress)
            assert outcome == (Outcome.RING_FULL if len(inside) == ring.size else 0)
            full |= outcome == Outcome.RING_FULL
            if outcome == 0:
                if decompress and not job.resident:
                    send(host, random, golden)
                inside.append(waiting.pop(0))
        elif move == 2:
            ring("start")
            started = len(inside)
        else:
            job, outcome = ring.take(("poll", "collect")[random.integers(2)])
            if started == 0:
                assert (job, outcome) == (None, Outcome.RING_EMPTY)
            elif job is None:
                assert outcome == 0
            else:
                golden, first = inside.pop(0)
                assert job is first and outcome == 0
                check(host, golden, job)
                started -= 1
    assert ring.take() == (None, Outcome.RING_EMPTY)
    assert full or len(cases) <= ring.size


# ----------------------------------------------------------------------------------------------------- what has to work
def test_rings_in_every_mode_there_and_back(host, random):
    """Payloads in memory and in the streams; rings of any size, which come around several times."""
    names = selectable(host.environment.accelerator.modes)
    names = names * -(-36 // len(names))
    for turn, start in enumerate(range(0, len(names), 12)):
        cases = draw(host, random, names[start : start + 12])
        ring = Ring(host, host.device.queue >> turn % 3 or 1)
        assert ring.outcome == 0
        through(host, random, ring, cases, False, payload_of)
        for golden, job in cases:
            empty(host, golden, job)
        through(host, random, ring, cases, True, tensor_of)


def test_the_ring_in_python_does_the_same(host, random):
    """Its descriptors, tables, reports and payloads are the same, but for cycles, and but for the k that it leaves in
    tables where the accelerator computes r."""
    count, images, results = 2 * host.device.queue, [], []  # numbers and places are the same then
    cases = draw(host, random, names_of(host, random, count), resident=True)
    before = host.cached.copy()
    scans = host.environment.accelerator.scan

    async def wait():
        host.environment.run()

    driver = run(Driver.open(Plain(host.environment), Plain(Contents(host.bytes)), wait))
    for decompress in (False, True):
        ring = Ring(host)
        for first in (0, host.device.queue):
            part = cases[first:][: host.device.queue]
            assert not any(ring.add(job, decompress) for _, job in part)
            ring("start")
            assert ring.rest() == ([0] * len(part), Outcome.RING_EMPTY)
        images.append(host.bytes.copy())
        results = [(list(job.lengths), dict(zip(COUNTERS, job.counters, strict=True))) for _, job in cases]
        host.bytes[:] = before
        other = run(PythonRing.open(driver, RING, host.device.queue))
        for number, (golden, job) in enumerate(cases):
            common = {"scale_table": job.scales, "stride": job.stride, "dtype": golden.form, "scales": golden.words,
                      "settings": golden.settings, "notify": number % other.size == other.size - 1}
            if decompress:
                k = None if golden.words is None else (golden.words & np.uint32(0xFFFF0000)).view(np.float32)
                common |= {"scales": k, "lengths": golden.lengths, "payload": (job.payload, job.size)}
                assert run(other.decompress(job.address, four(golden.shape), golden.name, **common)) == number
            else:
                assert run(other.compress(job.address, four(golden.shape), golden.name, payload=(job.payload, job.room),
                                          signs=golden.signs, **common)) == number
        for (golden, job), number, (lengths, counters) in zip(cases, range(count), results, strict=True):
            result = run(other.result(number))
            assert result.lengths == (() if decompress else tuple(lengths[: len(golden.lengths)]))
            assert result.clipped == bool(job.clipped)
            for name in ADDED:
                streams = golden.lengths and not decompress and name in ("saturated", "nans")
                assert counters[name] == (0 if streams else result.counters[name]), (golden.name, name)
        for image in (images[-1], host.bytes):
            for place in range(RING, RING + host.device.queue * DESCRIPTOR, DESCRIPTOR):
                image[place + DESCRIPTOR - 64 + 8 :][:8] = 0  # cycles
                image[place + 1] &= 0xBF if scans else 0xFF  # `reciprocal`
            for _, job in cases:
                image[job.scales : job.scales + 4 * job.channels] &= 0 if scans and decompress else 0xFF
        assert np.array_equal(images[-1], host.bytes)
        before = host.bytes.copy()
        for _, job in cases:
            for memory in (before, host.cached):
                host.rows(job, memory)[:] = 0
        host.bytes[:] = before


def test_the_last_of_those_that_start_raises_the_interrupt(host, random):
    cases = draw(host, random, names_of(host, random, host.device.queue), resident=True)
    ring, half = Ring(host), host.device.queue // 2
    for number, (_, job) in enumerate(cases):
        assert ring.add(job) == 0
        if number in (half - 1, len(cases) - 1):
            ring("start")
    assert ring.rest() == ([0] * len(cases), Outcome.RING_EMPTY)
    notify = [host.bytes[RING + place * DESCRIPTOR + 2] >> 1 & 1 for place in range(len(cases))]
    first = ring.ring.collected - len(cases)
    assert [notify[(first + k) % len(cases)] for k in range(len(cases))] == [
        k in (half - 1, len(cases) - 1) for k in range(len(cases))]
    host.environment.run(2000)
    assert not host.environment.interrupt


# ------------------------------------------------------------------------------------------------------ what goes wrong
def wrong(random, job):
    """Makes a job one that the accelerator refuses; with which error."""
    if random.integers(2):
        job.payload += 16
    else:
        job.height = 0
    return ErrorCode.DESCRIPTOR


@pytest.mark.parametrize("stop", [False, True])
def test_a_job_that_is_wrong_ends_in_its_own_error(host, random, stop):
    """Of the accelerator: others are as ever. To stop is to wait for the next start."""
    for _ in range(4):
        cases = draw(host, random, names_of(host, random, host.device.queue), resident=True)
        codes = [wrong(random, job) if random.integers(2) else 0 for _, job in cases]
        codes[-2] = wrong(random, cases[-2][1]) if not codes[-2] else codes[-2]
        before, ring = host.cached.copy(), Ring(host, stop=stop)
        assert not any(ring.add(job) for _, job in cases)
        ring("start")
        outcomes = []
        while len(outcomes) < len(cases):
            job, outcome = ring.take()
            if job is None:
                assert stop and outcomes[-1] and outcome == Outcome.RING_STOPPED
                assert ring.take("poll") == (None, Outcome.RING_STOPPED)
                ring("start")
                continue
            golden, expected = cases[len(outcomes)]
            assert job is expected
            if outcome:
                place = slice(job.address, job.address + TABLE)
                assert np.array_equal(host.cached[place], before[place])
                assert job.size == 0 and not any(job.counters[1:])
            else:
                payload_of(host, golden, job)
            outcomes.append(outcome)
        assert outcomes == codes


def test_a_payload_that_does_not_fit_says_what_it_takes(host, random):
    cases = draw(host, random, ["raw", "raw"], resident=True)
    ring = Ring(host)
    cases[0][1].room = cases[0][1].size = 0
    assert not any(ring.add(job) for _, job in cases)
    ring("start")
    assert ring.take() == (cases[0][1], ErrorCode.OVERFLOW) and cases[0][1].size == len(cases[0][0].payload)
    assert ring.take() == (cases[1][1], 0)
    payload_of(host, *cases[1])


def test_what_the_driver_refuses_leaves_the_ring_as_it_was(host, random):
    (_, good), (_, bad) = draw(host, random, ["sfpr-zvc", "raw"], resident=True)
    ring = Ring(host)
    words, bad.words = good.words, None
    good.words = None
    assert ring.add(good) == (Outcome.NO_MEMORY if good.format != 3 else 0)
    bad.format, form = 5, bad.format
    assert ring.add(bad) == Outcome.NO_FORMAT
    bad.format, payloads, host.device.payloads = form, host.device.payloads, 0
    assert ring.add(bad) == Outcome.NO_PAYLOAD
    host.device.payloads, modes, host.device.modes = payloads, host.device.modes, 0
    assert ring.add(bad) == Outcome.NO_MODE
    host.device.modes = modes
    good.words = words
    assert ring.add(bad) == 0
    ring("start")
    outcomes, outcome = ring.rest()
    assert set(outcomes) == {0} and outcome == Outcome.RING_EMPTY


def test_memory_that_fails_the_ring(host, random):
    """Descriptors that cannot be read, and reports that cannot be written; it goes on when it is asked to."""
    for errors in ({"read_errors": 1000}, {"write_errors": 1000}, {"read_errors": 400, "write_errors": 400}):
        around(host, random, **errors)
        cases = draw(host, random, names_of(host, random, host.device.queue), resident=True)
        ring, outcomes, failures = Ring(host), [], 0
        assert not any(ring.add(job) for _, job in cases)
        ring("start")
        while len(outcomes) < len(cases):
            job, outcome = ring.take()
            if job is None:
                assert outcome == Outcome.RING_FAILED
                assert ring.take("poll") == (None, Outcome.RING_FAILED)
                failures += 1
                if failures == 3:
                    around(host, random)
                ring("start")
                continue
            golden, expected = cases[len(outcomes)]
            assert job is expected and outcome in (0, Outcome.NO_REPORT)
            if outcome == 0:
                payload_of(host, golden, job)
            else:
                assert job.size == 0 and not any(job.counters)
            outcomes.append(outcome)
        assert (set(outcomes) == {0} and failures == 3) or "write_errors" in errors
        assert Outcome.NO_REPORT in outcomes or "write_errors" not in errors or "read_errors" in errors
        around(host, random)
        cases = draw(host, random, names_of(host, random, 2), resident=True)
        again = Ring(host)
        through(host, random, again, cases, False, payload_of)


def test_a_wait_that_is_given_up_and_a_reset(host, random):
    """The job at work is aborted. The jobs after it have not begun; they run after the next start, or never."""
    aborted = 0
    for turn, cycles in enumerate((0, 60, 200, 600, 1000, *range(20, 920, 30))):
        if turn >= 5 and aborted:  # once more until a reset meets a job at work
            break
        around(host, random)
        cases = draw(host, random, names_of(host, random, host.device.queue), resident=True)
        ring = Ring(host)
        assert not any(ring.add(job) for _, job in cases)
        host.world.lag, host.world.cycles = 0, cycles
        ring("start")
        before, outcome = ring.rest()
        assert not any(before)
        assert outcome == (Outcome.RING_EMPTY if len(before) == len(cases) else Outcome.GAVE_UP)
        host.environment.give_up()
        host("reset")
        host.world.lag, host.world.cycles = LAG, 1 << 40
        outcomes, outcome = ring.rest()
        outcomes = before + outcomes
        assert set(outcomes[:-1]) <= {0} and set(outcomes[-1:]) <= {0, ErrorCode.ABORTED}
        aborted += ErrorCode.ABORTED in outcomes
        assert outcome == Outcome.RING_EMPTY if len(outcomes) == len(cases) else Outcome.RING_STOPPED
        if cycles % 1000:
            ring("start")
            more, outcome = ring.rest()
            assert more == [0] * (len(cases) - len(outcomes)) and outcome == Outcome.RING_EMPTY
            for golden, job in cases[len(outcomes) :]:
                payload_of(host, golden, job)
        cases = draw(host, random, names_of(host, random, 3), resident=True)
        through(host, random, Ring(host), cases, False, payload_of)
    assert aborted


# --------------------------------------------------------------------------------------------------------------- misuse
def test_rings_that_cannot_be(host):
    assert host.device.queue == host.environment.accelerator.queue
    most = host.device.queue
    for size in (0, 3, 2 * most, 1 << 31):
        assert Ring(host, size).outcome == Outcome.BAD_RING
    last = 1 << host.device.address_width
    for address in (RING + 256, RING + 1, last - DESCRIPTOR, last, (1 << 64) - DESCRIPTOR):
        assert Ring(host, 2, address).outcome == Outcome.BAD_RING
    assert Ring(host, 2, last - 2 * DESCRIPTOR).outcome == Outcome.NO_MEMORY
    assert Ring(host, 2, host.world.size - DESCRIPTOR).outcome == Outcome.NO_MEMORY
    host.device.queue = 0
    assert Ring(host, 2).outcome == Outcome.NO_QUEUE


def test_a_ring_at_work_has_the_accelerator(host, random):
    cases = draw(host, random, ["raw"] * host.device.queue, resident=True)
    ring = Ring(host)
    assert ring.take() == ring.take("poll") == (None, Outcome.RING_EMPTY)
    ring("start")  # with nothing in it
    assert ring.take() == (None, Outcome.RING_EMPTY)
    assert not any(ring.add(job) for _, job in cases)
    assert ring.add(cases[0][1]) == Outcome.RING_FULL
    assert ring.take() == (None, Outcome.RING_EMPTY)  # nothing has started
    host.world.lag = 0
    ring("start")
    assert Ring(host).outcome == Outcome.BUSY
    for way in ("compress", "decompress"):
        assert host(way, ctypes.byref(cases[0][1])) == Outcome.BUSY
    assert ring.rest() == ([0] * len(cases), Outcome.RING_EMPTY)
    for golden, job in cases:
        payload_of(host, golden, job)
    assert host("compress", ctypes.byref(cases[0][1])) == 0  # at rest
    payload_of(host, *cases[0])


def test_no_queue_no_ring(c):
    host = Host(c)
    assert host.device.queue == 0 and Ring(host, 2).outcome == Outcome.NO_QUEUE
