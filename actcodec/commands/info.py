"""``actcodec info``."""

import json

import click
from rich.table import Table

from actcodec import codecs, container
from actcodec.commands.common import shape_text
from actcodec.console import Console


@click.command("info")
@click.argument("source", metavar="IN.act")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(source: str, as_json: bool) -> None:
    """Show the contents of IN.act.

    ratio is the bytes of the tensor over those of the payload; ratio_with_side counts the whole file.

    \b
    Examples:
      actcodec info conv1.act
      actcodec info conv1.act --json
    """
    c = container.read(source)
    options = {name: value if isinstance(value, bool | int | float) else str(value)
               for name, value in c.options.items()}
    facts = {"mode": c.mode, **options, "shape": list(c.shape), "dtype": c.dtype, "payload_bytes": c.payload_bytes,
             "side_bytes": c.nbytes - c.payload_bytes, "ratio": c.ratio, "ratio_with_side": c.ratio_with_side}
    facts |= codecs.find(c.mode).model.facts(c.seen)
    if as_json:
        click.echo(json.dumps(facts))
        return
    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        text = shape_text(c.shape) if key == "shape" else f"{value:.5g}" if isinstance(value, float) else str(value)
        table.add_row(key, text)
    Console(markup=False, emoji=False).print(table)  # the name of a DQT is the user's
