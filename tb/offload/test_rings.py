"""Bench of a ring of descriptors through the accelerator, in the environment of engine and soak: every byte of memory,
every report; and how few cycles pass between two tensors.

``queue/test_queue`` has the queue by itself.
"""

from collections import Counter
from itertools import product

import pytest

from actcodec import descriptors as ring
from actcodec.codecs import lane_modes
from actcodec.driver import run
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.accelerator import Accelerator
from actcodec.sim.environment import COMPRESSING, IDLE, KINDS, PATTERNS, MemoryBehaviour
from tb.harness import regress
from tb.offload import draws
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak import run as soak
from tb.soak.queued import add, job, wrong
from tb.soak.ring import Ring
from tb.soak.session import Session, same, same_bytes

QUEUED = chance.EQUIPPED
OTHERS = [chance.SINGLE, chance.LARGE, chance.INDEPENDENT, chance.STORED, Accelerator(1, chance.JPEG_ACT, queue=2)]
SIZE = 1 << 18
# Cycles between two tensors, at least and at most, by the number of lanes.
GAPS = {1: (37, 38), 2: (37, 39), 3: (39, 41), 4: (37, 40)}
LONG = 128  # rows of 64 values whose cycles hide the next plan, with three lanes
SHARED = {"kind": KINDS.index("shared"), "ordered": 1}


def label(it):
    return f"{it.cdus}-{len(it.modes)}-{it.memory}-{it.payload}-{it.queue}"


@pytest.fixture(params=[QUEUED, *regress(*OTHERS)], ids=label)
def session(request, random):
    return Session(request.param, random, size=SIZE)


def around(session, **more):
    """All on one slave, which keeps the order of all addresses, or any other memory that may be."""
    shared = session.environment.accelerator.memory == "shared" and session.random.random() < 0.5
    chance.around(session, **(SHARED if shared else {}), **more)


def goes(batch, count=None):
    """Publishes all descriptors, and runs them to the end; their codes."""
    count = batch.publish(count)
    same(batch.wait(), count, "descriptors that have ended")
    return batch.check(count)


# ----------------------------------------------------------------------------------------------------- what has to work
def test_rings_of_tensors_in_every_mode_and_both_directions(session):
    random, seen, turn = session.random, Counter(), 0
    modes = [*lane_modes(*session.driver.modes)] * -(-16 // len(session.driver.modes))
    numbers = session.driver.queue
    while modes:
        around(session)
        batch = Ring(session, int(random.choice([numbers, max(numbers // 2, 1)])))
        most = min(batch.size, 12)
        while modes and len(batch.entries) < most and add(session, batch, job(session, modes[-1])):
            modes.pop()
        for entry in batch.entries:
            seen[entry.what] += 1
        goes(batch)
        turn += 1
    assert seen["compress"] and seen["decompress"] and turn > 1


def test_descriptors_that_are_wrong_end_in_their_own_error(session):
    for _ in range(4):
        around(session)
        batch = Ring(session, session.driver.queue)
        while len(batch.entries) < min(batch.size, 10):
            if session.random.random() < 0.6:
                wrong(session, batch)
            elif not add(session, batch):
                break
        codes = goes(batch)
        assert session.driver.queue < 8 or any(codes)


def test_stops_on_an_error_if_it_is_to_and_goes_on_afterwards(session):
    stops = 0
    for _ in range(6):
        around(session)
        batch = Ring(session, session.driver.queue, stop_on_error=True)
        for _ in range(min(batch.size, 6)):
            if session.random.random() < 0.4:
                wrong(session, batch)
            else:
                add(session, batch)
        count = batch.publish()
        while batch.entries:
            ended = batch.wait()
            codes = batch.check(ended)
            assert not any(codes[:-1])
            stopped, = run(session.driver.get("stopped"))
            same(stopped, int(any(codes)), "whether it has stopped")
            if batch.entries:
                assert codes[-1] and batch.pending[1]
                stops += 1
                batch.publish()
        assert count
    assert stops


def test_the_doorbell_rings_at_any_moment(session):
    """Descriptors are written, and their doorbells come while others are at work; the host's own tensors are between
    two rings."""
    random = session.random
    for _ in range(3):
        around(session)
        batch, head = Ring(session, session.driver.queue), 0
        while len(batch.entries) < min(batch.size, 8) and add(session, batch):
            pass
        count = batch.write()
        while head < count:
            head = min(head + int(random.integers(1, 3)), count)
            batch.doorbell(head)
            session.environment.run(int(random.choice([1, 30, 3000])))
        same(batch.wait(), count, "descriptors that have ended")
        batch.check(count)
        around(session)
        mode, = lane_modes(str(random.choice(session.driver.modes)))
        one = Job.draw(random, draws.descriptor(random, mode, session.driver.cdus, most=400)).at(0x1000)
        assert {session.compress(one), session.decompress(one)} <= {ErrorCode.NONE, ErrorCode.OVERFLOW}


def test_a_ring_of_no_size_does_not_start(session):
    run(session.driver.put(ring_size=0))
    run(session.driver.put(head=1))
    session.environment.run(200)
    assert run(session.driver.get("busy", "tail", "stopped")) == [0, 0, 1]
    around(session)
    session.environment.phase(IDLE)


# ------------------------------------------------------------------------------------------------------ what goes wrong
def test_memory_errors_of_tensors_end_in_theirs(session):
    """Of lanes and of the payload's port, not of the queue's."""
    ports = session.environment.accelerator.cdus + (session.environment.accelerator.payload != "stream")
    codes = Counter()
    for rate in (3, 30, 300):
        around(session, errors=(rate, rate), spared=1 << ports)
        batch = Ring(session, session.driver.queue)
        while len(batch.entries) < min(batch.size, 8) and add(session, batch):
            pass
        codes.update(goes(batch))
    assert session.driver.queue < 8 or codes[ErrorCode.READ]


def test_a_ring_whose_memory_fails_is_flagged_and_stops(session):
    """It never hangs, no tensor begins without its descriptor, and it goes on when it is asked to."""
    ports, failed = session.environment.accelerator.cdus + (session.environment.accelerator.payload != "stream"), 0
    for rate in (100, 500, 1000):
        around(session, errors=(rate, rate), spared=(1 << ports) - 1)
        batch = Ring(session, session.driver.queue)
        while len(batch.entries) < min(batch.size, 6) and add(session, batch):
            pass
        count = len(batch.entries)
        batch.publish(count)
        ended = batch.wait()
        fails, stopped = run(session.driver.get("ring_failed", "stopped"))
        same((fails, stopped), 2 * (int(bool(session.environment.ring_failures)),), "whether it has failed")
        assert fails or ended == count
        assert not fails or batch.pending == [1, 1]
        failed += fails
        session.environment.reset()
        session.open()
    assert failed


def test_soft_resets_at_any_moment(session):
    """A tensor that is at work is reported as one that was given up; those behind it have not begun."""
    random, gone = session.random, Counter()
    for turn in range(16):
        around(session)
        batch = Ring(session, session.driver.queue)
        batch.resident = session.payload != "stream"  # no frame is left
        while len(batch.entries) < min(batch.size, 4):
            batch.compress(job(session, most=800))
        batch.publish()
        ended, aborted = batch.reset(int(random.integers(1, (300, 1500, 6000)[turn % 3])))
        assert run(session.driver.get("stopped", "ring_failed")) == [1, 0]
        gone[ended, aborted] += 1
        batch.check(ended, aborted)
        again = Ring(session, session.driver.queue)
        for _ in range(min(again.size, 2)):
            again.compress(job(session))
        goes(again)
    assert any(aborted for _, aborted in gone) and len(gone) > 2, gone


def test_a_soft_reset_just_when_a_tensor_ends(random):
    """A report does not change while memory has yet to accept it: it has the tensor's error, or says that it was given
    up."""
    session, codes = Session(QUEUED, random, size=SIZE), []
    content = ring.descriptor(job(session).at(0x1000).registers(False) | {"rows": 0})
    for delay in range(150):
        session.environment.begin(MemoryBehaviour(pauses=PATTERNS.index("mostly")), delay // 3)
        batch = Ring(session)
        assert batch.garbage(content)
        batch.publish()
        codes += batch.check(*batch.reset(delay))
    assert len(set(codes)) > 1, codes


def test_a_soft_reset_just_when_a_scan_ends(random):
    """The same of a report with statistics, which the reset clears, of a descriptor that is legal."""
    session, aborts = Session(QUEUED, random, size=SIZE), []
    mode, = lane_modes("raw")
    one = Job.draw(random, draws.descriptor(random, mode, QUEUED.cdus, (4, 8, 2, 2), scan=True), True)
    for turn in range(480):
        seed, delay = divmod(turn, 120)
        session.environment.begin(MemoryBehaviour(pauses=PATTERNS.index("half")), seed)
        batch = Ring(session)
        assert batch.compress(one, alone=True)
        batch.publish()
        ended, aborted = batch.reset(180 + delay)
        batch.check(ended, aborted)
        aborts.append(aborted)
    assert len(set(aborts)) == 2


@pytest.mark.regress
def test_a_start_right_after_a_soft_reset_has_a_plan_of_its_own(random):
    """Whenever the reset comes while the tensor before is planned, by a host as fast as the bus: what has to be waited
    for after a plan takes longer with more lanes; with few it ends before the reset does."""
    session, (mode,) = Session(chance.LARGE, random, size=SIZE), lane_modes("zvc")
    environment, driver, session.payload = session.environment, session.driver, "stream"
    one = Job.draw(random, draws.descriptor(random, mode, driver.cdus, (8, 64, 4, 2))).at(0x1000)
    session.both(one)
    first, launched = environment.traffic()["read"][0], 0
    while environment.traffic()["read"][0] == first:
        launched += 20
        session.give_up(one, False, launched)
    for delay, pause in product(range(launched - 60, launched - 30), range(1, 5)):
        environment.begin(MemoryBehaviour(), delay)
        session._begin(one, False, delay)
        environment.give_up()
        run(driver.put(reset=1))
        environment.run(pause)
        environment.phase(IDLE)
        session._prepare(one, one.words, one.x)
        environment.phase(COMPRESSING)
        run(driver.put(start=1))
        ended = environment.run(700)
        if not ended and run(driver.get("busy")) == [0]:  # it came during the reset
            run(driver.put(start=1))
            ended = environment.run(700)
        same(ended, True, f"end of the tensor that starts after a reset after {delay} cycles")
        environment.phase(IDLE)
        same_bytes(environment.take(), one.payload, "payload")
        run(driver.put(done_pending=1, error_pending=1))


@pytest.mark.parametrize("accelerator", [QUEUED, *regress(*OTHERS[:2])], ids=label)
def test_rings_and_whatever_befalls_them(accelerator, random):
    for _ in range(2):
        soak.run(accelerator, int(random.integers(2**63)))


@pytest.mark.regress
def test_rows_that_begin_inside_of_groups_of_all_lanes(random):
    """Where they do is found behind the plan's load, by a host's start and by the ring's."""
    accelerator, (mode,) = OTHERS[1], lane_modes("division-4-flat")
    session = Session(accelerator, random, size=SIZE)
    session.payload = "stream"
    session.environment.begin(MemoryBehaviour(kind=KINDS.index("shared")))
    descriptor = draws.descriptor(random, mode, accelerator.cdus, (51, 40, 1, 17))
    session.both(Job.draw(random, descriptor).at(0x1000))
    batch = Ring(session)
    for _ in range(3):
        batch.decompress(Job.draw(random, descriptor))
    assert set(goes(batch)) == {ErrorCode.NONE}


# ------------------------------------------------------------------------------------------------------------- the gap
@pytest.mark.regress
@pytest.mark.parametrize("accelerator", [QUEUED, *regress(chance.SINGLE, chance.LARGE, chance.STORED)],
                         ids=label)
def test_cycles_between_two_tensors(accelerator, random):
    """From the last byte of a tensor to the first of the next, beyond memory's latency, which is there twice, for the
    answer to the last write, and for the first read. What is decompressed reads its stream ahead of that."""
    session, seen = Session(accelerator, random, size=SIZE), set()
    mode, = lane_modes("sfpr-zvc")
    for latency in (1, 40):
        session.environment.begin(MemoryBehaviour(latency=latency))
        batch = Ring(session, accelerator.queue)
        batch.resident = batch.plain = True
        ways = (batch.compress, batch.compress, batch.decompress, batch.decompress, batch.compress)
        for way in ways:
            way(Job.draw(random, draws.descriptor(random, mode, accelerator.cdus, (LONG, 64, 1, 16))))
        reports = session.environment.traffic()["written"][-1].transfers
        count, last, gaps, before = batch.publish(), 0, [], None
        while run(session.driver.get("tail"))[0] != (batch.number + count) % batch.numbers:
            for _ in range(64):
                session.environment.run(1)
                traffic = session.environment.traffic()
                *ports, queue = traffic["written"]
                now = (sum(port.transfers for port in (*ports, *traffic["read"][:-1])), queue.transfers)
                if before and now[0] > before[0]:
                    if reports < queue.transfers:
                        gaps.append(session.environment.cycle - last - 2 * latency)
                        reports = queue.transfers
                    last = session.environment.cycle
                before = now
        batch.wait()
        batch.check(count)
        assert len(gaps) == count - 1
        seen |= {(a.__name__, b.__name__, gap) for a, b, gap in zip(ways, ways[1:], gaps, strict=False)}
    least, most = GAPS[accelerator.cdus]
    reads = {gap for _, after, gap in seen if after == "compress"}
    assert least <= min(reads) and max(reads) <= most, seen
    assert max(gap for *_, gap in seen) <= most, seen
