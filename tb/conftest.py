"""Says where the waveforms are; chooses the tests of a netlist; leaves out those on CUDA where there is none; fails for
a cocotb test that no run has."""

import os
import shutil
import signal
from pathlib import Path
from random import SystemRandom

import numpy as np
import pytest

from tb.harness import build, selection

HERE = Path(__file__).parent
REGRESS = {"formal", "soak", "synth", "torch", "tutorial"}  # folders whose tests make sim leaves to make regress
OTHERS = []  # tests that do not concern the netlist
ON_CUDA = []  # tests that need it, where it is not
ELSEWHERE = []  # tests of other parts of make regress


# Triton decides when it is imported, which PyTorch may do, whether its kernels are interpreted.
os.environ.setdefault("TRITON_INTERPRET", "0" if shutil.which("nvidia-smi") else "1")


def pytest_configure(config):
    """Commands that tests run can be interrupted, also where a shell in the background has all ignore that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """What would be left out as a whole is not even read."""
    if selection.brief(config) and collection_path.parent.name == "tb" and collection_path.name in REGRESS:
        return True


def pytest_runtest_setup(item):
    """What only ``make regress`` has chooses patterns of ports as ``make sim`` does; the rest of it multiplies them."""
    added = item.get_closest_marker("regress") and not (os.environ.get("GATES") or os.environ.get("MUTANTS"))
    build.BRIEF[:] = [True] * bool(selection.brief(item.config) or added)


@pytest.hookimpl(tryfirst=True)  # before -k leaves any out
def pytest_collection_modifyitems(config, items):
    """On a netlist (``GATES``, ``MUTANTS``) only tests that concern it are run; pytest says how many are not. Otherwise
    files that are run as a whole are to have a run for each cocotb test."""
    for item in items:  # a bench that a test of these runs by its name is that test's, and has no mark
        if REGRESS & set(item.path.relative_to(HERE).parts) and item.path.name.startswith("test_"):
            item.add_marker("regress")
    on_cuda = [item for item in items if "callspec" in dir(item) and item.callspec.params.get("device") == "cuda"]
    if on_cuda and not has_cuda():
        leave_out(config, items, on_cuda, ON_CUDA)
    if os.environ.get("GATES") or os.environ.get("MUTANTS"):
        from tb import netlist

        leave_out(config, items, [item for item in items if not netlist.concerns(item)], OTHERS)
    elif not (config.getoption("lf", False) or any("::" in name for name in config.args)):
        items += selection.unused(items)
    if share := os.environ.pop("PART", None):  # which is not for tests that run pytest
        leave_out(config, items, selection.elsewhere(items, share), ELSEWHERE)


@pytest.fixture
def random():
    """A generator of the run's ``SEED``, which a test that fails shows."""
    seed = int(os.environ.get("SEED") or SystemRandom().randrange(2**31))
    print(f"SEED={seed}")
    return np.random.default_rng(seed)


def leave_out(config, items, others, names):
    names.extend(item.name for item in others)
    config.hook.pytest_deselected(items=others)
    left = set(others)
    items[:] = [item for item in items if item not in left]


def has_cuda():
    import torch

    return torch.cuda.is_available()


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a process of several, each of which has collected all tests
        session.config.workeroutput |= {"on_cuda": ON_CUDA, "elsewhere": ELSEWHERE}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    output = getattr(node, "workeroutput", {})
    ON_CUDA[:], ELSEWHERE[:] = output.get("on_cuda", ON_CUDA), output.get("elsewhere", ELSEWHERE)


def pytest_terminal_summary(terminalreporter):
    for path in build.WAVEFORMS:
        terminalreporter.write_line(f"waveform: {path}")
    if OTHERS:
        terminalreporter.write_line(f"not run, {len(OTHERS)} without the netlist's unit or with other parameters: "
                                    f"{', '.join(OTHERS)}")
    if ELSEWHERE:
        terminalreporter.write_line(f"not run, of other parts of make regress: {len(ELSEWHERE)} tests")
    if ON_CUDA:
        terminalreporter.write_line(f"not run, as there is no CUDA here: {len(ON_CUDA)} tests, all of which ran on the "
                                    "CPU")
