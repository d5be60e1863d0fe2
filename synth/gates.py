"""``python -m actcodec.synth gates [UNIT ...]``: runs benches on mapped netlists, to show that these are what the RTL
says.

The bench of a unit drives the netlist of its cells in place of the RTL, and compares with the golden model as ever. It
starts with random values in all flip-flops and latches. Gates have no delay: timing is OpenSTA's. Of the tests that are
parametrised by pauses, three combinations are run, and of the others those that look at nothing but ports.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic

import click
from rich import box
from rich.console import Console
from rich.table import Table

from actcodec.synth import baseline, catalogue, records
from actcodec.synth.catalogue import key
from actcodec.synth.console import Mapping, close, each, progress
from actcodec.synth.equivalence import prove
from actcodec.synth.layout.flow import lay
from actcodec.synth.library import SynthesisError
from actcodec.synth.sources import fingerprint
from actcodec.synth.whole import answers, replays

__all__ = ["UNITS", "Run", "judge", "run"]

ROOT = Path(__file__).resolve().parent.parent

UNITS = catalogue.MAPPED
# Their bench would run for hours on 100,000 cells a lane: real activations are compressed and decompressed.
REPLAYED = ("lane", "accelerator")
# The halves of SH are benched with a register between, as the CDU has them: by themselves they have to be proved.
PROVED = ("quantize", "round")


@dataclass(frozen=True)
class Run:
    """A bench that passed on a netlist: how many of its tests, and how long they took."""

    tests: int
    seconds: float


def _judges():
    """The files of all code that decides whether a netlist passes its bench."""
    here = [Path(__file__).with_name(f"{name}.py") for name in ("gates", "cells", "memories", "elaborating")]
    return [*here, *(path for tree in ("tb", "golden") for path in sorted((ROOT / tree).rglob("*.py")))]


def run(name, folder):
    """Runs the bench of the unit ``name`` on the netlist in ``folder``, or remembers that it has passed. Returns
    ``(run, cached)``.

    Raises
    ------
    SynthesisError
        If a test fails, or if the bench has none for this netlist.
    """
    memo = folder / f"gates-{fingerprint([folder / 'net.v', *_judges()], name)}.json"
    if memo.exists():
        return Run(**json.loads(memo.read_text())), True
    start = monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist",
         catalogue.UNITS[name].bench_node],
        cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "GATES": f"{name}:{folder}", "SIM": "verilator", "WAVES": ""})
    (folder / "gates.log").write_text(done.stdout)
    count = sum(map(int, re.findall(r"^\W*(\d+) tests on the netlist$", done.stdout, re.MULTILINE)))
    if done.returncode or not count:
        reasons = re.findall(r"^E\s+(.*)", done.stdout, re.MULTILINE)[:3] or ["no test fits"]
        raise SynthesisError(f"{name}: its netlist fails its bench: {'; '.join(reasons)} (log: {folder / 'gates.log'})")
    result = Run(count, round(monotonic() - start, 1))
    records.write(memo, json.dumps(asdict(result)))
    return result, False


def judge(job, folder, parts):
    """What the table says of the netlist of ``job`` in ``folder``, and what is recorded of it; ``parts``:
    {module: its folder} of what the netlist has several of.

    Raises
    ------
    SynthesisError
        If it is not what the RTL says, or if nothing can tell.
    """
    if job.unit.name in REPLAYED:
        start = monotonic()
        entry = {"cycles": answers(job, folder, parts)}
        row = [f"{entry['cycles']:,} cycles", f"{monotonic() - start:.0f}", "passed"]
        if parts:  # lanes, which are proved by themselves
            return [*row, "-", "-", "-"], {"key": key(job), **entry}
    elif job.name in PROVED:
        entry, row = {"tests": None}, ["-", "-", "-"]
    else:
        result, cached = run(job.name, folder)
        entry = {"tests": result.tests}
        row = [f"{result.tests} tests", f"{result.seconds:.0f}", "remembered" if cached else "passed"]
    proof = prove(job.name, folder)
    if job.name in PROVED and not proof.proved:
        raise SynthesisError(f"{job.name}: its netlist has no bench, and its proof does not finish")
    row += ["proved" if proof.proved else "unfinished", f"{proof.outputs:,}", f"{proof.seconds:.0f}"]
    return row, {"key": key(job), **entry, "functions": proof.outputs if proof.proved else None}


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(catalogue.NAMES), metavar="[UNIT ...]")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1),
              help="Units at the same time.")
@click.option("--renew", is_flag=True, help="Record what has passed in docs/records/netlists.json.")
@click.option("--placed", is_flag=True, help="Take the netlists that places and wires have changed, and the lane in "
              "place of an accelerator, which is too large for it.")
def command(units, threads, renew, placed):
    """Maps UNITs (default: all) unless that is done, runs their benches on the netlists, and proves these equivalent to
    the RTL where that ends within a minute; through lanes and accelerators it replays real activations, and lanes are
    proved.

    \b
    Examples:
      python -m actcodec.synth gates
      python -m actcodec.synth gates dct cdu-in-a-lane-rice
    """
    if renew and placed:
        raise click.UsageError("what is placed is recorded by place --renew")
    if strange := [label for label, (_, unit, parameters) in catalogue.orders(units).items()
                   if unit.name in REPLAYED and not replays(parameters)]:
        raise click.UsageError(f"no activations are replayed through {', '.join(strange)}")
    start, console = monotonic(), Console()
    with progress(console) as bars, ThreadPoolExecutor(threads) as pool:
        variants = [parameters for _, _, parameters in catalogue.orders(set(units) - set(UNITS)).values()]
        work = catalogue.jobs(units or UNITS, lambda unit, parameters: parameters in (unit.synth, *variants)
                              or unit.name in REPLAYED)
        if placed:
            work = [job for job in work if not job.parts]
        mapping = Mapping(console, bars, work)
        recipes = baseline.recipes(baseline.read())
        mapped = catalogue.run(work, threads, mapping.done, recipes, mapping.begun)

        def one(job, result):
            if placed:
                return judge(job, lay(job.name, result[0], result[1].absolute(), job.arrival)[1], {})
            return judge(job, result[1], {part: mapped[work.index(inner)][1] for part, inner in job.parts.items()})

        results = each(pool, bars, "benches and proofs", one, work, mapped)
    table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("unit", no_wrap=True)
    for column in ("cells", "compared", "s", "", "proof", "functions", "s"):
        table.add_column(column, justify="right", no_wrap=True)
    for job, outcome, result in zip(work, mapped, results, strict=True):
        table.add_row(job.label, "-" if isinstance(outcome, Exception) else f"{outcome[0].cells:,}",
                      *(["-", "-", "[red]failed[/]"] if isinstance(result, Exception) else result[0]))
    console.print(table)
    errors = [result for result in results if isinstance(result, Exception)]
    if renew:
        records.renew("netlists", {job.label: result[1] for job, result in zip(work, results, strict=True)
                                   if not isinstance(result, Exception)})
    good, seconds = len(work) - len(errors), monotonic() - start
    console.print("Proof: of the cells with the RTL before clock gating, by ABC; functions are next states and "
                  "outputs.", style="dim")
    console.print(f"{good} of {len(work)} netlists pass, in {seconds:.0f} s")
    close(console, errors)
