"""What several benches of the command line begin with."""

import numpy as np
import pytest

import actcodec


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with the tensor x.npy and its compressed x.act."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(2, 5, 9, 19)).astype(np.float32)
    x[:, 1] = 0
    np.save("x.npy", x)
    actcodec.save("x.act", actcodec.compress(x, "sfpr-zvc"))
    return tmp_path
