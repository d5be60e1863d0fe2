"""``make docs``: what the README says of figures, from their records: what was measured, when, and on which commit.

The tables of areas are :mod:`docs.tables`'.
"""

import json
import textwrap
from functools import partial

from actcodec.golden.jpegact import steps
from docs import content, figures, marks, measured, rates, tables

__all__ = ["PATH", "render"]

PATH = content.ROOT / "README.md"


def when(records):
    """When figures were measured, and on which commits."""
    days = sorted({record["date"] for record in records})
    commits = list(dict.fromkeys(record["commit"] for record in sorted(records, key=lambda record: record["date"])
                                 if record["commit"]))
    text = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    return text + (f", at {', '.join(f'`{commit}`' for commit in commits)}" if commits else "")


def yardstick(record, stale):
    """The paper's code, ours, and others, at the same errors."""
    div = 3 + steps.DEAD_ZONES.index(0)  # no dead zone, and the paper's scales: gradients are the worse for others
    ours = ("ZVC, the paper's", "`nibble`", "`rice`", "`rice`, `--quantizer div`", "`comet`")
    yield f"| L2 error of | {' | '.join((*ours, 'SZ3', 'zfp', 'MX'))} |"
    yield f"|---|{8 * '---:|'}"
    for table in ("optL", "optH", "MXFP8"):
        zvc, nibble, rice = (next(row for row in record["quantizers"] if row[:2] == [table, coder])
                             for coder in ("zvc", "nibble", "rice"))
        cells = [tables.mark(f"{cell:.2f}" if isinstance(cell, float) else cell, "quantizers" in stale)
                 for cell in (zvc[2], nibble[2], rice[2], rice[div], *rice[-4:])]
        yield f"| {table} | {' | '.join(cells)} |"
    yield ""
    yield f"Measured {when([record['keys']['quantizers']])}."


def dates(text, recorded):
    """When the areas in the README were measured."""
    block = text[text.index(tables.BEGIN):text.index(tables.END)]
    labels = {record["label"]: record for line in block.splitlines()[3:] if line.startswith("|")
              for record, _ in tables.records(tables.split(line)[0], recorded)}
    yield f"Areas measured {when(labels.values())}."


def reach(text, recorded, record, stale):
    """When the areas were measured, and the rate of the accelerator."""
    yield from dates(text, recorded)
    yield ""
    offload = record["offload"]["8x"]
    rate = tables.mark(f"{offload['rates']['4']:.1f}", "offload" in stale)
    yield from textwrap.wrap(
        f"A lane moves 32 bytes of tensor per cycle, 8.00 cycles per block. Four lanes offload {rate} GB/s at a ratio "
        f"of {offload['ratio']:.1f} through a DMA engine of 12.8 GB/s; the paper has 108.8 GB/s at 8.5 "
        "([rates](docs/performance.md)).", 120, break_long_words=False)


def render(text, stale):
    """The README with what is recorded; ``stale`` are the labels of each kind."""
    recorded = json.loads((content.ROOT / "synth/baseline.json").read_text())
    return marks.render(text, {"yardstick": partial(yardstick, measured.load(), stale["measured"]),
                                "reach": partial(reach, text, recorded, rates.load(), stale["bench"])})


if __name__ == "__main__":
    PATH.write_text(render(PATH.read_text(), figures.stale_labels()))
