"""``python -m synth [UNIT ...] [--jobs N]``: maps units to Nangate45 and prints their areas beside the paper's."""

import sys
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from rtl.jpegact.cdu import CDMA
from rtl.units import UNITS
from synth import report
from synth.flow import SynthesisError, netlist, synthesise

# What is mapped besides the catalogue's defaults, to compare.
VARIANTS = {
    "dct": {"forward": {"direction": "forward"}, "inverse": {"direction": "inverse"}},
    "cdu": {"cDMA+": {"modes": CDMA}, "in a lane": {"packed": False}},
}


def _work(names):
    """(label, row of the paper, catalogue entry, parameters) of everything to map."""
    for name in names:
        parameters = UNITS[name].synth
        differs = ", ".join(f"{key} {value}" for key, value in parameters.items())
        yield f"{name} ({differs})" if differs else name, UNITS[name].paper, UNITS[name], parameters
        for variant, parameters in VARIANTS.get(name, {}).items():
            yield f"{name} ({variant})", None, UNITS[name], parameters


def _map(name, text, progress, task):
    try:
        return synthesise(name, text)
    finally:
        progress.advance(task)


MAPPED = [unit.name for unit in UNITS.values() if unit.synth is not None]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("units", nargs=-1, type=click.Choice(MAPPED), metavar="[UNIT ...]")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Units mapped at the same time.")
def main(units, jobs):
    """Maps UNITs (default: all) to Nangate45 and prints area beside Table IV of the paper.

    A run over all of them also leaves build/synth/report.json and report.md.
    """
    start, console = monotonic(), Console()
    work = list(_work(units or MAPPED))
    rows, errors, remembered = [], [], 0
    columns = (TextColumn("mapping to Nangate45"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress, ThreadPoolExecutor(jobs) as pool:
        task = progress.add_task("", total=len(work))
        # Amaranth elaborates one after the other; Yosys, the long part, runs side by side, and the catalogue's last
        # units, the largest, go first.
        runs = [pool.submit(_map, unit.name, netlist(unit.build(**parameters), unit.name), progress, task)
                for _, _, unit, parameters in reversed(work)]
        for (label, paper, _, _), run in zip(work, reversed(runs), strict=True):
            try:
                figures, cached = run.result()
            except SynthesisError as error:
                errors.append(error)
            else:
                remembered += cached
                rows.append(report.Row(label, paper, figures))

    rows += report.sums(rows)
    console.print(report.table(rows))
    for note in (report.sharing(rows), *report.NOTES):
        if note:
            console.print(note, style="dim", highlight=False)
    console.print(f"{len(work) - len(errors)} mapped, {remembered} of them remembered, in {monotonic() - start:.0f} s")
    for error in errors:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
    if errors:
        sys.exit(1)
    if not units:
        report.write(rows)


if __name__ == "__main__":
    main(prog_name="python -m synth")
