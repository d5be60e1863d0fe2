"""``python -m actcodec.synth place [UNIT ...]``: mapped units with their cells placed, timed with wires."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import click
from rich import box
from rich.console import Console
from rich.table import Table

from actcodec.synth import baseline, records
from actcodec.synth.catalogue import MAPPED, NAMES, jobs, key, run
from actcodec.synth.console import Mapping, close, each, progress
from actcodec.synth.gates import judge
from actcodec.synth.layout import pictures
from actcodec.synth.layout.flow import Layout, identity, lay
from actcodec.synth.library import BUILD, PERIOD

__all__ = ["FIELDS", "SHOWN", "entry", "mhz", "picture", "show"]

SHOWN = ("zvc", "dct", "splitter", "writer", "lane")  # whose pictures are in the documentation
FIELDS = ("cells", "mapped", "placed", "late", "slack", "left", "area", "corners", "length", "share", "trees", "clock")
COLUMNS = ("unit", "um2", "slack", "placed", "late", "MHz", "sized", "late", "um2", "", "MHz", "mm", "proof", "s")
NOTE = ("Placed, not routed: 70 % of a core filled, a Steiner tree a net, R and C by layers (metal2, 3; 5, 6 beyond "
        "50 um), ideal clock. slack: as mapped, in ps, with the library's usual wires; placed: the same cells with the "
        "wires of their places; sized: after new sizes and trees of buffers; mm of wire.")


def entry(layout, job, checked):
    """What is recorded of a :class:`~actcodec.synth.layout.flow.Layout`; ``checked``: what its bench and proof said."""
    fields = {name: getattr(layout, name) for name in FIELDS}
    return {**fields, **checked, "key": identity(key(job)), **records.stamp()}


def picture(job, folder, build=BUILD):
    """Draws what was placed in ``folder`` for a job, into ``build/placed``; returns the file."""
    path = build / "placed" / f"{re.sub(r'[^a-z0-9_]+', '-', job.label.lower()).strip('-')}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(pictures.draw(job.label, json.loads((folder / "places.json").read_text()),
                                  json.loads((folder / "net.json").read_text())["modules"][job.name]))
    return path


def show(path, key):
    """Puts a picture among those of the documentation, with the key of what it shows."""
    shown = records.FOLDER.parent / "pictures" / f"placed-{path.name}"
    shown.write_text(path.read_text().rstrip() + f"\n<!-- {key} -->\n")


def mhz(slack):
    """The highest frequency at a slack; none where nothing is timed, and the slack is the whole period."""
    return f"{1e6 / (PERIOD - slack):,.0f}" if slack < PERIOD else "-"


def row(label, layout: Layout, cached):
    """The cells of the table."""
    slack, area = layout.mapped
    return (label, f"{area:,.0f}", f"{slack:.0f}", f"{layout.placed:.0f}", f"{layout.late}", mhz(layout.placed),
            f"{layout.slack:.0f}" + "!" * (layout.slack < 0), f"{layout.left}", f"{layout.area:,.0f}",
            f"{layout.area / area - 1:+.1%}", mhz(layout.slack), f"{layout.length:.1f}",
            "unfinished" if layout.functions is None else "proved", "-" if cached else f"{layout.seconds:.0f}")


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(NAMES), metavar="[UNIT ...]")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1), help="Units at the same time.")
@click.option("--renew", is_flag=True, help="Run benches on the netlists, too, and record all in docs/records.")
@click.option("--bench/--no-bench", default=True, show_default=True, help="With --renew: whether benches are run.")
def command(units, threads, renew, bench):
    """Maps UNITs (default: all but accelerators) unless that is done, places their cells, and prints slacks with wires
    beside today's, before and after cells got other sizes for them. An accelerator stands for its lane. Leaves pictures
    of the places in build/synth/placed.

    \b
    Examples:
      python -m actcodec.synth place zvc
      python -m actcodec.synth place dct --renew
      python -m actcodec.synth place accelerator-1-cdu
    """
    start, console = monotonic(), Console()
    with progress(console) as bars, ThreadPoolExecutor(threads) as pool:
        names = units or [name for name in MAPPED if name != "accelerator"]
        work = [job for job in jobs(names) if not job.parts]  # what consists of lanes is too large
        mapping = Mapping(console, bars, work)
        mapped = run(work, threads, mapping.done, baseline.recipes(baseline.read()), mapping.begun)

        def one(job, result):
            layout, folder, cached = lay(job.name, result[0], result[1].absolute(), job.arrival)
            checked = judge(job, folder, {})[1] if renew and bench else {"functions": layout.functions}
            path = picture(job, folder)
            if renew and job.label in SHOWN:
                show(path, identity(key(job)))
            return layout, cached, {name: checked.get(name) for name in ("tests", "functions")}

        results = each(pool, bars, "placing", one, work, mapped)
    table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    for k, column in enumerate(COLUMNS):
        table.add_column(column, justify="right" if k else "left", no_wrap=True)
    done = {job.label: (job, *result) for job, result in zip(work, results, strict=True)
            if not isinstance(result, Exception)}
    for label, (_, layout, cached, _) in done.items():
        table.add_row(*row(label, layout, cached))
    if renew:
        records.renew("placed", {label: entry(layout, job, checked)
                                 for label, (job, layout, _, checked) in done.items()})
    console.print(table)
    console.print(NOTE, style="dim", highlight=False)
    console.print(f"{len(done)} placed in {monotonic() - start:.0f} s")
    close(console, [result for result in results if isinstance(result, Exception)])
