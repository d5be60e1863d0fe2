"""The tables of ``actcodec bench``."""

from collections.abc import Callable, Sequence
from typing import Any

from rich import box
from rich.table import Table

from actcodec.bench.cycles import AT_CACHE, CLOCK, LATENCY, PAPER, PCIE, POLICIES, RATIOS, SHOWN, SYMBOLS
from actcodec.bench.queued import ACCESS, WAYS

__all__ = ["coding_table", "number_table", "offload_table", "queue_table", "rate_table", "shared_table", "stream_table"]

# Tables that fit into 80 columns.
TIGHT: dict[str, Any] = {"box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "pad_edge": False}


def share_table(title: str, rates: Sequence[Any], column: str, columns: Sequence[str],
                share: Callable[[Any], Any]) -> Any:
    """A row for each mode and direction; ``share`` makes a number of all rates of a column."""
    table = Table("mode", "", *map(str, columns), title=title, **TIGHT)
    for mode in dict.fromkeys(r.mode for r in rates):
        for back in (False, True):
            row = [[r for r in rates if (r.mode, r.decompress, getattr(r, column)) == (mode, back, value)]
                   for value in columns]
            table.add_row(mode, "decompress" if back else "compress", *(share(cell) for cell in row))
    return table


def rate_table(rates: Sequence[Any]) -> Any:
    """By width, with :data:`SHOWN` CDUs."""
    rows = [r for r in rates if r.cdus == SHOWN]
    totals = [r.total for r in rows]
    title = (f"Cycles a block and CDU by width, {SHOWN} CDUs, steady state. Limit: 8.00.\nWith start, end and "
             f"{LATENCY} cycles of latency: {min(totals):.2f} to {max(totals):.2f}")
    return share_table(title, rows, "width", sorted({r.width for r in rows}), lambda cell: f"{cell[0].steady:.2f}")


def number_table(rates: Sequence[Any]) -> Any:
    """By the number of CDUs: the slowest and the fastest width."""
    def share(cell):
        return "-".join(f"{8 / pick(r.steady for r in cell):.3f}" for pick in (max, min))

    return share_table("Fraction of the limit, 1 sector a cycle and CDU, in the steady state,\nby the number of CDUs: "
                       "the worst and the best of three widths", rates, "cdus", sorted({r.cdus for r in rates}), share)


def shared_table(shared: Sequence[Any]) -> Any:
    """By width and the number of CDUs."""
    columns = sorted({(s.cdus, s.width) for s in shared})
    used = {(s.mode, s.decompress, s.cdus, s.width): s.used for s in shared}
    table = Table("mode", "", *(f"{cdus} x {width}" for cdus, width in columns), **TIGHT, title=(
        "Beats a cycle at one port to memory for all CDUs (limit: 1), from the first\n"
        "to the last one, by the number of CDUs and the width"))
    for mode, back in dict.fromkeys((s.mode, s.decompress) for s in shared):
        table.add_row(mode, "decompress" if back else "compress",
                      *(f"{used[mode, back, *column]:.3f}" for column in columns))
    return table


def queue_table(queues: Sequence[Any]) -> Any:
    """By minibatch and the number of CDUs, by one ring and by one start after the other."""
    table = Table("tensors of", "minibatch", "CDUs", "tensors", "", "limit", "ring",
                  *(f"host, {3 + rest}" for rest in ACCESS), **TIGHT, title=(
        "GB/s of what a step of ResNet-50 offloads, and of tensors of the sample, from memory\n"
        "to memory, by a ring, and by a host with an access to a register in so many cycles"))
    for one in sorted(queues, key=lambda one: (one.policy, one.minibatch or 0, one.cdus)):
        for way, name in enumerate(WAYS):
            table.add_row(one.policy or "a step", f"{one.minibatch or '1, small'}", f"{one.cdus}", f"{one.tensors}",
                          name, f"{one.limit:.1f}", *(f"{rate:.1f}" for rate in one.rates(way)))
    return table


def coding_table(codings: Sequence[Any]) -> Any:
    """By the number of coders."""
    numbers = sorted({c.coders for c in codings})
    by_place = {(c.dqt, c.decompress, c.coders): c for c in codings}
    table = Table("table", "codes", "", *map(str, numbers), **TIGHT, title=(
        "Cycles a block in jpeg-base by the number of coders of a CDU, steady state, dense\n"
        "tensors of the sample; codes: of a block, in brackets what was planned for"))
    for dqt, planned in SYMBOLS.items():
        for back in (False, True):
            row = [by_place[dqt, back, n] for n in numbers]
            table.add_row(dqt, f"{row[0].symbols:.1f} ({planned})", "decompress" if back else "compress",
                          *(f"{c.steady:.2f}" for c in row))
    return table


def offload_table(offloads: Sequence[Any]) -> Any:
    """By the number of CDUs."""
    numbers = sorted({o.cdus for o in offloads})
    by_place = {(o.name, o.decompress, o.cdus): o for o in offloads}
    table = Table("tensors", "ratio", "", *map(str, numbers), **TIGHT, title=(
        f"Effective offload rate by the number of CDUs, GB/s\nat {CLOCK} GHz with a DMA engine of {PCIE} GB/s"))
    for name in [*POLICIES, *(f"{ratio}x" for ratio in RATIOS), *AT_CACHE]:
        for back in (False, True):
            row = [by_place.get((name, back, n)) for n in numbers]
            if not any(row):  # of a quick bench
                continue
            ratio = next(o.ratio for o in row if o)
            table.add_row(name, f"{ratio:.2f}", "decompress" if back else "compress",
                          *(f"{o.rate:.1f}" if o else "" for o in row))
    for name, (ratio, rate) in PAPER.items():
        table.add_row(f"paper, {name}", f"{ratio:.2f}", "compress",
                      *(f"{rate:.1f}" if n == SHOWN else "" for n in numbers))
    return table


def stream_table(streamed: Sequence[Any]) -> Any:
    """By tensor, error and the number of CDUs."""
    columns = sorted({(a.error, a.cdus) for a in streamed})
    by_place = {(a.mode, a.tensor, a.error, a.cdus): a for a in streamed}
    table = Table("mode", "tensor", *(f"{error:g}, {cdus}" for error, cdus in columns), **TIGHT, title=(
        "Streams without blocks: sectors a cycle and CDU, compressing/decompressing, from\n"
        "the start to the end, by relative L2 error and the number of CDUs"))
    for names in dict.fromkeys((a.mode, a.tensor) for a in streamed):
        cells = [by_place[*names, *column] for column in columns]
        table.add_row(*names, *(f"{a.rates[0]:.3f}/{a.rates[1]:.3f}" for a in cells))
    return table
