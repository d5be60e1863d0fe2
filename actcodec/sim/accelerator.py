"""The simulated accelerator: which modes share one, and the library that simulates it."""

import dataclasses
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from actcodec.codecs import PAPERS, Mode, jpegact, lane_modes
from actcodec.sim import build
from actcodec.units import UNITS

__all__ = ["Accelerator", "configuration", "configurations", "design", "library", "prepare"]

ENVIRONMENT = Path(__file__).parent / "cpp" / "environment.cpp"


@dataclasses.dataclass(frozen=True)
class Accelerator:
    """What is built: parameters of the accelerator and of its lanes, modes by their names, and what it is made for."""

    cdus: int
    modes: tuple
    memory: str = "shared"
    outstanding: int = 384
    address_width: int = 40
    coders: int = 4
    formats: tuple = ("float32",)
    payload: str = "stream"
    scan: bool = False
    queue: int = 0
    target: str = "cells"

    def __str__(self) -> str:
        formats = "" if self.formats == ("float32",) else f", {', '.join(self.formats)}"
        payload = "" if self.payload == "stream" else f", payload in {self.payload}"
        return (f"{self.cdus} x {'+'.join(self.modes)}, {self.memory} memory, {self.outstanding} beats, "
                f"{self.address_width} bits{formats}{payload}{', scan' * self.scan}"
                f"{f', queue of {self.queue}' if self.queue else ''}{', LUTs' * (self.target == 'lut')}")


def design(accelerator: Accelerator) -> dict[str, str]:
    """The Verilog of an :class:`Accelerator` for simulation, by its modules: ``top``, and its lane, ``top_lane``."""
    hardware = dataclasses.asdict(accelerator)
    target = hardware.pop("target")
    whole = {name: hardware.pop(name) for name in ("cdus", "payload", "queue")}
    lane = _elaborated("top_lane", "lane", hardware, target, _one(accelerator))
    top = _elaborated("top", "accelerator", {**whole, **hardware}, target, _whole(accelerator))
    return {"top": top, "top_lane": lane}


@cache
def library(accelerator: Accelerator) -> Path:
    """The shared library that simulates an :class:`Accelerator` in its environment, built unless it is kept."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(build.runtime)  # beside elaboration, which leaves a core idle; compilation has its errors
        modules = design(accelerator)
    objects = build.compiled(modules, what={
        "top": f"the simulation of {_whole(accelerator)}, half a minute or more",
        "top_lane": f"the simulation of {_one(accelerator)}, two minutes or more"})
    pins = "".join(f" PINS(m_axi_{k}_)" for k in range(accelerator.cdus))
    pins += " PINS(m_axi_payload_)" * (accelerator.payload != "stream")
    pins += " PINS(m_axi_queue_)" * (accelerator.queue > 0)
    return build.linked("accelerator.so", objects, [ENVIRONMENT], f"-DALL_PINS={pins}",
                        "-DINTERRUPT=__SYM__interrupt", *(["-DNO_STREAMS"] if accelerator.payload == "memory" else []))


def _one(accelerator):
    return f"a lane with {', '.join(accelerator.modes)}"


def _whole(accelerator):
    return f"an accelerator with {accelerator.cdus} of its lanes"


def declared(mode: Mode) -> list[Any]:
    """What hardware knows of a mode."""
    return [getattr(mode, field.name) for field in dataclasses.fields(mode) if field.compare]


def _elaborated(name, unit, parameters, target, what):
    """The Verilog of a unit whose ``parameters`` have modes, some of which may be somebody else's."""
    modes = lane_modes(*parameters["modes"])
    if parameters["formats"] != ("float32",):
        from actcodec.rtl.offload.control.config import with_halves  # which needs Amaranth

        modes = with_halves(modes)
    places = {place.partition(":")[0] for mode in modes for place in mode.path}
    known = parameters | {"modes": [declared(mode) for mode in modes]}
    text = build.elaborated(name, lambda: UNITS[unit].build(**parameters),
                            {*UNITS[unit].modules, Mode.__module__, *places}, unit, known,
                            what=f"the Verilog of {what}, some seconds", target=target)
    return build.without_initial_values(text)


def configurations() -> tuple[tuple[str, ...], ...]:
    """Modes that share a simulated accelerator, by name: those whose first setting is the same; of the others those of
    JPEG-ACT whose blocks pass in rows of at most 8 bytes, as in the paper's CDU, and all that are left. Modes that
    others register are in none."""
    groups: dict[tuple, list[str]] = {}
    for paper in PAPERS:
        for mode in paper.MODES:
            for one in (mode, *(variant for _, variant in mode.variants)):
                if one.format:
                    first = tuple(setting.name for setting in one.settings[:1])
                    groups.setdefault((paper is not jpegact or one.format.row > 8, first), []).append(one.name)
    return tuple(tuple(groups[key]) for key in sorted(groups))


def configuration(mode: str) -> tuple[str, ...]:
    """The one of :func:`configurations` that has ``mode``; a mode that none has is built by itself."""
    return next((modes for modes in configurations() if mode in modes), (mode,))


def prepare(cdus: int = 1, chosen: Iterable[Any] | None = None, **hardware: Any) -> None:
    """Builds whatever is not kept yet of the ``chosen`` ones of :func:`configurations`, all of them without, so that a
    caller can show that it takes a while. ``hardware`` are other parameters of :class:`Accelerator`."""
    for modes in chosen or configurations():
        library(Accelerator(cdus, tuple(modes), **hardware))
