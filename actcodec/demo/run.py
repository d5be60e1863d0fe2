"""``actcodec demo``: compresses and decompresses real activations, in simulated hardware and the golden model."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from actcodec import container, engines, metrics
from actcodec.codecs import JPEG_ACT, MODES, find
from actcodec.console import Console
from actcodec.demo import sample
from actcodec.files import check_folder
from actcodec.plotting import pyplot

__all__ = ["KINDS", "Result", "Total", "run", "runs", "totals"]

KINDS = ("dense", "ReLU")
WIDE = 120  # columns of a terminal with room for what modes do


def runs() -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """The modes and options for each kind of tensor, as modes declare them: {kind: [(mode, options)]}."""
    return {kind: [(mode.name, dict(options)) for mode in MODES.values() for case, options in mode.demo_cases
                   if case == kind] for kind in KINDS}


def simulated(mode: str, options: Mapping[str, Any]) -> bool:
    """Whether the paper's CDU has the mode, with these options."""
    return find(mode).variant(options).name in JPEG_ACT


@dataclass(frozen=True, eq=False)
class Result:
    """One tensor, compressed and decompressed; without cycles if only the golden model ran."""

    tensor: str
    kind: str  # one of KINDS
    mode: str
    options: dict
    before: np.ndarray
    after: np.ndarray
    ratio: float
    cycles: tuple | None = None  # per block, compressing and decompressing
    latency: tuple | None = None  # cycles from the start to the first output beat, likewise
    equal: bool = True  # whether file and tensor equal golden's, bit for bit

    @property
    def relative_error(self) -> float:
        return metrics.relative_error(self.before, self.after)

    @property
    def psnr(self) -> float:
        return metrics.psnr(self.before, self.after)

    @property
    def label(self) -> str:
        return " ".join([self.mode, *map(str, self.options.values())])


def measure(tensor: str, kind: str, x: np.ndarray, mode: str, options: dict[str, Any], simulated: bool) -> Result:
    """The :class:`Result` of one tensor in one mode; only the golden model runs unless it is ``simulated``."""
    golden, _ = engines.compress("golden", x, mode, **options)
    expected, _ = engines.decompress("golden", golden)
    if not simulated:
        return Result(tensor, kind, mode, options, x, expected, golden.ratio)
    compressed, forward = engines.compress("rtl", x, mode, **options)
    after, backward = engines.decompress("rtl", golden)
    return Result(tensor, kind, mode, options, x, after, golden.ratio,
                  (forward.cycles_per_block, backward.cycles_per_block), (forward.latency, backward.latency),
                  container.pack(compressed) == container.pack(golden) and after.tobytes() == expected.tobytes())


def run(output: str | Path, everything: bool = False) -> bool:
    """Compresses and decompresses the sample, prints a table, and writes ``demo.png`` to the folder ``output``, which
    is created only then.

    The modes of the paper's CDU run in simulated hardware, with ``everything`` all that have hardware; the others run
    in the golden model alone. Returns whether all results of the hardware equal those of the golden model. Raises
    :class:`~actcodec.files.UserError` for a folder that cannot be written.
    """
    console, started = Console(), monotonic()
    output = Path(output)
    check_folder(output)
    pyplot()  # a missing matplotlib is an error before the long run
    jobs = [(name, kind, x, mode, options, "rtl" in find(mode).engines and (everything or simulated(mode, options)))
            for name, x in sample().items() for kind in ["ReLU" if name.startswith("ReLU") else "dense"]
            for mode, options in runs()[kind]]
    minutes = "5 minutes" if everything else "40 seconds"
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn()]
    results = []
    with Progress(*columns, console=console) as progress:
        building, measuring, drawing = (progress.add_task(step, total=size, start=False) for step, size in [
            (f"build the simulator (the first time, about {minutes})", 1), ("compress and decompress", len(jobs)),
            ("draw", 1)])
        progress.start_task(building)
        engines.prepare(() if everything else JPEG_ACT)
        progress.advance(building)
        progress.start_task(measuring)
        for job in jobs:
            results.append(measure(*job))
            progress.advance(measuring)
        progress.start_task(drawing)
        from actcodec.demo.picture import draw

        draw(results, output / "demo.png")
        progress.advance(drawing)

    totals_ = totals(results)
    console.print(table(totals_, console.width))
    console.print("[dim]For all tensors of a kind: ratio of their bytes to those of the payload; relative L2 error; "
                  "PSNR relative to the range. Cycles per block of 64 values, and from the start to the first output "
                  "beat, compressing/decompressing, if the mode ran in simulated hardware.[/]\n")
    wrong = [result for result in results if not result.equal]
    for result in wrong:
        console.print(f"[bold red]{result.tensor}, {result.label}: the hardware differs from the golden model[/]")
    if not wrong:
        count = sum(result.cycles is not None for result in results)
        console.print(f"[bold green]Bit for bit equal to the golden model: {count} streams and {count} tensors of the "
                      "simulated hardware.[/]")
    console.print(f"Picture: {output / 'demo.png'} ({monotonic() - started:.0f} s)", soft_wrap=True, markup=False)
    return not wrong


@dataclass(frozen=True)
class Total:
    """All tensors of a kind, in one mode with its options."""

    kind: str
    label: str
    mode: str
    ratio: float
    relative_error: float
    psnr: float
    cycles: str  # per block, compressing/decompressing; the largest of all tensors
    latency: str  # from the smallest to the largest, likewise


def totals(results: Sequence[Any]) -> list[Total]:
    """A :class:`Total` for each kind, mode and options."""
    def of(some):
        before, after = (np.concatenate([getattr(r, when).reshape(-1) for r in some]) for when in ("before", "after"))
        cycles = latency = ""
        if some[0].cycles:
            cycles = "/".join(f"{max(way):.2f}" for way in zip(*(r.cycles for r in some), strict=True))
            latency = "/".join("-".join(map(str, sorted({min(way), max(way)})))
                               for way in zip(*(r.latency for r in some), strict=True))
        return Total(some[0].kind, some[0].label, some[0].mode,
                     before.nbytes / sum(r.before.nbytes / r.ratio for r in some),
                     metrics.relative_error(before, after), metrics.psnr(before, after), cycles, latency)

    ways = dict.fromkeys((r.kind, r.label) for r in results)
    return [of([r for r in results if (r.kind, r.label) == way]) for way in ways]


def table(totals: Iterable[Total], width: int) -> Any:
    """A table with a row for each total, for a terminal of ``width`` columns; a wide one also shows what modes do."""
    table = Table(title="Activations of a ResNet-20, compressed and decompressed", box=box.SIMPLE_HEAD,
                  padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("mode", no_wrap=True)
    for name in ["ratio", "L2\nerror", "PSNR,\ndB", "cycles\nper block", "cycles\nto output"]:
        table.add_column(name, justify="right", no_wrap=True)
    if wide := width >= WIDE:
        table.add_column("what it does")
    for kind in KINDS:
        table.add_row(f"[bold]{kind} tensors[/]")
        for t in sorted((t for t in totals if t.kind == kind), key=lambda t: t.ratio):
            table.add_row(t.label, f"{t.ratio:.2f}", f"{t.relative_error:.4f}" if t.relative_error else "exact",
                          f"{t.psnr:.1f}" if np.isfinite(t.psnr) else "", t.cycles, t.latency,
                          *([find(t.mode).summary] if wide else []))
        table.add_section()
    return table
