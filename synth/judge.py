"""What OpenSTA says of a netlist, with wires of its own or the library's usual ones."""

import re
from dataclasses import dataclass
from pathlib import Path

from actcodec.synth import timing
from actcodec.synth.library import PERIOD, SynthesisError

__all__ = ["Verdict", "judge"]

ORDER = Path(__file__).with_name("order.tcl")

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
    """``slacks`` {end as CELL/PIN, with cells as in :meth:`~actcodec.synth.netlist.Netlist.instance`, or port: ps};
    ``overloads``: outputs that drive more than they may; ``moves`` {cell: {pin: the one that has its net now}}."""

    slacks: dict
    overloads: tuple
    moves: dict

    @property
    def worst(self):
        """The least slack, in ps; the whole period if there is nothing to time."""
        return round(min(self.slacks.values(), default=PERIOD), 1)

    @property
    def late(self):
        """How many ends have a negative one."""
        return sum(slack < 0 for slack in self.slacks.values())


def judge(netlist, spef, library, folder, stem, top, arrival=timing.ARRIVAL, order=False):
    """Times a netlist with the wires of a SPEF file's text, or with the library's usual ones where it is None; leaves
    ``STEM.v``, ``STEM.spef`` and OpenSTA's slowest path in ``folder``. With ``order``, equal inputs of late gates are
    put in another order before; the caller has to do the same.

    Raises
    ------
    SynthesisError
        If OpenSTA is missing, fails or complains, for instance of a wire that is no net's.
    """
    (folder / f"{stem}.v").write_text(netlist.verilog(top))
    script = timing.link(library, folder, [f"{stem}.v"], top) + timing.constraints(arrival)
    for port, more in netlist.twins().items():
        script += f"set_load {timing.LOAD * (1 + more)} [get_ports {{{port}}}]\n"
    if spef is not None:
        (folder / f"{stem}.spef").write_text(spef)
        script += f"if {{[read_spef {stem}.spef] != 1}} {{ error \"Error: {stem}.spef\" }}\n"
    moved = folder / f"{stem}.moves"
    moved.write_text("")
    if order:
        script += ORDER.read_text().replace("MOVES", moved.name)
    said = timing.run(script + REPORTS.format(stem), folder)
    if re.search(r"not found|annotat", said):
        raise SynthesisError(f"{top}: OpenSTA: {said[:300]}")
    lines = [line.rsplit(" ", 1) for line in (folder / f"{stem}.slacks").read_text().splitlines()]
    loads = (folder / f"{stem}.loads").read_text().split()
    moves = {}
    for line in moved.read_text().splitlines():
        cell, before, after = line.split()
        moves.setdefault(int(cell[1:]), {})[before] = after
    return Verdict({end: 1e12 * float(slack) for end, slack in lines}, tuple(loads), moves)
