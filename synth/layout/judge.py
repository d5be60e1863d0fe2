"""What OpenSTA says of a netlist with its wires."""

import re
from dataclasses import dataclass

from actcodec.synth import timing
from actcodec.synth.layout import wires
from actcodec.synth.library import PERIOD, SynthesisError

__all__ = ["Verdict", "judge"]

REPORTS = """
set file [open {0}.loads w]
foreach cell [get_cells *] {{
  foreach pin [outputs $cell] {{ if {{[overloaded $pin [kind $cell]]}} {{ puts $file [get_full_name $pin] }} }}
}}
close $file
set file [open {0}.slacks w]
foreach end [find_timing_paths -path_delay max -group_count 1000000] {{
  puts $file "[get_full_name [[sta::PathEnd_vertex $end] pin]] [sta::PathEnd_slack $end]"
}}
close $file
report_checks -path_delay max -format full_clock -fields {{slew cap}} -digits 4 > {0}.path
"""


@dataclass(frozen=True)
class Verdict:
    """``slacks`` {end as CELL/PIN, with cells by number, or port: ps}; ``overloads``: outputs that drive more than they
    may."""

    slacks: dict
    overloads: tuple

    @property
    def worst(self):
        """The least slack, in ps; the whole period if there is nothing to time."""
        return round(min(self.slacks.values(), default=PERIOD), 1)

    @property
    def late(self):
        """How many ends have a negative one."""
        return sum(slack < 0 for slack in self.slacks.values())


def judge(netlist, trees, library, folder, stem, top, arrival=timing.ARRIVAL):
    """Times a netlist with wires, or without any where ``trees`` is None; leaves ``STEM.v``, ``STEM.spef`` and
    OpenSTA's slowest path in ``folder``.

    Raises
    ------
    SynthesisError
        If OpenSTA is missing, fails or complains, for instance of a wire that is no net's.
    """
    (folder / f"{stem}.v").write_text(netlist.verilog(top))
    script = timing.link(library, folder, [f"{stem}.v"], top) + timing.constraints(arrival)
    for port, more in netlist.twins().items():
        script += f"set_load {timing.LOAD * (1 + more)} [get_ports {{{port}}}]\n"
    if trees is not None:
        (folder / f"{stem}.spef").write_text(wires.spef(netlist, trees, top))
        script += f"if {{[read_spef {stem}.spef] != 1}} {{ error \"Error: {stem}.spef\" }}\n"
    said = timing.run(script + REPORTS.format(stem), folder)
    if re.search(r"not found|annotat", said):
        raise SynthesisError(f"{top}: OpenSTA: {said[:300]}")
    lines = [line.rsplit(" ", 1) for line in (folder / f"{stem}.slacks").read_text().splitlines()]
    loads = (folder / f"{stem}.loads").read_text().split()
    return Verdict({end: 1e12 * float(slack) for end, slack in lines}, tuple(loads))
