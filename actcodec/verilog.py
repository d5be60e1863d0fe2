"""``actcodec verilog``: a command for every unit of the catalogue, with the unit's parameters as its options."""

from enum import Enum

import click

from actcodec.files import UserError, replacing

__all__ = ["Verilog", "written"]


class Words(click.ParamType):
    """Words with commas between, as a tuple; numbers, or members of an enumeration, if ``default`` has such."""

    name = "word,word,..."

    def __init__(self, default):
        self.kind = type(default[0])

    def convert(self, value, param, ctx):
        if isinstance(value, tuple):
            return value
        words = [word.strip() for word in value.split(",") if word.strip()]
        try:
            return tuple(self.kind[word.upper()] if issubclass(self.kind, Enum) else self.kind(word) for word in words)
        except (KeyError, ValueError):
            known = [member.name.lower() for member in self.kind] if issubclass(self.kind, Enum) else ["numbers"]
            self.fail(f"{value!r}: must be {', '.join(known)}, with commas between", param, ctx)


def written(value):
    """The default of a parameter as one types it."""
    if not isinstance(value, tuple):
        return str(value)
    return ",".join(part.name.lower() if isinstance(part, Enum) else str(part) for part in value)


class Verilog(click.Group):
    """The units of ``rtl.units.UNITS`` as commands. The catalogue is imported only when it is asked for."""

    def list_commands(self, ctx):
        from rtl.units import UNITS

        return list(UNITS)

    def get_command(self, ctx, name):
        from rtl.units import UNITS

        return unit_command(UNITS[name]) if name in UNITS else None

    def resolve_command(self, ctx, args):
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            raise UserError(f"unknown unit {name!r}; there are {', '.join(self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def unit_command(unit):
    """The command that prints the Verilog of ``unit``."""

    def convert(output_path, **parameters):
        from rtl.units import verilog

        try:
            component = unit.build(**parameters)
        except ValueError as error:
            raise UserError(error) from error
        text = verilog(component, unit.name)
        if output_path is None:
            click.echo(text)
            return
        with replacing(output_path) as file:
            file.write(text.encode())

    params = [parameter_option(*item) for item in unit.parameters.items()]
    params.append(click.Option(["output_path", "-o", "--output"], metavar="FILE",
                               help="Write to FILE instead of the standard output."))
    return click.Command(unit.name, callback=convert, params=params, short_help=unit.summary,
                         help=f"{unit.summary}.\n\n\b\nExamples:\n  actcodec verilog {unit.name}\n"
                              f"  actcodec verilog {unit.name} -o {unit.name}.v")


def parameter_option(name, default):
    """A parameter of a unit as an option; the type of its default is its type."""
    option = "--" + name.replace("_", "-")
    if isinstance(default, bool):
        return click.Option([name, f"{option}/--no-{option[2:]}"], default=default, show_default=True)
    if isinstance(default, tuple):
        return click.Option([name, option], type=Words(default), default=written(default), show_default=True)
    return click.Option([name, option], type=type(default), default=default, show_default=True)
