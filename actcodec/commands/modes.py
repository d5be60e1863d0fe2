"""``actcodec modes``."""

import json
from collections.abc import Iterable
from typing import Any

import click
from rich.table import Table

from actcodec import codecs
from actcodec.codecs.mode import LANE
from actcodec.commands.common import papers
from actcodec.console import Console


@click.command("modes")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list of modes.")
@click.option("--codes", "as_codes", is_flag=True, help="Print the codes of modes, and the free ones.")
def command(as_json: bool, as_codes: bool) -> None:
    """List the modes: what each is for, what it does, and its options.

    \b
    Examples:
      actcodec modes
      actcodec modes --json
      actcodec modes --codes
    """
    if as_codes:
        if as_json:
            raise click.UsageError("--codes and --json are mutually exclusive")
        for title, legal in (("of modes of a lane", range(LANE)), ("of others", range(LANE, 256))):
            by_code = {code: mode for code, mode in codecs.codes().items() if code in legal}
            click.echo(f"Codes {legal[0]} to {legal[-1]}, {title}; free: {spans(set(legal) - set(by_code))}")
            for code, mode in by_code.items():
                click.echo(f"  {code:3}  {mode.name}")
        return
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


def spans(numbers: Iterable[int]) -> str:
    """Numbers as text: "16 to 19, 23"."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first} to {last}" if last > first else f"{first}" for first, last in runs) or "none"


def facts(mode: Any) -> dict[str, Any]:
    """A mode for JSON."""
    options = [{"name": option.name, "default": option.default, "range": option.range, "choices": option.choices,
                "help": option.help} for option in mode.options]
    variants = [{"options": values, "code": variant.code} for values, variant in mode.file_modes[1:]]
    return {"mode": mode.name, "code": mode.code, "variants": variants, "for": mode.tensors, "summary": mode.summary,
            "lossy": mode.lossy, "options": options, "engines": mode.engines, "source": mode.source}
