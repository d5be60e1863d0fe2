"""``python -m actcodec.synth sky130 [UNIT ...]``: units in a second technology, beside the first."""

from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import click
from rich import box
from rich.console import Console
from rich.table import Table

from actcodec.synth import baseline, records
from actcodec.synth.catalogue import NAMES, jobs, key
from actcodec.synth.console import close, each, progress
from actcodec.synth.library import NAND2, PERIOD
from actcodec.synth.sky130.flow import gates, identity, period, synthesise

__all__ = ["UNITS", "entry"]

UNITS = ("binarize", "quantize", "round", "zvc", "packer", "unpacker", "sfpr", "dct8", "transpose",
         "bitpack", "fadd", "dpr_encode", "dpr_decode", "tensor_plan", "registers", "address_generator", "align")
COLUMNS = ("unit", "kGE, first", "MHz", "kGE", "", "um2", "slack", "MHz", "recipe", "proof", "s")


def entry(figures, job, recorded):
    """What is recorded of :class:`~actcodec.synth.sky130.flow.Figures`; ``recorded``: the figures that
    ``baseline.json`` has of the same unit."""
    names = "area", "cells", "flops", "slack", "fmax", "recipe", "functions"
    return {**{name: getattr(figures, name) for name in names},
            "nangate45": {name: recorded[name] for name in ("area", "slack", "recipe")},
            "key": identity(key(job)), **records.stamp()}


def row(label, figures, recorded, cached):
    """The cells of the table."""
    first, second = recorded["area"] / NAND2 / 1000, gates(figures.area)
    return (label, f"{first:.2f}", f"{1e6 / (PERIOD - recorded['slack']):.0f}", f"{second:.2f}",
            f"{second / first - 1:+.0%}", f"{figures.area:,.0f}", f"{figures.slack:.0f}" + "!" * (figures.slack < 0),
            f"{figures.fmax:.0f}", figures.recipe, "unfinished" if figures.functions is None else "proved",
            "-" if cached else f"{figures.seconds:.0f}")


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(NAMES), metavar="[UNIT ...]")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1), help="Units at the same time.")
@click.option("--search", is_flag=True, help="Try all recipes, not only the one that is best in Nangate45.")
@click.option("--renew", is_flag=True, help="Record the figures in docs/records.")
def command(units, threads, search, renew):
    """Maps UNITs (default: small ones and some of middle size) to sky130's cells with the recipes that are recorded for
    Nangate45, and prints both beside each other.

    \b
    Examples:
      python -m actcodec.synth sky130 zvc
      python -m actcodec.synth sky130 zvc --search
    """
    start, console, recorded = monotonic(), Console(), baseline.read()
    with progress(console) as bars, ThreadPoolExecutor(threads) as pool:
        work = jobs(units or UNITS, lambda unit, parameters: units or parameters == unit.synth)

        def one(job, _):
            figures, _, cached = synthesise(job, None if search else recorded[job.label]["recipe"])
            return figures, cached

        results = each(pool, bars, "mapping to sky130", one, work, [None] * len(work))
    table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    for k, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if k else "left", no_wrap=True)
    done = [(job, *result) for job, result in zip(work, results, strict=True) if not isinstance(result, Exception)]
    for job, figures, cached in done:
        table.add_row(*row(job.label, figures, recorded[job.label], cached))
    if renew:
        records.renew("sky130", {job.label: entry(figures, job, recorded[job.label]) for job, figures, _ in done})
    console.print(table)
    console.print("first: Nangate45.", style="dim", highlight=False)
    console.print(f"sky130hd, typical corner at 1.8 V, {1e6 / period():.0f} MHz: Nangate45's 1,455 by the delay of an "
                  "inverter that drives four. kGE: thousands of the library's own NAND2 of the least drive.",
                  style="dim", highlight=False)
    console.print(f"{len(done)} mapped in {monotonic() - start:.0f} s")
    close(console, [result for result in results if isinstance(result, Exception)])
