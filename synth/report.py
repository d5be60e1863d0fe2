"""What a run says: the table on screen, and the same as JSON and as Markdown."""

import json
from dataclasses import asdict, dataclass, replace

from rich import box
from rich.table import Table

from synth.flow import BUILD, NAND2, PERIOD, TARGET, Figures

__all__ = ["NOTES", "PAPER", "Row", "lines", "sharing", "sums", "table", "write"]

# Areas in um2 of what is built here, too. Source: JPEG-ACT, Table IV.
PAPER = {
    "SFPR": 44924,
    "DCT + iDCT": 229118,
    "Quantize (SH)": 1593,
    "Coding (ZVC + ZVD)": 21519,
    "Collector + Splitter": 173445,
}
# The paper gives no figure for a CDU; this is the sum of the parts that its JPEG-ACT configuration has.
PAPER["CDU"] = sum(PAPER[part] for part in ("SFPR", "DCT + iDCT", "Quantize (SH)", "Coding (ZVC + ZVD)"))

NOTES = (
    "Nangate45, typical corner. No wires, no clock tree, no test logic: synthesis alone, before any layout.",
    "um2: area with clock gates in place of enables; ungated: the same with a multiplexer at each flip-flop; kGE: "
    f"thousands of NAND2_X1 of {NAND2} um2; flop %: the share that flip-flops have in the area.",
    f"ps: ABC's estimate of the slowest path, about 12 % low since it leaves out clock-to-Q and setup; above "
    f"{TARGET} ps (marked !) a unit probably misses {PERIOD} ps. An indication, no timing closure.",
    "paper: JPEG-ACT, Table IV, in um2, by Synopsys Design Compiler and FreePDK45. Its text says that results were "
    "scaled to 15 nm and 50 % added for wires, not whether the table's were; ours are as mapped, so a ratio is a "
    "rough guide.",
    "The paper's figure for a CDU is our sum of its SFPR, DCT + iDCT, SH and ZVC + ZVD, without the buffers.",
)


@dataclass(frozen=True)
class Row:
    """One line of the table: a label, the row of :data:`PAPER` beside it or None, and the figures."""

    label: str
    paper: str | None
    figures: Figures

    @property
    def ratio(self):
        """Our area over the paper's."""
        return self.figures.area / PAPER[self.paper] if self.paper else None


HEADER = ("unit", "um2", "kGE", "flops", "flop %", "ps", "ungated", "paper", "ratio")


def lines(rows):
    """The table's cells as text, a tuple for each row, under :data:`HEADER`."""
    return [
        (
            row.label,
            f"{row.figures.area:,.0f}",
            f"{row.figures.area / NAND2 / 1000:.2f}",
            f"{row.figures.flops:,}",
            f"{row.figures.sequential / row.figures.area:.0%}" if row.figures.area else "-",
            f"{row.figures.delay:.0f}" + ("!" if row.figures.delay > TARGET else ""),
            f"{row.figures.ungated:,.0f}",
            f"{PAPER[row.paper]:,}" if row.paper else "-",
            f"{row.ratio:.2f}" if row.paper else "-",
        )
        for row in rows
    ]


def sums(rows):
    """Rows that stand beside one of the paper's together, if all their parts are there."""
    figures = {row.label: row.figures for row in rows}
    if not {"collector", "splitter"} <= set(figures):
        return []
    parts = [figures["collector"], figures["splitter"]]
    slowest = max(parts, key=lambda part: part.delay)
    added = {name: sum(getattr(part, name) for part in parts)
             for name in ("area", "sequential", "cells", "flops", "gates", "ungated")}
    return [Row("collector + splitter", "Collector + Splitter", replace(slowest, **added))]


def sharing(rows):
    """What one DCT for both directions saves over one for each, as a sentence, or None if those were not mapped."""
    area = {row.label: row.figures.area for row in rows}
    both, forward, inverse = (area.get(label) for label in ("dct", "dct (forward)", "dct (inverse)"))
    if None in (both, forward, inverse):
        return None
    return (f"DCT: one unit for both directions takes {both:,.0f} um2, one for each {forward + inverse:,.0f} um2 "
            f"({forward:,.0f} + {inverse:,.0f}): sharing saves {1 - both / (forward + inverse):.0%}.")


def table(rows):
    """The table for the screen."""
    result = Table(HEADER[0], box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0))
    for column in HEADER[1:]:
        result.add_column(column, justify="right", no_wrap=True)
    for line in lines(rows):
        result.add_row(*line)
    return result


def write(rows, build=BUILD):
    """Writes ``report.json`` and ``report.md`` into ``build``."""
    build.mkdir(parents=True, exist_ok=True)
    everything = {row.label: {**asdict(row.figures), "paper": PAPER.get(row.paper), "ratio": row.ratio} for row in rows}
    (build / "report.json").write_text(json.dumps(everything, indent=1) + "\n")
    markdown = [HEADER, ("---",) + ("---:",) * (len(HEADER) - 1), *lines(rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in markdown)
    notes = "\n".join(f"- {note}" for note in (sharing(rows), *NOTES) if note)
    (build / "report.md").write_text(f"{text}\n\n{notes}\n")
