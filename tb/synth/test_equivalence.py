"""Equivalence of netlists with the RTL: a good one is proved, a wrong one is told."""

import json
import shutil

import pytest

from actcodec.synth.equivalence import prove
from actcodec.synth.flow import netlist, synthesise
from actcodec.synth.library import SynthesisError
from actcodec.units import UNITS


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    """The folder of a netlist that has clock gates."""
    text, _ = netlist(UNITS["fadd"].build(), "fadd")
    return synthesise("fadd", text, tmp_path_factory.mktemp("synth"), "fast")[1]


def test_a_netlist_is_proved_and_remembered(unit):
    proof = prove("fadd", unit, build=unit.parent)
    assert proof.proved and proof.outputs > 250
    assert prove("fadd", unit, build=unit.parent) == proof


def inverted(cells):
    """One gate gives the opposite."""
    cell = next(cell for cell in cells.values() if cell["type"].startswith("NAND2"))
    cell["type"] = "AND2_X1"


def ungated(cells):
    """A clock gate is always on."""
    cell = next(cell for cell in cells.values() if cell["type"].startswith("CLKGATE"))
    cell["connections"]["E"] = ["1"]


def exchanged(cells):
    """Two flip-flops keep what the other one should."""
    one, other = [cell["connections"] for cell in cells.values() if cell["type"].startswith("DFF")][:2]
    one["D"], other["D"] = other["D"], one["D"]


@pytest.mark.parametrize("change", [inverted, ungated, exchanged])
def test_a_wrong_netlist_is_told(unit, change):
    folder = unit.with_name(change.__name__)
    shutil.copytree(unit, folder, ignore=shutil.ignore_patterns("proof.json"))
    design = json.loads((folder / "net.json").read_text())
    change(design["modules"]["fadd"]["cells"])
    (folder / "net.json").write_text(json.dumps(design))
    with pytest.raises(SynthesisError, match="fadd: its netlist is not what the RTL says"):
        prove("fadd", folder, build=unit.parent)
