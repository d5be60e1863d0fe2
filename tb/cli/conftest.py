"""What several benches of the command line begin with."""

import numpy as np
import pytest

import actcodec
from actcodec.codecs import lane_modes


@pytest.fixture(autouse=True)
def one_lane(request, monkeypatch):
    """``make sim`` compiles one lane, of all modes, which its accelerators share; ``make regress`` those that the rtl
    engine chooses."""
    if request.config.option.markexpr == "not regress":
        every = tuple(mode.name for mode in lane_modes())
        monkeypatch.setattr("actcodec.sim.rtl_engine.configuration", lambda mode: every if mode in every else (mode,))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the tensor x.npy and its compressed x.act."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(2, 5, 9, 19)).astype(np.float32)
    x[:, 1] = 0
    np.save("x.npy", x)
    actcodec.save("x.act", actcodec.compress(x, "sfpr-zvc"))
    return tmp_path
