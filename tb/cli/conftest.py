"""What several benches of the command line begin with."""

from dataclasses import replace

import numpy as np
import pytest

import actcodec
from actcodec.sim import simulator
from actcodec.sim.accelerator import Accelerator
from tb.soak import chance


@pytest.fixture
def own_lanes():
    """The accelerators are those that the rtl engine chooses."""


@pytest.fixture(autouse=True)
def one_lane(request, monkeypatch):
    """One lane, with all that it can have, is compiled for the accelerators of all tests but those of ``own_lanes``;
    three lanes are those that other benches have."""
    def accelerator(cdus, modes, **hardware):
        if modes != chance.EVERY:
            return Accelerator(cdus, modes, **hardware)
        return chance.LARGE if cdus == chance.LARGE.cdus else replace(chance.LANE, cdus=cdus, **hardware | {
            "formats": chance.FORMATS, "scan": True})

    if "own_lanes" not in request.fixturenames:
        monkeypatch.setattr("actcodec.sim.simulator.Accelerator", accelerator)
        monkeypatch.setattr("actcodec.sim.rtl_engine.configuration",
                            lambda mode: chance.EVERY if mode in chance.EVERY else (mode,))


@pytest.fixture
def small_lane(monkeypatch, one_lane):
    """One of few modes, for tensors of 16 bits, but in the other modes: that of the benches of payloads in memory."""
    make = simulator.Accelerator
    monkeypatch.setattr(simulator, "Accelerator", lambda cdus, modes, **hardware: chance.EQUIPPED
                        if modes == chance.SMALL else make(cdus, modes, **hardware))
    monkeypatch.setattr("actcodec.sim.rtl_engine.configuration",
                        lambda mode: chance.SMALL if mode in chance.SMALL else chance.EVERY)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the tensor x.npy and its compressed x.act."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(2, 5, 9, 19)).astype(np.float32)
    x[:, 1] = 0
    np.save("x.npy", x)
    actcodec.save("x.act", actcodec.compress(x, "sfpr-zvc"))
    return tmp_path
