"""``actcodec modes``."""

import json

import click
from rich.table import Table

from actcodec import codecs
from actcodec.commands.common import papers
from actcodec.console import Console


@click.command("modes")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of modes.")
def command(as_json):
    """List the modes: what each is for, what it does, its options and where it comes from.

    \b
    Examples:
      actcodec modes
      actcodec modes --json
    """
    if as_json:
        click.echo(json.dumps([facts(mode) for mode in codecs.MODES.values()]))
        return
    console = Console(markup=False, highlight=False)
    for paper, modes in papers().items():
        table = Table("code", "mode", "for", "what it does", "options", box=None, header_style="bold", title=paper,
                      title_justify="left", pad_edge=False)
        table.columns[1].no_wrap = True
        for mode in modes:
            notes = (["lossy"] if mode.lossy else []) + ([] if "rtl" in mode.engines else ["no hardware"])
            table.add_row(str(mode.code), mode.name, mode.tensors, "; ".join([mode.summary, *notes]),
                          ", ".join(option.name for option in mode.options))
        console.print(table, "")


def facts(mode):
    """A mode as JSON has it."""
    options = [{"name": option.name, "default": option.default, "range": option.range, "choices": option.choices,
                "help": option.help} for option in mode.options]
    variants = [{"options": values, "code": variant.code} for values, variant in mode.file_modes[1:]]
    return {"mode": mode.name, "code": mode.code, "variants": variants, "for": mode.tensors, "summary": mode.summary,
            "lossy": mode.lossy, "options": options, "engines": mode.engines, "source": mode.source}
