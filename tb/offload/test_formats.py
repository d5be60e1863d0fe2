"""Bench of the accelerator with tensors of 16 bits, and of codes: every place, width and word, in the environment of
engine and soak.

``test_accelerator`` has such an accelerator among others; ``memory/test_widen`` and ``test_narrow`` have what values
become.
"""

from dataclasses import replace

import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.driver import run
from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.accelerator import Accelerator
from actcodec.sim.environment import MemoryBehaviour
from tb.harness import regress, selection
from tb.offload import draws
from tb.offload.descriptors import Descriptor
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak import run as soak
from tb.soak.session import Session

CODED = Accelerator(1, tuple(mode.name for mode in lane_modes() if mode.codes), formats=("float32", "int8"))
HALF = Accelerator(1, ("sfpr", "brc"), formats=("float32", "bfloat16"), target="lut")
MORE = [chance.SINGLE, replace(chance.LANE, cdus=2)]
BEAT = 32  # bytes


@pytest.fixture(params=[chance.EQUIPPED, *regress(*MORE)], ids=lambda it: f"{it.cdus}-{len(it.modes)}")
def session(request, random):
    return opened(request.param, random)


@pytest.fixture(params=[chance.EQUIPPED, *regress(*MORE, CODED)], ids=lambda it: f"{it.cdus}-{len(it.modes)}")
def of_codes(request, random):
    return opened(request.param, random)


def opened(accelerator, random):
    one = Session(accelerator, random, size=1 << 18)
    one.payload = "stream"
    return one


def test_every_place_and_width(session):
    """Rows that begin at each value of a beat, and of each number of values in it; gaps between them, or none."""
    random, many = session.random, BEAT // 2
    for mode in selection.part(random, lane_modes(*session.driver.modes), 4, many=8):
        for k, (place, width) in enumerate(zip(random.permutation(many), random.permutation(many), strict=True)):
            width += 8 if mode.tiled else 1
            rows, form = int(random.choice([8, 16])), formats.HALVES[random.integers(2)]
            d = draws.descriptor(random, mode, session.driver.cdus, (rows, int(width), rows, 1), formats=(form,))
            if k % 4 == 0:
                chance.around(session)
            session.both(Job.draw(random, d).at(0x1000 + 2 * int(place), 2 * int(width + random.choice([0, 1, 5, 16]))))


@pytest.mark.parametrize("form", formats.HALVES)
def test_every_word_both_ways(session, form):
    """In modes that move words each comes back; in the others it is widened, and what comes back is rounded."""
    words = np.arange(1 << 16, dtype=np.uint16)
    modes = [one for one in lane_modes(*session.driver.modes) if not (one.scaled or one.format.endless)]
    for mode in selection.part(session.random, modes, 4, many=8):
        session.random.shuffle(words)
        d = Descriptor(mode, session.driver.cdus, 256, 256, settings=draws.settings(session.random, mode), format=form)
        one = Job.of(d, words.reshape(256, 256)).at(0x42)
        chance.around(session)
        session.both(one)
        if mode.halves:
            np.testing.assert_array_equal(d.decompress(one.payload), one.x)


def coded(session):
    """The modes that take codes."""
    return [mode for mode in lane_modes(*session.driver.modes) if mode.codes]


def test_codes_at_every_place_and_of_every_width(of_codes):
    """As with 16 bits; a row may begin at any byte."""
    random, cdus = of_codes.random, of_codes.driver.cdus
    for mode in selection.part(of_codes.random, coded(of_codes), 4, many=8):
        for k, (place, width) in enumerate(zip(random.permutation(BEAT), random.permutation(BEAT), strict=True)):
            width += 8 if mode.tiled else 1
            rows = int(random.choice([8, 16]))
            d = draws.descriptor(random, mode, cdus, (rows, int(width), rows, 1), formats=(formats.CODES,))
            if k % 4 == 0:
                chance.around(of_codes)
            of_codes.both(Job.draw(random, d).at(0x1000 + int(place), int(width + random.choice([0, 1, 5, 16]))))


def test_every_code_both_ways(of_codes):
    """In modes that lose nothing behind SFPR each comes back, and SFPR itself gives it the same payload."""
    codes = np.tile(np.arange(256, dtype=np.uint8).view(np.int8), 16)
    for mode in coded(of_codes):
        of_codes.random.shuffle(codes)
        d = Descriptor(mode, of_codes.driver.cdus, 32, 128, settings=draws.settings(of_codes.random, mode),
                       format=formats.CODES)
        d.settings.setdefault("table", 0)
        one = Job.of(d, codes.reshape(32, 128)).at(0x41)
        chance.around(of_codes)
        of_codes.both(one)
        if not mode.tiled:
            np.testing.assert_array_equal(d.decompress(one.payload), one.x)
        float_ = Job.of(replace(d, format="float32"), one.x.astype(np.float32), [0x3F800000], [0x3F800000]).at(0x40)
        assert float_.payload == one.payload
        of_codes.both(float_)


def test_codes_in_modes_without_sfpr_and_in_a_scan_are_an_error(of_codes):
    random, cdus = of_codes.random, of_codes.driver.cdus
    for mode in lane_modes(*of_codes.driver.modes):
        for back in (False, True):
            values = Job.draw(random, draws.descriptor(random, mode, cdus, back=back)).at(0x1000).registers(back)
            values |= {"format": formats.FORMATS.index(formats.CODES), "scan": 0}
            values |= {"lengths_in": 0} if mode.format.endless else {}
            if not mode.codes:
                chance.around(of_codes)
                of_codes.refuse(mode, values, ErrorCode.DESCRIPTOR)
            elif of_codes.driver.scans and not back:
                of_codes.refuse(mode, values | {"scan": 1}, ErrorCode.DESCRIPTOR)
                of_codes.refuse(mode, values | {"scan": 1, "scan_only": 1}, ErrorCode.DESCRIPTOR)


def test_codes_have_no_scales(of_codes):
    """Whatever stands in their address, nothing is read but the tensor."""
    for mode in coded(of_codes):
        d = draws.descriptor(of_codes.random, mode, of_codes.driver.cdus, formats=(formats.CODES,))
        one = Job.draw(of_codes.random, d).at(0x1003)
        chance.around(of_codes)
        of_codes.both(replace(one, table=(1 << of_codes.driver.address_width) - 1))


def cycles(session, mode, form, draw=Job.draw):
    """How many more a tensor takes there, and back, that has 64 blocks more for each lane."""
    cdus, counts = session.driver.cdus, []
    session.environment.begin(MemoryBehaviour())
    for blocks in (64, 128):
        d = Descriptor(mode, cdus, blocks * cdus, 64, format=form)
        one = draw(session.random, d).at(0x1000 + d.bytes % 4)  # float32 in whole beats: lanes take turns within a row
        for way in (session.compress, session.decompress):
            way(one)
            counts.append(run(session.driver.get("cycles"))[0])
    there, back, longer_there, longer_back = counts
    return longer_there - there, longer_back - back


def dense(random, d):
    """Codes without a zero, so that blocks of ZVC, too, have one length."""
    return Job.of(d, random.integers(1, 128, (d.rows, d.width), np.int8))


@pytest.mark.parametrize("session", [chance.EQUIPPED, chance.LANE, *regress(MORE[0], HALF, chance.LUTS)], indirect=True,
                         ids=lambda it: f"{it.cdus}-{len(it.modes)}-{len(it.formats)}-{it.target}")
def test_a_sector_a_cycle_and_lane(session):
    """8.00 cycles a block, there and back, in modes whose blocks have one length, of which one has scales."""
    for mode in (mode for mode in lane_modes("raw", "brc", "sfpr") if mode.name in session.driver.modes):
        for form in (form for form in ("float32", "bfloat16") if form in session.driver.formats):
            assert cycles(session, mode, form) == (8 * 64, 8 * 64), (mode.name, form)


def test_codes_at_a_sector_a_cycle_and_lane(of_codes):
    for mode in (mode for mode in coded(of_codes) if mode.name in ("sfpr", "sfpr-zvc")):
        assert cycles(of_codes, mode, formats.CODES, dense) == (8 * 64, 8 * 64), mode.name


def test_tensors_of_all_formats_and_whatever_befalls_them(session):
    """Of the soak."""
    soak.run(session.environment.accelerator, int(session.random.integers(2**63)))


@pytest.mark.regress
@pytest.mark.parametrize("session", [CODED, HALF], indirect=True, ids=lambda it: it.formats[1])
def test_a_format_that_is_not_built_in_is_an_error(session):
    one = Job.draw(session.random, draws.descriptor(session.random, lane_modes("sfpr")[0],
                                                    session.driver.cdus)).at(0x1000)
    for code in range(4):
        if formats.FORMATS[code] not in session.driver.formats:
            session.refuse(one.mode, one.registers(False) | {"format": code}, ErrorCode.FORMAT)
            session.refuse(one.mode, one.registers(True) | {"format": code}, ErrorCode.FORMAT)
    session.both(one)
