"""``python -m actcodec.synth map [UNIT ...]``: units mapped to Nangate45, area and timing beside the paper's."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from time import monotonic

import click
from rich.console import Console

from actcodec.synth import baseline, fpga, power, report
from actcodec.synth.catalogue import MAPPED, jobs, run
from actcodec.synth.console import close, progress
from actcodec.synth.library import SynthesisError


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(MAPPED), metavar="[UNIT ...]")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1),
              help="Units mapped at the same time.")
@click.option("--search", is_flag=True, help="Try all recipes, not only the one recorded in baseline.json.")
@click.option("--power/--no-power", "powered", default=None,
              help="Measure power, too; by default only when all is mapped.")
def command(units, threads, search, powered):
    """Maps UNITs (default: all) to Nangate45 and prints area and timing beside the paper's tables.

    A run over all of them also leaves build/synth/report.html, report.json and report.md.

    \b
    Examples:
      python -m actcodec.synth map
      python -m actcodec.synth map dct zvc --power
      python -m actcodec.synth map splitter --search
    """
    start, console = monotonic(), Console()
    powered = not units if powered is None else powered
    # Power is measured beside the mapping, at a lower priority, so that no core waits for the last netlist.
    with progress(console) as bars, ThreadPoolExecutor(threads, initializer=partial(os.nice, 10)) as pool:
        work = jobs(units or MAPPED)
        mapping = bars.add_task("mapping to Nangate45", total=len(work))
        measuring = bars.add_task("power of real activations", total=len(work), visible=powered)
        recorded = {} if search else baseline.recipes(baseline.read())
        measured = {}

        def mapped(job, result):
            bars.advance(mapping)
            if powered and result:
                measured[job.label] = pool.submit(power.measure, job, result[1])
                measured[job.label].add_done_callback(lambda _: bars.advance(measuring))

        results = run(work, threads, mapped, recorded)
    powers = {label: one.exception() or one.result() for label, one in measured.items()}
    errors = [result for result in [*results, *powers.values()] if isinstance(result, Exception)]
    for error in errors:
        if not isinstance(error, SynthesisError):
            raise error
    done = [(job, *result) for job, result in zip(work, results, strict=True) if not isinstance(result, Exception)]
    powers = {label: result for label, result in powers.items() if isinstance(result, dict)}
    rows = report.whole([
        report.Row(job.label, job.paper, figures, fpga.recall(job.name, job.text, parts=job.texts),
                   powers.get(job.label, {})) for job, figures, _, _ in done])
    rows += report.sums(rows)
    console.print(report.table(rows, console.width))
    for note in (report.sharing(rows), report.macros(rows), *report.NOTES):
        if note:
            console.print(note, style="dim", highlight=False)
    remembered = sum(cached for _, _, _, cached in done)
    console.print(f"{len(done)} mapped, {remembered} of them remembered, in {monotonic() - start:.0f} s")
    close(console, errors)
    if not units:
        report.write(rows)
