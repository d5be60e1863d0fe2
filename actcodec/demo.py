"""``actcodec demo``: real activations through the simulated hardware and back, compared with the golden model."""

import io
from dataclasses import dataclass
from importlib import resources
from itertools import groupby, zip_longest
from time import monotonic

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from actcodec import container, engines, metrics
from actcodec.codecs import MODES, find

__all__ = ["KINDS", "Result", "run", "runs", "sample"]

KINDS = ("dense", "ReLU")


def runs():
    """What each kind of tensor is compressed with, as the modes declare: {kind: [(mode, options)]}."""
    return {kind: [(mode.name, dict(options)) for mode in MODES.values() for shown, options in mode.shown
                   if shown == kind] for kind in KINDS}


@dataclass(frozen=True, eq=False)
class Result:
    """One tensor, compressed and decompressed by the simulated hardware; where a mode has none, by the golden model,
    and then there are no cycles."""

    tensor: str
    kind: str  # one of KINDS
    mode: str
    options: dict
    before: np.ndarray
    after: np.ndarray
    ratio: float
    cycles: tuple | None = None  # a block, compressing and decompressing
    latency: tuple | None = None  # cycles from the start to the first beat out, likewise
    bytes_per_cycle: float | None = None  # payload bytes over the cycles of compression
    equal: bool = True  # whether file and tensor equal golden's, bit for bit

    @property
    def relative_error(self):
        return metrics.relative_error(self.before, self.after)

    @property
    def psnr(self):
        return metrics.psnr(self.before, self.after)

    @property
    def label(self):
        return " ".join([self.mode, *map(str, self.options.values())])


def sample():
    """The activations that come with the package: {producing layer: float32 NCHW}. ``conv*`` are dense, ``ReLU*``
    sparse; from a ResNet-20 trained on CIFAR-10, a batch of 4."""
    data = resources.files("actcodec").joinpath("data/resnet20.npz").read_bytes()
    with np.load(io.BytesIO(data), allow_pickle=False) as tensors:
        return dict(tensors)


def measure(tensor, kind, x, mode, options):
    """The :class:`Result` of one tensor in one mode."""
    golden, _ = engines.compress("golden", x, mode, **options)
    expected, _ = engines.decompress("golden", golden)
    if "rtl" not in find(mode).engines:
        return Result(tensor, kind, mode, options, x, expected, golden.ratio)
    compressed, forward = engines.compress("rtl", x, mode, **options)
    after, backward = engines.decompress("rtl", golden)
    return Result(tensor, kind, mode, options, x, after, golden.ratio,
                  (forward.cycles_per_block, backward.cycles_per_block), (forward.latency, backward.latency),
                  len(compressed.payload) / forward.cycles,
                  container.pack(compressed) == container.pack(golden) and after.tobytes() == expected.tobytes())


def run(output):
    """Runs the sample through the hardware, prints a table and leaves ``demo.png`` in the folder ``output``. Returns
    whether all of it equalled the golden model."""
    console, started = Console(), monotonic()
    output.mkdir(parents=True, exist_ok=True)
    todo = [(name, kind, x, *how) for name, x in sample().items()
            for kind in ["ReLU" if name.startswith("ReLU") else "dense"] for how in runs()[kind]]
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn()]
    results = []
    with Progress(*columns, console=console) as progress:
        building, simulating, drawing = (progress.add_task(step, total=size, start=False) for step, size in [
            ("build the simulator (kept for next time)", 1), ("simulate the hardware", len(todo)), ("draw", 1)])
        progress.start_task(building)
        engines.prepare()
        progress.advance(building)
        progress.start_task(simulating)
        for item in todo:
            results.append(measure(*item))
            progress.advance(simulating)
        progress.start_task(drawing)
        from actcodec.picture import draw  # slow the first time: matplotlib looks for fonts

        draw(results, output / "demo.png")
        progress.advance(drawing)

    console.print(table(results))
    console.print("[dim]Cycles for a block of 64 values, compressing/decompressing, from the start to the end, as "
                  "the accelerator counts them. Bytes of payload per cycle, compressing. PSNR against the tensor's "
                  "range. brc keeps only whether x > 0. Modes without cycles ran in the golden model alone.[/]\n")
    for kind in KINDS:
        ratios = ", ".join(f"{label} {ratio:.2f}" for label, ratio in totals(results, kind).items())
        console.print(f"Ratio of all {kind} tensors together: {ratios}")
    text = ", ".join(f"{mode} {cycles}" for mode, cycles in latencies(results).items())
    console.print(f"Cycles from the start to the first beat out, compressing/decompressing: {text}")
    wrong = [result for result in results if not result.equal]
    simulated = sum(result.cycles is not None for result in results)
    for result in wrong:
        console.print(f"[bold red]{result.tensor}, {result.label}: the hardware differs from the golden model[/]")
    if not wrong:
        console.print(f"[bold green]Equal to the golden model, bit for bit: {simulated} streams and {simulated} "
                      f"tensors out of the simulated hardware.[/]")
    console.print(f"Picture: {output / 'demo.png'} ({monotonic() - started:.0f} s)", soft_wrap=True, markup=False)
    return not wrong


def totals(results, kind):
    """Bytes of all tensors of a kind over bytes of all their payloads, for each way of compressing."""
    sums = {}
    for r in results:
        if r.kind == kind:
            before, after = sums.get(r.label, (0, 0))
            sums[r.label] = before + r.before.nbytes, after + r.before.nbytes / r.ratio
    return {label: before / after for label, (before, after) in sums.items()}


def latencies(results):
    """Latency in each mode, compressing/decompressing, as text: one number, or the smallest to the largest."""
    found = {}
    for r in results:
        if r.latency:
            found.setdefault(r.mode, []).append(r.latency)
    return {mode: "/".join("-".join(map(str, sorted({min(way), max(way)}))) for way in zip(*both, strict=True))
            for mode, both in found.items()}


def table(results):
    """The results, a row each."""
    # Tight, so that it fits into 80 columns.
    table = Table(title="Activations of a ResNet-20 through a simulated accelerator", box=box.SIMPLE_HEAD,
                  padding=(0, 1, 0, 0), pad_edge=False)
    for name in ["tensor: kind, shape", "mode"]:
        table.add_column(name, no_wrap=True)
    for name in ["ratio", "rel. L2\nerror", "PSNR\ndB", "cycles/\nblock", "bytes/\ncycle"]:
        table.add_column(name, justify="right", no_wrap=True)
    for tensor, rows in groupby(results, lambda r: r.tensor):
        rows = list(rows)
        what = [f"[bold]{tensor}[/]", f"{rows[0].kind}, {'x'.join(map(str, rows[0].before.shape))}"]
        for r, text in zip_longest(rows, what, fillvalue=""):
            table.add_row(text, r.label, f"{r.ratio:.2f}", f"{r.relative_error:.4f}" if r.relative_error else "exact",
                          f"{r.psnr:.1f}" if np.isfinite(r.psnr) else "-",
                          *(["/".join(f"{cycles:.2f}" for cycles in r.cycles), f"{r.bytes_per_cycle:.2f}"]
                            if r.cycles else ["-", "-"]),
                          end_section=r is rows[-1])
    return table
