"""``python -m actcodec.synth``: every command explains itself."""

import pytest
from click.testing import CliRunner

from actcodec.synth.__main__ import COMMANDS, main


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
    assert CliRunner().invoke(main, ["place"]).exit_code == 2
    result = CliRunner().invoke(main, ["gates", "nothing"])
    assert result.exit_code == 2 and "nothing" in result.output
