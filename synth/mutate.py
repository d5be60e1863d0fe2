"""``python -m actcodec.synth mutate [UNIT ...]``: what the benches catch, measured with mutants.

A bench is compiled once for a netlist with many mutants of a unit (:mod:`actcodec.synth.mutants`), and run on each
until a test fails. A mutant that passes all tests is either proved to be equivalent (:mod:`actcodec.synth.miter`), or
it has survived: then the bench lets a fault of this kind through. Verdicts are kept in ``build/mutate``, so that a
campaign can be interrupted and goes on.
"""

import ast
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import click
from rich import box
from rich.console import Console
from rich.table import Table

from actcodec.synth import mutants, records
from actcodec.synth.console import close, progress
from actcodec.synth.library import SynthesisError
from actcodec.synth.miter import EQUIVALENT, UNKNOWN, prove
from actcodec.synth.mutants import BUILD, REGRESS, SUBJECTS, draw, drawn, verdicts
from actcodec.synth.sources import fingerprint

__all__ = ["COLUMNS", "Score", "campaign", "cells", "judge", "key"]

ROOT = Path(__file__).resolve().parent.parent
NONE = 0  # the number of the netlist without a mutant
SUCCESS, FAILURE = 0, 1  # what pytest ends with if there were tests
VERDICT = re.compile(rf"{UNKNOWN}|different after \d+ cycles")


@dataclass(frozen=True)
class Score:
    """What became of the mutants of a subject: ``killed`` {number: the test that failed}, ``survived`` {number: what is
    known of it}, ``equivalent`` numbers; ``bench`` and ``seconds`` of the processor that the bench takes without a
    mutant and that all of it took."""

    folder: Path
    killed: dict
    survived: dict
    equivalent: list
    bench: float
    seconds: float

    def row(self):
        """Cells of the table."""
        return cells(self.entry())

    def entry(self):
        """What is recorded."""
        return {"mutants": len(self.killed) + len(self.survived) + len(self.equivalent), "killed": len(self.killed),
                "equivalent": len(self.equivalent), "survived": {str(k): text for k, text in self.survived.items()},
                "bench": round(self.bench, 1), "seconds": round(self.seconds)}


COLUMNS = ("mutants", "killed", "equivalent", "survived", "%", "bench, s", "all, s")


def cells(entry):
    """The table's cells of what is recorded of a subject; the score is of the mutants that are not equivalent."""
    count, killed, equivalent = (entry[name] for name in ("mutants", "killed", "equivalent"))
    percent = 100 * killed / max(count - equivalent, 1)
    return [str(count), str(killed), str(equivalent), str(len(entry["survived"])), f"{percent:.1f}",
            f"{entry['bench']:.1f}", f"{entry['seconds']}"]


def sources(path):
    """The file and all that it imports of tb/ and golden/."""
    closure, todo = set(), [path]
    while todo:
        path = todo.pop()
        if path in closure:
            continue
        closure.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                if isinstance(node, ast.ImportFrom) and node.module else [])
            names = [name.removeprefix("actcodec.") for name in names]
            places = [ROOT / name.replace(".", "/") for name in names if name.split(".")[0] in ("tb", "golden")]
            files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
            todo += [file for file in files if file.exists()]
    return sorted(closure)


def _call(subject, folder, file, **environment):
    """Runs a subject's bench, what make sim has of it or all, with the netlist in ``folder``; returns the process."""
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist",
         *([] if subject.name in REGRESS else ["-m", "not regress"]), subject.bench_node],
        cwd=ROOT, stdout=file, stderr=subprocess.STDOUT,
        env={**os.environ, "MUTANTS": f"{subject.name}:{folder}", "SIM": "verilator", "WAVES": "",
             **environment})


def bench_key(subject, seed):
    """Sixteen characters that change with the bench of a subject, and all that it imports of tb/ and golden/."""
    return fingerprint(sources(ROOT / subject.bench_node.partition("::")[0]), seed)


def key(subject, count, seed):
    """What the verdicts on a subject's mutants depend on: the mutants, and the bench."""
    return f"{mutants.key(subject, count, seed)}-{bench_key(subject, seed)}"


def campaign(subject, folder, seed, tell=lambda known: None):
    """Runs the bench of a subject on the mutants in ``folder``, or goes on with that. Returns {number: (the test that
    failed or "", seconds)}; now and then calls ``tell`` with what is known so far.

    Raises
    ------
    SynthesisError
        If the bench fails without a mutant, or has no test for this netlist.
    """
    stem = f"verdicts-{bench_key(subject, seed)}"
    journal, complete = folder / stem, folder / f"{stem}-complete"

    def known():
        result = {}
        for _, number, failed, seconds in verdicts(journal):
            before = result.get(number, ("", 0))
            result[number] = before[0] or failed, before[1] + seconds
        return result

    if not complete.exists():
        log = folder / "mutate.log"
        with open(log, "w") as file:
            process = _call(subject, folder, file, VERDICTS=str(journal), SEED=str(seed))
            while process.poll() is None:
                tell(known())
                sleep(0.5)
        if process.returncode or NONE not in known():
            reasons = re.findall(r"^E\s+(.*)", log.read_text(), re.MULTILINE)[:3] or ["no test fits"]
            raise SynthesisError(f"{subject.name}: its bench fails without a mutant: {'; '.join(reasons)} (log: {log})")
        complete.touch()
    return known()


def judge(subject, count, seed, tell=lambda known: None, build=BUILD):
    """The :class:`Score` of a subject with ``count`` mutants."""
    folder = draw(subject, count, seed, build)
    known = campaign(subject, folder, seed, tell)
    bench, killed = known.pop(NONE)[1], {number: failed for number, (failed, _) in known.items() if failed}
    left = {number: prove(subject.name, folder, number) for number in sorted(known.keys() - killed.keys())}
    equivalent = [number for number, verdict in left.items() if verdict == EQUIVALENT]
    return Score(folder, killed, {number: verdict for number, verdict in left.items() if number not in equivalent},
                 equivalent, bench, bench + sum(seconds for _, seconds in known.values()))


def replay(subject, folder, number, seed):
    """Runs the whole bench on one mutant, whatever it does, and says that.

    Raises
    ------
    SynthesisError
        If there is no such mutant, or if pytest neither passes nor fails tests.
    """
    known = drawn(folder)
    if not 0 < number <= len(known):
        raise SynthesisError(f"{subject.name}: mutant {number}: choose from 1 to {len(known)}")
    print(f"{subject.name} {number}: {known[number - 1]}", flush=True)
    status = _call(subject, folder, None, MUTANT=str(number), SEED=str(seed)).wait()
    if status not in (SUCCESS, FAILURE):
        raise SynthesisError(f"{subject.name}: its bench cannot be run: pytest has ended with status {status}")
    print("killed" if status == FAILURE else f"survives: {prove(subject.name, folder, number)}")


def commented(name, entry):
    """An entry for the record, with what was written there by hand about survivors, behind a verdict that is still the
    same or without one, if its mutants are the same."""
    before = records.read("mutants").get(name, {"key": None})
    if before["key"] and before["key"].partition("-")[0] == entry["key"].partition("-")[0]:
        fresh = entry["survived"]
        entry["survived"] = fresh | {
            k: text for k, text in before["survived"].items()
            if k in fresh and (text.startswith(fresh[k]) or not VERDICT.match(text))}
    return entry


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(SUBJECTS), metavar="[UNIT ...]")
@click.option("--mutants", "count", default=50, show_default=True, type=click.IntRange(1, 10000))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the mutants, and of the bench.")
@click.option("--mutant", type=click.IntRange(1), help="Runs the bench on this one alone, and shows it.")
@click.option("--jobs", "threads", default=1, show_default=True, type=click.IntRange(1), help="Units at the same time.")
@click.option("--renew", is_flag=True, help="Record the scores in docs/records/mutants.json.")
def command(units, count, seed, mutant, threads, renew):
    """Runs the benches of UNITs (default: all) on mutants, and proves those equivalent that pass, if they are.

    \b
    Examples:
      python -m actcodec.synth mutate skid
      python -m actcodec.synth mutate skid --seed 2 --mutants 100
      python -m actcodec.synth mutate skid --mutant 17
    """
    subjects, console = [SUBJECTS[name] for name in units or SUBJECTS], Console()
    if mutant is not None:
        try:
            for subject in subjects:
                replay(subject, draw(subject, count, seed), mutant, seed)
        except SynthesisError as error:
            close(console, [error])
        return

    with progress(console) as bars, ThreadPoolExecutor(threads) as pool:
        total = bars.add_task("units", total=len(subjects))

        def one(subject):
            task = bars.add_task(subject.name, total=count)

            def tell(known):
                bench, killed = known.get(NONE, ("", 0))[1], sum(bool(failed) for failed, _ in known.values())
                most = f": {killed} killed; at most {bench * count / 60:.0f} min" if bench else ""
                bars.update(task, completed=len(known.keys() - {NONE}), description=f"{subject.name}{most}")

            try:
                score = judge(subject, count, seed, tell)
                console.print(f"{subject.name:18} " + ", ".join(
                    f"{cell} {name}" for name, cell in zip(COLUMNS, score.row(), strict=True)),
                    highlight=False, soft_wrap=True)
                if renew:  # at once, as hours may follow
                    records.renew("mutants", {subject.name: commented(subject.name, {
                        "key": key(subject, count, seed), "seed": seed, **score.entry()})}, SUBJECTS)
                return score
            except SynthesisError as error:
                console.print(f"{subject.name:18} failed", style="red")
                return error
            finally:
                bars.remove_task(task)
                bars.advance(total)

        results = list(pool.map(one, subjects))
    done = [(subject, score) for subject, score in zip(subjects, results, strict=True) if isinstance(score, Score)]
    table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("unit", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for subject, score in done:
        table.add_row(subject.name, *score.row())
    console.print(table)
    for subject, score in done:
        for number, verdict in score.survived.items():
            console.print(f"{subject.name} {number} survives, {verdict}: {drawn(score.folder)[number - 1]}\n"
                          f"    make mutate UNIT={subject.name} MUTANT={number}", highlight=False, markup=False,
                          soft_wrap=True)
    close(console, [result for result in results if isinstance(result, Exception)])
