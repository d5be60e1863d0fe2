"""``python -m actcodec.synth.traffic WHAT``: what passes every unit's ports while real activations are compressed, or
decompressed.

The sample's first dense tensor goes through simulated RTL: accelerators of one lane and of four in mode ``jpeg-act``
with table optH, between the memory and the DMA engine of ``actcodec``; and a ReLU's output one lane in modes of Gist.
While it does, each unit prints its ports in every cycle. A unit is known by its hardware: the RTLIL that it is mapped
from.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import warnings
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from amaranth.hdl import Format, Module, Print, ResetSignal, UnusedElaboratable, Value
from amaranth.lib.wiring import In

from actcodec.elaboration import netlist
from actcodec.synth.elaborating import elaborating
from actcodec.synth.library import BUILD, SynthesisError
from actcodec.units import UNITS

__all__ = ["DIRECTIONS", "Record", "key", "parse", "printing", "record"]

ROOT = Path(__file__).resolve().parent.parent
DIRECTIONS = ("compress", "decompress")
MODE, TABLE = "jpeg-act", "optH"


@dataclass(frozen=True)
class Record:
    """``bits``: {port: uint8 [cycles, width], the lowest bit first} of all ports but the clock, and of the reset;
    ``window``: the cycles from the first to the last in which a stream of the unit moves, or, if none does, all behind
    the reset."""

    bits: dict
    window: range


def key(text):
    """What hardware is known by."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def ports(component):
    """{name: (whether it is an input, the value)} of a component's ports, in order."""
    return {"__".join(map(str, path)): (member.flow is In, value)
            for path, member, value in component.signature.flatten(component)}


@contextmanager
def printing(names):
    """While this is open, every component of the units ``names`` prints a line in each cycle: ``@``, its key, a number
    that tells it from others of that key, the reset, and each port, hexadecimal."""
    counts = {}

    def printed(name, component, elaborate):
        what = key(netlist(component, "accelerator_lane" if name == "lane" else name)[0])
        counts[what] = counts.get(what, -1) + 1
        m = Module()
        m.submodules.inside = elaborate()
        values = [Value.cast(value) for _, value in ports(component).values()]
        m.d.sync += Print(Format(f"@{what}.{counts[what]} {{:x}}" + " {:x}" * len(values), ResetSignal(),
                                 *(value.as_unsigned() for value in values)))
        return m

    with ExitStack() as stack:
        for name in names:
            stack.enter_context(elaborating(UNITS[name].type, partial(printed, name)))
        yield


# ---------------------------------------------------------------------------------------------------------- simulations
def _tensor(name, blocks):
    """A tensor of the sample, cut to as many blocks of 64 values."""
    from actcodec.demo import sample

    x = sample()[name]
    return np.ascontiguousarray(x[:1, : blocks * 64 // x[0, 0].size])


def _accelerator(name, mode, options, cdus, blocks, direction):
    from actcodec.codecs import find
    from actcodec.sim.rtl_engine import SimulatedHost

    x, mode = _tensor(name, blocks), find(mode)
    host = SimulatedHost(x.shape, mode.name, cdus)
    if direction == "compress":
        host.compress(x, mode.name, options=options)
    else:
        host.decompress(mode.model.unpack(mode.model.compress(x, **mode.option_values(options | {"cdus": cdus}))))


JPEG = ("conv0", MODE, {"dqt": TABLE})
RELU = "ReLU_layers_0_relu1"
INSIDE = ("accelerator", "lane", "cdu", "sfpr", "align", "dct", "dct8", "transpose", "quantize", "zvc",
          "address_generator", "reader", "writer", "beat_planner", "bursts", "counter")
ABOVE = ("accelerator", "collector", "splitter", "tensor_plan", "registers")
# What runs: the units that print, and a function of the direction.
RUNS = {
    "lane": (INSIDE, partial(_accelerator, *JPEG, 1, 64)),
    "accelerator": (ABOVE, partial(_accelerator, *JPEG, 4, 256)),
    "binarize": (("binarize", "unbinarize"), partial(_accelerator, RELU, "brc", {}, 1, 32)),
    "dpr": (("dpr_reduce", "dpr_expand"), partial(_accelerator, RELU, "dpr-fp8", {}, 1, 32)),
}


def parse(text, names):
    """The record of what one unit has printed: ``text`` without ``@`` and key, a line a cycle; ``names``: {port: its
    width}, with the reset as the first one."""
    columns = list(zip(*(line.split() for line in text), strict=True))
    bits = {}
    for (name, width), column in zip(names.items(), columns, strict=True):
        size = -(-width // 8)
        raw = np.frombuffer(b"".join(int(value, 16).to_bytes(size, "little") for value in column), np.uint8)
        bits[name] = np.unpackbits(raw.reshape(-1, size), axis=1, count=width, bitorder="little")
    moving = np.zeros(len(columns[0]), bool)
    for name in bits:
        if name.endswith("__valid"):
            moving |= (bits[name] & bits[name.replace("__valid", "__ready")])[:, 0].astype(bool)
    start = 1 + int(np.flatnonzero(bits["rst"][:, 0]).max(initial=-1))
    cycles = start + np.flatnonzero(moving[start:])
    return Record(bits, range(int(cycles[0]), int(cycles[-1]) + 1) if cycles.size else range(start, len(moving)))


def _simulate(run, direction, build):
    """The file of what a run has printed; simulated unless the same RTL was before."""
    sources = [path.read_text() for tree in ("rtl", "golden", "actcodec")
               for ending in ("cpp", "h", "py") for path in sorted((ROOT / tree).rglob(f"*.{ending}"))]
    stamp = hashlib.sha256(repr([sources, Path(__file__).read_text()]).encode()).hexdigest()[:16]
    folder = build / f"traffic-{stamp}"
    path = folder / f"{run}-{direction}.txt"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{run}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # both directions share a simulator
        if not path.exists():
            part = path.with_suffix(".part")
            with open(part, "w") as file:
                done = subprocess.run([sys.executable, "-m", "actcodec.synth.traffic", run, direction], cwd=ROOT,
                                      stdout=file, stderr=subprocess.PIPE, text=True,
                                      # Nobody else's: the RTL that prints has the same sources.
                                      env={**os.environ, "XDG_CACHE_HOME": str(folder / run)})
            if done.returncode:
                raise SynthesisError(f"traffic of {run}: {done.stderr.strip().splitlines()[-1]}")
            part.replace(path)
    return path


def record(job, direction, build=BUILD):
    """The :class:`Record` of what ``job`` (of :mod:`~actcodec.synth.catalogue`) maps, the first of several alike, or
    None if no run has such hardware in this direction."""
    warnings.simplefilter("ignore", UnusedElaboratable)  # the unit is only looked at
    widths = {"rst": 1} | {name: len(Value.cast(value)) for name, (_, value)
                           in ports(job.unit.build(**job.parameters)).items()}
    start = f"@{key(job.text)}.0 "
    for run, (units, _) in RUNS.items():
        if job.unit.name not in units:
            continue
        with open(_simulate(run, direction, build)) as file:
            lines = [line[len(start):] for line in file if line.startswith(start)]
        if lines:
            return parse(lines, widths)
    return None


if __name__ == "__main__":
    chosen, way = sys.argv[1:]
    with printing(RUNS[chosen][0]):
        RUNS[chosen][1](way)
