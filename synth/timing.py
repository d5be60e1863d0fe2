"""Static timing of a mapped netlist with OpenSTA: slacks of all endpoints, and the slowest path in the RTL's names."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from actcodec.synth import memories
from actcodec.synth.library import PERIOD, UNCERTAINTY, SynthesisError, limits

__all__ = ["ARRIVAL", "LANE", "Timing", "analyse", "constraints", "run"]

# A port's neighbour is a flip-flop: it answers this long after the clock's edge, or wants its input so long before.
ARRIVAL, SETUP = {"*": 100}, 40  # ps; * for those not named
# A lane's neighbours drive several lanes, and the splitter's logic lies in front of a row's data.
LANE = {"*": 150} | {f"rows__payload[{bit}]": 500 for bit in range(64)}
# A clock gate stands before the last levels of the clock's tree, so its clock comes this long before its flip-flops'.
AHEAD = 100  # ps
DRIVER, LOAD = "BUF_X4", 5  # behind a port and, in fF, in front of it

CELLS = Path(__file__).with_name("cells.tcl")  # what scripts ask of OpenSTA
REPORTS = """
set file [open {0}.loads w]
foreach cell [get_cells -hierarchical *] {{
  foreach pin [outputs $cell] {{
    if {{[overloaded $pin [kind $cell]]}} {{ puts $file [get_full_name $pin] }}
  }}
}}
close $file
check_setup -verbose -no_input_delay -no_output_delay -multiple_clock -no_clock -unconstrained_endpoints -loops \
-generated_clocks > {0}.setup
report_checks -path_delay max -format end -group_count 1000000 > {0}.ends
report_checks -path_delay max -format full_clock -fields {{net}} -digits 4 > {0}.path
"""


def constraints(arrival=ARRIVAL):
    """The commands that tell OpenSTA of clock and ports; ``arrival``: {input: ps after the edge}, with "*" for
    all others."""
    delays = " ".join(f"{port} {late / 1000}" for port, late in arrival.items())
    return f"""
set clocked [list]
foreach port [all_inputs] {{ if {{[get_property $port full_name] == "clk"}} {{ lappend clocked $port }} }}
if {{[llength $clocked]}} {{
  create_clock -name clk -period {PERIOD / 1000} $clocked
}} else {{
  create_clock -name clk -period {PERIOD / 1000}
}}
set_clock_uncertainty {UNCERTAINTY / 1000} clk
set inputs [list]
foreach port [all_inputs] {{ if {{[get_property $port full_name] != "clk"}} {{ lappend inputs $port }} }}
if {{[llength $inputs]}} {{
  set delays {{{delays}}}
  foreach port $inputs {{
    set name [get_property $port full_name]
    set_input_delay [dict get $delays [expr {{[dict exists $delays $name] ? $name : "*"}}]] -clock clk $port
  }}
  set_driving_cell -lib_cell {DRIVER} $inputs
}}
set_output_delay {SETUP / 1000} -clock clk [all_outputs]
set_load {LOAD} [all_outputs]
foreach pin [get_pins -quiet -hierarchical */GCK] {{
  set_clock_latency -{AHEAD / 1000} [get_pins [get_full_name [$pin instance]]/CK]
  set_clock_latency 0 $pin
}}
"""


@dataclass(frozen=True)
class Timing:
    """``slacks`` in ps of all endpoints, the worst first; ``path``: (signal or cell, ps after the edge) from the start
    to the end of the worst path, with the RTL's names where a net has one; ``overloads``: outputs of cells that drive
    more than the library allows them."""

    slacks: tuple
    path: tuple
    overloads: tuple

    @property
    def slack(self):
        """The worst one, in ps; the whole period if there is nothing to time."""
        return self.slacks[0] if self.slacks else PERIOD

    @property
    def fmax(self):
        """The highest frequency in MHz."""
        return 1e6 / (PERIOD - self.slack)


def run(script, folder):
    """Runs OpenSTA on the text of a Tcl script, in ``folder``; returns what it says.

    Raises
    ------
    SynthesisError
        If it is not installed, fails, or complains: it goes on after errors, and ends as if there had been none.
    """
    if shutil.which("sta") is None:
        raise SynthesisError("no OpenSTA: install the package opensta (`make synth` does, as root)")
    # One thread, since units run side by side, and several spend much of their time waiting for each other.
    done = subprocess.run(["sta", "-no_splash", "-threads", "1", "-exit", "/dev/stdin"], cwd=folder, input=script,
                          text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = re.findall(r".*(?:Error|Warning|syntax error).*|.*invalid command.*", done.stdout)
    if done.returncode or said:
        raise SynthesisError(f"OpenSTA: {'; '.join(said[:3]) or done.stdout[-300:]}")
    return done.stdout


def link(library, folder, netlists, top):
    """The commands that load a design, whose ``netlists`` are in ``folder`` or elsewhere, with its memories, and the
    procedures of ``cells.tcl``."""
    libraries = [library, *map(memories.liberty, memories.kinds("".join((folder / file).read_text()
                                                                        for file in netlists)))]
    return "\n".join([*(f"read_liberty {file}" for file in libraries), *(f"read_verilog {file}" for file in netlists),
                      f"link_design {top}",
                      f"array set limit {{{' '.join(f'{pin} {limit}' for pin, limit in limits(library).items())}}}",
                      CELLS.read_text()])


def analyse(library, folder, stem, top, names, constants=(), parts=(), arrival=ARRIVAL):
    """Times ``folder/stem.v`` and the netlists of its ``parts``. ``names`` maps cells to the RTL's names; at the ends
    in ``constants`` nothing ever arrives. For ``arrival`` see :func:`constraints`.

    Raises
    ------
    SynthesisError
        Besides the cases of :func:`run`, if a path has no constraint, or if there is a loop.
    """
    run(link(library, folder, [*parts, f"{stem}.v"], top) + constraints(arrival) + REPORTS.format(stem), folder)
    complaints = [line.strip() for line in (folder / f"{stem}.setup").read_text().splitlines()]
    if any(line and not line.startswith("Warning") and line not in constants for line in complaints):
        raise SynthesisError(f"{top}: {'; '.join(line for line in complaints if line not in constants)[:300]}")
    ends = re.findall(r"^\S+ .* (-?\d+\.\d+)(?: \(\w+\))?$", (folder / f"{stem}.ends").read_text(), re.MULTILINE)
    slacks = tuple(sorted(round(1000 * float(slack)) for slack in ends))

    path, lines = [], (folder / f"{stem}.path").read_text().split("data arrival time")[0].splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        step = re.match(r"\s+[\d.]+\s+([\d.]+) [v^] (\S+?)(?:/(\S+))? \((\w+)\)$", line)
        if step and step[3] not in ("CK", "GCK"):
            net = re.match(r"\s+\d+\s+(\S+) \(net\)", below)
            name = names.get(step[2]) or (net[1] if net and not net[1].startswith("_") else step[4])
            path.append((name, round(1000 * float(step[1]))))
    worst = re.search(r"([-\d.]+)\s+slack", (folder / f"{stem}.path").read_text())
    if worst:  # with more digits than the list of endpoints
        slacks = (round(1000 * float(worst[1]), 1), *slacks[1:])
    return Timing(slacks, tuple(path), tuple((folder / f"{stem}.loads").read_text().split()))
