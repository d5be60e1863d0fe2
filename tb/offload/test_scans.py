"""Bench of tensors that the accelerator scans: scales, statistics and what follows, in the environment of engine and
soak, which lets a scan write each scale once and nothing else.

``scan/test_scan`` has the units by themselves, ``test_accelerator`` all that has no scan.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.driver import Driver, Plain, run
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload import scan
from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.control import limits
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.environment import KINDS, MemoryBehaviour
from actcodec.sim.rtl_engine import Contents
from actcodec.sim.simulator import Simulator
from tb.harness import regress
from tb.offload import draws
from tb.offload.jobs import Job
from tb.offload.scan.test_statistics import KINDS as VALUES
from tb.offload.scan.test_statistics import words
from tb.soak import chance
from tb.soak import run as soak
from tb.soak.session import Session

OTHERS = [chance.SINGLE, chance.LARGE, chance.INDEPENDENT, chance.ALONE, chance.STORED]
SHARED = {"kind": KINDS.index("shared"), "ordered": 1}
POLITE = MemoryBehaviour()
REST = {"shared": 121, "independent": 115}  # cycles of a scan: memory's, and those of pipelines and stores


def label(it):
    return f"{it.cdus}-{len(it.modes)}-{it.memory}-{it.payload}"


@pytest.fixture(params=[chance.EQUIPPED, *regress(*OTHERS)], ids=label)
def session(request, random):
    return Session(request.param, random)


def drawn(session, mode, **more):
    """A tensor to be scanned, of a mode."""
    d = draws.descriptor(session.random, mode, session.driver.cdus, formats=session.driver.formats, scan=True, **more)
    return Job.draw(session.random, d, True).at(0x1000 + 4 * int(session.random.integers(8)))


def of(session, mode, size, kinds=VALUES, form="float32"):
    """The same of a size, rows, width, height, channels, with a kind of float32 values in each channel."""
    random = session.random
    d = draws.descriptor(random, mode, session.driver.cdus, size, formats=(form,))
    x, channel = np.zeros((d.rows, d.width), np.uint32), np.arange(d.rows) // d.height % d.channels
    for c in range(d.channels):
        mine = channel == c
        x[mine] = words(random, str(random.choice(kinds)), int(mine.sum()) * d.width).reshape(-1, d.width)
    x = x.view(np.float32)
    return Job.scanned(d, x if form == "float32" else formats.narrow(x, form)).at(0x1000)


def modes(session):
    return lane_modes(*session.driver.modes)


def test_every_mode_with_its_scan_and_the_scan_alone(session):
    """All ports on one slave, which keeps the order of all addresses, or any other memory that may be."""
    shared = SHARED if session.environment.accelerator.memory == "shared" else {}
    for turn, mode in enumerate(modes(session)):
        for again in range(1 if len(session.driver.modes) > 8 else 3):
            chance.around(session, **(shared if (turn + again) % 2 else {}))
            one = drawn(session, mode, most=1500)
            assert session.scan(one) == ErrorCode.NONE
            assert session.compress(one) in (ErrorCode.NONE, ErrorCode.OVERFLOW)
            assert session.decompress(one) == ErrorCode.NONE


@pytest.mark.parametrize("channels", [1, 2, 7, 8, 9, 64, 65, 300])
def test_any_number_of_channels(session, channels):
    """Fewer than lanes, up to a line of the table, more than a burst of it; a row of a value or of several sectors."""
    mode, = lane_modes("sfpr-zvc")
    for images, width in ((1, 1), (2, 9), (1, 17)):
        chance.around(session)
        session.scan(of(session, mode, (images * channels, width, 1, channels)))


def test_a_scan_alone_has_no_payload(session):
    """So it does not matter where that would be, such as where a ring that was given up had it."""
    place = {"stream": {}, "memory": {"payload": 0x21}, "both": {"payload": 0x21, "payload_memory": 1}}[session.payload]
    mode = modes(session)[0]
    session.scan(drawn(session, mode), **place)
    if place:
        values = drawn(session, mode).registers(False) | place
        session.refuse(mode, values, ErrorCode.DESCRIPTOR)
        session.refuse(mode, values | {"scan": 0, "scan_only": 1}, ErrorCode.DESCRIPTOR)
        session.refuse(mode, values | {"decompress": 1, "scan_only": 1}, ErrorCode.DESCRIPTOR)


def test_channels_of_zeros_infinities_and_nans(session):
    scanned = [form for form in session.driver.formats if form != formats.CODES]  # those have their scales
    pairs = product(scanned, modes(session))
    if len(modes(session)) > 12:  # each in one of the formats
        pairs = ((str(session.random.choice(scanned)), mode) for mode in modes(session))
    for form, mode in pairs:
        for kind in VALUES:
            session.scan(of(session, mode, (24, 11, 3, 4) if not mode.format.whole else (32, 11, 8, 2), (kind,), form))


def test_takes_whatever_the_limits_allow_and_nothing_else(session):
    """Both sides of each limit that a scan has."""
    bits, seen = session.driver.address_width, set()
    for mode in modes(session)[:4]:
        good = drawn(session, mode, most=400)
        for name, values in limits.around(good.registers(False), mode, bits):
            if name not in ("images", "SCALES"):
                continue
            chance.around(session)
            wrong = limits.violated(values, mode, bits) is not None
            if wrong:
                session.refuse(mode, values, ErrorCode.DESCRIPTOR)
                session.refuse(mode, values | {"scan_only": 1}, ErrorCode.DESCRIPTOR)
            elif name == "images" and values["rows"] == good.descriptor.rows:
                d = replace(good.descriptor, height=values["height"], channels=values["channels"])
                session.scan(Job.scanned(d, good.x).at(0x1000))
            seen.add((name, wrong))
        session.scan(good)
    assert seen == {("images", True), ("images", False), ("SCALES", True), ("SCALES", False)}


def test_memory_errors_end_a_scan_with_theirs(session):
    codes = set()
    for rates in ((1000, 0), (0, 1000), (30, 30), (0, 300), (300, 0)):
        for mode in modes(session)[:3]:
            chance.around(session, rates)
            one = drawn(session, mode, most=600)
            codes.add(session.scan(one))
            chance.around(session, rates)
            codes.add(session.compress(one))
            chance.around(session)
            session.scan(one)
    assert {ErrorCode.READ, ErrorCode.WRITE} <= codes


def test_soft_resets_at_any_moment_of_a_scan(session):
    in_time = 0
    for turn in range(24):
        chance.around(session)
        one = drawn(session, modes(session)[turn % len(session.driver.modes)], most=400)
        in_time += session.give_up(one, False, int(session.random.integers(1, (150, 300, 700)[turn % 3])))[0]
        chance.around(session)
        session.scan(one)
    assert in_time > 5


def test_tensors_and_whatever_befalls_them(session):
    soak.run(session.environment.accelerator, int(session.random.integers(2**63)))


@pytest.mark.parametrize("session", regress(chance.EQUIPPED, *OTHERS[:4]), indirect=True, ids=label)
def test_cycles_of_a_scan(session, monkeypatch):
    """One sector per cycle and lane where a sector is a beat, and those of the longest burst; the plan of the tensor,
    and that of the scan, with two for each bit of some numbers and 4 for each lane; and REST. A tensor that is
    compressed as well takes as long as both, but for the former plan, which it has once. Compression takes one sector
    per cycle and lane as it does without a scan built in. For LUTs a tensor starts a cycle later. Where payloads are in
    memory alone, so few reads are outstanding that they wait for memory."""
    cdus, mode = session.driver.cdus, lane_modes("sfpr-zvc")[0]
    plan = max(73, 4 + 33 * cdus)
    rest = REST[session.environment.accelerator.memory] + (session.environment.accelerator.target == "lut")
    if session.environment.accelerator.queue:  # after the plan, lanes load their origins, and the splitter that of rows
        plan += cdus + 2 + 3 * any(mode.format.segmented for mode in lane_modes(*session.driver.modes))
    monkeypatch.setattr(session, "_space", lambda *_: None)  # payloads in the stream
    once = []  # compressed without a scan
    for images, height, width in ((1, 8, 64), (4, 8, 8), (2, 16, 16), (40, 1, 16), (3, 7, 56)):
        size, plane = (images * cdus * height, width, height, cdus), height * width // 8
        one, cycles = of(session, mode, size), []
        for way, job in ((session.scan, one), (session.compress, replace(one, scan=False)), (session.compress, one)):
            session.environment.begin(POLITE)
            way(job)
            cycles += run(session.driver.get("cycles"))
        longest = min(plane * (images if cdus == 1 else 1), 8)  # burst
        steps = 2 * (height.bit_length() + 2 * cdus.bit_length() + size[0].bit_length())
        alone, plain, together = cycles
        assert alone == plan + steps + 4 * cdus + images * plane + longest + rest
        assert together == alone + plain - plan
        once.append(plain)
    assert abs(once[0] - once[1] - (64 - 32)) <= 2  # sectors of a lane, and how much of a payload is still to leave


# ---------------------------------------------------------------------------------------------------------- the driver
@pytest.fixture
def simulator():
    return Simulator(chance.SMALL, 2, 1 << 15, formats=chance.FORMATS, payload="both", scan=True,
                     queue=chance.EQUIPPED.queue)


async def opened(simulator):
    async def wait():
        simulator.run()
    return await Driver.open(Plain(simulator), Plain(Contents(simulator.bytes)), wait)


PLACES = {"scale_table": 1 << 14, "payload": (3 << 13, 1 << 13)}


@pytest.mark.parametrize("dtype", ["float32", *formats.HALVES])
def test_driver_has_scales_found_and_the_table_serves_both_directions(simulator, random, dtype):
    """With the scales at hand, or with those that are still in memory; one value per channel too."""
    driver = run(opened(simulator))
    for shape in ((2, 9, 5, 12), (3, 20)):
        x = random.normal(0, 3, shape).astype(np.float32)
        x.reshape(-1)[:4] = np.nan, np.inf, 0, -0.0
        stored = x if dtype == "float32" else formats.narrow(x, dtype)
        values = x if dtype == "float32" else formats.widen(stored, dtype)
        simulator.bytes[: stored.nbytes] = stored.reshape(-1).view(np.uint8)
        alone = run(driver.scan(0, shape, "sfpr-zvc", scale_table=1 << 14, dtype=dtype))
        result = run(driver.compress(0, shape, "sfpr-zvc", scales="hardware", dtype=dtype, **PLACES))
        np.testing.assert_array_equal(result.scales, sfpr.scales(values).k)
        np.testing.assert_array_equal(alone.scales, result.scales)
        assert alone.statistics == result.statistics == scan.statistics(values)
        asked = run(driver.compress(0, shape, "sfpr-zvc", dtype=dtype, **PLACES))
        assert (asked.counters["bytes_out"], asked.statistics) == (result.counters["bytes_out"], None)
        restored = []
        for scales in (None, result.scales):
            simulator.bytes[: stored.nbytes] = 0
            place = PLACES | {"payload": (PLACES["payload"][0], result.counters["bytes_out"])}
            back = run(driver.decompress(0, shape, "sfpr-zvc", scales=scales, dtype=dtype, **place))
            np.testing.assert_array_equal(back.scales, result.scales)
            restored.append(simulator.bytes[: stored.nbytes].tobytes())
        assert restored[0] == restored[1]


def test_driver_refuses_what_a_scan_cannot_be(simulator):
    driver = run(opened(simulator))
    for changes, text in (({"scales": "software"}, "scales must be numbers or 'hardware', not 'software'"),
                          ({"scale_table": None}, "mode sfpr-zvc needs a scale_table"),
                          ({"options": {"scaling": "tensor"}}, "a scan finds the scales of channels"),
                          ({"options": {"clip": 2.0}}, "a scan finds the scales of channels"),
                          ({"scale_table": 20}, "SCALES is 20, must be in modes that scale"),
                          ({"payload": (20, 100)}, "PAYLOAD is 20, must be a multiple of 32"),
                          ({"payload": (32, 1 << 40)}, "PAYLOAD_SIZE is 1099511627776, must be less than")):
        with pytest.raises(ValueError, match=text):
            run(driver.compress(0, (1, 2, 8, 8), "sfpr-zvc", **{"scales": "hardware", **PLACES, **changes}))
    driver.scans = False
    with pytest.raises(ValueError, match="this accelerator has no scan"):
        run(driver.scan(0, (1, 2, 8, 8), "sfpr-zvc", scale_table=1 << 14))
