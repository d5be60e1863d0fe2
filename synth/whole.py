"""Real activations through the netlist of a lane, or of a whole accelerator with its lanes, beside the RTL."""

import json

from actcodec.synth import traffic
from actcodec.synth.cells import cells
from actcodec.synth.flow import whole
from actcodec.synth.library import BUILD, liberty
from actcodec.synth.replay import Netlist

__all__ = ["answers"]


def answers(job, folder, parts, build=BUILD):
    """In how many cycles a netlist was compared with the RTL, at every output, while activations are compressed and
    decompressed.

    Raises
    ------
    SynthesisError
        If it answers otherwise in one of them.
    """
    design = json.loads((folder / f"{whole(job.name, folder, 'net', parts)}.json").read_text())
    netlist = Netlist(job.name, design["modules"][job.name], cells(liberty(build)))
    return sum(netlist.run(traffic.record(job, direction, build)).cycles for direction in traffic.DIRECTIONS)
