"""What the catalogue knows of a unit of the hardware, and of the figures that a paper prints beside it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from actcodec.codecs.registry import lane_modes
from actcodec.elaboration import verilog
from actcodec.rtl.common.target import TARGETS
from actcodec.rtl.offload.control.limits import FORMATS as LANE_FORMATS

__all__ = ["Paper", "Unit"]


@dataclass(frozen=True)
class Paper:
    """A row of a paper's tables: area in um2, power in mW, and the area that this project wants to need."""

    name: str
    area: int
    power: float
    target: int | None = None


def _class(place):
    if not isinstance(place, str):
        return place
    module, _, name = place.partition(":")
    return getattr(import_module(f"actcodec.rtl.{module}"), name)


def _format(name):
    from actcodec.rtl.common.minifloat import Format

    if name.upper() not in Format.__members__:
        legal = ", ".join(Format.__members__).lower()
        raise ValueError(f"formats must be one or more of {legal}, not {name!r}")
    return Format.__members__[name.upper()]


@dataclass(frozen=True)
class Unit:
    """A unit of the design: its name on the command line, its class, and its parameters with their defaults, plain
    numbers and words."""

    name: str
    hardware: Callable[..., Any] | str  # the class, or its place in actcodec.rtl, as "gist.dpr:DprEncode"
    summary: str
    parameters: dict = field(default_factory=dict)
    paper: str | None = None  # the row of the paper's tables that it stands beside
    synth: dict | None = field(default_factory=dict)  # parameters that differ when mapped; None: not by itself
    variants: dict = field(default_factory=dict)  # what is mapped besides: {label: parameters that differ}
    codec: str = ""  # the class, likewise, that it takes as its codec
    by_name: tuple = ()  # of these, what is mapped only when asked for by name, as it takes long
    apart: tuple = ()  # submodules that are mapped by themselves, where it has them
    presets: dict = field(default_factory=dict)  # parameters that belong together: {name: those that differ}
    # Its bench, as "gist/dpr::test_encode": where it is in tb/, unless that mirrors the unit, and which test of it is
    # the unit's, if others are not.
    bench: str = ""

    @property
    def type(self) -> type:
        """The class, imported only now."""
        return _class(self.hardware)

    @property
    def modules(self) -> tuple[str, ...]:
        """The names of the modules of its class and of its codec's; nothing is imported."""
        return tuple(f"actcodec.rtl.{place.partition(':')[0]}" if isinstance(place, str) else place.__module__
                     for place in (self.hardware, self.codec) if place)

    @property
    def component(self) -> Callable[..., Any]:
        """What makes an instance: the class, or a partial of it."""
        return partial(self.type, codec=_class(self.codec)) if self.codec else self.type

    def resolved(self, **overrides: Any) -> dict[str, Any]:
        """The default parameters but for ``overrides``, as the class takes them; ``modes``, and ``formats`` of DPR, are
        given by their names, modes also as "all" that a lane can have. Raises ValueError for a name that none has."""
        parameters = {**self.parameters, **overrides}
        if "modes" in parameters:
            names = parameters["modes"]
            parameters["modes"] = names and lane_modes(*(() if tuple(names) == ("all",) else names))
        if "formats" in parameters and not {*LANE_FORMATS} & {*self.parameters["formats"]}:
            parameters["formats"] = tuple(map(_format, parameters["formats"]))
        return parameters

    def build(self, **overrides: Any) -> Any:
        """An instance with the parameters of :meth:`resolved`."""
        return self.component(**self.resolved(**overrides))

    @property
    def bench_node(self) -> str:
        """What pytest calls its bench, from the root of a checkout on: a file, or a test of it."""
        module = self.hardware if isinstance(self.hardware, str) else self.hardware.__module__.split(".rtl.")[-1]
        place, *tests = (self.bench or module.partition(":")[0].replace(".", "/")).split("::")
        folder, _, name = place.rpartition("/")
        return "::".join([f"tb/{folder}/test_{name}.py", *tests])

    def verilog(self, name: str | None = None, target: str = TARGETS[0], **overrides: Any) -> str:
        """The Verilog of such an instance, made for a target, with a header. All its modules' names begin with
        ``name``, which is the unit's by default, so units with other parameters may be in one design under other names.
        Raises ValueError for a name that is no identifier, an unknown target, and as the unit does."""
        from actcodec.header import check_name, header

        name = check_name(self.name if name is None else name)
        text = verilog(self.build(**overrides), name, target)
        return header(self.name, self.summary, name, {**self.parameters, **overrides}, target) + text
