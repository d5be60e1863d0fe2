"""``python -m actcodec.synth``: every command explains itself."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from actcodec.synth import mapping
from actcodec.synth.__main__ import COMMANDS, main
from actcodec.synth.catalogue import NAMES


def test_all_commands_are_listed():
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    listed = result.output.split("Commands:")[1]
    assert [line.split()[0] for line in listed.strip().splitlines()] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_examples_that_name_the_command(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    examples = result.output.split("Examples:")[1].split("Options:")[0].strip().splitlines()
    assert examples and all(f"actcodec.synth {name}" in line for line in examples)


def test_an_unknown_command_or_unit_is_refused():
    assert CliRunner().invoke(main, ["route"]).exit_code == 2
    result = CliRunner().invoke(main, ["gates", "nothing"])
    assert result.exit_code == 2 and "nothing" in result.output


@pytest.mark.parametrize("words", [["dct", "--renew"], ["--no-power", "--renew"]])
def test_what_would_be_recorded_is_measured(words, monkeypatch):
    monkeypatch.delattr(mapping, "jobs")
    result = CliRunner().invoke(main, ["map", *words])
    assert result.exit_code == 2 and "--renew goes with --power" in result.output


@pytest.mark.parametrize("file", [".ci/run", ".github/workflows/ci.yml"])
def test_a_share_of_the_netlists_is_run_by_ci(file):
    text = (Path(__file__).resolve().parents[2] / file).read_text()
    units = re.search(r'make .*gates UNIT="(.*)"', text)[1].split()
    assert set(units) <= set(NAMES) and {"bursts", "outliers"} <= set(units), "a clock gate, and a bench that met one"
