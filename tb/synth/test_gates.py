"""Benches on netlists: a good netlist passes, a broken one does not."""

import re
import shutil
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from actcodec.elaboration import netlist
from actcodec.synth import catalogue, cells, gates, traffic, whole
from actcodec.synth.flow import synthesise
from actcodec.synth.library import SynthesisError, liberty
from actcodec.units import UNITS
from tb.synth.half import half


def test_cells_are_what_their_names_say():
    library = cells.cells(liberty())
    assert {cell.kind for cell in library.values()} == {"logic", "flop", "gate"}
    assert library["NAND2_X1"].outputs == {"ZN": "~(A1 & A2)"} and library["NAND2_X1"].inputs == ("A1", "A2")
    assert library["DFF_X2"].next == "D" and library["DFF_X2"].outputs == {"Q": "IQ", "QN": "IQN"}
    assert library["CLKGATE_X4"].outputs == {"GCK": "(CK & IQ)"}
    assert not {"DLH_X1", "TBUF_X1", "FILLCELL_X1", "DFFR_X1", "CLKGATETST_X1"} & set(library)


@pytest.fixture(scope="module")
def binarize(tmp_path_factory):
    """The netlist of Binarize: (its folder, another for netlists that are broken)."""
    unit = UNITS["binarize"]
    folder = synthesise("binarize", netlist(unit.build(**unit.synth), "binarize")[0], tmp_path_factory.mktemp("synth"),
                        "fast")[1]
    other = folder.with_name("broken")
    shutil.copytree(folder, other)
    return folder, other


def test_a_netlist_passes_its_bench_and_is_remembered(binarize):
    folder, _ = binarize
    done, cached = gates.run("binarize", folder)
    assert done.tests > 0 and not cached
    assert gates.run("binarize", folder) == (done, True)
    assert {"gates.py", "cells.py", "memories.py", "netlist.py"} <= {path.name for path in gates._judges()}


def test_a_pass_is_remembered_only_when_all_of_it_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(gates.subprocess, "run", lambda *_, **__: SimpleNamespace(
        returncode=0, stdout="3 tests on the netlist\n"))
    (tmp_path / "net.v").write_text("")
    with half('{"tests": 3'):
        gates.run("binarize", tmp_path)
    assert not gates.run("binarize", tmp_path)[1]


def test_what_other_judges_said_is_not_remembered(binarize, monkeypatch, tmp_path):
    folder, _ = binarize
    gates.run("binarize", folder)
    other = tmp_path / "judge.py"
    other.write_text("# a judge that knows more\n")
    monkeypatch.setattr(gates, "_judges", lambda judges=gates._judges: [*judges(), other])
    assert not gates.run("binarize", folder)[1]


@pytest.mark.parametrize("good, bad", [("NAND2", "AND2"), ("NOR2", "OR2")])
def test_an_inverted_gate_is_caught(binarize, good, bad):
    folder, broken = binarize
    text, count = re.subn(rf"\b{good}_X\d (?=g\d+ )", f"{bad}_X1 ", (folder / "net.v").read_text(), count=1)
    assert count
    (broken / "net.v").write_text(text)
    with pytest.raises(SynthesisError, match="binarize: its netlist fails its bench: AssertionError"):
        gates.run("binarize", broken)


def test_what_no_activations_pass_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(traffic, "record", lambda job, direction, build: None)
    with pytest.raises(SynthesisError, match="some lane: no activations pass"):
        whole.answers(SimpleNamespace(label="some lane", name="lane"), tmp_path, {})


def test_what_no_activations_pass_is_refused_before_it_is_mapped(monkeypatch):
    monkeypatch.delattr(catalogue, "jobs")
    names = [name for name in catalogue.BY_NAME if name.startswith("accelerator")]
    result = CliRunner().invoke(gates.command, ["dct", *names])
    assert result.exit_code == 2
    assert all(f"accelerator ({name})" in result.output for name in UNITS["accelerator"].by_name), result.output
    assert all(whole.replays(parameters) for _, unit, parameters in catalogue.orders(catalogue.MAPPED).values()
               if unit.name in gates.REPLAYED)


def test_of_placed_accelerators_the_lane_is_judged(monkeypatch, tmp_path):
    lane = catalogue.Job("lane", None, "lane", UNITS["lane"], {}, "text")
    accelerator = catalogue.Job("accelerator", None, "accelerator", UNITS["accelerator"], {}, "text", {"lane": lane})
    monkeypatch.setattr(catalogue, "jobs", lambda names, selects: [lane, accelerator])
    monkeypatch.setattr(catalogue, "run", lambda work, *_: [(SimpleNamespace(cells=1), tmp_path, False)] * len(work))
    monkeypatch.setattr(gates, "lay", lambda name, *_: (None, name, False))
    monkeypatch.setattr(gates, "judge", lambda job, folder, parts: ([folder] + ["-"] * 5, {}))
    result = CliRunner().invoke(gates.command, ["accelerator", "--placed"])
    assert result.exit_code == 0, result.output
    assert "1 of 1 netlists pass" in result.output and "accelerator" not in result.output
