"""The flow of Nangate45 with sky130's cells, cached by what went into it: recipes, sizing, timing are the same.

A second output of a flip-flop costs an inverter there, so that one that nobody reads is none of the cell's.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

from actcodec.synth import flow
from actcodec.synth.catalogue import key
from actcodec.synth.complement import complement
from actcodec.synth.equivalence import prove
from actcodec.synth.library import BUILD, PERIOD, SynthesisError
from actcodec.synth.sky130 import liberty
from actcodec.synth.sources import fingerprint

__all__ = ["SOURCES", "Figures", "gates", "identity", "period", "synthesise"]

SOURCES = tuple(Path(__file__).with_name(f"{name}.py") for name in ("flow", "liberty"))
NAND2 = 3.7536  # um2 of nand2_1


@dataclass(frozen=True)
class Figures:
    """``area`` in um2, ``slack`` in ps of :func:`period` and ``fmax`` in MHz by OpenSTA, with the library's usual
    wires; ``functions``: how many were proved to be those of the RTL, None if the proof did not finish."""

    area: float
    cells: int
    flops: int
    slack: float
    fmax: float
    recipe: str
    functions: int | None
    seconds: float


def period():
    """The period in ps: Nangate45's, as much longer as an inverter is slower."""
    return PERIOD * liberty.scale()


def identity(what):
    """A key of a netlist of that key, of sky130's cells."""
    return fingerprint(SOURCES, what, liberty.liberty().name)


def gates(area):
    """Thousands of nand2_1 that have an area."""
    return area / NAND2 / 1000


def _retype(path):
    """Changes RECIPE.json: inverters at flip-flops go where that is possible, and flip-flops have the second output if
    they need it."""
    design = json.loads(path.read_text())
    for module in design["modules"].values():
        while complement(module):
            pass
        for cell in module["cells"].values():
            base, _, drive = cell["type"].partition("_")
            if base in ("DFF", "DFFQ"):
                if not cell["connections"].get("QN"):
                    cell["connections"].pop("QN", None)
                    cell["port_directions"].pop("QN", None)
                cell["type"] = f"{'DFF' if 'QN' in cell['connections'] else 'DFFQ'}_{drive}"
                if not cell["connections"].get("Q"):
                    cell["connections"].pop("Q", None)
    path.write_text(json.dumps(design))


def synthesise(job, recipe=None, build=BUILD):
    """Maps a :class:`~actcodec.synth.catalogue.Job` to sky130's cells with a recipe (default: searches for the best
    one), or remembers that it did: ``(figures, folder, cached)``.

    Raises
    ------
    SynthesisError
        As :func:`actcodec.synth.flow.synthesise`, and for what has memories or consists of other netlists.
    """
    start, library = monotonic(), liberty.liberty().absolute()
    folder = Path(build, f"sky130-{job.name}-{fingerprint((), identity(key(job)), recipe)}")
    summary = folder / "figures.json"
    if summary.exists():
        return Figures(**json.loads(summary.read_text())), folder, True
    if job.parts or flow.memories.large(job.text):
        raise SynthesisError(f"{job.label}: what consists of lanes or has memories is not mapped to sky130")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "unit.il").write_text(job.text)
    flow.prepare(job.name, library, folder, {}, job.apart)

    def attempt(recipe):
        flow.cover(job.name, library, folder, recipe)
        _retype(folder / f"{recipe}.json")
        flow.finish(job.name, library, folder, recipe, {}, job.arrival)
        return flow.measure(job.name, library, folder, recipe, {}, job.arrival)

    best = attempt(recipe) if recipe else flow.search(attempt)
    for kind in ("v", "json"):
        (folder / f"{best.recipe}.{kind}").replace(folder / f"net.{kind}")
    proof = prove(job.name, folder, build=build, library=library)
    slower = liberty.scale()
    figures = Figures(best.area, best.cells, best.flops, round(best.slack * slower, 1),
                      round(1e6 / (PERIOD - best.slack) / slower, 1), best.recipe,
                      proof.outputs if proof.proved else None, round(monotonic() - start, 1))
    summary.write_text(json.dumps(asdict(figures)))
    return figures, folder, False
