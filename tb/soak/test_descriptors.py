"""Descriptors and settings from the limits, not from a shape's view: every mode, on both sides of each limit.

The first three are what nobody had met while all tensors came from golden's views.
"""

from dataclasses import replace

import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control import limits
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.environment import MemoryBehaviour
from tb.offload import draws
from tb.offload.descriptors import Descriptor
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak.frames import framed
from tb.soak.session import Session

ACCELERATOR = replace(chance.LANE, cdus=2)
CDUS, WIDTH = ACCELERATOR.cdus, ACCELERATOR.address_width
MODES = {mode.name: mode for mode in lane_modes(*ACCELERATOR.modes)}
PLACE = 0x1000


@pytest.fixture
def session():
    one = Session(ACCELERATOR, np.random.default_rng(0))
    one.environment.begin(MemoryBehaviour(kind=1))
    return one


def job(descriptor, seed=0):
    """Rows and scales for a descriptor."""
    return Job.draw(np.random.default_rng(seed), descriptor).at(PLACE)


@pytest.mark.parametrize("mode", [name for name in MODES if name.startswith("division") and name.endswith("flat")])
@pytest.mark.parametrize("rows, width", [(7, 8), (8, 8), (9, 1), (33, 5), (64, 8)])
def test_flat_rows_of_a_sector_or_less_end(session, mode, rows, width):
    """A block then has a base for each of its eight rows, and all of them have to wait for the last one."""
    for height, channels in ((rows, 1), (1, rows), (2, 3)):
        settings = draws.settings(np.random.default_rng(rows), MODES[mode])
        session.both(job(Descriptor(MODES[mode], CDUS, rows, width, height, channels, settings=settings)))


@pytest.mark.parametrize("rows, width", [(2, 9), (2, 7), (40, 3), (5, 70), (3, 300)])
def test_padding_is_nobodys_neighbour(session, rows, width):
    """Of rows of ones each value comes back as 1, though flat rows that are no whole sectors are predicted."""
    mode = MODES["comet-flat"]
    settings = {"step": 0x3F80, "horizontal": 1, "vertical": 0, "signed": 1, "counts": 0x01010101010101}
    one = Job.of(Descriptor(mode, CDUS, rows, width, settings=settings), np.ones((rows, width), np.float32)).at(PLACE)
    assert np.all(one.descriptor.restore(one.payload, one.lengths)[0] == 1)
    session.both(one)


def test_tables_of_rice_that_would_break_a_stream_are_refused(session):
    """Only to compress: k and the last e are more than the 8 bits that a mantissa may have."""
    mode, random = MODES["sfpr-rice"], np.random.default_rng(1)
    for diagonal in range(15):
        k = [5] * 15
        k[diagonal] = 6
        settings = {"rice_table": draws.rice_word(k, 8, [0, 1, 2, 3])}
        one = job(Descriptor(mode, CDUS, 40, 16, settings=settings), diagonal)
        if diagonal:
            session.refuse(mode, one.registers(False), ErrorCode.DESCRIPTOR)
        else:
            session.compress(one)
        session.decompress(one)
    for word in (draws.rice_word([1] * 15, 17, [1, 2, 3, 5]), draws.rice_word([1] * 15, 8, [1, 3, 2, 5]), 1 << 63):
        one = job(draws.descriptor(random, mode, CDUS))
        for back in (False, True):
            session.refuse(mode, one.registers(back) | {"settings": word}, ErrorCode.DESCRIPTOR)


@pytest.mark.parametrize("mode", MODES)
def test_whatever_the_limits_allow_goes_both_ways(session, mode):
    """And what is drawn is legal."""
    random = np.random.default_rng(MODES[mode].code)
    for _ in range(6):
        one = Job.draw(random, draws.descriptor(random, MODES[mode], CDUS)).at(PLACE)
        for back in (False, True):
            assert limits.violated(one.registers(back, one.lengths), MODES[mode], WIDTH) is None
        session.both(one)


@pytest.mark.parametrize("mode", MODES)
def test_beyond_each_limit_nothing_moves(session, mode):
    """Both ways; and a frame that waits at the stream goes on waiting, for the next tensor."""
    random, lane = np.random.default_rng(MODES[mode].code), MODES[mode]
    one = Job.draw(random, draws.descriptor(random, lane, CDUS)).at(PLACE)
    frame = framed(one.payload, random)
    session.environment.send(frame.data, frame.keep, frame.last)
    for back in (False, True):
        for name, values in limits.around(one.registers(back, one.lengths), lane, WIDTH):
            if limits.violated(values, lane, WIDTH) and (name.isupper() or random.random() < 0.2):
                session.refuse(lane, values, ErrorCode.DESCRIPTOR)
    session.decompress(one, frame, sent=True)
