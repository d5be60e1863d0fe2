"""Equivalence of netlists with the RTL: a good one is proved, a wrong one is told."""

import json
import re
import shutil

import pytest

from actcodec.elaboration import netlist
from actcodec.synth import equivalence
from actcodec.synth.equivalence import prove
from actcodec.synth.flow import synthesise
from actcodec.synth.library import SynthesisError
from actcodec.units import UNITS
from tb.synth.bank import Nested


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    """The folder of a netlist that has clock gates."""
    text, _ = netlist(UNITS["fadd"].build(), "fadd")
    return synthesise("fadd", text, tmp_path_factory.mktemp("synth"), "fast")[1]


def test_a_netlist_is_proved_and_remembered(unit):
    proof = prove("fadd", unit, build=unit.parent)
    assert proof.proved and proof.outputs > 250
    assert prove("fadd", unit, build=unit.parent) == proof


@pytest.fixture(scope="module", params=[("front",), ("front", "back")])
def nested(tmp_path_factory, request):
    """The folder of a netlist of which submodules were mapped by themselves."""
    text, _ = netlist(Nested(), "nested")
    return synthesise("nested", text, tmp_path_factory.mktemp("synth"), "fast", apart=request.param)[1]


def test_what_was_mapped_apart_is_proved_with_the_rest(nested):
    proof = prove("nested", nested, build=nested.parent)
    assert proof.proved and proof.outputs == 3 * 8 + 8


def test_a_wrong_gate_in_what_was_mapped_apart_is_told(nested):
    folder = nested.with_name("wrong")
    shutil.copytree(nested, folder, ignore=shutil.ignore_patterns("proof*.json"))
    design = json.loads((folder / "net.json").read_text())
    module = design["modules"]["nested"]
    bit = module["netnames"]["front.register[3]"]["bits"] if "front.register[3]" in module["netnames"] else [
        module["netnames"]["front.register"]["bits"][3]]
    flop = next(cell for cell in module["cells"].values() if bit in (cell["connections"].get("Q"),
                                                                     cell["connections"].get("QN")))
    flop["connections"]["D"] = module["ports"]["i"]["bits"][4:5]
    (folder / "net.json").write_text(json.dumps(design))
    with pytest.raises(SynthesisError, match="nested: its netlist is not what the RTL says"):
        prove("nested", folder, build=nested.parent)
    shutil.rmtree(folder)


@pytest.mark.parametrize("change", ["checker", "netlist", "limit"])
def test_a_proof_is_remembered_of_this_netlist_by_this_checker_alone(unit, change, tmp_path, monkeypatch):
    folder = unit.with_name(f"kept-{change}")
    shutil.copytree(unit, folder)
    prove("fadd", folder, build=unit.parent)
    kept, = folder.glob("proof*.json")
    kept.write_text(json.dumps(json.loads(kept.read_text()) | {"outputs": -1}))
    assert prove("fadd", folder, build=unit.parent).outputs == -1
    limit = equivalence.LIMIT
    if change == "checker":
        other = tmp_path / "other.py"
        other.write_text("# a checker that knows more\n")
        monkeypatch.setattr(equivalence, "CHECKER", (*equivalence.CHECKER, other))
    elif change == "netlist":
        (folder / "net.json").write_text((folder / "net.json").read_text() + "\n")
    else:
        limit += 1
    assert prove("fadd", folder, limit, build=unit.parent).outputs > 250


def test_the_checker_is_all_the_code_that_makes_a_proof():
    """What it imports of this package, and itself."""
    text = equivalence.CHECKER[0].read_text()
    several = re.findall(r"^from actcodec.synth import (.*)$", text, re.MULTILINE)
    named = re.findall(r"^from actcodec.synth\.(\w+) import", text, re.MULTILINE)
    assert {path.stem for path in equivalence.CHECKER} == {"equivalence", *", ".join(several).split(", "), *named}


def test_inner_names_are_those_before_abc_also_in_flattened_modules():
    names = {"$abc$12$auto$alu.P": [2, 3], "$flatten\\inside.codec.$abc$34$auto$ff": [5], "inside.codec.step": [7]}
    assert equivalence._labels({"netnames": {name: {"bits": bits} for name, bits in names.items()}}) == {
        "$auto$alu.P[0]": 2, "$auto$alu.P[1]": 3, "$flatten\\inside.codec.$auto$ff": 5, "inside.codec.step": 7}


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
    shutil.copytree(unit, folder, ignore=shutil.ignore_patterns("proof*.json"))
    design = json.loads((folder / "net.json").read_text())
    change(design["modules"]["fadd"]["cells"])
    (folder / "net.json").write_text(json.dumps(design))
    with pytest.raises(SynthesisError, match="fadd: its netlist is not what the RTL says"):
        prove("fadd", folder, build=unit.parent)
