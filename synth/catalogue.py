"""What is mapped: every unit with its parameters, some variants to compare, and the accelerators with their lanes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from rtl.jpegact.cdu import CDMA
from rtl.units import UNITS, Unit
from synth.flow import netlist, synthesise

__all__ = ["MAPPED", "Job", "jobs", "run"]

MAPPED = [unit.name for unit in UNITS.values() if unit.synth is not None]

# Besides the catalogue's defaults: {unit: {variant: parameters}}.
VARIANTS = {
    "dct": {"forward": {"direction": "forward"}, "inverse": {"direction": "inverse"}},
    "cdu": {"in a lane": {"packed": False}, "cDMA+": {"modes": CDMA}},
    "accelerator": {"1 CDU": {"cdus": 1}},
}


@dataclass(frozen=True)
class Job:
    """A netlist to be mapped: its label in the tables, the row of the paper beside it or None, its module's name, and
    what it consists of: RTLIL, and the jobs of the modules that it has several of, by name."""

    label: str
    paper: str | None
    name: str
    unit: Unit
    parameters: dict
    text: str
    parts: dict = field(default_factory=dict)

    @property
    def texts(self):
        """The RTLIL of the parts, by module."""
        return {module: part.text for module, part in self.parts.items()}


def _job(label, paper, unit, parameters):
    text, parts = netlist(unit.build(**parameters), unit.name)
    inner = {module: Job("lane", None, module, UNITS["lane"], {}, inside) for module, inside in parts.items()}
    return Job(label, paper, unit.name, unit, parameters, text, inner)


def jobs(names):
    """The jobs of units, in the order of the catalogue; the lane comes before the accelerators that consist of it."""
    found = []
    for name in names:
        unit = UNITS[name]
        differs = ", ".join(f"{key} {value}" for key, value in unit.synth.items())
        own = [_job(f"{name} ({differs})" if differs else name, unit.paper, unit, unit.synth)]
        own += [_job(f"{name} ({variant})", None, unit, parameters)
                for variant, parameters in VARIANTS.get(name, {}).items()]
        for job in own:
            found += [part for part in job.parts.values() if part not in found]
        found += own
    return found


def run(work, threads, done=lambda: None, recipes=None):
    """Maps jobs side by side, with the best of all recipes or those of {label: recipe}; returns for each what
    :func:`~synth.flow.synthesise` does, or the SynthesisError."""
    def one(job):
        try:
            parts = {module: runs[part.name, part.text].result() for module, part in job.parts.items()}
            return synthesise(job.name, job.text, recipe=(recipes or {}).get(job.label), parts=parts)
        finally:
            done()

    runs = {}
    with ThreadPoolExecutor(threads) as pool:
        # The largest first, and what others consist of before them.
        for job in sorted(work, key=lambda job: (bool(job.parts), -len(job.text))):
            runs[job.name, job.text] = pool.submit(one, job)
    return [runs[job.name, job.text].exception() or runs[job.name, job.text].result() for job in work]
