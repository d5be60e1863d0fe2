"""Bench of the accelerator with tensors of 16 bits: every place, width and word, in the environment of engine and soak.

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
from tb.harness import regress
from tb.offload import draws
from tb.offload.descriptors import Descriptor
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak import run as soak
from tb.soak.session import Session

MORE = [replace(chance.EQUIPPED, scan=False), Accelerator(1, chance.SMALL, formats=chance.FORMATS),
        Accelerator(3, chance.EVERY, formats=chance.FORMATS)]
BEAT = 32  # bytes


@pytest.fixture(params=[chance.EQUIPPED, *regress(*MORE)], ids=lambda it: f"{it.cdus}-{len(it.modes)}")
def session(request, random):
    one = Session(request.param, random, size=1 << 18)
    one.payload = "stream"
    return one


def test_every_place_and_width(session):
    """Rows that begin at each value of a beat, and of each number of values in it; gaps between them, or none."""
    random, many = session.random, BEAT // 2
    for mode in lane_modes(*session.driver.modes):
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
    for mode in lane_modes(*session.driver.modes):
        if mode.scaled or mode.format.endless:
            continue
        session.random.shuffle(words)
        d = Descriptor(mode, session.driver.cdus, 256, 256, settings=draws.settings(session.random, mode), format=form)
        one = Job.of(d, words.reshape(256, 256)).at(0x42)
        chance.around(session)
        session.both(one)
        if mode.halves:
            np.testing.assert_array_equal(d.decompress(one.payload), one.x)


def test_a_sector_a_cycle_and_lane(session):
    """8.00 cycles a block, there and back, in modes whose blocks have one length."""
    cdus = session.driver.cdus
    session.environment.begin(MemoryBehaviour())
    for mode in (mode for mode in lane_modes("raw", "brc") if mode.name in session.driver.modes):
        cycles = []
        for blocks in (64, 128):
            d = Descriptor(mode, cdus, blocks * cdus, 64, format="bfloat16")
            one = Job.draw(session.random, d).at(0x1002)
            for way in (session.compress, session.decompress):
                way(one)
                cycles.append(run(session.driver.get("cycles"))[0])
        there, back, longer_there, longer_back = cycles
        assert (longer_there - there, longer_back - back) == (8 * 64, 8 * 64), f"{mode.name}: {cycles}"


def test_tensors_of_all_formats_and_whatever_befalls_them(session):
    """Of the soak."""
    soak.run(session.environment.accelerator, int(session.random.integers(2**63)))


@pytest.mark.parametrize("session", [chance.EQUIPPED,
                                     *regress(Accelerator(1, chance.SMALL, formats=("float32", "float16")))],
                         indirect=True, ids=lambda it: f"{len(it.formats)}")
def test_a_format_that_is_not_built_in_is_an_error(session):
    one = Job.draw(session.random, draws.descriptor(session.random, lane_modes("zvc")[0],
                                                    session.driver.cdus)).at(0x1000)
    for code in range(4):
        if code >= len(formats.FORMATS) or formats.FORMATS[code] not in session.driver.formats:
            session.refuse(one.mode, one.registers(False) | {"format": code}, ErrorCode.FORMAT)
            session.refuse(one.mode, one.registers(True) | {"format": code}, ErrorCode.FORMAT)
    session.both(one)
