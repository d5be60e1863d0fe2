"""Native kernels are compiled once, when they are first used; without a compiler, operations of PyTorch do the work."""

import numpy as np
import pytest
import torch

from actcodec.torch import kernels
from actcodec.torch.golden import codec


@pytest.fixture
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernels.library.cache_clear()
    yield tmp_path / "actcodec"
    kernels.library.cache_clear()


def test_what_is_compiled_is_kept(empty_cache):
    assert kernels.library("gist") is not None
    made, = empty_cache.glob("gist-*.so")
    stamp = made.stat().st_mtime_ns
    kernels.library.cache_clear()
    assert kernels.library("gist") is not None
    assert [path.stat().st_mtime_ns for path in empty_cache.glob("gist-*.so")] == [stamp]


def test_without_a_compiler_operations_do_the_work(empty_cache, monkeypatch):
    x, one = torch.randn(3, 5, 9, 19), codec("dpr-fp10", {})
    expected = one.decode(one.encode(x))
    kernels.library.cache_clear()
    monkeypatch.setenv("CXX", "false")
    with pytest.warns(UserWarning, match="no native kernels of gist"):
        packed = one.encode(x)
    np.testing.assert_array_equal(one.decode(packed).numpy(), expected.numpy())


def test_which_tensors_they_take(monkeypatch):
    x = torch.zeros(8, 8)
    assert kernels.of("gist", x) is not None
    assert kernels.of("gist", x, x.T) is None
    assert kernels.of("gist", x.to("meta")) is None
    monkeypatch.setattr(kernels, "enabled", False)
    assert kernels.of("gist", x) is None


def test_without_a_home_operations_do_the_work(monkeypatch):
    def lost():
        raise RuntimeError("Could not determine home directory.")

    kernels.library.cache_clear()
    monkeypatch.setattr(kernels, "cache_folder", lost)
    x, one = torch.randn(3, 5, 9, 19), codec("dpr-fp10", {})
    with pytest.warns(UserWarning, match="no native kernels of gist"):
        one.decode(one.encode(x))
    kernels.library.cache_clear()
