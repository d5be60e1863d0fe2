"""``actcodec units``."""

import click
from rich.table import Table

from actcodec.console import Console
from actcodec.header import written


@click.command("units")
def command() -> None:
    """List the hardware units.

    \b
    Examples:
      actcodec units
      actcodec verilog UNIT --help
    """
    from actcodec.units import UNITS

    table = Table("unit", "what it is", "parameters", box=None, header_style="bold")
    for unit in UNITS.values():
        defaults = (f"{key}={written(value)}" for key, value in unit.parameters.items())
        table.add_row(unit.name, unit.summary, " ".join(defaults))
    Console().print(table)
