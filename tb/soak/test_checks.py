"""The environment's own bench: every check of a port catches what it is for, and memories keep to what they say."""

import subprocess
from pathlib import Path

from actcodec.sim.accelerator import ENVIRONMENT
from actcodec.sim.toolchain import compiler


def test_checks_catch_what_they_are_for_and_memories_behave(tmp_path):
    source, program = Path(__file__).with_name("checks.cpp"), tmp_path / "checks"
    options = ["-std=c++17", "-O1", "-Wall", "-Werror", "-I", ENVIRONMENT.parent]
    subprocess.run([*compiler(), *options, "-o", program, source], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
