"""``actcodec bench``: what the simulated accelerator reaches, in exact cycles (:mod:`actcodec.bench.cycles`), and how
fast the golden model is beside others (:mod:`actcodec.bench.speed`)."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from actcodec import codecs
from actcodec.bench.cycles import (
    AT_CACHE,
    CACHE,
    CHANNELS,
    CLOCK,
    DENSE,
    ERRORS,
    FORMATS,
    JPEG_BASE,
    LATENCY,
    PAPER,
    PCIE,
    POLICIES,
    RATIOS,
    SHOWN,
    SYMBOLS,
    Coding,
    Offload,
    Rate,
    Shared,
    Streamed,
    choice,
    code,
    lossy_streams,
    masked,
    measure,
    measured,
    offload_by_name,
    share,
    streamed,
)
from actcodec.bench.queued import BATCHES, BEST, SIZE, Queued, dense, queued
from actcodec.bench.tables import (
    coding_table,
    number_table,
    offload_table,
    queue_table,
    rate_table,
    shared_table,
    stream_table,
)
from actcodec.demo import sample
from actcodec.processes import workers

__all__ = ["run"]

NUMBERS = (1, 2, 4, 8)  # of CDUs, for rates; of coders
FEW = (8, 28, 224)  # widths: the narrowest and the widest, and one whose rows end inside of a group
OFFLOAD = (1, 2, 3, 4, 6, 8)  # for offload
JPEG_ACT = codecs.METHODS["JPEG-ACT"][0]
# On one port for all lanes: whole beats, rows that begin inside of one, and the widest.
SHARED: dict[str, Any] = {"modes": codecs.JPEG_ACT, "widths": (28, 32, 33, 224), "numbers": (1, SHOWN)}


def jobs(quick: bool) -> list[tuple[Callable[..., Any], tuple]]:
    """What to simulate: [(function, arguments)], the longest ones first."""
    numbers = (1, SHOWN) if quick else NUMBERS
    every: list[tuple[Callable[..., Any], tuple]] = [
        (measure, (mode, back, width, cdus)) for cdus in numbers
        for width in (FEW if quick or cdus != SHOWN else CHANNELS) for mode in measured() for back in (False, True)]
    every += [(share, (mode, back, width, cdus)) for cdus in SHARED["numbers"] for width in SHARED["widths"]
              for mode in SHARED["modes"] for back in (False, True) if not quick or (width, cdus) == (32, SHOWN)]
    for cdus in numbers if quick else OFFLOAD:
        names = {"JPEG-ACT optH", "4x", "8x", "12x"}
        if cdus in (1, SHOWN):  # more change nothing for low ratios
            names |= {"cDMA+", "2x"}
        if cdus in (SHOWN, 6):  # where four lanes limit, six do not
            names |= {name for name in POLICIES if name.endswith(DENSE)}
        if cdus == SHOWN:
            names |= {*POLICIES, *(f"{ratio}x" for ratio in RATIOS)}
        names |= set() if quick else {*AT_CACHE}  # which take simulators of their own
        every += [(offload_by_name, (name, cdus, back)) for name in sorted(names) for back in (False, True)]
    every += [(code, (dqt, coders, back)) for coders in ((4,) if quick else NUMBERS) for dqt in SYMBOLS
              for back in (False, True)]
    every += [(queued, (cdus,)) for cdus in (1, SHOWN)]
    every += [(queued, (SHOWN, images, BEST)) for images in BATCHES]
    every += [(streamed, (mode, name, error, cdus)) for mode in lossy_streams() for name in sample() for error in ERRORS
              for cdus in (1, SHOWN)]
    return sorted(every, key=lambda job: (job[0] is not offload_by_name, -cdus_of(job)))


def cdus_of(job: tuple[Callable[..., Any], tuple]) -> int:
    function, arguments = job
    return 1 if function is code else arguments[{offload_by_name: 1, queued: 0}.get(function, 3)]


def modes(name: str) -> set[str]:
    return set(choice(name)[:2]) if name in POLICIES else {masked(int(name.partition("x")[0]))[0]}


def builds(todo: Iterable[tuple[Callable[..., Any], tuple]]) -> list[Any]:
    """The simulators that these jobs need, as ``accelerator.prepare`` takes them: CDUs, modes, and pairs of what is not
    the default."""
    from actcodec.sim.accelerator import configuration

    simulators = set()
    for function, arguments in todo:
        names = (modes(arguments[0]) if function is offload_by_name else
                 {JPEG_BASE if function is code else dense(*arguments[2:]) if function is queued else arguments[0]})
        others: dict[str, Any] = {}
        if function is code:
            others = {"coders": arguments[1]}
        elif function is queued:
            others = {"payload": "memory", "queue": SIZE}
        elif function is offload_by_name and CACHE in arguments[0]:
            others = {"formats": FORMATS}
        simulators |= {(cdus_of((function, arguments)), (configuration(mode),), tuple(others.items()))
                       for mode in names}
    return sorted(simulators, key=str)


def run(output: str | Path, quick: bool = False, minibatch: int | None = None) -> None:
    """Measures everything, prints tables, and leaves ``report.json``, ``bench.png`` and what
    :mod:`actcodec.bench.speed` leaves in the folder ``output``. With a ``minibatch``, it only measures and reports all
    that a step offloads."""
    from actcodec.bench import speed

    output = Path(output)
    output.mkdir(parents=True, exist_ok=True)
    if minibatch:
        step(simulated([(queued, (cdus, minibatch)) for cdus in (SHOWN, 1)]), output)
        return
    results = simulated(jobs(quick))
    rates, shared, offloads, streams, codings, queues = ([one for one in results if isinstance(one, kind)] for kind in (
        Rate, Shared, Offload, Streamed, Coding, Queued))
    report(rates, shared, offloads, streams, codings, queues, output)
    speed.run(output, quick)


def simulated(todo: Sequence[tuple[Callable[..., Any], tuple]]) -> list[Any]:
    """Their results, in any order."""
    from actcodec.sim import accelerator

    needed = builds(todo)
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn()]
    results = []
    with Progress(*columns) as progress, workers(os.cpu_count()) as pool:
        building = progress.add_task("build simulators (kept for next time)", total=len(needed))
        simulating = progress.add_task("simulate", total=len(todo), start=False)
        for _ in as_completed([pool.submit(accelerator.prepare, cdus, modes, **dict(others))
                               for cdus, modes, others in needed]):
            progress.advance(building)
        progress.start_task(simulating)
        for done in as_completed([pool.submit(function, *arguments) for function, arguments in todo]):
            results.append(done.result())
            progress.advance(simulating)
    return results


def step(queues: Sequence[Any], output: Path) -> None:
    """Prints the table of a step, and leaves it in ``report.json``."""
    console = Console()
    console.print(queue_table(queues))
    (output / "report.json").write_text(json.dumps({"queued": [asdict(q) for q in queues]}, indent=1) + "\n")
    console.print(f"Report: {output / 'report.json'}", soft_wrap=True, markup=False)


def report(rates: Sequence[Any], shared: Sequence[Any], offloads: Sequence[Any], streamed: Sequence[Any],
           codings: Sequence[Any], queues: Sequence[Any], output: str | Path) -> None:
    """Prints the tables and leaves the files."""
    from actcodec.bench.plot import draw

    console, output = Console(), Path(output)
    order = list(codecs.MODES).index
    rates = sorted(rates, key=lambda r: (r.cdus, order(r.mode), r.decompress, r.width))
    offloads = sorted(offloads, key=lambda o: (o.name, o.decompress, o.cdus))
    shared = sorted(shared, key=lambda s: (s.cdus, order(s.mode), s.decompress, s.width))
    streamed = sorted(streamed, key=lambda a: (order(a.mode), a.tensor, a.error, a.cdus))
    few = [r for r in rates if r.width in FEW]
    for table in (rate_table(rates), number_table(few), shared_table(shared), offload_table(offloads),
                  stream_table(streamed), coding_table(codings), queue_table(queues)):
        console.print(table)
    content = {"clock_GHz": CLOCK, "pcie_GB_per_s": PCIE, "memory_latency_cycles": LATENCY,
               "rates": [asdict(r) | {"total": r.total} for r in rates], "shared": [asdict(s) for s in shared],
               "offload": [asdict(o) for o in offloads], "streamed": [asdict(a) | {"rates": a.rates} for a in streamed],
               "coding": [asdict(c) for c in codings], "queued": [asdict(q) for q in queues],
               "paper": PAPER}
    (output / "report.json").write_text(json.dumps(content, indent=1) + "\n")
    draw(rates, offloads, output / "bench.png")
    console.print(f"Report: {output / 'report.json'}, picture: {output / 'bench.png'}", soft_wrap=True, markup=False)
