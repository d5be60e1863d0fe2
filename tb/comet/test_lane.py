"""Bench of COMET in the lanes of an accelerator: whole tensors from memory to the stream and back, byte for byte as
golden's of as many CDUs, alone and beside modes that have blocks. What befalls tensors is in ``test_accelerator``."""

import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.codecs.models import comet as model
from actcodec.driver import run
from actcodec.golden.comet import comet, lorenzo
from actcodec.golden.comet.book import Book
from actcodec.golden.offload.blocks import View
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.accelerator import Accelerator
from actcodec.sim.environment import MemoryBehaviour
from tb.comet.test_book import some
from tb.comet.test_comet import tensor
from tb.harness import regress, selection
from tb.judges.test_comet_turns import cycles, demands
from tb.offload.descriptors import Descriptor
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak.frames import framed
from tb.soak.session import Session

CONFIGS, STREAMS = lorenzo.CONFIGS, chance.STREAMS
FLAT = [(1, 1), (3, 5), (2, 300), (1, 3, 5, 8), (2, 3, 11, 13), (700, 1)]
# Tiles in rows of one, two, three and more, ragged widths and heights, channels that end inside of tiles.
TILED = [(1, 1, 8, 8), (1, 5, 8, 8), (3, 2, 9, 24), (2, 3, 7, 13), (1, 2, 30, 56), (1, 7, 14, 14), (1, 3, 11, 40)]
OTHERS = [chance.LANES, Accelerator(3, STREAMS)]


@pytest.fixture(params=[chance.LANE, *regress(*OTHERS)], ids=lambda it: f"{it.cdus}-{len(it.modes)}")
def session(request, random):
    return Session(request.param, random)


def encoded(session, x, config, book=None, shape=None):
    """Golden's streams of a tensor, or of a view's rows, with a bound and a book by chance or a given one."""
    random, eb = session.random, float(session.random.choice([0.02, 0.3, 2]))
    book = book or (Book(some(random)) if random.random() < 0.3 else None)
    return comet.compress(x, eb, config, book, session.driver.cdus, shape)


def job(session, x, one, view=None, gap=0):
    """The same as a host has it."""
    mode, = lane_modes(STREAMS[not one.config.tiled])
    view = view or mode.model.view(x.shape)
    descriptor = Descriptor(mode, session.driver.cdus, view.rows, view.width, view.height, view.channels,
                            settings=model.settings(one.s, one.config, one.book))
    result = Job.of(descriptor, np.ascontiguousarray(x).reshape(view.rows, view.width))
    assert (result.payload, result.lengths) == (stream.weave(one.streams), tuple(map(len, one.streams)))
    return result.at(4 * int(session.random.integers(64)), 4 * (view.width + gap))


@pytest.mark.parametrize("name", CONFIGS)
def test_goes_there_and_back(session, name):
    for k, shape in enumerate(TILED if CONFIGS[name].tiled else FLAT):
        chance.around(session)
        x = tensor(session.random, shape, (0, 0.02, 0.5)[k % 3])
        session.both(job(session, x, encoded(session, x, CONFIGS[name])))


def test_takes_any_rows_of_a_descriptor(session):
    """With every remainder of a width, and all predictors, signed or not; not only what the driver sees in shapes."""
    random = session.random
    ones, view = np.ones((2, 9), np.float32), View(2, 9, 1, 1, False)
    book = Book([1, 1, 2, 0, 0, 0, 0, 0])
    session.both(job(session, ones, comet.compress(ones, 0.5, CONFIGS["line"], book, session.driver.cdus, view), view))
    for turn in range(24 if session.driver.cdus > 1 else 48):
        tiled = turn % 3 == 0
        width = turn % 8 + int(random.choice([8, 16, 40] if tiled else [0, 8, 64, 300]))
        rows = int(random.integers(8, 30) if tiled else random.integers(1, 1 + max(9, 900 // max(width, 1))))
        view = View(rows, max(width, 1), *map(int, random.integers(1, 20, 2)), tiled)
        config = lorenzo.Config(tiled, bool(turn & 8), tiled and bool(random.integers(2)), bool(random.integers(2)))
        x = tensor(random, view[:2], (0, 0.02, 0.5)[turn % 7 % 3])
        gap = int(random.choice([0, 1, 8, 40 if rows < 300 else 8]))  # all of it fits into memory
        chance.around(session)
        session.both(job(session, x, encoded(session, x, config, Book(some(random)), view), view, gap))


def test_ends_payloads_that_are_cut_lengthened_or_garbage(session, request):
    random, cdus = session.random, session.driver.cdus
    for name in selection.part(random, ["none+", "plane"], 2 if selection.brief(request.config) else 1):
        x = tensor(random, (2, 3, 16, 24), 0.02)
        one = job(session, x, encoded(session, x, CONFIGS[name]))
        payload, lengths = one.payload, one.lengths
        size = len(payload)
        for wrong in (payload[:1], payload[:8], payload[:128], payload[: size // 2], payload[: size - 8],
                      payload[: size - 1], payload + b"\0", payload + bytes(300), random.bytes(size), b"\xff" * size,
                      random.bytes(size // 3)):
            chance.around(session)
            session.decompress(one, framed(wrong, random))
        for wrong in ([0] * cdus, [9999] * cdus, [length + 9 for length in lengths], lengths[::-1],
                      [length // 2 for length in lengths], [lengths[0] - 1, *lengths[1:]]):
            session.decompress(one, lengths=tuple(wrong))
            session.decompress(one, framed(random.bytes(2 * size), random), lengths=tuple(wrong))
        session.both(one)


def test_ignores_the_lengths_of_lanes_without_a_group(session):
    x = tensor(session.random, (1, 1, 8, 8), 0)
    one, others = job(session, x, encoded(session, x, CONFIGS["plane"])), session.driver.cdus - 1
    assert [length > 0 for length in one.lengths] == [True] + [False] * others
    session.both(one)
    assert session.decompress(one, lengths=(one.lengths[0], *[77] * others)) == ErrorCode.NONE


def test_refuses_settings_before_anything_moves(session):
    """As a host writes them whose driver does not look at their limits."""
    x = tensor(session.random, (1, 2, 16, 24), 0)
    for name, changes in (("row", ({"step": 0}, {"step": 0x8000}, {"step": 0x0080}, {"step": 0x7701 + (1 << 7)},
                                   {"step": 0x7F80}, {"step": 0xFFFF}, {"counts": 3}, {"counts": 0x0102},
                                   {"counts": (1 << 56) - 1})), ("line", ({"vertical": 1},))):
        one = job(session, x, encoded(session, x, CONFIGS[name]))
        session.both(one)
        for change in changes:
            word = sum((one.descriptor.settings | change)[field.name] << field.low for field in one.mode.settings)
            for back in (False, True):
                session.refuse(one.mode, one.registers(back, one.lengths) | {"settings": word}, ErrorCode.DESCRIPTOR)
        session.both(one)


def test_counts_symbols(session):
    for shape, name in (((1, 3, 19, 40), "plane"), ((2, 333), "none"), ((1, 1, 8, 8), "row")):
        x = tensor(session.random, shape, 0.01)
        one = job(session, x, encoded(session, x, CONFIGS[name]))
        session.compress(one)
        assert run(session.driver.histogram()) == one.encoded.histogram


def test_takes_the_cycles_that_turns_take(session):
    """Those of the longest lane, and what it waits for the others' turns, by the model of the wire; besides, the plan
    and the latency of everything."""
    session.environment.begin(MemoryBehaviour())
    x, cdus = tensor(session.random, (2, 4, 32, 40), 0), session.driver.cdus
    eb, config, book = model.parameters(x, None, None, 0.0635, "auto")
    one, lanes = job(session, x, comet.compress(x, eb, config, book, cdus)), demands(x, 0.0635, cdus)
    for back in (False, True):
        (session.decompress if back else session.compress)(one)
        least, actual = cycles(lanes, 8, 128, back), run(session.driver.get("cycles"))[0]
        assert least < actual < least + 200 + 35 * cdus
