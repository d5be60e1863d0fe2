"""What is mapped: every unit with its parameters, some variants to compare, and the accelerators with their lanes."""

from dataclasses import dataclass, field

from rtl.jpegact.cdu import CDMA
from rtl.units import UNITS, Unit
from synth.flow import netlist

__all__ = ["Job", "jobs"]

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
