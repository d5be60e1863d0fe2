"""What is mapped, in which order, and what is recorded of it."""

from io import StringIO
from time import sleep
from types import SimpleNamespace

import pytest
from rich.console import Console

from actcodec.synth import baseline, catalogue
from actcodec.synth.catalogue import MAPPED, Job, jobs, large, orders
from actcodec.synth.console import Mapping, progress
from actcodec.synth.flow import RECIPES
from actcodec.synth.library import SynthesisError
from actcodec.units import UNITS

AREA = 1_370_000  # um2


def test_accelerators_consist_of_one_and_the_same_lane_for_equal_memory_and_modes():
    result = jobs(["quantize", "accelerator", "accelerator-independent-memory"])
    labels = {job.label: job for job in result}
    assert sorted(labels) == ["accelerator", "accelerator (1 CDU)", "accelerator (independent memory)", "lane",
                              "lane (independent memory)", "quantize"]
    for label, lane in (("", "lane"), (" (1 CDU)", "lane"), (" (independent memory)", "lane (independent memory)")):
        assert list(labels[f"accelerator{label}"].parts.values()) == [labels[lane]]


def _stand_in(name, parameters, target):
    """Of a netlist: a text, and for an accelerator that of its lane, which memory, modes and a scan decide."""
    decide = [parameters.get(key) for key in ("memory", "modes", "scan")]
    return name, {"lane": repr(decide)} if name == "accelerator" else {}


def test_a_lane_of_other_memory_or_modes_or_with_a_scan_is_another_job(monkeypatch):
    monkeypatch.setattr(catalogue, "_elaborate", _stand_in)
    labels = {job.label: job for job in jobs([
        "quantize", "accelerator", "accelerator-1-cdu-all-modes", "accelerator-1-cdu-standalone",
        "accelerator-independent-memory"])}
    accelerators = ["accelerator", *(f"accelerator ({name})" for name in UNITS["accelerator"].variants)]
    others = {name: f"lane ({lane})" for name, lane in (
        ("independent memory",) * 2, ("all modes",) * 2, ("standalone", "scan"))}
    assert sorted(labels) == sorted(["quantize", "lane", *others.values(), *accelerators])
    for label in accelerators:
        lane = next((lane for name, lane in others.items() if name in label), "lane")
        assert list(labels[label].parts.values()) == [labels[lane]]


def test_a_unit_stands_for_its_variants_but_for_the_largest():
    assert list(orders(["dct"])) == ["dct", "dct (forward)", "dct (inverse)"]
    assert list(orders(["collector-rice", "maxpool"])) == ["collector (rice)", "maxpool (width 16)"]
    assert list(orders(["cdu", "cdu-in-a-lane"])) == list(orders(["cdu"]))
    assert "accelerator (1 CDU)" in orders(["accelerator"])
    assert "accelerator (1 CDU, all modes)" not in orders(["accelerator"])
    assert list(orders(["accelerator-1-cdu-all-modes"])) == ["accelerator (1 CDU, all modes)"]
    assert list(orders(["cdu"])) == ["cdu", "cdu (in a lane)", "cdu (cDMA+)"]
    assert list(orders(["cdu-in-a-lane-jpeg-base", "cdu-in-a-lane-rice"])) == ["cdu (in a lane, JPEG-BASE)",
                                                                               "cdu (in a lane, rice)"]
    assert large() == {
        "accelerator (1 CDU, all modes)", "lane (all modes)", "accelerator (1 CDU, standalone)", "lane (scan)",
        "accelerator (independent memory)", "lane (independent memory)",
        *(f"cdu (in a lane, {one})" for one in ("DIVISION", "JPEG-BASE", "nibble", "rice")),
        *(f"{unit} ({coder})" for unit in ("collector", "splitter") for coder in ("nibble", "rice"))}


@pytest.mark.parametrize("names", [MAPPED, [name for name in MAPPED if name != "accelerator"]], ids=["all", "parts"])
def test_what_is_mapped_by_default_has_a_recorded_recipe(names, monkeypatch):
    """Neither `make synth` nor `make synth-check`, with or without PARTS=1, searches or stops at a stranger."""
    monkeypatch.setattr(catalogue, "_elaborate", _stand_in)
    recorded = baseline.read()
    labels = {job.label for job in jobs(names)}
    assert labels <= set(recorded) and not labels & large()
    assert not any(unit.by_name and set(unit.by_name) - set(unit.variants) for unit in UNITS.values())
    assert {recorded[label]["recipe"] for label in labels} <= set(RECIPES)
    if names == MAPPED:
        assert set(recorded) - labels <= large()


def test_all_of_it_is_not_too_much():
    """`make synth` ends in 20 minutes of two idle cores. Lanes are mapped once, whatever accelerators have of them."""
    area = {label: figures["area"] for label, figures in baseline.read().items() if label not in large()}
    assert sum(area.values()) - (4 + 1) * area["lane"] < AREA


@pytest.fixture
def mapping(monkeypatch):
    """Runs jobs of stand-ins, {label: size, or (size, labels of its parts)}, in one thread: a list of (what began,
    its recipe, what the bar says meanwhile), and what a terminal or a file shows."""
    def run(sizes, recipes, terminal=False):
        made, console = {}, Console(file=StringIO(), force_terminal=terminal, width=150)
        for label, size in sizes.items():
            size, parts = size if isinstance(size, tuple) else (size, ())
            made[label] = Job(label, None, label, None, {}, label * size, {part: made[part] for part in parts})
        began = []

        def synthesise(name, text, recipe, parts, arrival, apart):
            began.append((name, recipe, bars.tasks[0].description))
            if name == "broken":
                raise SynthesisError("broken: a latch")
            return SimpleNamespace(seconds=7.0), None, False

        monkeypatch.setattr(catalogue, "synthesise", synthesise)
        with progress(console) as bars:
            shown = Mapping(console, bars, list(made.values()))
            results = catalogue.run(list(made.values()), 1, shown.done, recipes, shown.begun)
        assert [isinstance(result, Exception) for result in results] == [label == "broken" for label in made]
        return began, console.file.getvalue()
    return run


def test_the_largest_come_last_and_nothing_is_searched_unless_it_is_asked_for(mapping):
    sizes = {"large": 99, "lane": 50, "whole": (1, ("lane",)), "small": 1, "new": 2}
    known = {"large": "wide", "lane": "flat", "whole": "twice", "small": "least"}
    assert [began[:2] for began in mapping(sizes, known)[0]] == [
        ("small", "least"), ("new", "fast"), ("lane", "flat"), ("large", "wide"), ("whole", "twice")]
    assert {recipe for _, recipe, _ in mapping(sizes, None)[0]} == {None}


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_names_what_is_mapped_and_says_that_the_last_is_long(mapping, terminal):
    began, shown = mapping({"lane": 5, "whole": (1, ("lane",)), "small": 1, "broken": 2}, {}, terminal)
    assert shown.count("left: whole; they are the largest, and take minutes each") == 1
    assert all(bar == f"mapping to Nangate45: {name}" for name, _, bar in began)
    lines = [line.split(": ") for line in shown.splitlines() if line.endswith((" s", "failed"))]
    assert lines == ([] if terminal else [["small", "7 s"], ["broken", "failed"], ["lane", "7 s"], ["whole", "7 s"]])


def test_two_labels_of_one_netlist_do_not_share_a_folder_at_the_same_time(monkeypatch):
    """As of collectors for nibble and rice; each has a result of its own."""
    work = [Job(label, None, "collector", None, {}, text, {}) for label, text in (
        ("nibble", "same"), ("rice", "same"), ("other", "other text"))]
    running, most = set(), [0]

    def synthesise(name, text, recipe, parts, arrival, apart):
        assert text not in running
        running.add(text)
        most[0] = max(most[0], len(running))
        sleep(0.05)
        running.remove(text)
        return recipe

    monkeypatch.setattr(catalogue, "synthesise", synthesise)
    recipes = {"nibble": "fast", "rice": "wide", "other": "flat"}
    assert catalogue.run(work, 2, lambda job, result: None, recipes) == ["fast", "wide", "flat"]
    assert most == [2]
