"""Simulates a component whose ports are streams: as :mod:`~actcodec.sim.simulator` the accelerator, but with nothing
around it. A library for each component, cached."""

import ctypes
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.sim import build
from actcodec.sim.toolchain import SimulationError, uninterrupted

__all__ = ["Run", "SimulationError", "payloads", "run"]

LOOP = Path(__file__).with_suffix(".cpp")
PATIENCE = 100  # cycles in which nothing moves, at the end


class Run(NamedTuple):
    """What came of a tensor."""

    beats: dict  # of each output stream, uint32 [beats, words]
    results: dict  # at its end, of each output that is no stream
    cycles: int  # from the first beat in to the last beat out
    latency: int  # from the first beat in to the first beat out


class Ports(NamedTuple):
    """A component's ports by name: words of a beat for streams, None for others."""

    inputs: dict
    outputs: dict
    constants: dict
    results: dict


class _Port(ctypes.Structure):
    _fields_ = [("beats", ctypes.c_void_p)]
    _fields_ += [(name, ctypes.c_int64) for name in ("count", "capacity", "first", "last")]


def _ports(component):
    ports = Ports({}, {}, {}, {})
    for name, member in component.signature.members.items():
        is_input = member.flow.name == "In"
        if member.is_signature:
            payload = getattr(component, name).payload
            width = len(payload.as_value() if hasattr(payload, "as_value") else payload)
            (ports.inputs if is_input else ports.outputs)[name] = -(-width // 32)
        else:
            (ports.constants if is_input else ports.results)[name] = None
    return ports


def payloads(unit: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The shapes of the payloads of a component's streams, by name: (inputs, outputs)."""
    shapes = {}, {}
    for name, member in unit().signature.members.items():
        if member.is_signature:
            shapes[member.flow.name == "Out"][name] = member.signature.members["payload"].shape
    return shapes


@cache
def _library(unit):
    """The function that runs a class of components, and their ports."""
    from amaranth.hdl import UnusedElaboratable

    warnings.simplefilter("ignore", UnusedElaboratable)  # if its Verilog is there, this one is only looked at
    component = unit()
    text = build.elaborated("top", lambda: component, [unit.__module__], unit.__qualname__)
    objects = build.compiled({"top": text}, what={"top": f"the simulation of {unit.__name__}, some ten seconds"})
    lists = [f"-D{kind.upper()}=" + " ".join(f"P({k}, {name})" for k, name in enumerate(names))
             for kind, names in _ports(component)._asdict().items()]
    path = build.linked(f"{unit.__name__.lower()}.so", objects, [LOOP], *lists)
    function = ctypes.CDLL(str(path)).run
    function.restype, function.argtypes = None, [ctypes.c_void_p] * 4 + [ctypes.c_int64]
    return function, _ports(component)


def run(unit: type, inputs: Mapping[str, NDArray[np.uint32]], outputs: Mapping[str, int], **constants: Any) -> Run:
    """Runs one tensor through a new ``unit()``.

    Parameters
    ----------
    unit : class of components
    inputs : dict
        Beats of each input stream, uint32 [beats, words]: the bits of a payload, the lowest ones first.
    outputs : dict
        How many beats may come at each output stream.
    constants
        The value of each input that is no stream.

    Returns a :class:`Run`. Raises :class:`SimulationError` if the unit does not take all that it is offered.
    """
    function, ports = _library(unit)
    arrays = {name: np.ascontiguousarray(inputs[name], np.uint32) for name in ports.inputs}
    arrays |= {name: np.zeros((outputs[name], words), np.uint32) for name, words in ports.outputs.items()}
    for name, words in (ports.inputs | ports.outputs).items():
        assert arrays[name].shape[1] == words, f"{name}: {arrays[name].shape[1]} words a beat, the port has {words}"

    def table(names):
        return (_Port * len(names))(*(_Port(arrays[name].ctypes.data, 0, len(arrays[name])) for name in names))

    sources, sinks = table(ports.inputs), table(ports.outputs)
    values = (ctypes.c_uint32 * len(ports.constants))(*(constants[name] for name in ports.constants))
    results = (ctypes.c_uint32 * len(ports.results))()
    uninterrupted(function, sources, sinks, values, results, PATIENCE)
    if any(port.count < port.capacity for port in sources):
        raise SimulationError(f"the simulated {unit.__name__} does not take its input")
    if not all(port.count for port in sinks):
        raise SimulationError(f"the simulated {unit.__name__} gives nothing")
    start = min(port.first for port in sources)
    beats = {name: arrays[name][: port.count] for name, port in zip(ports.outputs, sinks, strict=True)}
    return Run(beats, dict(zip(ports.results, results, strict=True)), max(port.last for port in sinks) - start + 1,
               min(port.first for port in sinks) - start)
