"""Bench of DIVISION in the accelerator, with descriptors that no tensor's shape has: rows of one value and more, planes
of several rows, that come back or have no row, at any stride, in every mode of the lane, there and back."""

import numpy as np
import pytest

from actcodec.codecs import lane_modes
from actcodec.codecs.division import LANE
from actcodec.golden.division import codec, stream, table
from actcodec.golden.division.view import View
from actcodec.golden.jpegact import sfpr
from actcodec.sim.accelerator import Accelerator
from tb.division.tensors import descriptor, tensor_of
from tb.harness import regress
from tb.offload.descriptors import Descriptor
from tb.offload.jobs import Job
from tb.soak import chance
from tb.soak.session import Session

OTHERS = [chance.LANES, Accelerator(3, LANE)]


@pytest.fixture(params=[chance.LANE, *regress(*OTHERS)], ids=lambda it: f"{it.cdus}-{len(it.modes)}")
def session(request, random):
    return Session(request.param, random)


def job(session, view, mode):
    """A tensor of a view, with the table that fits it, at a place."""
    random, cdus, bits = session.random, session.driver.cdus, mode.format.row
    way = {"lfc": bool(random.random() < 0.8), "offset": str(random.choice(["mean", "min"]))}
    rounding, seed = str(random.choice(["stochastic", "nearest"])), int(random.integers(1 << 32))
    x = tensor_of(random, view)
    with np.errstate(all="ignore"):
        fitted = table.table(x, bits, **way, view=view)
        expected = codec.encode(x, fitted, bits, seed, **way, rounding=rounding, view=view)
    numbers = {"seed": seed, "lfc": int(way["lfc"]), "minimum": int(way["offset"] == "min"),
               "nearest": int(rounding == "nearest")}
    settings = {setting.name: numbers[setting.name] for setting in mode.settings}
    which = Descriptor(mode, cdus, view.rows, view.width, view.height, view.planes, settings=settings)
    words = fitted.k.view(np.uint32) | fitted.delta.view(np.uint8), sfpr.reciprocal(fitted.k).view(np.uint32)
    one = Job.of(which, x, *(some[: which.scales] for some in words))  # of more planes than rows the first ones
    assert one.payload == stream.interleave(expected.payload, view, bits, cdus)
    assert one.encoded.clipped == (expected.clipped > 0)
    return one.at(4 * int(random.integers(64)), 4 * view.width + 4 * int(random.integers(3)))


def test_ends_with_a_sector_a_row(session):
    """Eight segments in a block: as many as there can be."""
    for mode in (mode for mode in lane_modes(*LANE) if not mode.tiled):
        for rows, width in ((7, 8), (8, 1), (33, 8), (100, 5)):
            session.both(job(session, View(False, rows, width, 1, rows), mode))


def test_equals_golden_for_any_descriptor(session):
    for _ in range(6):
        for mode in lane_modes(*LANE):
            chance.around(session)
            session.both(job(session, descriptor(session.random, mode.tiled), mode))
