"""Real activations through the netlist of a lane, or of a whole accelerator with its lanes, beside the RTL."""

import json

from actcodec.synth import traffic
from actcodec.synth.cells import cells
from actcodec.synth.flow import whole
from actcodec.synth.library import BUILD, SynthesisError, liberty
from actcodec.synth.replay import Netlist

__all__ = ["answers", "replays"]


def replays(parameters):
    """Whether activations pass an accelerator of these parameters, or its lane: those that
    :mod:`~actcodec.synth.traffic` simulates differ in nothing but the number of lanes."""
    return parameters.keys() <= {"cdus"}


def answers(job, folder, parts, build=BUILD):
    """In how many cycles a netlist was compared with the RTL, at every output, while activations are compressed and
    decompressed.

    Raises
    ------
    SynthesisError
        If it answers otherwise in one of them, or if no activations pass such hardware.
    """
    records = [traffic.record(job, direction, build) for direction in traffic.DIRECTIONS]
    if any(record is None for record in records):
        raise SynthesisError(f"{job.label}: no activations pass such hardware in synth/traffic.py")
    design = json.loads((folder / f"{whole(job.name, folder, 'net', parts)}.json").read_text())
    netlist = Netlist(job.name, design["modules"][job.name], cells(liberty(build)))
    return sum(netlist.run(record).cycles for record in records)
