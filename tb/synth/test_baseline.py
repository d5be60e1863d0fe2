"""The baseline: what fails, what passes, and what git remembers of it."""

import os
import subprocess
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from actcodec.synth import baseline, records
from actcodec.synth.baseline import compare, history, read, recipes, record, strangers, write
from actcodec.synth.library import SynthesisError


@dataclass(frozen=True)
class Figures:
    """Those of :class:`actcodec.synth.flow.Figures` that count."""

    area: float = 1000.0
    sequential: float = 400.5
    flops: int = 80
    slack: float = 3.4
    recipe: str = "fast"
    macros: float = 0.0
    seconds: float = 1.0


@pytest.fixture
def path(tmp_path):
    return tmp_path / "baseline.json"


@pytest.fixture
def recorded(path):
    write(record({"dct": Figures(), "align": Figures(slack=-20.0, recipe="area")}), path)
    return read(path)


def test_what_is_written_is_read_again_one_unit_a_line(path, recorded):
    assert recorded["dct"] == {"area": 1000.0, "sequential": 400.5, "flops": 80, "slack": 3.4, "recipe": "fast"}
    assert recipes(recorded) == {"dct": "fast", "align": "area"}
    assert [line.split('"')[1] for line in path.read_text().splitlines()[1:-1]] == ["align", "dct"]


def test_the_area_of_memories_is_recorded_where_there_are_any():
    assert "macros" not in record({"dct": Figures()})["dct"]
    assert record({"lane": Figures(macros=93.5)})["lane"]["macros"] == 93.5


def test_without_a_file_nothing_is_recorded(path):
    assert read(path) == {}
    assert strangers(read(path), ["dct"]) == ["dct: not in the baseline"]


@pytest.mark.parametrize("now", [Figures(), Figures(area=1020.0), Figures(area=10.0, slack=99.0), Figures(flops=900)])
def test_as_good_or_a_little_larger_passes(recorded, now):
    assert compare(recorded, {"dct": now, "align": Figures(slack=-20.0)}) == []


@pytest.mark.parametrize("now, sentence", [
    (Figures(area=1020.1), "dct: area was 1,000 um2, is 1,020 (+2.0%)"),
    (Figures(area=1500.0), "dct: area was 1,000 um2, is 1,500 (+50.0%)"),
    (Figures(slack=3.3), "dct: slack was 3.4 ps, is 3.3"),
    (Figures(slack=-0.1), "dct: slack was 3.4 ps, is -0.1"),
])
def test_larger_or_slower_is_told_with_what_was_and_what_is(recorded, now, sentence):
    assert compare(recorded, {"dct": now, "align": Figures(slack=-20.0)}) == [sentence]


@pytest.mark.parametrize("before, after, sentences", [
    (85000.0, 85000.0, []), (85000.0, 10.0, []), (85000.0, 0.0, []),
    (85000.0, 170000.0, ["reader: area of memories was 85,000 um2, is 170,000 (+100.0%)"]),
    (0.0, 85000.0, ["reader: area of memories was 0 um2, is 85,000"])])
def test_larger_memories_are_told(before, after, sentences):
    assert compare(record({"reader": Figures(macros=before)}), {"reader": Figures(macros=after)}) == sentences


def test_every_fault_is_told(recorded):
    assert compare(recorded, {"align": Figures(area=2000.0, slack=-20.1), "dct": Figures(slack=-1.0)}) == [
        "align: area was 1,000 um2, is 2,000 (+100.0%)", "align: slack was -20.0 ps, is -20.1",
        "dct: slack was 3.4 ps, is -1.0"]


def test_what_is_new_or_gone_is_told(recorded):
    assert strangers(recorded, ["dct", "align"]) == []
    assert strangers(recorded, ["zvc", "dct"]) == ["zvc: not in the baseline",
                                                   "align: in the baseline, but no longer there"]


@pytest.fixture
def git(tmp_path):
    def run(*arguments):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments], cwd=tmp_path, check=True,
                       capture_output=True, env={**os.environ, "GIT_COMMITTER_DATE": "2026-01-02T12:00:00Z"})
    return run


def test_history_is_that_of_the_commits_that_changed_it(path, git):
    git("init", "-q")
    assert history(path) is None
    for area in (1000.0, 900.0):
        write(record({"dct": Figures(area=area)}), path)
        git("add", path.name)
        git("commit", "-q", "-m", "record")
        git("commit", "-q", "--allow-empty", "-m", "something else")
    write(record({"dct": Figures(area=1.0)}), path)  # not committed
    assert [(date, figures["dct"]["area"]) for _, date, figures in history(path)] == [
        ("2026-01-02", 1000.0), ("2026-01-02", 900.0)]
    assert len({commit for commit, _, _ in history(path)}) == 2


def test_there_is_no_history_without_git(path, recorded, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(path.parent.parent))
    assert history(path) is None
    monkeypatch.setenv("PATH", "")
    assert history(path) is None


@pytest.fixture
def command(path, recorded, monkeypatch):
    """Runs the command with a catalogue of ``units``, {label: what its mapping gives}; returns exit code and output."""
    def run(units, *arguments):
        def results(work, threads, done, recipes, begun):
            seen["recipes"] = recipes
            made = [units[job.label] for job in work]
            return [one if isinstance(one, Exception) else
                    (replace(one, recipe=(recipes or {}).get(job.label, one.recipe)), None, False)
                    for job, one in zip(work, made, strict=True)]

        monkeypatch.setattr(baseline, "PATH", path)
        monkeypatch.setattr(baseline, "jobs", lambda names: [SimpleNamespace(label=label, parts={})
                                                             for label in units])
        monkeypatch.setattr(baseline, "run", results)
        monkeypatch.setattr(baseline, "key", lambda job: f"key of {job.label}")
        result = CliRunner().invoke(baseline.command, arguments)
        return result.exit_code, result.output

    seen = run.seen = {}
    return run


def test_the_check_passes_what_is_recorded_and_leaves_the_record_alone(path, recorded, command):
    code, output = command({"dct": Figures(area=1001.0), "align": Figures(slack=-20.0)})
    assert (code, "2 mapped" in output, read(path)) == (0, True, recorded)


@pytest.mark.parametrize("units, fault", [
    ({"dct": Figures(area=1100.0), "align": Figures(slack=-20.0)}, "dct: area was 1,000 um2, is 1,100"),
    ({"dct": Figures()}, "align: in the baseline, but no longer there"),
    ({"dct": Figures(), "align": SynthesisError("align: a latch")}, "align: a latch"),
])
def test_the_check_fails_with_the_reason_and_what_to_do(path, recorded, command, units, fault):
    code, output = command(units)
    assert code == 1
    assert f"error: {fault}" in output and "make synth-renew" in output
    assert read(path) == recorded


def test_renewal_records_all_or_nothing(path, recorded, command):
    assert command({"zvc": Figures(), "dct": SynthesisError("dct: a latch")}, "--renew")[0] == 1
    assert read(path) == recorded
    assert command({"zvc": Figures(recipe="twice-440")}, "--renew")[0] == 0
    assert {label: (figures["recipe"], figures["key"]) for label, figures in read(path).items()} == {
        "zvc": ("twice-440", "key of zvc")}


def test_what_others_record_meanwhile_stays(path, command, monkeypatch):
    def measured():
        write(read(path) | record({"zvc": Figures()}), path)
        return {"date": "2026-01-02", "commit": ""}

    monkeypatch.setattr(records, "stamp", measured)
    assert command({"dct": Figures(area=2000.0)}, "dct", "--renew")[0] == 0
    assert {label: figures["area"] for label, figures in read(path).items()} == {
        "align": 1000.0, "dct": 2000.0, "zvc": 1000.0}


def test_renewal_takes_recorded_recipes_unless_all_are_to_be_tried(recorded, command):
    assert command({"dct": Figures(), "zvc": Figures()}, "--renew")[0] == 0
    assert command.seen["recipes"] == {"dct": "fast", "align": "area"}
    assert command({"dct": Figures()}, "--renew", "--search")[0] == 0
    assert command.seen["recipes"] is None
    code, output = command({"dct": Figures()}, "--search")
    assert code == 2 and "--search goes with --renew" in output


def test_renewal_tells_what_no_longer_meets_the_clock(command):
    code, output = command({"dct": Figures(slack=-0.5), "align": Figures(slack=-30.0)}, "--renew")
    assert code == 0
    assert "dct: recipe fast no longer meets the clock (-0.5 ps): SEARCH=1 tries the others" in output
    assert "align" not in output, "it did not meet it before"


def test_what_is_mapped_by_name_alone_may_be_recorded(path, command):
    label = "accelerator (1 CDU, all modes)"
    assert command({label: Figures()}, "accelerator-1-cdu-all-modes", "--renew")[0] == 0
    assert label in read(path) and "dct" in read(path)
    assert command({"dct": Figures(), "align": Figures(slack=-20.0)})[0] == 0
    assert command({label: Figures(slack=-1.0)}, "accelerator-1-cdu-all-modes")[0] == 1


def test_some_units_alone(path, recorded, command):
    assert command({"dct": Figures()}, "dct")[0] == 0
    assert command({"dct": Figures()}, "--parts")[0] == 0
    assert command({"dct": Figures(area=2000.0)}, "dct")[0] == 1
    assert command({"dct": Figures(area=2000.0)}, "dct", "--renew")[0] == 0
    assert read(path) == recorded | {"dct": recorded["dct"] | {"area": 2000.0, "key": "key of dct", **records.stamp()}}
