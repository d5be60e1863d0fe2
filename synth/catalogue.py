"""What is mapped: every unit with its parameters, some variants to compare, and the accelerators with their lanes."""

import os
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context

from actcodec.synth.flow import netlist, synthesise
from actcodec.synth.timing import ARRIVAL, LANE
from actcodec.units import UNITS, Unit

__all__ = ["MAPPED", "Job", "jobs", "run"]

MAPPED = [unit.name for unit in UNITS.values() if unit.synth is not None]


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


def _elaborate(name, parameters):
    return netlist(UNITS[name].build(**parameters), name)


def jobs(names, wanted=lambda unit, parameters: True):
    """The ``wanted`` jobs of units, in the order of the catalogue; the lane comes before the accelerators that consist
    of it. For several jobs this starts processes, which import the script that calls it: its own work belongs behind
    ``if __name__ == "__main__"``."""
    orders = []
    for name in names:
        unit = UNITS[name]
        differs = ", ".join(f"{key} {value}" for key, value in unit.synth.items())
        orders += [(f"{name} ({differs})" if differs else name, unit.paper, unit, unit.synth)]
        orders += [(f"{name} ({variant})", None, unit, parameters)
                   for variant, parameters in unit.variants.items()]
    orders = [order for order in orders if wanted(*order[2:])]
    found = []
    # Elaboration is Python's work alone: in processes, which start anew, as threads and forks do not go together.
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        made = (map if len(orders) == 1 else pool.map)(
            _elaborate, [unit.name for _, _, unit, _ in orders], [one for _, _, _, one in orders])
        for (label, paper, unit, parameters), (text, parts) in zip(orders, made, strict=True):
            # What of the whole's parameters makes its lanes other hardware.
            differs = {key: value for key, value in parameters.items() if key in ("memory", "modes")}
            variant = "".join(f" ({' '.join(value) if key == 'modes' else value} {key})"
                              for key, value in differs.items())
            inner = {module: Job(f"lane{variant}", None, module, UNITS["lane"], differs, part, arrival=LANE,
                                 apart=("inside.codec",))  # ABC takes what is faster than the rest for fast enough
                     for module, part in parts.items()}
            found += [part for part in inner.values() if part not in found]
            apart = tuple(module for module in unit.apart if f"\nmodule \\{unit.name}.{module}\n" in text)
            found.append(Job(label, paper, unit.name, unit, parameters, text, inner, apart=apart))
    return found


def run(work, threads, done, recipes=None):
    """Maps jobs side by side, with the best of all recipes or those of {label: recipe}; returns for each what
    :func:`~actcodec.synth.flow.synthesise` does, or the SynthesisError. When a job is done, ``done`` is called with it
    and its result, or None if it failed."""
    runs = {}

    def key(job):
        return job.name, job.text, *sorted(job.texts.items())  # wholes may differ in their parts alone

    def parts(job):
        return {module: runs.get(key(part)) for module, part in job.parts.items()}

    def one(job):
        result = None
        try:
            made = {module: part.result() for module, part in parts(job).items()}
            result = synthesise(job.name, job.text, recipe=(recipes or {}).get(job.label), parts=made,
                                arrival=job.arrival, apart=job.apart)
            return result
        finally:
            done(job, result)

    # First what others consist of, then those as soon as that is done; otherwise the largest first.
    inside = {key(part) for job in work for part in job.parts.values()}
    waiting = sorted(work, key=lambda job: (key(job) not in inside, not job.parts, -len(job.text)))
    with ThreadPoolExecutor(threads) as pool:
        while waiting:
            busy = [run for run in runs.values() if not run.done()]
            able = [job for job in waiting if all(part and part.done() for part in parts(job).values())]
            assert able or busy, "the parts of a job are jobs, too"
            if able and len(busy) < threads:
                waiting.remove(able[0])
                runs[key(able[0])] = pool.submit(one, able[0])
            else:
                wait(busy, return_when=FIRST_COMPLETED)
    return [runs[key(job)].exception() or runs[key(job)].result() for job in work]
