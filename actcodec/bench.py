"""``actcodec bench``: what the simulated accelerator reaches, in exact cycles, and how fast the golden model is.

Four parts. :func:`measure` has cycles a block when nothing but the accelerator limits; :func:`share` what lanes make of
one port to memory for all of them; :func:`offload` the effective offload rate with a DMA engine of 12.8 GB/s, as in
section VI-E, Figure 21 and Table V of the JPEG-ACT paper; :mod:`actcodec.bench_speed` the golden model beside others.
Every payload and tensor is compared with the golden model's on the way.
"""

import json
import math
import os
import signal
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from actcodec.demo import sample
from actcodec.golden.jpegact import cdu

__all__ = ["CLOCK", "PAPER", "PCIE", "Offload", "Rate", "Shared", "measure", "run", "share"]

CLOCK = 1.455  # GHz
PCIE = 12.8  # GB/s
LATENCY = 300  # of memory, cycles
SECTOR = 32  # bytes
GROUPS = 250  # of each CDU, at least
# What networks have: channels of maps of that width.
CHANNELS = {8: 256, 16: 128, 24: 96, 28: 128, 32: 64, 56: 64, 112: 64, 224: 64}
PAPER = {"cDMA+": (1.3, 15.6), "SFPR": (4.0, 48.0), "JPEG-ACT": (8.5, 108.8)}
"""Table V, 4 CDUs: compression ratio and GB/s. The first two are the ratio times 12.0 GB/s, the last times 12.8."""
RATIOS = {2: "zvc", 4: "sfpr-zvc", 6: "sfpr-zvc", 8: "sfpr-zvc", 12: "sfpr-zvc", 16: "sfpr-zvc"}
"""Synthetic tensors: compression ratio, and the mode that gives it."""
FIXED = (2, 4, 8, 12)  # those of Figure 21
NUMBERS = (1, 2, 4, 8)  # of CDUs, for rates
OFFLOAD = (1, 2, 3, 4, 6, 8)  # for offload
SHOWN = 4  # for the tables, and as in Table V
TIGHT = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}  # tables that fit into 80 columns
# On one port for all lanes: whole beats, rows that begin inside of one, and the widest.
SHARED = {"modes": ("sfpr-zvc", "jpeg-act", "brc"), "widths": (28, 32, 33, 224), "numbers": (1, SHOWN)}
BATCH = 16  # images of the real tensors, repeated


@dataclass(frozen=True)
class Rate:
    """A tensor when memory and the DMA engine do not limit."""

    mode: str
    decompress: bool
    width: int
    cdus: int
    shape: tuple
    blocks: int  # of the CDU that has most of them
    cycles: int  # the accelerator's counter: from its start to its end
    steady: float  # cycles a block of that CDU between its first and its last beat at the side of memory

    @property
    def total(self):
        """Cycles a block and CDU with everything: start, latency of memory, end."""
        return self.cycles / self.blocks


@dataclass(frozen=True)
class Shared:
    """A tensor when all lanes' ports lead to one slave, which moves a beat a cycle in each direction."""

    mode: str
    decompress: bool
    width: int
    cdus: int
    beats: int  # of the tensor and its scales
    used: float  # share of the cycles, from the first to the last of these beats, in which one moves


@dataclass(frozen=True)
class Offload:
    """Tensors one after the other through a DMA engine of :data:`PCIE`."""

    name: str
    decompress: bool
    cdus: int
    ratio: float
    cycles: int
    rate: float  # GB/s of uncompressed data


def shape(width, cdus):
    """A tensor that is as long as it has to be; [N, C, H, W]."""
    planes = math.ceil(4 * GROUPS * cdus / (width / 8 * math.ceil(width / 8)))
    channels = min(planes, CHANNELS.get(width, 64))
    return math.ceil(planes / channels), channels, width, width


def sparse(size, zeros, seed=0):
    """A tensor of which that share is zero."""
    rng = np.random.default_rng(seed)
    x = np.abs(rng.normal(size=size)).astype(np.float32) + np.float32(0.1)
    x[rng.random(size) < zeros] = 0
    return x


def simulate(x, mode, dqt, cdus, decompress, **options):
    """One tensor one way: (counters, traffic, golden's Compressed). Raises SimulationError if a bit differs."""
    from actcodec.codecs.models.cdu import told
    from actcodec.rtl_engine import Host, SimulationError

    compressed = cdu.compress(x, mode, dqt, cdus)
    host, settings = Host(x.shape, mode, cdus, **options), told(mode, compressed.code)
    if decompress:
        result, got = host.decompress(compressed, settings)
        equal = got.tobytes() == cdu.decompress(compressed).tobytes()
    else:
        result, got = host.compress(x, mode, dqt, settings=settings)
        equal = got == compressed.payload
    if not equal:
        raise SimulationError(f"{mode} {x.shape}, {cdus} CDUs: the hardware differs from the golden model")
    return result.counters, host.simulator.traffic(), compressed


def measure(mode, decompress, width, cdus, x=None):
    """:class:`Rate` of ``x``, or of noise that is long enough."""
    x = sparse(shape(width, cdus), 0.5) if x is None else x
    counters, traffic, compressed = simulate(x, mode, "optL", cdus, decompress, latency=LATENCY)
    total = compressed.blocks
    most = int(np.minimum(4, total - np.arange(0, total, 4 * cdus)).sum())  # the first CDU's
    passed = traffic["written" if decompress else "read"][0]
    steady = (passed.last - passed.first + 1) / most
    return Rate(mode, decompress, width, cdus, x.shape, most, counters["cycles"], steady)


def share(mode, decompress, width, cdus):
    """:class:`Shared` of noise."""
    _, traffic, _ = simulate(sparse(shape(width, cdus), 0.5), mode, "optL", cdus, decompress, latency=LATENCY,
                             shared=True)
    lanes = [lane for lane in traffic["written" if decompress else "read"] if lane.count]
    beats = sum(lane.count for lane in lanes)
    span = max(lane.last for lane in lanes) - min(lane.first for lane in lanes) + 1
    return Shared(mode, decompress, width, cdus, beats, beats / span)


def offload(name, tensors, cdus, decompress):
    """:class:`Offload` of [(tensor, mode, dqt)]."""
    before = after = cycles = 0
    for x, mode, dqt in tensors:
        counters, _, compressed = simulate(x, mode, dqt, cdus, decompress, latency=LATENCY, rate=PCIE / CLOCK)
        before, after, cycles = before + x.nbytes, after + compressed.payload_bytes, cycles + counters["cycles"]
    return Offload(name, decompress, cdus, before / after, cycles, before / cycles * CLOCK)


def real(policy):
    """The sample's tensors, as [(tensor, mode, dqt)]: JPEG-ACT's choice of modes (Table II), or cDMA+'s. Behind its
    first word, a ``policy`` has the name of a DQT, and maybe that of a coder."""
    found, (dense, relus, dqt) = [], choice(policy)
    for name, x in sample().items():
        x = np.tile(x, (BATCH // len(x), 1, 1, 1))
        found.append((x, relus if name.startswith("ReLU") else dense, dqt))
    return found


def choice(policy):
    """The modes of dense tensors and of ReLUs', and the DQT."""
    _, dqt, coder = (*policy.split(), None, None)[:3]
    if not dqt:
        return "zvc", "zvc", "optL"
    return f"jpeg-act-{coder}" if coder else "jpeg-act", f"sfpr-{coder or 'zvc'}", dqt


def fixed(ratio):
    """A synthetic tensor that is compressed to 1/ratio, as [(tensor, mode, dqt)]."""
    mode = RATIOS[ratio]
    value = 4 if mode == "zvc" else 1  # bytes that a non-zero value takes, beside the mask of 8 bytes a block
    return [(sparse((8, 64, 32, 32), 1 - (256 / ratio - 8) / (64 * value), ratio), mode, "optL")]


POLICIES = ("cDMA+", *(f"JPEG-ACT {dqt}{coder}" for dqt in ("optL", "optH") for coder in ("", " nibble", " rice")))


def offload_by_name(name, cdus, decompress):
    return offload(name, real(name) if name in POLICIES else fixed(int(name.split("x")[0])), cdus, decompress)


def jobs(quick):
    """What to simulate: [(function, arguments)], the longest ones first."""
    widths, numbers = ((8, 28, 224), (1, SHOWN)) if quick else (tuple(CHANNELS), NUMBERS)
    found = [(measure, (mode, back, width, cdus)) for cdus in numbers for width in widths for mode in cdu.MODES
             for back in (False, True)]
    found += [(share, (mode, back, width, cdus)) for cdus in SHARED["numbers"] for width in SHARED["widths"]
              for mode in SHARED["modes"] for back in (False, True) if not quick or (width, cdus) == (32, SHOWN)]
    for cdus in numbers if quick else OFFLOAD:
        names = {"JPEG-ACT optH", "4x", "8x", "12x"}
        if cdus in (1, SHOWN):  # more change nothing for low ratios
            names |= {"cDMA+", "2x"}
        if cdus == SHOWN:
            names |= {*POLICIES, *(f"{ratio}x" for ratio in RATIOS)}
        found += [(offload_by_name, (name, cdus, back)) for name in sorted(names) for back in (False, True)]
    return sorted(found, key=lambda job: (job[0] is not offload_by_name, -cdus_of(job)))


def cdus_of(job):
    function, arguments = job
    return arguments[1 if function is offload_by_name else 3]


def modes(name):
    if name in POLICIES:
        return set(choice(name)[:2])
    return {RATIOS[int(name[:-1])]}


def builds(todo):
    """The simulators that these jobs need, as ``simulator.prepare`` takes them."""
    from actcodec.simulator import configuration

    found = set()
    for function, arguments in todo:
        names = modes(arguments[0]) if function is offload_by_name else {arguments[0]}
        found |= {(cdus_of((function, arguments)), (configuration(mode),)) for mode in names}
    return sorted(found)


@contextmanager
def workers():
    """A process for each processor. An interrupt of the user is the parent's, who ends them."""
    pool = ProcessPoolExecutor(os.cpu_count(), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN))
    try:
        yield pool
    except BaseException:
        for process in list(pool._processes.values()):
            process.terminate()
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def run(output, quick=False):
    """Measures everything, prints tables, and leaves ``report.json``, ``bench.png`` and what
    :mod:`actcodec.bench_speed` leaves in the folder ``output``."""
    from actcodec import bench_speed, simulator

    output.mkdir(parents=True, exist_ok=True)
    todo = jobs(quick)
    needed = builds(todo)
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn()]
    results = []
    with Progress(*columns) as progress, workers() as pool:
        building = progress.add_task("build simulators (kept for next time)", total=len(needed))
        simulating = progress.add_task("simulate", total=len(todo), start=False)
        for _ in as_completed([pool.submit(simulator.prepare, *what) for what in needed]):
            progress.advance(building)
        progress.start_task(simulating)
        for done in as_completed([pool.submit(function, *arguments) for function, arguments in todo]):
            results.append(done.result())
            progress.advance(simulating)
    report(*([one for one in results if isinstance(one, kind)] for kind in (Rate, Shared, Offload)), output)
    bench_speed.run(output, quick)


def report(rates, shared, offloads, output):
    """Prints the tables and leaves the files."""
    from actcodec.bench_plot import draw

    console = Console()
    rates = sorted(rates, key=lambda r: (r.cdus, cdu.MODES.index(r.mode), r.decompress, r.width))
    offloads = sorted(offloads, key=lambda o: (o.name, o.decompress, o.cdus))
    shared = sorted(shared, key=lambda s: (s.cdus, cdu.MODES.index(s.mode), s.decompress, s.width))
    for table in (rate_table(rates), number_table(rates), shared_table(shared), offload_table(offloads)):
        console.print(table)
    content = {"clock_GHz": CLOCK, "pcie_GB_per_s": PCIE, "memory_latency_cycles": LATENCY,
               "rates": [asdict(r) | {"total": r.total} for r in rates], "shared": [asdict(s) for s in shared],
               "offload": [asdict(o) for o in offloads],
               "paper": PAPER}
    (output / "report.json").write_text(json.dumps(content, indent=1) + "\n")
    draw(rates, offloads, output / "bench.png")
    console.print(f"Report: {output / 'report.json'}, picture: {output / 'bench.png'}", soft_wrap=True, markup=False)


def share_table(title, rates, column, columns, share):
    """A row for each mode and direction; ``share`` makes a number of all rates of a column."""
    table = Table("mode", "", *map(str, columns), title=title, **TIGHT)
    for mode in cdu.MODES:
        for back in (False, True):
            row = [[r for r in rates if (r.mode, r.decompress, getattr(r, column)) == (mode, back, value)]
                   for value in columns]
            table.add_row(mode, "decompress" if back else "compress", *(share(cell) for cell in row))
    return table


def rate_table(rates):
    """By width, with :data:`SHOWN` CDUs."""
    found = [r for r in rates if r.cdus == SHOWN]
    totals = [r.total for r in found]
    title = (f"Cycles a block and CDU by width, {SHOWN} CDUs, steady state. Limit: 8.00.\nWith start, end and "
             f"{LATENCY} cycles of latency: {min(totals):.2f} to {max(totals):.2f}")
    return share_table(title, found, "width", sorted({r.width for r in found}), lambda cell: f"{cell[0].steady:.2f}")


def number_table(rates):
    """By the number of CDUs: the slowest and the fastest width."""
    def share(cell):
        return "-".join(f"{8 / pick(r.steady for r in cell):.3f}" for pick in (max, min))

    return share_table("Fraction of the limit, 1 sector a cycle and CDU, in the steady state,\nby the number of CDUs: "
                       "the worst and the best width", rates, "cdus", sorted({r.cdus for r in rates}), share)


def shared_table(shared):
    """By width and the number of CDUs."""
    columns = sorted({(s.cdus, s.width) for s in shared})
    found = {(s.mode, s.decompress, s.cdus, s.width): s.used for s in shared}
    table = Table("mode", "", *(f"{cdus} x {width}" for cdus, width in columns), **TIGHT, title=(
        "Beats a cycle at one port to memory for all CDUs (limit: 1), from the first\n"
        "to the last one, by the number of CDUs and the width"))
    for mode, back in dict.fromkeys((s.mode, s.decompress) for s in shared):
        table.add_row(mode, "decompress" if back else "compress",
                      *(f"{found[mode, back, *column]:.3f}" for column in columns))
    return table


def offload_table(offloads):
    """By the number of CDUs."""
    numbers = sorted({o.cdus for o in offloads})
    found = {(o.name, o.decompress, o.cdus): o for o in offloads}
    table = Table("tensors", "ratio", "", *map(str, numbers), **TIGHT, title=(
        f"Effective offload rate by the number of CDUs, GB/s\nat {CLOCK} GHz with a DMA engine of {PCIE} GB/s"))
    for name in [*POLICIES, *(f"{ratio}x" for ratio in RATIOS)]:
        for back in (False, True):
            row = [found.get((name, back, n)) for n in numbers]
            ratio = next(o.ratio for o in row if o)
            table.add_row(name, f"{ratio:.2f}", "decompress" if back else "compress",
                          *(f"{o.rate:.1f}" if o else "" for o in row))
    for name, (ratio, rate) in PAPER.items():
        table.add_row(f"paper, {name}", f"{ratio:.2f}", "compress",
                      *(f"{rate:.1f}" if n == SHOWN else "" for n in numbers))
    return table
