"""``actcodec verilog``: a command for every unit of the catalogue, with the unit's parameters as its options."""

import inspect
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import click
from click.core import ParameterSource

from actcodec.codecs import MODES, lane_modes
from actcodec.codecs.unit import Unit
from actcodec.files import UserError, replacing
from actcodec.header import written
from actcodec.rtl.common.target import TARGETS
from actcodec.spelling import unknown


class Words(click.ParamType):
    """Comma-separated words as a tuple, of the type of the items of ``default``."""

    name = "word,word,..."

    def __init__(self, default: Sequence[Any]) -> None:
        self.kind = type(default[0])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in value.split(",") if word.strip()]
        try:
            return tuple(map(self.kind, words))
        except ValueError:
            self.fail(f"{value!r}: must be numbers separated by commas", param, ctx)


class Verilog(click.Group):
    """The units of ``actcodec.units.UNITS`` as commands. The catalogue is imported only when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from actcodec.units import UNITS

        return list(UNITS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        from actcodec.units import UNITS

        return unit_command(UNITS[name]) if name in UNITS else None

    def resolve_command(self, ctx: click.Context,
                        args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UserError(unknown("unit", name, self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def unit_command(unit: Unit) -> click.Command:
    """The command that prints the Verilog of ``unit``."""

    def convert(output_path, module, **parameters):
        try:
            text = unit.verilog(module, **unit_parameters(unit, **parameters))
        except ValueError as error:
            raise UserError(error) from error
        if output_path is None:
            click.echo(text)
            return
        with replacing(output_path) as file:
            file.write(text.encode())

    params = [*options(unit), click.Option(["output_path", "-o", "--output"], metavar="FILE",
                                           help="Write to FILE instead of the standard output.")]
    return click.Command(unit.name, callback=convert, params=params, short_help=unit.summary,
                         epilog=modes_explained() if "modes" in unit.parameters else None,
                         help=f"{unit.summary}.\n\n\b\nExamples:\n  actcodec verilog {unit.name}\n"
                              f"  actcodec verilog {unit.name} -o {unit.name}.v")


def options(unit: Unit, target: str = TARGETS[0]) -> list[click.Parameter]:
    """The options of the command of ``unit``: a preset, if it has any, its parameters, the module's name, and the
    target, by default ``target``."""
    meaning, legal = described(unit.component), choices(unit.component)
    params: list[click.Parameter] = [parameter_option(*item, meaning.get(item[0]), legal.get(item[0]))
                                     for item in unit.parameters.items()]
    if unit.presets:
        params.insert(0, click.Option(["preset", "--preset"], type=click.Choice(list(unit.presets)),
                                      default=next(iter(unit.presets)), show_default=True, help=preset_help(unit)))
    params.append(click.Option(["module", "--name"], metavar="NAME", default=unit.name, show_default=True,
                               help="Name of the top module, with which the names of all modules in it begin."))
    params.append(click.Option(["--target"], type=click.Choice(TARGETS), default=target, show_default=True,
                               help="Standard cells, or an FPGA's look-up tables and multipliers: same results, "
                                    "different latencies."))
    return params


def unit_parameters(unit: Unit, preset: str | None = None, **parameters: Any) -> dict[str, Any]:
    """The parameters of ``unit`` on the current command line; a preset sets those that are not given there."""
    source = click.get_current_context().get_parameter_source
    return parameters | {name: value for name, value in unit.presets.get(preset, {}).items()
                         if source(name) is ParameterSource.DEFAULT}


def preset_help(unit: Unit) -> str:
    """What the presets of ``unit`` set, as help."""
    def listed(values):
        return ", ".join(f"{name} {written(value)}" for name, value in values.items()) or "the defaults below"

    presets = "; ".join(f"{preset} has {listed(values)}" for preset, values in unit.presets.items())
    return f"Values of parameters that are not given: {presets}."


def documented(component: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """{parameter: (its type, what it means)}, from the docstring of its class, or of the ``codec`` that it is passed
    to."""
    passed = getattr(component, "keywords", {})
    inner = documented(passed["codec"]) if "codec" in passed else {}
    base = getattr(component, "func", component)
    lines = inspect.cleandoc(base.__doc__ or "").splitlines()
    parameters: dict[str, tuple[str, list[str]]] = {}
    names: list[str] = []
    start = lines.index("Parameters") + 2 if "Parameters" in lines else len(lines)
    for line, below in zip(lines[start:], [*lines[start + 1:], ""], strict=False):
        if below and not below.strip("-"):  # the next section
            break
        if line and not line.startswith(" "):
            before, _, kind = line.partition(":")
            names = [name.strip() for name in before.split(",")]
            parameters |= {name: (kind.strip(), []) for name in names}
        elif line:
            for name in names:
                parameters[name][1].append(line.strip())
    module = inspect.getmodule(base)
    return inner | {name: (kind, plain(" ".join(text), module)) for name, (kind, text) in parameters.items()}


def described(component: Callable[..., Any]) -> dict[str, str]:
    """{parameter: what it means, in one line}, for help."""
    meaning = {name: text for name, (_, text) in documented(component).items()}
    return meaning | ({"modes": "Modes that are built in, of those below."} if "modes" in meaning else {})


def choices(component: Callable[..., Any]) -> dict[str, list[str]]:
    """{parameter: its legal values, in order}, of those whose type is a set such as ``{"shared", "independent"}``."""
    matches = {name: re.search(r"{(.*)}", kind) for name, (kind, _) in documented(component).items()}
    return {name: re.findall(r'"([^"]+)"', match[1]) for name, match in matches.items() if match}


def modes_explained() -> str:
    """The end of the help of units with modes: what each mode is, and which other one it needs."""
    modes = {mode.name: mode for mode in lane_modes()}
    meaning = {}
    for mode in MODES.values():
        meaning[mode.name] = mode.summary
        # The first mode of each set of values; others are for tensors without tiles.
        names: dict[tuple, str] = {(): mode.name}
        for values, variant in mode.variants:
            first = names.setdefault(tuple(values.items()), variant.name)
            words = ", ".join(f"{name.replace('_', '-')} {value}" for name, value in values.items())
            meaning[variant.name] = (f"{mode.name} with {words}" if first == variant.name else
                                     f"{first} for tensors without tiles")
    width = max(map(len, modes))
    lines = (f"  {name:{width}}  {meaning[name]}" + (f"; needs {mode.fallback}" if mode.tiled and mode.fallback else "")
             for name, mode in modes.items())
    return "\n".join(["\b", "Modes:", *lines, f"  {'all':{width}}  all of these"])


def plain(text: str, module: Any) -> str:
    """Text of a docstring without markup, and with constants replaced by their values; those without a module path
    are ``module``'s."""
    def value(match):
        place, name = match[1] or module.__name__, match[2] or match[3]
        constant = getattr(import_module(place), name, name)
        return ", ".join(map(str, constant)) if isinstance(constant, tuple) else str(constant)

    text = re.sub(r":data:`~?(?:([\w.]*)\.)?([A-Z]+)`|``([A-Z]+)``", value, text)
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", text).replace("``", "")


def parameter_option(name: str, default: Any, meaning: str | None, legal: Sequence[str] | None = None) -> click.Option:
    """A parameter of a unit as an option; the type of its default is its type, unless there are ``legal`` values."""
    option = "--" + name.replace("_", "-")
    if legal and isinstance(default, str):
        return click.Option([name, option], type=click.Choice(legal), default=default, show_default=True, help=meaning)
    if legal and isinstance(default, tuple):
        meaning = f"{(meaning or '').rstrip('.')}: {', '.join(legal)}."
    if isinstance(default, bool):
        return click.Option([name, f"{option}/--no-{option[2:]}"], default=default, show_default=True, help=meaning)
    if isinstance(default, tuple):
        return click.Option([name, option], type=Words(default), default=written(default), show_default=True,
                            help=meaning)
    return click.Option([name, option], type=type(default), default=default, show_default=True, help=meaning)


command = Verilog(name="verilog", subcommand_metavar="UNIT [OPTIONS]", help="""
    Print the Verilog of a unit.

    \b
    Examples:
      actcodec verilog dct
      actcodec verilog cdu --modes jpeg-act,sfpr -o cdu.v
      actcodec verilog cdu --help
    """)
