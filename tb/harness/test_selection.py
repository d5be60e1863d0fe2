"""Runs name their cocotb tests, and each test has a run; what is chosen where not all is run."""

import subprocess
import sys
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from tb.harness import PATTERNS, ROOT, STALLS, forgetful, selection
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


def swept(*names):
    """Generated tests of one name over all patterns of these ports, for two forms; and one test without ports."""
    patterns = {"idle": PATTERNS, "stall": STALLS, "order": ["any", "address"]}
    ways = [dict(zip(names, values, strict=True)) for values in product(*(patterns[name] for name in names))]
    return [SimpleNamespace(name=f"equals_golden/{k}/{form}", kwargs={"form": form, **way})
            for form in ("one", "other") for k, way in enumerate(ways)] + [SimpleNamespace(name="resets", kwargs={})]


@pytest.mark.parametrize("names, few", [(["idle", "stall"], 6), (["idle"], 5), (["idle", "stall", "order"], 6)])
@pytest.mark.parametrize("seed", ["1", "2"])
def test_each_port_has_each_of_its_patterns_however_few_tests_are_chosen(names, few, seed):
    every = swept(*names)
    chosen = selection.covering(every, seed)
    assert len(chosen) == 2 * few + 1 and all(one in every for one in chosen) and every[-1] in chosen
    for form, name in product(("one", "other"), names):
        assert {one.kwargs[name] for one in chosen[:-1] if one.kwargs["form"] == form} == {
            one.kwargs[name] for one in every[:-1]}
    assert chosen == selection.covering(every, seed)


def test_other_seeds_choose_other_patterns():
    every = swept("idle", "stall")
    assert selection.covering(every, "1") != selection.covering(every, "2")


@pytest.mark.parametrize("count, share, left", [(7, 3, 3), (6, 6, 1), (2, 6, 1), (2, 1, 2), (0, 3, 0)])
def test_a_part_has_one_in_so_many_in_their_order(count, share, left):
    chosen = selection.part(np.random.default_rng(1), range(count), share)
    assert len(chosen) == left and chosen == sorted(set(chosen)) and set(chosen) <= set(range(count))


def test_a_part_of_few_has_all_of_them():
    random = np.random.default_rng(1)
    assert [len(selection.part(random, range(count), 4, many=8)) for count in (7, 8, 9)] == [7, 8, 3]


def marked(path, regress):
    return SimpleNamespace(path=path, get_closest_marker=lambda name: regress)


def test_parts_have_all_of_regress_between_them_and_what_is_not_of_it_each():
    sim, more = ([marked(path, regress) for path in 2 * "hgfedcba"] for regress in (False, True))
    runs = []
    for number in (1, 2, 3):
        missing = selection.elsewhere(sim + more, f"{number}/3")
        assert not any(item in missing for item in sim)
        runs.append([item for item in more if item not in missing])
    assert sorted(item.path for run in runs for item in run) == sorted(item.path for item in more)
    assert sorted(map(len, runs)) == [4, 6, 6] and not selection.elsewhere(sim + more, "1/1")


@pytest.mark.parametrize("share", ["0/3", "4/3", "3", "1/0", "a/b", "1/2/3", ""])
def test_what_is_no_part_is_refused(share):
    with pytest.raises(pytest.UsageError, match=f"PART={share}: must be K/N"):
        selection.elsewhere([], share)
