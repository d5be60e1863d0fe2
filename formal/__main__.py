"""``python -m formal [UNIT ...]``: proves what formal/catalogue.py lists, and shows that broken units are caught."""

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context
from time import monotonic

import click
from rich.console import Console
from rich.table import Table

from actcodec.synth import records
from actcodec.synth.console import close, progress
from formal.catalogue import decide, proofs

COLUMNS = ("unit", "property", "how", "s", "broken by")


def rows(outcomes):
    """The table's: for each result of {proof: results} what the columns say."""
    for proof, results in outcomes.items():
        for result in results:
            how = f"{result.status}: {result.method}" if result.status in ("failed", "open") else result.method
            yield proof.label, result.name, how, f"{result.seconds:.1f}", result.fault or "nothing"


def entry(proof, key, results):
    """What is recorded of a proof: of each property its name, status, method, seconds, and what breaks it."""
    return {"unit": proof.label, "key": key, "properties": [
        [result.name, result.status, result.method, result.seconds, result.fault] for result in results]}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("units", nargs=-1, metavar="[UNIT ...]")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1), help="Proofs at the same time.")
@click.option("--limit", default=600, show_default=True, type=click.IntRange(1),
              help="Seconds of a core for each property, and as many for a fault that breaks it.")
@click.option("--renew", is_flag=True, help="Record what holds in docs/records/proofs.json.")
def main(units, jobs, limit, renew):
    """Proves the properties of UNITs (default: all).

    Results are remembered in build/prove, by the content of the unit and of what is asked of it. With a higher limit,
    what was open or bounded for lack of time is tried again.
    """
    start, console, known = monotonic(), Console(), proofs()
    names = sorted({proof.unit for proof in known.values()})
    if unknown := set(units) - set(names):
        raise click.UsageError(f"no proofs of {', '.join(sorted(unknown))}; choose from {', '.join(names)}")
    todo = [name for name, proof in known.items() if not units or proof.unit in units]
    outcomes, errors = {}, []
    with progress(console) as bars, ProcessPoolExecutor(jobs, mp_context=get_context("spawn"),
                                                        initializer=partial(os.nice, 10)) as pool:
        task = bars.add_task("proving", total=len(todo))
        runs = {pool.submit(decide, name, limit): name for name in todo}
        for run in as_completed(runs):
            name = runs[run]
            bars.advance(task)
            if run.exception():
                errors.append(f"{name}: {run.exception()}")
                continue
            key, outcomes[name] = run.result()
            if renew and all(result.good for result in outcomes[name]):
                records.renew("proofs", {name: entry(known[name], key, outcomes[name])}, known)
            for result in outcomes[name]:
                if not result.good:
                    what = "nothing that breaks it was found" if result.status in ("proved", "bounded") else (
                        f"{result.status} ({result.method})" + (f", see {result.trace}" if result.trace else ""))
                    errors.append(f"{known[name].unit}: {result.name}: {what}")
                    bars.console.print(errors[-1], style="red", markup=False, soft_wrap=True)
    table = {known[name]: outcomes[name] for name in todo if name in outcomes}
    shown = Table(*COLUMNS)
    for row in rows(table):
        shown.add_row(*row)
    console.print(shown)
    count = sum(map(len, table.values()))
    seconds = sum(result.seconds for results in table.values() for result in results)
    console.print(f"{count} properties, {seconds:.0f} s of proofs, in {monotonic() - start:.0f} s")
    close(console, errors)


if __name__ == "__main__":
    main(prog_name="python -m formal")
