"""make and its set-up: what they run, and that a wrong variable is told before anything is done."""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from actcodec.units import UNITS, benches

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {key: value for key, value in os.environ.items()
               if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "SIM", "UNIT", "SEED", "WAVES")}


def make(*words):
    """What make would run."""
    return subprocess.run(["make", "-n", "--no-print-directory", *words], cwd=ROOT, env=ENVIRONMENT, text=True,
                          capture_output=True, check=False)


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_has_a_bench(unit):
    bench, = benches([unit])
    file, *tests = bench.split("::")
    module = import_module(file.removesuffix(".py").replace("/", "."))
    assert all(callable(getattr(module, test)) for test in tests)


@pytest.mark.parametrize("units, nodes", [
    ("huffman", ["tb/comet/test_huffman.py"]), ("jpegact/huffman", ["tb/jpegact/test_huffman.py"]),
    ("dct dct8 cdu-in-a-lane-rice", ["tb/jpegact/test_dct.py", "tb/jpegact/test_cdu.py"]),
    ("dpr_decode", ["tb/gist/test_dpr.py::test_decode"]), ("make", ["tb/cli/test_make.py"]),
    ("docs", ["tb/cli/test_docs.py", "tb/torch/test_docs.py"]), ("", ["tb", "-m", '"not', 'regress"'])])
def test_a_name_stands_for_one_bench_and_no_other(units, nodes):
    command, words = make("sim", f"UNIT={units}", "JOBS=3").stdout.splitlines()[-1].split(" -n 3 --dist worksteal ")
    assert command.endswith("python -m pytest")
    assert words.split() == nodes


@pytest.mark.parametrize("unit, packages", [("dct", ""), ("litex", "soc"), ("dram site", "soc site"),
                                             ("triton", "triton")])
def test_a_bench_has_the_packages_that_it_needs(unit, packages):
    first, *_ = make("sim", f"UNIT={unit}").stdout.replace("\\\n", "").split("\n")
    assert first.split() == f"scripts/setup.sh judges bench registers synth {packages}".split()


@pytest.mark.parametrize("variable", ["UNIT=nope", "UNIT=dct nope", "UNIT=dct-nope", "UNIT=skid-forward", "SIM=questa",
                                      "SIM=", "SIM=verilator icarus"])
def test_a_wrong_variable_is_told_in_one_line_before_anything_runs(variable):
    result = make("sim", variable)
    assert result.returncode
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert variable.split("=")[0] + "=" in result.stderr and ": choose" in result.stderr


@pytest.mark.parametrize("variables", [["RENEW=1"], ["PLACED=1", "SKY130=1"], ["RENEW=1", "PLACED=0"]])
def test_variables_without_effect_are_refused(variables):
    result = make("synth", *variables)
    assert result.returncode and result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert make("synth", "SKY130=1", "RENEW=1", "PLACED=0").returncode == 0


@pytest.mark.parametrize("waves, options", [
    ([], "-n 3 --dist worksteal"), (["WAVES="], "-n 3 --dist worksteal"), (["WAVES=0"], "-n 3 --dist worksteal"),
    (["WAVES=1"], "-n 0")])
def test_a_waveform_is_made_by_one_process(waves, options):
    assert f'pytest {options} tb -m "not regress"\n' in make("sim", "JOBS=3", *waves).stdout
    assert f"pytest {options} tb\n" in make("regress", "JOBS=3", *waves).stdout


def test_verilog_is_written_and_checked():
    written, checked = make("verilog").stdout.replace("\\\n", "").splitlines()[-2:]
    assert written.endswith("python -m actcodec.units build/verilog")
    assert re.search(r"build/verilog/\*\.v .*-n 1 +tb/bin/verilator --lint-only --quiet -Wall rtl/lint.vlt$", checked)


@pytest.fixture
def checkout(tmp_path):
    """A checkout with nothing but the set-up, and a Python whose virtual environments do nothing."""
    folder = tmp_path / "here"
    (folder / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/setup.sh", folder / "scripts")
    for name in ("requirements.lock", "pyproject.toml"):
        (folder / name).write_text("")
    fake = tmp_path / "python"
    fake.write_text(f"""#!/bin/sh
[ "$1" = -m ] || {{ [ -n "$FAKE" ] && case "$2" in *print*) echo "$FAKE"; exit; esac; exec {sys.executable} "$@"; }}
echo "$@"
mkdir -p .venv/bin && printf '#!/bin/sh\\nexit 0\\n' >.venv/bin/python && chmod +x .venv/bin/python
""")
    fake.chmod(0o755)
    return folder


def setup(checkout, **variables):
    """Lines that the set-up prints; the calls of the virtual environment's maker are among them."""
    result = subprocess.run(["bash", checkout / "scripts/setup.sh"], text=True, capture_output=True, check=False,
                            env={**ENVIRONMENT, "PYTHON": str(checkout.parent / "python"), **variables})
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def test_set_up_is_done_once_and_anew_for_another_place_or_python(checkout):
    anew, updated = ["-m venv --clear .venv"], []
    assert setup(checkout)[1:] == anew
    assert setup(checkout) == []
    (checkout / "requirements.lock").write_text("another")
    assert setup(checkout)[1:] == updated
    assert setup(checkout) == []
    moved = checkout.rename(checkout.parent / "there")
    assert setup(moved)[1:] == anew
    assert setup(moved) == []
    assert setup(moved, FAKE="3.99")[1:] == anew


def test_units_are_known_before_anything_is_set_up(checkout):
    (checkout / "Makefile").write_bytes((ROOT / "Makefile").read_bytes())
    result = subprocess.run(["make", "-n", "sim", "UNIT=dct", f"PYTHON={checkout.parent / 'python'}"], cwd=checkout,
                            env=ENVIRONMENT, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "setup: installing" in result.stderr and (checkout / ".venv/stamp").exists()
