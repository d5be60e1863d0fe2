"""``actcodec evaluate``."""

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import groupby, product, zip_longest
from typing import Any

import click
import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table

from actcodec import api, codecs, sources
from actcodec.commands.common import ModeCommand, check_picture, say, settings, shape_text, spelling
from actcodec.console import Console
from actcodec.files import UserError
from actcodec.tensors import dtype_name

FIELDS = ("ratio", "ratio_with_side", "relative_error", "channel_error", "psnr", "largest_error", "nans", "infinities",
          "saturated")


@click.command("evaluate", cls=ModeCommand, several=True)
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@click.option("--all", "every", is_flag=True, help="All modes.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of the table.")
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values instead of the table.")
@click.option("--plot", metavar="FILE", help="Draw ratio against error; .png, .svg or .pdf.")
def command(files: Sequence[str], mode: Sequence[str], every: bool, as_json: bool, as_csv: bool, plot: str | None,
            **options: Any) -> None:
    """Show the ratio and error of tensors in several modes.

    FILES are .npy, .npz (all arrays, or one as file.npz:name) and, with PyTorch, .pt (all tensors, or file.pt:name);
    `-` is a .npy on the standard input. Modes and options may be repeated: all combinations are tried.

    \b
    Examples:
      actcodec evaluate conv1.npy --mode jpeg-act --mode sfpr
      actcodec evaluate conv1.npy --mode jpeg-act --dqt optL --dqt optH --dqt my_table.txt
      actcodec evaluate activations.npz activations.npz:conv1 --all --plot all.png
      actcodec evaluate activations.npz --all --csv > all.csv
    """
    if bool(mode) == every:
        raise UserError("give either --mode, once or more, or --all")
    if as_json and as_csv:
        raise UserError("give either --json or --csv")
    if plot:
        check_picture(plot)
    todo = every_way([*(codecs.MODES if every else dict.fromkeys(mode))], options)
    tensors = named(files)
    pairs = [(tensor, way) for tensor, way in product(tensors, todo)
             if tensor[1].dtype != np.int8 or codecs.find(way[1]).codes]
    for name, x in tensors:
        if others := [one for _, one, _ in todo if x.dtype == np.int8 and not codecs.find(one).codes]:
            say(f"note: left out {name}, which is int8, in {', '.join(dict.fromkeys(others))}")
    if not pairs:
        raise UserError(codecs.refused(codecs.find(todo[0][1])))
    rows = []
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("evaluating", total=len(pairs))
        for (name, x), (label, one_mode, combination) in pairs:
            progress.update(task, description=f"{name}, {label}")
            rows.append(row(name, x, one_mode, label, combination))
            progress.advance(task)
    if plot:
        from actcodec.commands.evaluate_plot import draw

        draw(rows, plot)
    if as_json:
        click.echo(json.dumps([finite(one) for one in rows]))
    elif as_csv:
        click.echo(comma_separated(rows), nl=False)
    else:
        show(rows)


def named(files: Sequence[str]) -> list[tuple[str, np.ndarray]]:
    """The tensors of files; those of one name in several files have that of the file in front."""
    tensors = [(sources.split(file)[0], name, x) for file in files for name, x in sources.tensors(file, say)]
    paths: dict[str, set[str]] = {}
    for path, name, _ in tensors:
        paths.setdefault(name, set()).add(path)
    return [(name if len(paths[name]) == 1 else f"{path}:{name}", x) for path, name, x in tensors]


def ways(mode: str, options: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Every combination of the given options that the mode has: [(label, mode, options)]."""
    own = {option.name: options[option.name] for option in codecs.find(mode).options if options[option.name]}
    result = []
    for values in product(*own.values()):
        combination = settings(mode, dict(zip(own, values, strict=True)))
        result.append((" ".join([mode, *map(str, combination.values())]), mode, combination))
    return result


def every_way(modes: Sequence[str], options: Mapping[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """The :func:`ways` of several modes, each with a label of its own, and a note on stderr
    for each option that none of them has."""
    for option, values in options.items():
        if values and not any(codecs.find(mode).option(option) for mode in modes):
            say(f"note: --{spelling(option)} has no effect: no mode asked for has it")
    result, number = [], Counter[str]()
    for label, name, combination in (way for mode in modes for way in ways(mode, options)):
        number[label] += 1  # more than once: files of one name in several folders
        result.append((f"{label} #{number[label]}" if number[label] > 1 else label, name, combination))
    return result


def row(name: str, x: np.ndarray, mode: str, label: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The evaluation of a tensor, as a dictionary. Raises :class:`UserError` for one that the mode refuses."""
    try:
        evaluation = api.evaluate(x, mode, **options)
    except ValueError as error:
        raise UserError(f"{name}: {error}") from error
    if evaluation.mode != codecs.find(mode).name:
        label = f"{label} ({evaluation.mode})"  # it fell back
    facts = asdict(evaluation)
    facts["options"] = {key: value if isinstance(value, bool | int | float | None) else str(value)
                        for key, value in evaluation.options.items()}
    return {"tensor": name, "shape": list(x.shape), "dtype": dtype_name(x.dtype), "bytes": x.nbytes, "label": label,
            **facts}


def finite(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts with None for infinity and NaN, which JSON does not have."""
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in facts.items()}


def comma_separated(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["tensor", "shape", "dtype", "label", "mode", *FIELDS])
    for one in rows:
        writer.writerow([one["tensor"], shape_text(one["shape"]), one["dtype"], one["label"], one["mode"],
                         *(one[field] for field in FIELDS)])
    return text.getvalue()


def number(value: float, form: str) -> str:
    return "-" if not math.isfinite(value) else "0" if not value else format(value, form)


def cells(one: Mapping[str, Any]) -> tuple[str, ...]:
    """A row of the table, except the tensor."""
    return (one["label"], f"{one['ratio']:.2f}", f"{one['ratio_with_side']:.2f}", number(one["relative_error"], ".3g"),
            number(one["channel_error"], ".3g"), number(one["psnr"], ".1f"), number(one["largest_error"], ".3g"),
            str(one["nans"] + one["infinities"]), str(one["saturated"]))


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints a table, and the ratio of all tensors together if there are several."""
    table = Table("tensor", "mode", box=None, header_style="bold", pad_edge=False, collapse_padding=True)
    table.columns[0].overflow = "fold"  # a long name is wrapped, not cut
    for name in ("ratio", "with\nside", "rel. L2\nerror", "of chan-\nnels", "PSNR\ndB", "largest\nerror", "NaN,\nInf",
                 "satu-\nrated"):
        table.add_column(name, justify="right", no_wrap=True)
    for tensor, grouped in groupby(rows, lambda one: one["tensor"]):
        group = list(grouped)
        what = [tensor, shape_text(group[0]["shape"]), group[0]["dtype"]]
        for one, text in zip_longest(group, what):
            table.add_row(text, *cells(one) if one else ())
    console = Console(markup=False, highlight=False)
    console.print(table)
    if len({one["tensor"] for one in rows}) > 1:
        console.print("\nratio of all tensors together")
        totals: dict[str, tuple[float, float]] = {}
        for one in rows:
            label = one["label"].removesuffix(f" ({one['mode']})")  # where it fell back
            size, packed = totals.get(label, (0, 0))
            totals[label] = size + one["bytes"], packed + one["bytes"] / one["ratio"]
        for label, (size, packed) in totals.items():
            console.print(f"  {label}: {size / packed:.2f}")
