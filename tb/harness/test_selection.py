"""Runs name their cocotb tests, and each test has a run."""

import subprocess
import sys

import pytest

from tb.harness import ROOT, forgetful, selection
from tb.synth import weak


@pytest.mark.parametrize("words, code", [(["", "-k", "forgotten"], 1), (["::test_skid"], 0)])
def test_a_test_that_no_run_has_fails_where_the_file_is_run_as_a_whole(words, code):
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist",
                           f"tb/harness/forgetful.py{words[0]}", *words[1:]], cwd=ROOT, text=True, capture_output=True,
                          check=False)
    assert done.returncode == code, done.stdout
    assert ("no run of tb/harness/forgetful.py has the cocotb test forgotten" in done.stdout) == bool(code)


@pytest.mark.parametrize("choice", [{"tests": [weak.passes_beats]}, {"without": [weak.passes_beats]},
                                    {"tests": ["remembered"]}])
def test_a_test_of_another_file_is_refused(choice):
    with pytest.raises(ValueError, match=r"tb\.harness\.forgetful has no cocotb test"):
        selection.select(None, "tb.harness.forgetful", **choice)


def test_tests_are_chosen_in_the_order_of_the_file():
    both = [forgetful.remembered, forgetful.forgotten]
    assert selection.select(None, "tb.harness.forgetful") == both
    assert selection.select(None, "tb.harness.forgetful", both[::-1]) == both
    assert selection.select(None, "tb.harness.forgetful", both, [forgetful.remembered]) == both[1:]
