"""``python -m actcodec.synth baseline [UNIT ...] [--renew [--search]]``: the recorded figures of units, and what new
ones are held against.

They are in ``baseline.json``; git knows how they came about.
"""

import json
import subprocess
from pathlib import Path
from time import monotonic

import click
from rich.console import Console

from actcodec.synth import records
from actcodec.synth.catalogue import MAPPED, NAMES, jobs, key, large, run
from actcodec.synth.console import Mapping, close, progress

__all__ = ["GROWTH", "PATH", "compare", "history", "late", "read", "recipes", "record", "strangers",
           "write"]

PATH = Path(__file__).with_name("baseline.json")
GROWTH = 0.02  # of an area that passes unrecorded
AREAS = {"area": "area", "macros": "area of memories"}
FIELDS = ("area", "sequential", "flops", "slack", "recipe")


def read(path=PATH):
    """{label: {area and sequential in um2, flops, slack in ps, recipe; macros in um2, if it has such; key of the job
    in the catalogue, if that is known; date and commit}}; nothing without a file."""
    return json.loads(path.read_text()) if path.exists() else {}


def write(recorded, path=PATH):
    """Writes what :func:`read` gives, each unit on a line of its own, in alphabetical order."""
    records.write(path, records.text(recorded))


def record(figures, keys=None):
    """What is kept of {label: :class:`~actcodec.synth.flow.Figures`} and {label: key}."""
    return {label: {name: getattr(one, name) for name in FIELDS} | ({"macros": one.macros} if one.macros else {})
            | ({"key": keys[label]} if keys else {}) for label, one in figures.items()}


def recipes(recorded):
    """{label: recipe} of a baseline: mapping once with it is what :func:`compare` needs."""
    return {label: figures["recipe"] for label, figures in recorded.items()}


def strangers(recorded, labels):
    """Units that are not recorded, or recorded but gone, a sentence each."""
    return ([f"{label}: not in the baseline" for label in labels if label not in recorded]
            + [f"{label}: in the baseline, but no longer there" for label in recorded if label not in labels])


def compare(recorded, figures):
    """Holds {label: :class:`~actcodec.synth.flow.Figures`} against a baseline that has them all. Returns what is wrong,
    a sentence each: a unit whose cells or memories are larger by more than :data:`GROWTH`, or that has less slack; by
    however little, since the flow gives the same figures again."""
    wrong = []
    for label, now in figures.items():
        was = recorded[label]
        for name, what in AREAS.items():
            before, after = was.get(name, 0), getattr(now, name)
            if after > before * (1 + GROWTH):
                growth = f" ({after / before - 1:+.1%})" if before else ""
                wrong.append(f"{label}: {what} was {before:,.0f} um2, is {after:,.0f}{growth}")
        if now.slack < was["slack"]:
            wrong.append(f"{label}: slack was {was['slack']} ps, is {now.slack}")
    return wrong


def late(recorded, figures):
    """What of {label: :class:`~actcodec.synth.flow.Figures`} misses the clock although its record did not, a sentence
    each."""
    return [f"{label}: recipe {now.recipe} no longer meets the clock ({now.slack} ps)" for label, now in figures.items()
            if now.slack < 0 <= recorded.get(label, {}).get("slack", -1)]


def history(path=PATH):
    """What git knows of a baseline: (commit, date, what :func:`read` gave) for each commit that changed it, the oldest
    first; None without git, or where it knows nothing of the file."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=path.parent, text=True, capture_output=True, check=True).stdout

    try:
        commits = git("log", "--reverse", "--diff-filter=AM", "--format=%h %cs", "--", path.name).split("\n")[:-1]
        return [(*commit.split(), json.loads(git("show", f"{commit.split()[0]}:./{path.name}")))
                for commit in commits] or None
    except (OSError, subprocess.CalledProcessError):
        return None


@click.command()
@click.argument("units", nargs=-1, type=click.Choice(NAMES), metavar="[UNIT ...]")
@click.option("--renew", is_flag=True, help="Record what the recorded recipes give now.")
@click.option("--search", is_flag=True, help="With --renew: try all recipes, and record the best.")
@click.option("--parts", is_flag=True, help="Leave out the accelerators, which consist of the other units.")
@click.option("--jobs", "threads", default=2, show_default=True, type=click.IntRange(1),
              help="Units mapped at the same time.")
def command(units, renew, search, parts, threads):
    """Maps UNITs (default: all that does not take long) with their recorded recipes, and fails if one has become worse
    than the record.

    What has been mapped is remembered: a run that was interrupted goes on where it was.

    \b
    Examples:
      python -m actcodec.synth baseline
      python -m actcodec.synth baseline dct --renew --search
      python -m actcodec.synth baseline --parts
    """
    if search and not renew:
        raise click.UsageError("--search goes with --renew")
    start, console, recorded = monotonic(), Console(), read(PATH)
    work = jobs(units or [name for name in MAPPED if not parts or name != "accelerator"])
    labels = [job.label for job in work]

    def others(recorded):  # what stays as it is
        return {label: figures for label, figures in recorded.items()
                if (units or parts or label in large()) and label not in labels}

    faults = [] if renew else strangers(recorded, [*labels, *others(recorded)])
    if not faults:
        with progress(console) as bars:
            mapping = Mapping(console, bars, work)
            results = run(work, threads, mapping.done, None if search else recipes(recorded), mapping.begun)
        faults = [f"{result}" for result in results if isinstance(result, Exception)]
        figures = {job.label: result[0] for job, result in zip(work, results, strict=True)
                   if not isinstance(result, Exception)}
        if not renew:
            faults += compare(recorded, figures)
        elif not faults:
            measured = records.stamp()
            entries = record(figures, {job.label: key(job) for job in work})
            with records.alone():
                write(others(read(PATH)) | {label: one | measured for label, one in entries.items()}, PATH)
            for sentence in late(recorded, figures):
                console.print(f"{sentence}: SEARCH=1 tries the others", soft_wrap=True)
        console.print(f"{len(figures)} mapped in {monotonic() - start:.0f} s")
    close(console, faults, None if renew else
          "If this is meant, run `make synth-renew`, and commit synth/baseline.json along with it.")
