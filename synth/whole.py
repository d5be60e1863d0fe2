"""Real activations through the netlist of a lane, or of a whole accelerator with its lanes, beside the RTL."""

import json

from actcodec.synth import traffic
from actcodec.synth.cells import cells
from actcodec.synth.flow import yosys
from actcodec.synth.library import BUILD, liberty
from actcodec.synth.replay import Netlist

__all__ = ["answers"]


def _flat(job, folder, parts):
    """The module that ``job`` was mapped to in ``folder``, with the netlists of ``parts``, {module: its folder}."""
    design = json.loads((folder / "net.json").read_text())
    if parts:
        for part, place in parts.items():
            design["modules"][part] = json.loads((place / "net.json").read_text())["modules"][part]
        (folder / "boxes.json").write_text(json.dumps(design))
        yosys(["read_json boxes.json", f"hierarchy -top {job.name}",
               *(f"setattr -mod -unset blackbox {part}" for part in parts),
               "flatten -noscopeinfo", "write_json whole.json"], folder, job.name, "whole")
        design = json.loads((folder / "whole.json").read_text())
    return design["modules"][job.name]


def answers(job, folder, parts, build=BUILD):
    """In how many cycles a netlist was compared with the RTL, at every output, while activations are compressed and
    decompressed.

    Raises
    ------
    SynthesisError
        If it answers otherwise in one of them.
    """
    netlist = Netlist(job.name, _flat(job, folder, parts), cells(liberty(build)))
    return sum(netlist.run(traffic.record(job, direction, build)).cycles for direction in traffic.DIRECTIONS)
