"""``python -m actcodec.synth map [UNIT ...]``: units mapped to Nangate45, area and timing beside the paper's."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic

import click
from rich.console import Console

from actcodec.synth import baseline, fpga, power, records, report
from actcodec.synth.catalogue import BY_NAME, MAPPED, NAMES, jobs, key, run
from actcodec.synth.console import Mapping, close, progress
from actcodec.synth.library import SynthesisError


@click.command(epilog=f"By name alone: {', '.join(BY_NAME)}.")
@click.argument("units", nargs=-1, type=click.Choice(NAMES), metavar="[UNIT ...]")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1),
              help="Units mapped at the same time.")
@click.option("--search", is_flag=True, help="Try all recipes, not only the one recorded in baseline.json.")
@click.option("--power/--no-power", "powered", default=None,
              help="Measure power, too; by default only when all is mapped.")
@click.option("--renew", is_flag=True, help="With --power: record it in docs/records/power.json.")
def command(units, threads, search, powered, renew):
    """Maps UNITs (default: all that does not take long) to Nangate45 and prints area and timing beside the paper's
    tables.

    A UNIT is a unit with its variants, or a variant, such as cdu-in-a-lane. A run without UNITs also leaves
    build/synth/report.html, report.json and report.md.

    \b
    Examples:
      python -m actcodec.synth map
      python -m actcodec.synth map dct zvc --power
      python -m actcodec.synth map splitter-rice --search
    """
    powered = not units if powered is None else powered
    if renew and not powered:
        raise click.UsageError("--renew goes with --power")
    start, console = monotonic(), Console()
    # Power is measured beside the mapping, at a lower priority, so that no core waits for the last netlist.
    with progress(console) as bars, ThreadPoolExecutor(threads, initializer=partial(os.nice, 10)) as pool:
        elaborating = bars.add_task("elaborating", total=None)
        work = jobs(units or MAPPED)
        bars.remove_task(elaborating)
        mapping = Mapping(console, bars, work)
        measuring = bars.add_task("power of real activations", total=len(work), visible=powered)
        recorded = None if search else baseline.recipes(baseline.read())
        measured = {}

        def mapped(job, result):
            mapping.done(job, result)
            if powered and result:
                measured[job.label] = pool.submit(power.measure, job, result[1])
                measured[job.label].add_done_callback(lambda _: bars.advance(measuring))

        results = run(work, threads, mapped, recorded, mapping.begun)
    powers = {label: one.exception() or one.result() for label, one in measured.items()}
    errors = [result for result in [*results, *powers.values()] if isinstance(result, Exception)]
    for error in errors:
        if not isinstance(error, SynthesisError):
            raise error
    done = [(job, *result) for job, result in zip(work, results, strict=True) if not isinstance(result, Exception)]
    powers = {label: result for label, result in powers.items() if isinstance(result, dict)}
    if renew:
        measured_on = records.stamp()
        records.renew("power", {job.label: {"key": key(job), **measured_on, **{
            direction: round(one.total, 1) for direction, one in powers[job.label].items()}}
            for job in work if powers.get(job.label)})
    placed = [] if units else fpga.placed(MAPPED)  # made for LUTs; the report of all of them shows what is remembered
    fits = {job.label: fpga.recall(job.name, job.text, parts=job.texts) for job in placed}
    rows = report.whole([report.Row(job.label, job.paper, figures, fits.get(job.label), powers.get(job.label, {}))
                         for job, figures, _, _ in done])
    rows += report.sums(rows)
    console.print(report.table(rows, console.width))
    for note in (report.sharing(rows), report.macros(rows), *report.NOTES):
        if note:
            console.print(note, style="dim", highlight=False)
    remembered = sum(cached for _, _, _, cached in done)
    console.print(f"{len(done)} mapped, {remembered} of them remembered, in {monotonic() - start:.0f} s")
    if not units:
        console.print(f"By name alone, as they take long: {', '.join(BY_NAME)}.", style="dim", highlight=False)
    close(console, errors)
    if not units:
        report.write(rows)
