"""What is mapped: every unit with its parameters, some variants to compare, and the accelerators with their lanes.

A unit's name stands for the unit and its variants, but for those that are mapped only when they are asked for by their
own names, such as ``accelerator-1-cdu-all-modes``.
"""

import os
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from actcodec.elaboration import netlist
from actcodec.synth.flow import FLOW, RECIPES, synthesise
from actcodec.synth.library import liberty, version
from actcodec.synth.sources import fingerprint
from actcodec.synth.timing import ARRIVAL, LANE
from actcodec.units import UNITS, VARIANTS, Unit

__all__ = ["BY_NAME", "MAPPED", "NAMES", "Job", "jobs", "key", "large", "orders", "run"]

MAPPED = [unit.name for unit in UNITS.values() if unit.synth is not None]
NAMES = (*MAPPED, *VARIANTS)
BY_NAME = [name for name, (unit, variant) in VARIANTS.items() if variant in UNITS[unit].by_name]


@dataclass(frozen=True)
class Job:
    """A netlist to be mapped: its label in the tables, the row of the paper beside it or None, its module's name, and
    what it consists of: RTLIL, and the jobs of the modules that it has several of, by name. For
    ``arrival`` see :func:`~actcodec.synth.timing.constraints`, for ``apart``
    :func:`~actcodec.synth.flow.synthesise`."""

    label: str
    paper: str | None
    name: str
    unit: Unit
    parameters: dict
    text: str
    parts: dict = field(default_factory=dict)
    arrival: dict = field(default_factory=ARRIVAL.copy)
    apart: tuple = ()

    @property
    def texts(self):
        """The RTLIL of the parts, by module."""
        return {module: part.text for module, part in self.parts.items()}


def _elaborate(name, parameters, target):
    return netlist(UNITS[name].build(**parameters), name, target)


def orders(names):
    """What some of :data:`NAMES` stand for: {label: (row of the paper or None, unit, parameters)}, in their order."""
    result = {}
    for order in names:
        name, only = VARIANTS.get(order, (order, None))
        unit = UNITS[name]
        if only is None:
            differs = ", ".join(f"{key} {value}" for key, value in unit.synth.items())
            result[f"{name} ({differs})" if differs else name] = unit.paper, unit, unit.synth
        for variant, parameters in unit.variants.items():
            if variant == only or (only is None and variant not in unit.by_name):
                result[f"{name} ({variant})"] = None, unit, parameters
    return result


def _lane(parameters):
    """What of an accelerator's parameters makes its lanes other hardware, and the label of such a lane."""
    differs = {key: value for key, value in parameters.items() if key in UNITS["lane"].parameters}
    said = {key: key if value is True else f"{value if isinstance(value, str) else ' '.join(value)} {key}"
            for key, value in differs.items()}
    return differs, "lane" + "".join(f" ({words})" for words in said.values())


def large():
    """The labels of all that is mapped only when it is asked for by name, lanes with it."""
    only = orders(BY_NAME)
    return {*only, *(_lane(parameters)[1] for _, unit, parameters in only.values() if unit.name == "accelerator")}


def jobs(names, selects=lambda unit, parameters: True, target="cells"):
    """The jobs of :data:`NAMES` that ``selects`` picks, made for a target, in the catalogue's order; the lane comes
    before the accelerators that consist of it. For several jobs this starts processes, which import the script that
    calls it: its own work belongs behind ``if __name__ == "__main__"``."""
    selection = {label: order for label, order in orders(names).items() if selects(*order[1:])}
    result = []
    # Elaboration is Python's work alone: in processes, which start anew, as threads and forks do not go together.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        elaborations = (map if len(selection) == 1 else pool.map)(
            partial(_elaborate, target=target), [unit.name for _, unit, _ in selection.values()],
            [one for _, _, one in selection.values()])
        for (label, (paper, unit, parameters)), (text, parts) in zip(selection.items(), elaborations, strict=True):
            differs, lane = _lane(parameters)
            inner = {module: Job(lane, None, module, UNITS["lane"], differs, part, arrival=LANE,
                                 apart=("inside.codec",))  # ABC takes what is faster than the rest for fast enough
                     for module, part in parts.items()}
            result += [part for part in inner.values() if part not in result]
            apart = tuple(module for module in unit.apart if f"\nmodule \\{unit.name}.{module}\n" in text)
            result.append(Job(label, paper, unit.name, unit, parameters, text, inner, apart=apart))
    return result


def key(job):
    """Sixteen characters that change with whatever the netlist of a job depends on, its recipe excepted."""
    return fingerprint([Path(__file__).with_name(file) for file in FLOW], job.name, job.text, job.arrival, job.apart,
                       liberty().name, version("pyosys", "Yosys"), [key(part) for part in job.parts.values()])


def run(work, threads, done, recipes=None, begun=lambda job: None):
    """Maps jobs side by side, the largest last, with the best of all recipes or those of {label: recipe}, where a job
    without one is mapped with the first of all; returns for each what :func:`~actcodec.synth.flow.synthesise` does, or
    the SynthesisError. ``begun`` is called with each job when it begins, ``done`` with it and its result, or None if it
    failed, when it is done."""
    runs = {}  # by label

    def key(job):  # of a folder, which belongs to one run at a time: labels may have the same netlist
        return job.name, job.text, *sorted(job.texts.items())

    def parts(job):
        return {module: runs.get(part.label) for module, part in job.parts.items()}

    def one(job):
        result, recipe = None, None if recipes is None else recipes.get(job.label, next(iter(RECIPES)))
        begun(job)
        try:
            netlists = {module: part.result() for module, part in parts(job).items()}
            result = synthesise(job.name, job.text, recipe=recipe, parts=netlists, arrival=job.arrival,
                                apart=job.apart)
            return result
        finally:
            done(job, result)

    # Wholes, which are the largest, need their parts first.
    waiting = sorted(work, key=lambda job: (bool(job.parts), len(job.text)))
    with ThreadPoolExecutor(threads) as pool:
        while waiting:
            busy = {job.label: key(job) for job in work if job.label in runs and not runs[job.label].done()}
            able = [job for job in waiting if key(job) not in busy.values()
                    and all(part and part.done() for part in parts(job).values())]
            assert able or busy, "the parts of a job are jobs, too"
            if able and len(busy) < threads:
                waiting.remove(able[0])
                runs[able[0].label] = pool.submit(one, able[0])
            else:
                wait([runs[label] for label in busy], return_when=FIRST_COMPLETED)
    return [runs[job.label].exception() or runs[job.label].result() for job in work]
